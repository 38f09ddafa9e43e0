//! Keygen in a session: synthesis into `spillproof-plonk`, by stock's rules and with its errors and panics,
//! and keys of upstream's types from what comes out of it. Keys are stock's, byte for byte. A child of
//! upstream's `plonk::keygen`.
//!
//! Which selectors share a column is asked of stock's own functions, with few rows instead of `n`.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use spillproof_engine::column;
use spillproof_engine::plan::Phase;
use spillproof_engine::session::{Participation, Task};
use spillproof_engine::Session;
use spillproof_plonk::keygen::{self, KeyCommitments, Keygen};
use spillproof_plonk::curve::Config;
use spillproof_plonk::{Point, ProverCurve, ProverField, Scalar};

use super::*;
use crate::spillproof::or_panic;
use crate::spillproof::circuit::{self, column_id};
use crate::spillproof::convert::{foreign_point, scalar};
use crate::spillproof::plan::Work;
use crate::spillproof::protocol::affine;
use crate::spillproof::values::from_column;
use crate::spillproof::verify::admit;
use crate::spillproof::SelectorBits;

/// [`super::keygen_vk_custom`], in a session.
pub(super) fn verifying_key<'params, C, P, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &P,
    circuit: &ConcreteCircuit,
    compress_selectors: bool,
) -> Result<VerifyingKey<C>, Error>
where
    C: CurveAffine,
    P: Params<'params, C> + Sync,
    ConcreteCircuit: Circuit<C::Scalar>,
    C::Scalar: FromUniformBytes<64>,
{
    let task = admitted::<C, ConcreteCircuit>(session, params.k(), Phase::VerifyingKey, circuit, true)?;
    let (keygen, made) = Made::<C>::synthesize(session, params.k(), circuit, compress_selectors)?;
    let commitments = Config::verifying_key(keygen, &mut |columns| Ok(commit(params, columns)))?;
    let mut vk = made.into_verifying_key(commitments);
    vk.selectors.add_accelerator_jobs(task.accelerator_jobs());
    Ok(vk)
}

/// The making of keys, when the session has room for it. Where a verifying key is made, a degree that
/// upstream cuts is said: upstream makes the key, and no proof of it verifies.
fn admitted<C: CurveAffine, ConcreteCircuit: Circuit<C::Scalar>>(
    session: &Arc<Session>,
    k: u32,
    phase: Phase,
    #[cfg_attr(not(feature = "circuit-params"), allow(unused_variables))] circuit: &ConcreteCircuit,
    makes_verifying_key: bool,
) -> io::Result<Task> {
    let mut cs = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    ConcreteCircuit::configure_with_params(&mut cs, circuit.params());
    #[cfg(not(feature = "circuit-params"))]
    ConcreteCircuit::configure(&mut cs);
    if let Some(degree) = circuit::DegreeTooHigh::of(&cs).filter(|_| makes_verifying_key) {
        spillproof_report::environment::warn(degree);
    }
    // A device may take part: the key remembers it, and proofs with it are verified.
    admit(session, &cs, Work::made(k, 1), phase, Participation::MayTakePart)
}

/// [`super::keygen_pk_impl`], in a session.
pub(super) fn proving_key<'params, C, P, ConcreteCircuit>(
    session: &Arc<Session>,
    params: &P,
    vk: Option<VerifyingKey<C>>,
    circuit: &ConcreteCircuit,
    compress_selectors: bool,
) -> Result<ProvingKey<C>, Error>
where
    C: CurveAffine,
    P: Params<'params, C> + Sync,
    ConcreteCircuit: Circuit<C::Scalar>,
    C::Scalar: FromUniformBytes<64>,
{
    let task = admitted::<C, ConcreteCircuit>(session, params.k(), Phase::ProvingKey, circuit, vk.is_none())?;
    let (keygen, made) = Made::<C>::synthesize(session, params.k(), circuit, compress_selectors)?;
    let mut commit = |columns: &[_]| Ok(commit(params, columns));
    let (columns, commitments) = Config::proving_key(keygen, vk.is_none().then_some(&mut commit))?;
    let mut vk = match (vk, commitments) {
        (Some(vk), _) => vk,
        (None, commitments) => made.into_verifying_key(commitments.ok_or(Error::Synthesis)?),
    };
    let sigma_values = polynomials(columns.sigma_values);
    let permutation = permutation::ProvingKey::from_parts(sigma_values, polynomials(columns.sigma_polynomials));
    let [l0, l_last, l_active_row] = columns.rows.map(from_column);
    let ev = Evaluator::new(&vk.cs);
    vk.selectors.add_accelerator_jobs(task.accelerator_jobs());
    Ok(ProvingKey {
        vk,
        l0,
        l_last,
        l_active_row,
        fixed_values: polynomials(columns.fixed_values),
        fixed_polys: polynomials(columns.fixed_polynomials),
        permutation,
        ev,
    })
}

fn polynomials<F: Field, B>(columns: Vec<column::Column<Scalar>>) -> Vec<Polynomial<F, B>> {
    columns.into_iter().map(from_column).collect()
}

fn commit<'params, C: CurveAffine, P: Params<'params, C>>(
    params: &P,
    columns: &[column::Column<Scalar>],
) -> Vec<Point> {
    let polys: Vec<Polynomial<C::Scalar, LagrangeCoeff>> = polynomials(columns.to_vec());
    let polys: Vec<_> = polys.iter().map(|poly| (poly, Blind::default())).collect();
    affine(&params.commit_lagrange_many(&polys))
}

/// A verifying key without its commitments.
struct Made<C: CurveAffine> {
    domain: EvaluationDomain<C::Scalar>,
    /// Without selectors.
    cs: ConstraintSystem<C::Scalar>,
    /// Of a key with compressed selectors.
    selectors: SelectorBits,
    compress_selectors: bool,
}

impl<C: CurveAffine> Made<C> {
    fn synthesize<'s, ConcreteCircuit: Circuit<C::Scalar>>(
        session: &'s Session,
        k: u32,
        circuit: &ConcreteCircuit,
        compress_selectors: bool,
    ) -> Result<(Keygen<'s>, Self), Error> {
        let (domain, cs, config) = create_domain::<C, ConcreteCircuit>(
            k,
            #[cfg(feature = "circuit-params")]
            circuit.params(),
        );
        let rows = 1usize << k;
        if rows < cs.minimum_rows() {
            return Err(Error::not_enough_rows_available(k));
        }
        let workspace = session.workspace();
        let permuted = circuit::permuted(&cs);
        let blinding_factors = cs.blinding_factors();
        let inner =
            Scalar::assembly(workspace, 1 << k, cs.num_fixed_columns, cs.num_selectors, permuted)?;
        let usable_rows = 0..rows - (blinding_factors + 1);
        let mut assembly = Assembly { k, usable_rows, inner, _marker: PhantomData };
        {
            let _step = spillproof_engine::step!(workspace, "synthesize");
            let constants = cs.constants.clone();
            ConcreteCircuit::FloorPlanner::synthesize(&mut assembly, circuit, config, constants)?;
        }
        let (count, mut cs) = (cs.num_selectors, Some(cs));
        let mut replaced = |activations| {
            let (replaced, columns) = match (cs.take(), compress_selectors) {
                (None, _) => return Vec::new(),
                (Some(cs), true) => cs.compress_selectors(activations),
                (Some(cs), false) => cs.directly_convert_selectors_to_fixed(activations),
            };
            cs = Some(replaced);
            columns.iter().map(|values| values[..count].iter().map(scalar).collect()).collect()
        };
        let (keygen, selectors) = Scalar::finish(
            assembly.inner,
            workspace,
            circuit::domain(&domain),
            blinding_factors,
            compress_selectors,
            &mut replaced,
        )?;
        let cs = cs.ok_or(Error::Synthesis)?;
        let selectors = selectors.map(SelectorBits::on_disk).unwrap_or_default();
        Ok((keygen, Self { domain, cs, selectors, compress_selectors }))
    }

    fn into_verifying_key(self, commitments: KeyCommitments) -> VerifyingKey<C>
    where
        C::Scalar: FromUniformBytes<64>,
    {
        let points = |points: Vec<Point>| points.iter().map(foreign_point).collect();
        VerifyingKey::spillproof_from_parts(
            self.domain,
            points(commitments.fixed),
            permutation::VerifyingKey::from_commitments(points(commitments.sigmas)),
            self.cs,
            self.selectors,
            self.compress_selectors,
        )
    }
}

/// Takes the circuit's assignments.
struct Assembly<F> {
    k: u32,
    usable_rows: Range<usize>,
    inner: keygen::Assembly,
    _marker: PhantomData<F>,
}

impl<F: Field> Assembly<F> {
    fn check_row(&self, row: usize) -> Result<(), Error> {
        if self.usable_rows.contains(&row) {
            return Ok(());
        }
        Err(Error::not_enough_rows_available(self.k))
    }

    fn permuted(&self, column: Column<Any>) -> usize {
        match self.inner.permuted(column_id(&column)) {
            Some(index) => index,
            None => panic!("{:?}", Error::ColumnNotInPermutation(column)),
        }
    }
}

impl<F: Field> Assignment<F> for Assembly<F> {
    spillproof_plonk::nameless!(columns);

    fn enable_selector<A, AR>(&mut self, _: A, selector: &Selector, row: usize) -> Result<(), Error>
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.check_row(row)?;
        or_panic(self.inner.selectors.enable(selector.0, row as u64).map_err(io::Error::other));
        Ok(())
    }

    fn query_instance(&self, _: Column<Instance>, row: usize) -> Result<Value<F>, Error> {
        self.check_row(row)?;
        Ok(Value::unknown())
    }

    fn assign_advice<'v>(
        &mut self,
        _: Column<Advice>,
        _: usize,
        _: Value<Assigned<F>>,
    ) -> Value<&'v Assigned<F>> {
        Value::unknown()
    }

    fn assign_fixed(&mut self, column: Column<Fixed>, row: usize, to: Assigned<F>) {
        if let Err(error) = self.check_row(row) {
            panic!("Assign Fixed {error:?}");
        }
        if column.index() >= self.inner.fixed.columns() {
            panic!("{:?}", Error::BoundsFailure);
        }
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let assigned = Scalar::assign_fixed(&mut self.inner.fixed, column.index(), row as u64, numerator, denominator);
        or_panic(assigned.map_err(io::Error::other));
    }

    fn copy(
        &mut self,
        left_column: Column<Any>,
        left_row: usize,
        right_column: Column<Any>,
        right_row: usize,
    ) {
        if let Err(error) = self.check_row(left_row).and_then(|()| self.check_row(right_row)) {
            panic!("{error:?}");
        }
        let left = (self.permuted(left_column), left_row as u64);
        let right = (self.permuted(right_column), right_row as u64);
        or_panic(self.inner.copies.copy(left, right).map_err(io::Error::other));
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
        let filled = Scalar::fill_fixed(&mut self.inner.fixed, column.index(), rows, numerator, denominator);
        or_panic(filled.map_err(io::Error::other));
        Ok(())
    }

    fn get_challenge(&self, _: Challenge) -> Value<F> {
        Value::unknown()
    }
}
