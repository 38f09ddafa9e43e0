//! A proof, from committed advice to its end.
//!
//! Every round does what halo2's prover does: the same draws, the same points and scalars to the transcript,
//! in the same order. What lies between is the engine's: columns in, columns out.
//!
//! | round | columns that come | columns that go |
//! |---|---|---|
//! | advice | instance and advice, Lagrange | the circuit's cells |
//! | lookups | compressed and permuted input and table of each | |
//! | permutation | products, as coefficients | |
//! | lookup products | products and permuted columns, as coefficients | compressed and permuted values |
//! | trash | trash columns, as coefficients | |
//! | vanishing | the random polynomial; advice as coefficients | advice and instance values |
//! | quotient | the pieces of h | |
//! | evaluations | h from its pieces | the pieces of h |
//! | opening | the columns of the scheme | everything |
//!
//! Memory: what the engine leases, and a few values for each column; nothing that grows with `n = 2^k`.

use std::io;
use std::sync::Arc;

use crate::stages::lookup as lookup_argument;
use crate::stages::permutation::{ProductSet, grand_product};
use crate::stages::{
    Builder, Source, coefficients, evaluate_rows, quotient_in_tiles, quotient_of_constraints, recut,
};
use ark_ff::{AdditiveGroup, Field};
use spillproof_commit::Basis;
use spillproof_engine::column::{Column, Placement, Workspace};
use spillproof_engine::step;
use spillproof_engine::stream::linear_combination;
use spillproof_kernels::curve::Curve;
use spillproof_kernels::field::KernelField;

use crate::circuit::{ColumnId, ConstraintSystem, Expression};
use crate::curve::{Config, Scalar, ScalarOf};
use crate::domain::Domain;
use crate::draws::{Digest, Drawn, Tail};
use crate::error::{Error, Result};
use crate::lower::Lowering;
use crate::numerator::{Challenges, Numerator, circuits_together, numerator};
use crate::openings::powers;
use crate::order::{Evaluations, Lookup, Order, Polynomials};
use crate::outside::Blinded;
use crate::protocol::{Lookups, Pieces};
use crate::random;
use crate::rounds::{Kept, Rounds};
use crate::witness::InstanceColumns;

/// The columns of a proving key. They are asked for when they are needed, and dropped soon after: a key in
/// memory makes scratch columns each time.
pub trait KeyColumns<F = Scalar> {
    /// Fixed columns, as values.
    ///
    /// # Errors
    /// The engine's.
    fn fixed_values(&self) -> Result<Vec<Column<F>>>;
    /// Fixed columns, as coefficients.
    ///
    /// # Errors
    /// The engine's.
    fn fixed_polynomials(&self) -> Result<Vec<Column<F>>>;
    /// Sigma columns, as values.
    ///
    /// # Errors
    /// The engine's.
    fn sigma_values(&self) -> Result<Vec<Column<F>>>;
    /// Sigma columns, as coefficients.
    ///
    /// # Errors
    /// The engine's.
    fn sigma_polynomials(&self) -> Result<Vec<Column<F>>>;
}

/// What all rounds need.
pub struct Prover<'a, 'p, C: Curve = Config> {
    /// Where columns live.
    pub workspace: &'a Workspace,
    /// The rows of a quotient's tiles; what fits the budget best, if it is not said.
    pub quotient_tile_rows: Option<u64>,
    /// The circuit, with columns for selectors.
    pub cs: &'a ConstraintSystem<ScalarOf<C>>,
    /// Its rows.
    pub domain: &'a Domain<ScalarOf<C>>,
    /// The proving key.
    pub key: &'a dyn KeyColumns<ScalarOf<C>>,
    /// The protocol, what it talks to, and what is kept of the rounds before.
    pub rounds: &'a mut Rounds<'p, C>,
}

/// A circuit's columns after all phases of its witness.
#[derive(Clone, Debug)]
pub struct Committed<F = Scalar> {
    /// The instance columns.
    pub instance: InstanceColumns<F>,
    /// The advice columns, as values.
    pub advice: Vec<Blinded<F>>,
}

/// A permuted input and its table.
type Pair<F> = [Blinded<F>; 2];

/// A lookup whose product is still to be made: columns of values.
struct Permuted<F> {
    input: Column<F>,
    table: Column<F>,
    permuted: Pair<F>,
}

/// A circuit's columns of values, fixed ones first.
struct ValueColumns<'a, F> {
    columns: Vec<Column<F>>,
    lowering: Lowering<'a, F>,
}

impl<C: Curve> Prover<'_, '_, C> {
    /// Makes the rest of a proof. `challenges` are those of the circuit's phases.
    ///
    /// # Errors
    /// The engine's, and the protocol's.
    pub(crate) fn prove(
        mut self,
        circuits: Vec<Committed<ScalarOf<C>>>,
        challenges: Vec<ScalarOf<C>>,
    ) -> Result<()> {
        if !self.rounds.protocol.trash && !self.cs.trash.is_empty() {
            return Err(invalid("a circuit with trash arguments, by a protocol without"));
        }
        let fixed = self.key.fixed_values()?;
        let values: Vec<_> = circuits
            .iter()
            .map(|circuit| ValueColumns::new(&fixed, circuit, &challenges))
            .collect();
        drop(fixed);

        let theta = self.rounds.challenge()?;
        let lookups = {
            let _step = step!(self.workspace, "lookups");
            let permute = |values: &ValueColumns<'_, ScalarOf<C>>| self.permute_lookups(values, theta);
            values.iter().map(permute).collect::<Result<Vec<_>>>()?
        };
        let (beta, gamma) = (self.rounds.challenge()?, self.rounds.challenge()?);
        let products = {
            let _step = step!(self.workspace, "permutation");
            let sigmas = self.key.sigma_values()?;
            let products = |values: &ValueColumns<'_, ScalarOf<C>>| {
                self.permutation_products(values, &sigmas, beta, gamma)
            };
            values.iter().map(products).collect::<Result<Vec<_>>>()?
        };
        // Only trash arguments need them once more.
        let values = if self.cs.trash.is_empty() {
            Vec::new()
        } else {
            values
        };
        let lookups = {
            let _step = step!(self.workspace, "lookup products");
            let products = |lookups| self.lookup_products(lookups, beta, gamma);
            lookups.into_iter().map(products).collect::<Result<Vec<_>>>()?
        };
        let trash_challenge = match self.rounds.protocol.trash {
            true => self.rounds.challenge()?,
            false => ScalarOf::<C>::ZERO,
        };
        let mut trash = vec![Vec::new(); circuits.len()];
        for (trash, values) in trash.iter_mut().zip(values) {
            let _step = step!(self.workspace, "trash");
            *trash = self.trash(&values, trash_challenge)?;
        }
        let random = self.random_polynomial()?;
        let y = self.rounds.challenge()?;

        let polynomials = {
            let _step = step!(self.workspace, "advice polynomials");
            let parts = circuits.into_iter().zip(products).zip(lookups).zip(trash);
            parts
                .map(|(((Committed { instance, advice }, products), lookups), trash)| {
                    Ok(Polynomials {
                        advice: self.all_to_coefficients(advice)?,
                        instance: instance.polynomials.into_iter().map(Blinded::unhidden).collect(),
                        products,
                        lookups,
                        trash,
                    })
                })
                .collect::<Result<Vec<_>>>()?
        };
        let challenges = Challenges {
            circuit: challenges,
            theta,
            beta,
            gamma,
            trash: trash_challenge,
            y,
        };
        let pieces = self.quotient(&polynomials, &challenges)?;
        self.open(&polynomials, pieces, random)
    }

    /// A round that commits to the columns of `kept`, or makes them if there is none.
    fn round(
        &mut self,
        basis: Basis,
        drawn: &Drawn<ScalarOf<C>>,
        mut kept: Option<Kept<C>>,
        make: impl FnOnce() -> Result<Vec<Column<ScalarOf<C>>>>,
    ) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let columns = match &mut kept {
            Some(kept) => kept.take_columns(),
            None => make()?,
        };
        self.rounds.commit(self.workspace, basis, columns, drawn, kept)
    }

    /// The next round, of so many columns, if an earlier run has kept it.
    fn kept(&mut self, columns: usize) -> Result<Option<Kept<C>>> {
        self.rounds.kept(self.workspace, columns, self.domain.rows())
    }

    /// Permutes each lookup's compressed input and table, and commits to both.
    fn permute_lookups(
        &mut self,
        values: &ValueColumns<'_, ScalarOf<C>>,
        theta: ScalarOf<C>,
    ) -> Result<Vec<Permuted<ScalarOf<C>>>> {
        let (cs, workspace, rows) = (self.cs, self.workspace, self.domain.rows());
        let unusable_rows = cs.unusable_rows();
        let usable_rows = rows - unusable_rows as u64;
        let kept = self.kept(cs.lookups.len())?;
        let drawn = self
            .rounds
            .draw(vec![Tail::Random(unusable_rows); 2 * cs.lookups.len()], 2);
        let Lookups::Permuted(left_overs) = self.rounds.protocol.lookups;
        let compress = |lookup: &crate::circuit::Lookup<ScalarOf<C>>| {
            let sides = [&lookup.input[..], &lookup.table[..]];
            values.compressed(workspace, sides, theta, rows)
        };
        let compressed = cs.lookups.iter().map(compress).collect::<Result<Vec<_>>>()?;
        let permuted = match kept.is_none() {
            false => Vec::new(),
            true => {
                let sides: Vec<_> = compressed.iter().map(|sides| sides.each_ref()).collect();
                let tails = drawn.tails.chunks_exact(2);
                let tails: Vec<_> = tails.map(|tails| [&tails[0][..], &tails[1][..]]).collect();
                lookup_argument::permute_all(workspace, &sides, usable_rows, &tails, left_overs)?
            }
        };
        let permuted = permuted.into_iter().flatten().collect();
        let mut permuted = self
            .round(Basis::Lagrange, &drawn, kept, || Ok(permuted))?
            .into_iter();
        let pairs = std::iter::from_fn(|| Some([permuted.next()?, permuted.next()?]));
        let made = compressed.into_iter().zip(pairs);
        let made = made.map(|([input, table], permuted)| Permuted {
            input,
            table,
            permuted,
        });
        Ok(made.collect())
    }

    /// The running products of the permutation, a set of columns at a time: each begins where the one before
    /// ended.
    fn permutation_products(
        &mut self,
        values: &ValueColumns<'_, ScalarOf<C>>,
        sigmas: &[Column<ScalarOf<C>>],
        beta: ScalarOf<C>,
        gamma: ScalarOf<C>,
    ) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let (cs, workspace, domain) = (self.cs, self.workspace, self.domain);
        let kept = self.kept(cs.permutation_products())?;
        let drawn = self.draw_products(cs.permutation_products());
        let make = || {
            let set_len = cs.permutation_chunk();
            let (mut first, mut delta_start) = (ScalarOf::<C>::ONE, ScalarOf::<C>::ONE);
            let mut products = Vec::with_capacity(drawn.tails.len());
            let sets = cs.permuted.chunks(set_len).zip(sigmas.chunks(set_len));
            for ((permuted, sigmas), tail) in sets.zip(&drawn.tails) {
                let set = ProductSet {
                    values: permuted.iter().map(|column| values.column(*column)).collect(),
                    sigmas: sigmas.iter().collect(),
                    beta,
                    gamma,
                    delta_start,
                    delta: domain.delta,
                    omega: domain.omega,
                };
                let (product, last) = grand_product(workspace, &set, domain.rows(), first, tail)?;
                first = last;
                permuted.iter().for_each(|_| delta_start *= domain.delta);
                products.push(product);
            }
            Ok(products)
        };
        let products = self.round(Basis::Lagrange, &drawn, kept, make)?;
        self.all_to_coefficients(products)
    }

    /// The running products of the lookups, and all of their polynomials.
    fn lookup_products(
        &mut self,
        lookups: Vec<Permuted<ScalarOf<C>>>,
        beta: ScalarOf<C>,
        gamma: ScalarOf<C>,
    ) -> Result<Vec<Lookup<ScalarOf<C>>>> {
        let workspace = self.workspace;
        let kept = self.kept(lookups.len())?;
        let drawn = self.draw_products(lookups.len());
        let split = |lookup: Permuted<ScalarOf<C>>| ((lookup.input, lookup.table), lookup.permuted);
        let (compressed, permuted): (Vec<_>, Vec<_>) = lookups.into_iter().map(split).unzip();
        let make = || {
            let columns = compressed.into_iter().zip(&permuted);
            let columns = columns.map(|((input, table), [a, s]): (_, &Pair<ScalarOf<C>>)| {
                [input, table, a.column.clone(), s.column.clone()]
            });
            let tails: Vec<&[ScalarOf<C>]> = drawn.tails.iter().map(|tail| &tail[..]).collect();
            Ok(lookup_argument::product_all(
                workspace,
                columns.collect(),
                beta,
                gamma,
                &tails,
            )?)
        };
        let products = self.round(Basis::Lagrange, &drawn, kept, make)?;
        let each = products.into_iter().zip(permuted);
        let all = each.flat_map(|(product, [input, table])| [input, table, product]);
        let mut all = self.all_to_coefficients(all.collect())?.into_iter();
        let lookup = || {
            Some(Lookup {
                input: all.next()?,
                table: all.next()?,
                product: all.next()?,
            })
        };
        Ok(std::iter::from_fn(lookup).collect())
    }

    /// The trash columns, as coefficients: what the folded constraints are, in all rows.
    fn trash(
        &mut self,
        values: &ValueColumns<'_, ScalarOf<C>>,
        challenge: ScalarOf<C>,
    ) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let (cs, workspace, rows) = (self.cs, self.workspace, self.domain.rows());
        let kept = self.kept(cs.trash.len())?;
        let drawn = self.rounds.draw(vec![Tail::Zeros(0); cs.trash.len()], 1);
        let make = || {
            let folded = cs.trash.iter().map(|trash| {
                let [folded] = values.compressed(workspace, [&trash.constraints], challenge, rows)?;
                Ok(folded)
            });
            folded.collect()
        };
        let columns = self.round(Basis::Lagrange, &drawn, kept, make)?;
        self.all_to_coefficients(columns)
    }

    /// The last rows of so many products.
    fn draw_products(&mut self, products: usize) -> Drawn<ScalarOf<C>> {
        self.rounds
            .draw(vec![Tail::Random(self.cs.blinding_factors); products], 1)
    }

    /// Values to coefficients; the values go.
    fn all_to_coefficients(&self, values: Vec<Blinded<ScalarOf<C>>>) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let inverse = self.domain.to_coefficients()?;
        let (columns, blinds): (Vec<_>, Vec<_>) = values
            .into_iter()
            .map(|values| (values.column, values.blind))
            .unzip();
        let columns = coefficients(columns, &inverse)?.into_iter().zip(blinds);
        Ok(columns.map(|(column, blind)| Blinded { column, blind }).collect())
    }

    /// The vanishing argument's random polynomial.
    fn random_polynomial(&mut self) -> Result<Blinded<ScalarOf<C>>> {
        let _step = step!(self.workspace, "random polynomial");
        let (workspace, rows) = (self.workspace, self.domain.rows());
        let kept = self.kept(1)?;
        let mut digest = (!self.rounds.protocol.blinds).then(Digest::default);
        let column = random::polynomial(
            workspace,
            rows,
            kept.is_some(),
            self.rounds.outside,
            digest.as_mut(),
        )?;
        let drawn = self.rounds.draw(vec![Tail::Zeros(0)], 1);
        let drawn = match &digest {
            Some(digest) => drawn.beside(digest),
            None => drawn,
        };
        let make = || Ok(column.into_iter().collect());
        let random = self.round(Basis::Monomial, &drawn, kept, make)?;
        let one = || io::Error::other("a round of one column that has none").into();
        random.into_iter().next().ok_or_else(one)
    }

    /// The pieces of h, committed to.
    fn quotient(
        &mut self,
        circuits: &[Polynomials<ScalarOf<C>>],
        challenges: &Challenges<ScalarOf<C>>,
    ) -> Result<Vec<Blinded<ScalarOf<C>>>> {
        let (count, rule) = (self.domain.cosets.pieces, self.rounds.protocol.pieces);
        if rule == Pieces::OneShort && count < 2 {
            return Err(invalid(
                "a quotient of one piece, by a protocol that carries from piece to piece",
            ));
        }
        let mut kept = self.kept(count)?;
        let made = match &mut kept {
            Some(kept) => kept.take_columns(),
            None => {
                let _step = step!(self.workspace, "quotient");
                self.pieces(circuits, challenges)?
            }
        };
        let drawn = self.rounds.draw(rule.tails(count), count);
        let pieces = match rule {
            Pieces::OneShort if kept.is_none() => {
                let _step = step!(self.workspace, "cut quotient");
                recut(self.workspace, made, &drawn.tails.concat())?
            }
            Pieces::OneShort | Pieces::OfRows => made,
        };
        let _step = step!(self.workspace, "commit quotient");
        self.rounds
            .commit(self.workspace, Basis::Monomial, pieces, &drawn, kept)
    }

    /// The pieces of h: those of each group of circuits, folded.
    fn pieces(
        &self,
        circuits: &[Polynomials<ScalarOf<C>>],
        challenges: &Challenges<ScalarOf<C>>,
    ) -> Result<Vec<Column<ScalarOf<C>>>> {
        let of = |circuits| {
            let make = || numerator(self.cs, self.domain.delta, circuits, challenges);
            match self.rounds.numerators {
                Some(of_dry_runs) => of_dry_runs.get(circuits, make),
                None => Arc::new(make()),
            }
        };
        let together = circuits_together(self.cs, circuits.len());
        let whole = of(together);
        let mut pieces: Option<Vec<Column<ScalarOf<C>>>> = None;
        for circuits in circuits.chunks(together) {
            let rest;
            let numerator = match circuits.len() == together {
                true => &whole,
                false => {
                    rest = of(circuits.len());
                    &rest
                }
            };
            let of_group = self.pieces_of_group(circuits, numerator)?;
            pieces = Some(match pieces {
                None => of_group,
                Some(before) => {
                    let factor = challenges.y.pow([numerator.constraints.len() as u64]);
                    let folded = |(before, piece): (&Column<ScalarOf<C>>, &Column<ScalarOf<C>>)| {
                        linear_combination(&[(factor, before), (ScalarOf::<C>::ONE, piece)], Placement::Auto)
                    };
                    let folded = before.iter().zip(&of_group).map(folded);
                    folded.collect::<spillproof_engine::Result<_>>()?
                }
            });
        }
        match pieces {
            Some(pieces) => Ok(pieces),
            None => self.pieces_of_group(circuits, &of(0)),
        }
    }

    fn pieces_of_group(
        &self,
        circuits: &[Polynomials<ScalarOf<C>>],
        numerator: &Numerator<ScalarOf<C>>,
    ) -> Result<Vec<Column<ScalarOf<C>>>> {
        let columns = self.columns_of_group(circuits)?;
        debug_assert_eq!(columns.len(), numerator.columns);
        let mut sources: Vec<Source<'_, ScalarOf<C>>> = columns.iter().map(Source::Coefficients).collect();
        sources.extend([Source::Identity, Source::FirstLagrange]);
        let (program, cosets) = (&numerator.program, &self.domain.cosets);
        Ok(match self.quotient_tile_rows {
            None => {
                let numerator = (&numerator.constraints, program);
                quotient_of_constraints(self.workspace, &sources, numerator, cosets)
            }
            Some(rows) => quotient_in_tiles(self.workspace, &sources, program, cosets, rows),
        }?)
    }

    /// The columns of coefficients that the numerator of these circuits reads, in the order of its program.
    fn columns_of_group(&self, circuits: &[Polynomials<ScalarOf<C>>]) -> Result<Vec<Column<ScalarOf<C>>>> {
        let mut all = self.key.fixed_polynomials()?;
        all.extend(self.key.sigma_polynomials()?);
        for circuit in circuits {
            let lookups = circuit.lookups.iter();
            let lookups = lookups.flat_map(|lookup| [&lookup.input, &lookup.table, &lookup.product]);
            let committed = circuit.advice.iter().chain(&circuit.instance);
            let committed = committed.chain(&circuit.products).chain(lookups);
            let committed = committed.chain(&circuit.trash);
            all.extend(committed.map(|poly| poly.column.clone()));
        }
        Ok(all)
    }

    /// Evaluations, and the opening of everything.
    fn open(
        self,
        circuits: &[Polynomials<ScalarOf<C>>],
        pieces: Vec<Blinded<ScalarOf<C>>>,
        random: Blinded<ScalarOf<C>>,
    ) -> Result<()> {
        let x = self.rounds.challenge()?;
        let step = step!(self.workspace, "evaluations");
        let stride = self.rounds.protocol.pieces.stride(self.domain.rows());
        let h = self.recombined(pieces, x.pow([stride]))?;
        let unhidden = |columns: Vec<_>| columns.into_iter().map(Blinded::unhidden).collect::<Vec<_>>();
        let (fixed, sigmas) = (
            unhidden(self.key.fixed_polynomials()?),
            unhidden(self.key.sigma_polynomials()?),
        );
        let order = Order::new(self.cs, self.domain, x, &self.rounds.protocol);
        let fixed = order.cells(&self.cs.fixed_queries, &fixed);
        let sigmas: Vec<_> = sigmas.iter().map(|poly| (poly, x)).collect();
        let [mut evaluated, products] = order.evaluations(circuits);
        evaluated.extend(&fixed);
        evaluated.push((&random, x));
        evaluated.extend(&sigmas);
        evaluated.extend(products);
        // The proof does not say what h is at x, but the opening needs it.
        evaluated.push((&h, x));
        let evaluations = Evaluations::of(&evaluated)?;
        evaluated.pop();
        for at in evaluated {
            let transcript = self.rounds.outside.transcript();
            transcript.write_scalar(evaluations.value(at))?;
        }
        drop(step);

        let queries = circuits.iter().flat_map(|circuit| order.queries(circuit));
        let queries = queries.chain(fixed).chain(sigmas).chain([(&h, x), (&random, x)]);
        let _step = step!(self.workspace, "opening");
        let opening = evaluations.opening(queries);
        self.rounds.outside.open(&opening).map_err(Error::Opening)
    }

    /// `h` from its pieces, each of which counts `factor` times as much as the one before: the polynomial that agrees with it at x.
    fn recombined(
        &self,
        pieces: Vec<Blinded<ScalarOf<C>>>,
        factor: ScalarOf<C>,
    ) -> Result<Blinded<ScalarOf<C>>> {
        let terms: Vec<_> = powers(factor)
            .zip(&pieces)
            .map(|(factor, piece)| (factor, &piece.column))
            .collect();
        let column = linear_combination(&terms, Placement::Auto)?;
        let blinds = pieces.iter().rev();
        let blind = blinds.fold(ScalarOf::<C>::ZERO, |sum, piece| sum * factor + piece.blind);
        Ok(Blinded { column, blind })
    }
}

impl<'a, F: KernelField> ValueColumns<'a, F> {
    fn new(fixed: &[Column<F>], circuit: &Committed<F>, challenges: &'a [F]) -> Self {
        let mut columns = fixed.to_vec();
        columns.extend(circuit.advice.iter().map(|advice| advice.column.clone()));
        columns.extend_from_slice(&circuit.instance.values);
        let (advice, instance) = (fixed.len(), fixed.len() + circuit.advice.len());
        let lowering = Lowering {
            fixed: 0,
            advice,
            instance,
            challenges,
        };
        Self { columns, lowering }
    }

    fn column(&self, column: ColumnId) -> &Column<F> {
        &self.columns[self.lowering.column(column)]
    }

    /// Lists of expressions, each compressed to one column. What is a column already is not written again.
    fn compressed<const N: usize>(
        &self,
        workspace: &Workspace,
        lists: [&[Expression<F>]; N],
        challenge: F,
        rows: u64,
    ) -> Result<[Column<F>; N]> {
        let plain = lists.map(|expressions| self.lowering.plain_column(expressions));
        let mut builder = Builder::new();
        let computed = lists.iter().zip(plain).filter(|(_, plain)| plain.is_none());
        let outputs: Vec<_> = computed
            .map(|(expressions, _)| self.lowering.compressed(&mut builder, expressions, challenge))
            .collect();
        let mut made = if outputs.is_empty() {
            Vec::new()
        } else {
            let program = builder.finish(&outputs);
            let columns: Vec<&Column<F>> = self.columns.iter().collect();
            evaluate_rows(workspace, &columns, &program, rows, Placement::Auto)?
        }
        .into_iter();
        let column = |plain: Option<usize>| match plain {
            Some(column) => Some(self.columns[column].clone()),
            None => made.next(),
        };
        let columns: Option<Vec<_>> = plain.map(column).into_iter().collect();
        let columns = columns.and_then(|columns| columns.try_into().ok());
        columns.ok_or_else(|| io::Error::other("a program with fewer columns than outputs").into())
    }
}

fn invalid(what: &str) -> Error {
    io::Error::new(io::ErrorKind::InvalidInput, what).into()
}
