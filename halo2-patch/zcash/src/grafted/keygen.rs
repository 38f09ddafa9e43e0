//! Keygen in a session: synthesis into `spillproof-plonk`, by stock's rules and with its errors, and keys of
//! upstream's types from what comes out of it. Verifying keys are stock's, byte for byte. A child of
//! upstream's `plonk::keygen`.
//!
//! Which selectors share a column is asked of stock's own function, with few rows instead of `n`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use spillproof_engine::column;
use spillproof_commit::ipa;
use spillproof_engine::plan::Phase;
use spillproof_engine::session::Task;
use spillproof_engine::Session;
use spillproof_plonk::keygen::{self, Keygen};
use spillproof_plonk::{Basis, Blinded, ProverField};

use super::*;
use crate::spillproof::bases::of_engine;
use crate::spillproof::circuit::{self, column_id};
use crate::spillproof::convert::{self, foreign_point, scalar, with_engine, Engine};
use crate::spillproof::key::StoredKey;
use crate::spillproof::plan::{admit, Shape};
use crate::spillproof::protocol::commit;

/// A circuit whose keys are made.
struct Circuits<'k, C: CurveAffine, ConcreteCircuit> {
    session: &'k Arc<Session>,
    params: &'k Params<C>,
    circuit: &'k ConcreteCircuit,
}

/// [`super::keygen_vk`], in a session.
pub(super) fn verifying_key<C, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &Params<C>,
    circuit: &ConcreteCircuit,
) -> Result<VerifyingKey<C>, Error>
where
    C: CurveAffine,
    C::Scalar: FromUniformBytes<64>,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    let circuits = Circuits { session, params, circuit };
    with_engine::<C, _>(Verifying(circuits)).unwrap_or(Err(Error::Synthesis))
}

struct Verifying<'k, C: CurveAffine, ConcreteCircuit>(Circuits<'k, C, ConcreteCircuit>);

impl<C, ConcreteCircuit> convert::Task<C> for Verifying<'_, C, ConcreteCircuit>
where
    C: CurveAffine,
    C::Scalar: FromUniformBytes<64>,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    type Output = Result<VerifyingKey<C>, Error>;

    fn run<P: Engine>(self) -> Self::Output {
        let (_task, keygen, domain, cs) = self.0.synthesize::<P>(Phase::VerifyingKey)?;
        let Params { g, g_lagrange, w, u, .. } = self.0.params;
        let params = of_engine::<C, P>(self.0.session.workspace(), [g, g_lagrange], [w, u])?;
        let commitments = P::verifying_key(keygen, &mut |columns| {
            let columns: Vec<_> = columns.iter().cloned().map(Blinded::unhidden).collect();
            commit(&params, Basis::Lagrange, &columns)
        })?;
        let points = |points: Vec<_>| points.iter().map(foreign_point::<P, C>).collect();
        let permutation = permutation::VerifyingKey { commitments: points(commitments.sigmas) };
        Ok(VerifyingKey::from_parts(domain, points(commitments.fixed), permutation, cs))
    }
}

/// [`super::keygen_pk`], in a session.
pub(super) fn proving_key<C, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &Params<C>,
    vk: VerifyingKey<C>,
    circuit: &ConcreteCircuit,
) -> Result<ProvingKey<C>, Error>
where
    C: CurveAffine,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    let circuits = Circuits { session, params, circuit };
    with_engine::<C, _>(Proving(circuits, vk)).unwrap_or(Err(Error::Synthesis))
}

struct Proving<'k, C: CurveAffine, ConcreteCircuit>(Circuits<'k, C, ConcreteCircuit>, VerifyingKey<C>);

impl<C, ConcreteCircuit> convert::Task<C> for Proving<'_, C, ConcreteCircuit>
where
    C: CurveAffine,
    ConcreteCircuit: Circuit<C::Scalar>,
{
    type Output = Result<ProvingKey<C>, Error>;

    fn run<P: Engine>(self) -> Self::Output {
        let (_task, keygen, ..) = self.0.synthesize::<P>(Phase::ProvingKey)?;
        let (columns, _) = P::proving_key(keygen, None)?;
        let (permutations, polys, cosets) = (Vec::new(), Vec::new(), Vec::new());
        Ok(ProvingKey {
            vk: self.1,
            l0: nowhere(),
            l_blind: nowhere(),
            l_last: nowhere(),
            fixed_values: Vec::new(),
            fixed_polys: Vec::new(),
            fixed_cosets: Vec::new(),
            permutation: permutation::ProvingKey { permutations, polys, cosets },
            spillproof: StoredKey::new(columns),
        })
    }
}

/// A polynomial of a key on disk: nothing in memory.
fn nowhere<F, B>() -> Polynomial<F, B> {
    Polynomial { values: Vec::new(), _marker: PhantomData }
}

/// A task, its keygen with what the circuit assigned, and the parts of a verifying key that are not
/// commitments.
type Synthesized<'s, C, P> = (
    Task,
    Keygen<'s, <P as ark_ec::CurveConfig>::ScalarField>,
    EvaluationDomain<<C as group::CurveAffine>::Scalar>,
    ConstraintSystem<<C as group::CurveAffine>::Scalar>,
);

impl<'k, C: CurveAffine, ConcreteCircuit: Circuit<C::Scalar>> Circuits<'k, C, ConcreteCircuit> {
    fn synthesize<P: Engine>(&self, phase: Phase) -> Result<Synthesized<'k, C, P>, Error> {
        let k = self.params.k;
        let (domain, cs, config) = create_domain::<C, ConcreteCircuit>(self.params);
        let rows = 1usize << k;
        if rows < cs.minimum_rows() {
            return Err(Error::not_enough_rows_available(k));
        }
        let task = admit::<C, P>(self.session, phase, Shape::new(&cs, k, 1))?;
        let workspace = self.session.workspace();
        let (permuted, blinding_factors) = (circuit::permuted(&cs), cs.blinding_factors());
        let inner =
            P::ScalarField::assembly(workspace, 1 << k, cs.num_fixed_columns, cs.num_selectors, permuted)?;
        let usable_rows = 0..rows - (blinding_factors + 1);
        let mut assembly =
            Assembly::<C::Scalar, P::ScalarField> { k, usable_rows, inner, _marker: PhantomData };
        {
            let _step = spillproof_engine::step!(workspace, "synthesize");
            let constants = cs.constants.clone();
            ConcreteCircuit::FloorPlanner::synthesize(&mut assembly, self.circuit, config, constants)?;
        }
        let (count, degree, mut cs) = (cs.num_selectors, cs.degree(), Some(cs));
        let mut replaced = |activations| {
            let Some(unreplaced) = cs.take() else { return Vec::new() };
            let (replaced, columns) = unreplaced.compress_selectors(activations);
            cs = Some(replaced);
            columns.iter().map(|values| values[..count].iter().map(scalar).collect()).collect()
        };
        let domain_of_engine = circuit::domain::<C::Scalar, _>(k, degree);
        let (keygen, _) = P::ScalarField::finish(
            assembly.inner,
            workspace,
            domain_of_engine,
            blinding_factors,
            true,
            &mut replaced,
        )?;
        Ok((task, keygen, domain, cs.ok_or(Error::Synthesis)?))
    }
}

/// Takes the circuit's assignments.
struct Assembly<F, G: ProverField> {
    k: u32,
    usable_rows: Range<usize>,
    inner: keygen::Assembly<G>,
    _marker: PhantomData<F>,
}

impl<F: Field, G: ProverField> Assembly<F, G> {
    fn check_row(&self, row: usize) -> Result<(), Error> {
        if self.usable_rows.contains(&row) {
            return Ok(());
        }
        Err(Error::not_enough_rows_available(self.k))
    }

    fn permuted(&self, column: Column<Any>) -> Result<usize, Error> {
        self.inner.permuted(column_id(&column)).ok_or(Error::ColumnNotInPermutation(column))
    }
}

impl<F: Field, G: ProverField> Assignment<F> for Assembly<F, G> {
    spillproof_plonk::nameless!();

    fn enable_selector<A, AR>(&mut self, _: A, selector: &Selector, row: usize) -> Result<(), Error>
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.check_row(row)?;
        Ok(self.inner.selectors.enable(selector.0, row as u64).map_err(io::Error::other)?)
    }

    fn query_instance(&self, _: Column<Instance>, row: usize) -> Result<Value<F>, Error> {
        self.check_row(row)?;
        Ok(Value::unknown())
    }

    fn assign_advice<V, VR, A, AR>(&mut self, _: A, _: Column<Advice>, _: usize, _: V) -> Result<(), Error>
    where
        V: FnOnce() -> Value<VR>,
        VR: Into<Assigned<F>>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(())
    }

    fn assign_fixed<V, VR, A, AR>(
        &mut self,
        _: A,
        column: Column<Fixed>,
        row: usize,
        to: V,
    ) -> Result<(), Error>
    where
        V: FnOnce() -> Value<VR>,
        VR: Into<Assigned<F>>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.check_row(row)?;
        let to = to().into_field().assign()?;
        if column.index() >= self.inner.fixed.columns() {
            return Err(Error::BoundsFailure);
        }
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let assigned = G::assign_fixed(&mut self.inner.fixed, column.index(), row as u64, numerator, denominator);
        Ok(assigned.map_err(io::Error::other)?)
    }

    fn copy(
        &mut self,
        left_column: Column<Any>,
        left_row: usize,
        right_column: Column<Any>,
        right_row: usize,
    ) -> Result<(), Error> {
        self.check_row(left_row)?;
        self.check_row(right_row)?;
        let left = (self.permuted(left_column)?, left_row as u64);
        let right = (self.permuted(right_column)?, right_row as u64);
        Ok(self.inner.copies.copy(left, right).map_err(io::Error::other)?)
    }

    fn fill_from_row(
        &mut self,
        column: Column<Fixed>,
        from_row: usize,
        to: Value<Assigned<F>>,
    ) -> Result<(), Error> {
        self.check_row(from_row)?;
        if column.index() >= self.inner.fixed.columns() {
            return Err(Error::BoundsFailure);
        }
        let to = to.assign()?;
        let rows = from_row as u64..self.usable_rows.end as u64;
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let filled = G::fill_fixed(&mut self.inner.fixed, column.index(), rows, numerator, denominator);
        Ok(filled.map_err(io::Error::other)?)
    }
}
