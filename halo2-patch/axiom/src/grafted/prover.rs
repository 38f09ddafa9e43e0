//! The prover's order of things in a session. A child of upstream's `plonk::prover`.
//!
//! Every round does what stock's does: the same draws from the rng, the same points and scalars to the transcript, in the
//! same order. What lies between is the engine's: columns in, columns out.
//!
//! | round | columns that come | columns that go |
//! |---|---|---|
//! | advice | instance and advice, Lagrange | the circuit's cells |
//! | lookups | compressed and permuted input and table of each | |
//! | permutation | products, as coefficients | |
//! | lookup products | products and permuted columns, as coefficients | compressed and permuted values |
//! | vanishing | the random polynomial; advice as coefficients | advice and instance values |
//! | quotient | the pieces of h | |
//! | evaluations | h at x^n | the pieces of h |
//! | opening | what the scheme needs | everything |
//!
//! Memory: what the engine leases, and a few values for each column; nothing that grows with `n = 2^k`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use ::spillproof::column::{Column, Placement, Workspace, Writer};
use ::spillproof::commit::Scalar;
use ::spillproof::plonkish::permutation::{grand_product, ProductSet};
use ::spillproof::plonkish::{
    evaluate_rows, lookup as lookup_argument, quotient, quotient_in_tiles, Builder, CosetDomain, Program, Source,
};
use ::spillproof::stream::linear_combination;
use ::spillproof::Session;
use ff::PrimeField;

use super::witness::spillproof_witness::{absorb_instances, begin, draw, lagrange_column, synthesize};
use super::*;
use crate::plonk::circuit::{self, Any, Expression};
use crate::plonk::VerifyingKey;
use crate::poly::commitment::ParamsProver;
use crate::poly::Rotation;
use crate::spillproof::constraints::Challenges;
use crate::spillproof::lower::Lowering;
use crate::spillproof::reproducible;
use crate::spillproof::values::{column, evaluate, evaluate_all, from_column, scalar};
use crate::spillproof::verify::{Recording, Watch};
use crate::transcript::Transcript;

#[path = "numerator.rs"]
mod numerator;
#[path = "openings.rs"]
mod openings;

use numerator::numerator;
use openings::{unblinded, Openings};

/// [`super::create_proof`], in a session.
pub(super) fn create<'params, 'a, Scheme, P, E, R, T, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    circuits: &[ConcreteCircuit],
    instances: &[&[&'a [Scheme::Scalar]]],
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    ConcreteCircuit: Circuit<Scheme::Scalar>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    let jobs = pk.vk.selectors.accelerator_jobs();
    let watch = Watch::begin(session, &pk.vk, jobs, circuits.len(), P::SPILLPROOF_CHECK.is_some())?;
    let mut recording = watch.recording(transcript);
    let instance = begin(session, pk, circuits.len(), instances, &mut recording)?;
    let (advice, challenges) = synthesize::<Scheme, P, E, R, Recording<'_, Scheme::Curve, T>, ConcreteCircuit>(
        session, params, pk, circuits, instances, &instance, &mut rng, &mut recording,
    )?;
    let rounds = Rounds { session, params, pk, rng, transcript: &mut recording, _marker: PhantomData::<(&P, &E)> };
    rounds.prove(instance, advice, &challenges)?;
    watch.verify::<Scheme, T>(P::SPILLPROOF_CHECK, params, &pk.vk, instances, recording)
}

/// [`super::create_proof_from_advice`], in a session.
pub(super) fn create_from_advice<'params, Scheme, P, E, R, T>(
    session: &Arc<Session>,
    params: &'params Scheme::ParamsProver,
    pk: &ProvingKey<Scheme::Curve>,
    instances: &[&[Scheme::Scalar]],
    advice: witness::AdviceColumns<Scheme::Scalar>,
    mut rng: R,
    transcript: &mut T,
) -> Result<(), Error>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    let (meta, rows) = (&pk.vk.cs, params.n() as usize);
    if instances.len() != meta.num_instance_columns {
        return Err(Error::InvalidInstances);
    }
    assert_eq!(
        meta.phases().count(),
        1,
        "create_proof_from_advice: challenges of several phases need synthesis"
    );
    assert_eq!(advice.len(), meta.num_advice_columns, "create_proof_from_advice: advice columns");
    for column in &advice {
        assert_eq!(column.len(), rows, "create_proof_from_advice: rows of an advice column");
    }
    let jobs = pk.vk.selectors.accelerator_jobs();
    let watch = Watch::begin(session, &pk.vk, jobs, 1, P::SPILLPROOF_CHECK.is_some())?;
    let mut recording = watch.recording(transcript);
    let transcript = &mut recording;
    let instance = begin(session, pk, 1, &[instances], transcript)?;
    let values = &instance[0].instance_values;
    absorb_instances::<Scheme, P, E, _>(params, instances, values, transcript);

    let usable_rows = rows - (meta.blinding_factors() + 1);
    let (tails, advice_blinds) = draw(advice.len(), rows - usable_rows, &mut rng);
    let mut advice_polys = Vec::with_capacity(advice.len());
    for ((values, tail), blind) in advice.into_iter().zip(tails).zip(&advice_blinds) {
        // The caller's vector goes as soon as its column is written.
        let poly = lagrange_column(session, rows, &values[..usable_rows], &tail)?;
        drop(values);
        transcript.write_point(params.commit_lagrange(&poly, *blind).to_affine())?;
        advice_polys.push(poly);
    }
    let (_, indices) = witness::column_and_challenge_indices(meta);
    let mut challenges = vec![None; meta.num_challenges];
    for &index in &indices[0] {
        challenges[index] = Some(*transcript.squeeze_challenge_scalar::<()>());
    }
    let challenges: Vec<_> = challenges.into_iter().flatten().collect();
    assert_eq!(challenges.len(), meta.num_challenges);

    let rounds = Rounds { session, params, pk, rng, transcript, _marker: PhantomData::<(&P, &E)> };
    rounds.prove(instance, vec![AdviceCommitted { advice_polys, advice_blinds }], &challenges)?;
    watch.verify::<Scheme, T>(P::SPILLPROOF_CHECK, params, &pk.vk, &[instances], recording)
}

/// A polynomial that was committed to.
struct Blinded<F> {
    poly: Polynomial<F, Coeff>,
    blind: Blind<F>,
}

/// A lookup whose product is still to be made: columns of values.
struct Permuted<F> {
    input: Column<Scalar>,
    table: Column<Scalar>,
    permuted_input: Column<Scalar>,
    permuted_table: Column<Scalar>,
    blinds: [Blind<F>; 2],
}

/// A lookup's polynomials.
struct Lookup<F> {
    input: Blinded<F>,
    table: Blinded<F>,
    product: Blinded<F>,
}

/// What a circuit of the proof has, after the last product.
struct Single<F> {
    instance: Vec<Polynomial<F, Coeff>>,
    advice: Vec<Blinded<F>>,
    products: Vec<Blinded<F>>,
    lookups: Vec<Lookup<F>>,
}

/// A circuit's columns of values, fixed ones first.
struct Values<'a> {
    columns: Vec<Column<Scalar>>,
    lowering: Lowering<'a>,
}

/// Everything that all rounds need.
struct Rounds<'r, 'params, Scheme: CommitmentScheme, P, E, R, T> {
    session: &'r Session,
    params: &'params Scheme::ParamsProver,
    pk: &'r ProvingKey<Scheme::Curve>,
    rng: R,
    transcript: &'r mut T,
    _marker: PhantomData<(&'r P, &'r E)>,
}

impl<'params, Scheme, P, E, R, T> Rounds<'_, 'params, Scheme, P, E, R, T>
where
    Scheme: CommitmentScheme,
    P: Prover<'params, Scheme>,
    E: EncodedChallenge<Scheme::Curve>,
    R: RngCore,
    T: TranscriptWrite<Scheme::Curve, E>,
    Scheme::Scalar: Hash + WithSmallOrderMulGroup<3>,
    Scheme::ParamsProver: Sync,
{
    /// From committed advice to the end.
    fn prove(
        mut self,
        instance: Vec<InstanceSingle<Scheme::Curve>>,
        advice: Vec<AdviceCommitted<Scheme::Curve, LagrangeCoeff>>,
        challenges: &[Scheme::Scalar],
    ) -> Result<(), Error> {
        let challenges: Vec<Scalar> = challenges.iter().map(scalar).collect();
        let fixed = columns(&self.pk.fixed_values)?;
        let values = instance
            .iter()
            .zip(&advice)
            .map(|(instance, advice)| Values::new(&fixed, advice, instance, &challenges))
            .collect::<io::Result<Vec<_>>>()?;
        drop(fixed);

        let theta: ChallengeTheta<_> = self.transcript.squeeze_challenge_scalar();
        let theta = scalar(&*theta);
        let lookups = {
            let _span = tracing::info_span!(target: "spillproof::step", "lookups").entered();
            let permute = |values: &Values<'_>| self.permute_lookups(values, theta);
            values.iter().map(permute).collect::<Result<Vec<_>, _>>()?
        };
        let beta: ChallengeBeta<_> = self.transcript.squeeze_challenge_scalar();
        let gamma: ChallengeGamma<_> = self.transcript.squeeze_challenge_scalar();
        let (beta, gamma) = (scalar(&*beta), scalar(&*gamma));
        let products = {
            let _span = tracing::info_span!(target: "spillproof::step", "permutation").entered();
            let sigmas = columns(self.pk.permutation.permutations())?;
            let products = |values: &Values<'_>| self.permutation_products(values, &sigmas, beta, gamma);
            values.iter().map(products).collect::<Result<Vec<_>, _>>()?
        };
        drop(values);
        let lookups = {
            let _span = tracing::info_span!(target: "spillproof::step", "lookup products").entered();
            let products = |lookups| self.lookup_products(lookups, beta, gamma);
            lookups.into_iter().map(products).collect::<Result<Vec<_>, _>>()?
        };
        let random = self.random_polynomial()?;
        let y: ChallengeY<_> = self.transcript.squeeze_challenge_scalar();

        let circuits: Vec<Single<Scheme::Scalar>> = {
            let _span = tracing::info_span!(target: "spillproof::step", "advice polynomials").entered();
            let domain = &self.pk.vk.domain;
            instance
                .into_iter()
                .zip(advice)
                .zip(products)
                .zip(lookups)
                .map(|(((instance, advice), products), lookups)| {
                    let AdviceCommitted { advice_polys, advice_blinds } = advice;
                    let blinded = |(poly, blind)| Blinded { poly: domain.lagrange_to_coeff(poly), blind };
                    Single {
                        instance: instance.instance_polys,
                        advice: advice_polys.into_iter().zip(advice_blinds).map(blinded).collect(),
                        products,
                        lookups,
                    }
                })
                .collect()
        };
        let arguments = Challenges { challenges: &challenges, theta, beta, gamma, y: scalar(&*y) };
        let pieces = self.quotient(&circuits, &arguments)?;
        self.open(&circuits, pieces, random)
    }

    /// Permutes each lookup's compressed input and table, and commits to both.
    fn permute_lookups(
        &mut self,
        values: &Values<'_>,
        theta: Scalar,
    ) -> Result<Vec<Permuted<Scheme::Scalar>>, Error> {
        let (session, params, cs) = (self.session, self.params, &self.pk.vk.cs);
        let workspace = session.workspace();
        let blinded_rows = cs.blinding_factors() + 1;
        let usable_rows = params.n() - blinded_rows as u64;
        let mut permuted = Vec::with_capacity(cs.lookups.len());
        for lookup in &cs.lookups {
            let expressions = [&lookup.input_expressions[..], &lookup.table_expressions[..]];
            let [input, table] = values.compressed(session, expressions, theta, params.n())?;
            let (tails, blinds) = draw::<Scheme::Scalar>(2, blinded_rows, &mut self.rng);
            let [input_tail, table_tail] = [0, 1].map(|i| tails[i].iter().map(scalar).collect::<Vec<_>>());
            let permuted_columns =
                lookup_argument::permute(workspace, &input, &table, usable_rows, &input_tail, &table_tail);
            let (permuted_input, permuted_table) = permuted_columns.map_err(io::Error::other)?;
            let polys = [&permuted_input, &permuted_table].map(|column| from_column(column.clone()));
            let blinded: Vec<_> = polys.iter().zip(blinds.iter().copied()).collect();
            for commitment in params.commit_lagrange_many(&blinded) {
                self.transcript.write_point(commitment.to_affine())?;
            }
            permuted.push(Permuted { input, table, permuted_input, permuted_table, blinds: [blinds[0], blinds[1]] });
        }
        Ok(permuted)
    }

    /// The running products of the permutation, a set of columns at a time: each begins where the one before ended.
    fn permutation_products(
        &mut self,
        values: &Values<'_>,
        sigmas: &[Column<Scalar>],
        beta: Scalar,
        gamma: Scalar,
    ) -> Result<Vec<Blinded<Scheme::Scalar>>, Error> {
        let (session, params, vk) = (self.session, self.params, &self.pk.vk);
        assert!(vk.cs_degree >= 3);
        let set_len = vk.cs_degree - 2;
        let delta = scalar(&<Scheme::Scalar as PrimeField>::DELTA);
        let omega = scalar(&vk.domain.get_omega());
        let (mut first, mut delta_start) = (Scalar::from(1u64), Scalar::from(1u64));
        let mut products = Vec::new();
        for (permuted, sigmas) in vk.cs.permutation.columns.chunks(set_len).zip(sigmas.chunks(set_len)) {
            let tail = random_scalars::<Scheme::Scalar>(vk.cs.blinding_factors(), &mut self.rng);
            let set = ProductSet {
                values: permuted.iter().map(|column| values.column(column)).collect(),
                sigmas: sigmas.iter().collect(),
                beta,
                gamma,
                delta_start,
                delta,
                omega,
            };
            let product = grand_product(session.workspace(), &set, params.n(), first, &tail);
            let (product, last) = product.map_err(io::Error::other)?;
            first = last;
            permuted.iter().for_each(|_| delta_start *= delta);
            products.push(self.commit_values(product)?);
        }
        Ok(products)
    }

    /// The running products of the lookups, and all of their polynomials.
    fn lookup_products(
        &mut self,
        lookups: Vec<Permuted<Scheme::Scalar>>,
        beta: Scalar,
        gamma: Scalar,
    ) -> Result<Vec<Lookup<Scheme::Scalar>>, Error> {
        let (session, vk) = (self.session, &self.pk.vk);
        let mut made = Vec::with_capacity(lookups.len());
        for lookup in lookups {
            let tail = random_scalars::<Scheme::Scalar>(vk.cs.blinding_factors(), &mut self.rng);
            let Permuted { input, table, permuted_input, permuted_table, blinds } = lookup;
            let product = lookup_argument::product(
                session.workspace(),
                &input,
                &table,
                &permuted_input,
                &permuted_table,
                beta,
                gamma,
                &tail,
            );
            drop((input, table));
            let product = self.commit_values(product.map_err(io::Error::other)?)?;
            let [input, table] = [(permuted_input, blinds[0]), (permuted_table, blinds[1])]
                .map(|(values, blind)| Blinded { poly: vk.domain.lagrange_to_coeff(from_column(values)), blind });
            made.push(Lookup { input, table, product });
        }
        Ok(made)
    }

    /// Draws a blind, commits to the column, hashes the commitment, and goes on to coefficients.
    fn commit_values(&mut self, values: Column<Scalar>) -> Result<Blinded<Scheme::Scalar>, Error> {
        let values = from_column(values);
        let blind = Blind(Scheme::Scalar::random(&mut self.rng));
        self.transcript.write_point(self.params.commit_lagrange(&values, blind).to_affine())?;
        Ok(Blinded { poly: self.pk.vk.domain.lagrange_to_coeff(values), blind })
    }

    /// The vanishing argument's random polynomial; see `vanishing.rs` for where it is drawn from.
    fn random_polynomial(&mut self) -> Result<Blinded<Scheme::Scalar>, Error> {
        let _span = tracing::info_span!(target: "spillproof::step", "random polynomial").entered();
        let (workspace, rows) = (self.session.workspace(), self.params.n());
        let poly = if reproducible() {
            random_column::<Scheme::Scalar>(workspace, rows, &mut self.rng)
        } else {
            random_column::<Scheme::Scalar>(workspace, rows, rand::thread_rng())
        };
        let poly = from_column(poly.map_err(io::Error::other)?);
        let blind = Blind(Scheme::Scalar::random(&mut self.rng));
        self.transcript.write_point(self.params.commit(&poly, blind).to_affine())?;
        Ok(Blinded { poly, blind })
    }

    /// The pieces of h, committed to.
    fn quotient(
        &mut self,
        circuits: &[Single<Scheme::Scalar>],
        challenges: &Challenges<'_>,
    ) -> Result<Vec<Blinded<Scheme::Scalar>>, Error> {
        let span = tracing::info_span!(target: "spillproof::step", "quotient").entered();
        let (session, params, domain) = (self.session, self.params, &self.pk.vk.domain);
        let (held, numerator) = numerator(self.pk, circuits, challenges)?;
        let mut sources: Vec<Source<'_, Scalar>> = held.iter().map(Source::Coefficients).collect();
        sources.extend([Source::Identity, Source::FirstLagrange]);
        let cosets = CosetDomain {
            log_n: domain.k(),
            omega: scalar(&domain.get_omega()),
            log_cosets: domain.extended_k() - domain.k(),
            extended_omega: scalar(&domain.get_extended_omega()),
            shift: scalar(&domain.g_coset),
            pieces: domain.quotient_poly_degree as usize,
        };
        let workspace = session.workspace();
        let pieces = match session.quotient_tile_rows() {
            None => quotient(workspace, &sources, &numerator, &cosets),
            Some(rows) => quotient_in_tiles(workspace, &sources, &numerator, &cosets, rows),
        };
        let mut pieces: Vec<_> = pieces
            .map_err(io::Error::other)?
            .into_iter()
            .map(|piece| Blinded { poly: from_column(piece), blind: Blind(Scheme::Scalar::random(&mut self.rng)) })
            .collect();
        drop(span);
        let _span = tracing::info_span!(target: "spillproof::step", "commit quotient").entered();
        let blinded: Vec<_> = pieces.iter().map(|piece| (&piece.poly, piece.blind)).collect();
        for commitment in params.commit_many(&blinded) {
            self.transcript.write_point(commitment.to_affine())?;
        }
        Ok(pieces)
    }

    /// Evaluations, and the opening of everything.
    fn open(
        mut self,
        circuits: &[Single<Scheme::Scalar>],
        pieces: Vec<Blinded<Scheme::Scalar>>,
        random: Blinded<Scheme::Scalar>,
    ) -> Result<(), Error> {
        let (pk, vk, params) = (self.pk, &self.pk.vk, self.params);
        let x: ChallengeX<_> = self.transcript.squeeze_challenge_scalar();
        let x = *x;
        let span = tracing::info_span!(target: "spillproof::step", "evaluations").entered();
        let h = self.recombined(pieces, x.pow([params.n()]))?;
        let openings = Openings::new(vk, x, P::QUERY_INSTANCE);
        let fixed = openings.fixed(&pk.fixed_polys);
        let sigmas: Vec<_> = pk.permutation.polys.iter().map(|poly| (poly, x)).collect();
        let [mut evaluations, products] = openings.evaluations(circuits);
        evaluations.extend(&fixed);
        evaluations.push((&random.poly, x));
        evaluations.extend(&sigmas);
        evaluations.extend(products);
        // The proof does not say what h is at x, but the opening needs it.
        evaluations.push((&h.poly, x));
        evaluate_all(&evaluations)?;
        evaluations.pop();
        for (poly, point) in evaluations {
            self.transcript.write_scalar(evaluate(poly, point))?;
        }
        drop(span);

        let mut queries: Vec<_> = circuits.iter().flat_map(|circuit| openings.queries(circuit)).collect();
        queries.extend(unblinded(fixed.into_iter().chain(sigmas)));
        queries.extend([&h, &random].map(|Blinded { poly, blind }| ProverQuery { point: x, poly, blind: *blind }));

        let _span = tracing::info_span!(target: "spillproof::step", "opening").entered();
        P::new(params)
            .create_proof(&mut self.rng, self.transcript, queries)
            .map_err(|_| Error::ConstraintSystemFailure)
    }

    /// `h` from its pieces, at `xn = x^n`: the polynomial that agrees with it at x.
    fn recombined(
        &self,
        pieces: Vec<Blinded<Scheme::Scalar>>,
        xn: Scheme::Scalar,
    ) -> Result<Blinded<Scheme::Scalar>, Error> {
        let columns = pieces.iter().map(|piece| column(&piece.poly)).collect::<io::Result<Vec<_>>>()?;
        let mut factor = Scheme::Scalar::ONE;
        let mut terms = Vec::with_capacity(columns.len());
        for column in &columns {
            terms.push((scalar(&factor), column));
            factor *= xn;
        }
        let poly = from_column(linear_combination(&terms, Placement::Auto).map_err(io::Error::other)?);
        let blinds = pieces.iter().rev();
        let blind = blinds.fold(Blind(Scheme::Scalar::ZERO), |sum, piece| sum * Blind(xn) + piece.blind);
        Ok(Blinded { poly, blind })
    }
}

impl<'a> Values<'a> {
    fn new<C: CurveAffine>(
        fixed: &[Column<Scalar>],
        advice: &AdviceCommitted<C, LagrangeCoeff>,
        instance: &InstanceSingle<C>,
        challenges: &'a [Scalar],
    ) -> io::Result<Self> {
        let mut all = fixed.to_vec();
        all.extend(columns(&advice.advice_polys)?);
        all.extend(columns(&instance.instance_values)?);
        let (advice, instance) = (fixed.len(), fixed.len() + advice.advice_polys.len());
        Ok(Self { columns: all, lowering: Lowering { fixed: 0, advice, instance, challenges } })
    }

    fn column(&self, column: &circuit::Column<Any>) -> &Column<Scalar> {
        &self.columns[self.lowering.column(column)]
    }

    /// A lookup's input and table, each compressed to one column. What is a column already is not written again.
    fn compressed<F: Field>(
        &self,
        session: &Session,
        sides: [&[Expression<F>]; 2],
        theta: Scalar,
        rows: u64,
    ) -> io::Result<[Column<Scalar>; 2]> {
        let mut builder = Builder::new();
        let mut outputs = Vec::new();
        let plain = sides.map(|expressions| {
            let plain = match expressions {
                [expression] => self.lowering.plain_column(expression),
                _ => None,
            };
            if plain.is_none() {
                outputs.push(self.lowering.compressed(&mut builder, expressions, theta));
            }
            plain
        });
        let mut made = if outputs.is_empty() {
            Vec::new()
        } else {
            let program = builder.finish(&outputs);
            let columns: Vec<&Column<Scalar>> = self.columns.iter().collect();
            evaluate_rows(session.workspace(), &columns, &program, rows, Placement::Auto)
                .map_err(io::Error::other)?
        }
        .into_iter();
        let missing = || io::Error::other("a program with fewer columns than outputs");
        let mut side = |plain: Option<usize>| match plain {
            Some(column) => Ok(self.columns[column].clone()),
            None => made.next().ok_or_else(missing),
        };
        Ok([side(plain[0])?, side(plain[1])?])
    }
}

/// The columns behind polynomials.
fn columns<F: Field, B>(polys: &[Polynomial<F, B>]) -> io::Result<Vec<Column<Scalar>>> {
    polys.iter().map(column).collect()
}

fn random_scalars<F: Field>(count: usize, mut rng: impl RngCore) -> Vec<Scalar> {
    (0..count).map(|_| scalar(&F::random(&mut rng))).collect()
}

/// A column of random values, drawn in order.
fn random_column<F: Field>(
    workspace: &Workspace,
    rows: u64,
    mut rng: impl RngCore,
) -> ::spillproof::Result<Column<Scalar>> {
    workspace.run_here(|| {
        let mut writer = Writer::scratch(workspace, "random polynomial", rows, Placement::Auto)?;
        let mut left = rows;
        while left > 0 {
            let now = left.min(1 << 12);
            writer.push(&random_scalars::<F>(now as usize, &mut rng))?;
            left -= now;
        }
        writer.finish()
    })
}
