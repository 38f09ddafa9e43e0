//! Keygen in a session: synthesis into `spillproof-plonk`, by stock's rules and with its errors, and keys of
//! upstream's types from what comes out of it. Verifying keys are stock's, byte for byte. A child of
//! upstream's `plonk::keygen`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use spillproof_engine::plan::Phase;
use spillproof_engine::session::Task;
use spillproof_engine::stream::Scalars;
use spillproof_engine::Session;
use spillproof_plonk::keygen::{self, Keygen};
use spillproof_plonk::{Basis, ProverCurve as _, ProverField as _};

use super::*;
use crate::spillproof::bridge::Bridge;
use crate::spillproof::circuit::{self, column_id};
use crate::spillproof::convert::{foreign_point, scalar, Point, Scalar, P};
use crate::spillproof::key::{KeyOnDisk, StoredKey};
use crate::spillproof::params::Columns;
use crate::spillproof::plan::{admit, known, Shape};

/// A circuit whose keys are made.
struct Source<'k, ConcreteCircuit> {
    session: &'k Arc<Session>,
    circuit: &'k ConcreteCircuit,
    k: u32,
}

/// [`super::keygen_vk_with_k`], in a session.
pub(super) fn verifying_key<
    F: WithSmallOrderMulGroup<3> + FromUniformBytes<64>,
    CS: PolynomialCommitmentScheme<F>,
>(
    (session, bridge): &(Arc<Session>, Bridge<F, CS>),
    params: &CS::Parameters,
    circuit: &impl Circuit<F>,
    k: u32,
) -> Result<VerifyingKey<F, CS>, Error> {
    if params.max_k() < k {
        return Err(Error::not_enough_rows_available(params.max_k()));
    }
    let source = Source { session, circuit, k };
    let Synthesized { keygen, domain, cs, task: _task } = source.synthesize::<F>(Phase::VerifyingKey)?;
    let params = Columns::of(session, (bridge.params)(params))?;
    let commitments = P::verifying_key(keygen, &mut |columns| {
        let scalars: Vec<_> = columns.iter().map(Scalars::Column).collect();
        params.commit(Basis::Lagrange, &scalars, 1 << k)
    })?;
    let points = |points: Vec<Point>| -> Vec<CS::Commitment> {
        points.iter().map(|point| (bridge.commitment)(foreign_point(point))).collect()
    };
    let permutation = permutation::VerifyingKey { commitments: points(commitments.sigmas) };
    Ok(VerifyingKey::from_parts(domain, points(commitments.fixed), permutation, cs))
}

/// [`super::keygen_pk`], in a session.
pub(super) fn proving_key<F: WithSmallOrderMulGroup<3>, CS: PolynomialCommitmentScheme<F>>(
    (session, _): &(Arc<Session>, Bridge<F, CS>),
    vk: VerifyingKey<F, CS>,
    circuit: &impl Circuit<F>,
) -> Result<ProvingKey<F, CS>, Error> {
    let source = Source { session, circuit, k: vk.domain.k() };
    let Synthesized { keygen, task: _task, .. } = source.synthesize::<F>(Phase::ProvingKey)?;
    let (columns, _) = P::proving_key(keygen, None)?;
    Ok(on_disk(vk, columns.into()))
}

/// A proving key whose columns are on disk: stock's own fields are empty.
pub(crate) fn on_disk<F, CS>(vk: VerifyingKey<F, CS>, columns: KeyOnDisk) -> ProvingKey<F, CS>
where
    F: WithSmallOrderMulGroup<3>,
    CS: PolynomialCommitmentScheme<F>,
{
    fn nowhere<F, B>() -> Polynomial<F, B> {
        Polynomial { values: Vec::new(), _marker: PhantomData }
    }
    let (permutations, polys, cosets) = (Vec::new(), Vec::new(), Vec::new());
    ProvingKey {
        ev: Evaluator::new(&vk.cs),
        vk,
        l0: nowhere(),
        l_last: nowhere(),
        l_active_row: nowhere(),
        fixed_values: Vec::new(),
        fixed_polys: Vec::new(),
        fixed_cosets: Vec::new(),
        permutation: permutation::ProvingKey { permutations, polys, cosets },
        spillproof: StoredKey::new(columns),
    }
}

/// What a circuit assigned, and the parts of a verifying key that are not commitments.
struct Synthesized<'s, F: Field> {
    keygen: Keygen<'s, Scalar>,
    domain: EvaluationDomain<F>,
    /// With a fixed column in the place of each selector.
    cs: ConstraintSystem<F>,
    task: Task,
}

impl<'k, ConcreteCircuit> Source<'k, ConcreteCircuit> {
    fn synthesize<F>(&self, phase: Phase) -> Result<Synthesized<'k, F>, Error>
    where
        F: WithSmallOrderMulGroup<3>,
        ConcreteCircuit: Circuit<F>,
    {
        let k = self.k;
        let (domain, cs, config) = create_domain::<F, ConcreteCircuit>(
            k,
            #[cfg(feature = "circuit-params")]
            self.circuit.params(),
        );
        let rows = 1usize << k;
        if rows < cs.minimum_rows() {
            return Err(Error::not_enough_rows_available(k));
        }
        let task = admit(self.session, phase, &Shape::new(known(&cs), k))?;
        let workspace = self.session.workspace();
        let (degree, blinding_factors) = (cs.degree(), cs.blinding_factors());
        let (permuted, selectors) = (circuit::permuted(&cs), cs.num_selectors);
        let inner = Scalar::assembly(workspace, 1 << k, cs.num_fixed_columns, selectors, permuted)?;
        let usable_rows = 0..rows - (blinding_factors + 1);
        let mut assembly = Assembly::<F> { k, usable_rows, inner, _marker: PhantomData };
        {
            let _step = spillproof_engine::step!(workspace, "synthesize");
            let constants = cs.constants.clone();
            ConcreteCircuit::FloorPlanner::synthesize(&mut assembly, self.circuit, config, constants)?;
        }
        // Each selector becomes a column of its own.
        let mut replaced = |_| {
            let one_of = |of: usize| (0..selectors).map(|other| Scalar::from(u64::from(of == other))).collect();
            (0..selectors).map(one_of).collect()
        };
        let domain_of_engine = circuit::domain::<F>(k, degree);
        let (keygen, _) =
            Scalar::finish(assembly.inner, workspace, domain_of_engine, blinding_factors, false, &mut replaced)?;
        let (cs, _) = cs.directly_convert_selectors_to_fixed(vec![Vec::new(); selectors]);
        Ok(Synthesized { keygen, domain, cs, task })
    }
}

/// Takes the circuit's assignments.
struct Assembly<F> {
    k: u32,
    usable_rows: Range<usize>,
    inner: keygen::Assembly<Scalar>,
    _marker: PhantomData<F>,
}

impl<F: Field> Assembly<F> {
    fn check_row(&self, row: usize) -> Result<(), Error> {
        if self.usable_rows.contains(&row) {
            return Ok(());
        }
        Err(Error::not_enough_rows_available(self.k))
    }

    fn permuted(&self, column: Column<Any>) -> Result<usize, Error> {
        self.inner.permuted(column_id(&column)).ok_or(Error::ColumnNotInPermutation(column))
    }

    fn check_column(&self, column: Column<Fixed>) -> Result<(), Error> {
        match column.index() < self.inner.fixed.columns() {
            true => Ok(()),
            false => Err(Error::BoundsFailure),
        }
    }
}

impl<F: ff::PrimeField> Assignment<F> for Assembly<F> {
    spillproof_plonk::nameless!(columns);

    fn get_challenge(&self, _: Challenge) -> Value<F> {
        Value::unknown()
    }

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
        VR: Into<Rational<F>>,
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
        VR: Into<Rational<F>>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.check_row(row)?;
        let to = to().into_field().assign()?;
        self.check_column(column)?;
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let fixed = &mut self.inner.fixed;
        let assigned = Scalar::assign_fixed(fixed, column.index(), row as u64, numerator, denominator);
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
        to: Value<Rational<F>>,
    ) -> Result<(), Error> {
        self.check_row(from_row)?;
        self.check_column(column)?;
        let to = to.assign()?;
        let rows = from_row as u64..self.usable_rows.end as u64;
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let filled = Scalar::fill_fixed(&mut self.inner.fixed, column.index(), rows, numerator, denominator);
        Ok(filled.map_err(io::Error::other)?)
    }
}
