//! Keygen in a session. A child of upstream's `plonk::keygen`.
//!
//! The circuit is synthesised into mapped scratch: fixed cells, selectors (a bit each) and copies, by stock's rules and with
//! its errors and panics. Then, as streams: fixed columns, columns of selectors (combined or not), sigma columns,
//! commitments, coefficients. Keys are stock's, byte for byte.
//!
//! What stock does with whole vectors of selectors it does here with short ones. Which selectors share a column depends on
//! which pairs are on in one row, and on degrees; so stock's own function is asked with vectors that have one row for each
//! selector alone, and one for each pair that meets somewhere. What it puts in the first of these rows is what each selector
//! adds to each column.
//!
//! Memory: what the engine leases; nothing that grows with `n = 2^k`.

use std::io;
use std::sync::Arc;

use ::spillproof::column::Residency;
use ::spillproof::commit::Scalar;
use ::spillproof::plonkish::{indicator, Copies, FixedCells, Selectors};
use ::spillproof::session::{Accelerator, Task};
use ::spillproof::Session;
use ff::PrimeField;

use super::*;
use crate::poly::Coeff;
use crate::spillproof::bases::or_panic;
use crate::spillproof::selectors::{SelectorBits, SelectorWriter};
use crate::spillproof::values::{from_column, scalar};
use crate::spillproof::verify::admit;

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
    let task = admitted::<C, ConcreteCircuit>(session, params.k(), circuit)?;
    let mut made = Made::synthesize::<ConcreteCircuit>(session, params.k(), circuit, compress_selectors)?;
    let sigmas = {
        let _span = tracing::info_span!(target: "spillproof::step", "sigma").entered();
        (0..made.cs.permutation.columns.len())
            .map(|column| Ok(commit(params, &made.sigma(column)?)))
            .collect::<Result<_, Error>>()?
    };
    let mut vk = made.into_verifying_key(params, sigmas);
    vk.selectors.add_accelerator_jobs(task.accelerator_jobs());
    Ok(vk)
}

/// The making of keys, when the session has room for it.
fn admitted<C: CurveAffine, ConcreteCircuit: Circuit<C::Scalar>>(
    session: &Arc<Session>,
    k: u32,
    #[cfg_attr(not(feature = "circuit-params"), allow(unused_variables))] circuit: &ConcreteCircuit,
) -> io::Result<Task> {
    let mut cs = ConstraintSystem::default();
    #[cfg(feature = "circuit-params")]
    ConcreteCircuit::configure_with_params(&mut cs, circuit.params());
    #[cfg(not(feature = "circuit-params"))]
    ConcreteCircuit::configure(&mut cs);
    // A device may take part: the key remembers it, and proofs with it are verified.
    admit(session, &cs, k, 1, Accelerator::MayTakePart)
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
    let task = admitted::<C, ConcreteCircuit>(session, params.k(), circuit)?;
    let mut made = Made::synthesize::<ConcreteCircuit>(session, params.k(), circuit, compress_selectors)?;
    let columns = made.cs.permutation.columns.len();
    let (mut sigmas, mut polys, mut commitments) = (Vec::new(), Vec::new(), Vec::new());
    {
        let _span = tracing::info_span!(target: "spillproof::step", "sigma").entered();
        for column in 0..columns {
            let sigma = made.sigma(column)?;
            if vk.is_none() {
                commitments.push(commit(params, &sigma));
            }
            polys.push(made.domain.lagrange_to_coeff(sigma.clone()));
            sigmas.push(sigma);
        }
    }
    let permutation = permutation::ProvingKey::from_parts(sigmas, polys);
    // The columns are handles: a clone has no values of its own.
    let fixed_values = made.fixed.clone();
    let mut vk = vk.unwrap_or_else(|| made.into_verifying_key(params, commitments));
    let _span = tracing::info_span!(target: "spillproof::step", "fixed polynomials").entered();
    let fixed_polys = fixed_values
        .iter()
        .map(|poly| vk.domain.lagrange_to_coeff(poly.clone()))
        .collect();
    let n = params.n();
    let last = n - vk.cs.blinding_factors() as u64 - 1;
    let [l0, l_last, l_active_row] = [(0..1, 0, 1), (last..last + 1, 0, 1), (last..n, 1, -1)].map(
        |(rows, constant, factor): (_, u64, i64)| {
            let omega = scalar(&vk.domain.get_omega());
            let (constant, factor) = (Scalar::from(constant), Scalar::from(factor));
            indicator(session.workspace(), params.k(), omega, rows, constant, factor)
                .map(from_column::<C::Scalar, Coeff>)
                .map_err(io::Error::other)
        },
    );
    let ev = Evaluator::new(&vk.cs);
    vk.selectors.add_accelerator_jobs(task.accelerator_jobs());
    Ok(ProvingKey {
        vk,
        l0: l0?,
        l_last: l_last?,
        l_active_row: l_active_row?,
        fixed_values,
        fixed_polys,
        permutation,
        ev,
    })
}

fn commit<'params, C: CurveAffine, P: Params<'params, C>>(
    params: &P,
    poly: &Polynomial<C::Scalar, LagrangeCoeff>,
) -> C {
    params.commit_lagrange(poly, Blind::default()).to_affine()
}

/// What a circuit's synthesis gives.
struct Made<C: CurveAffine> {
    domain: EvaluationDomain<C::Scalar>,
    /// Without selectors.
    cs: ConstraintSystem<C::Scalar>,
    /// Selectors' columns are last.
    fixed: Vec<Polynomial<C::Scalar, LagrangeCoeff>>,
    copies: Copies,
    /// Of a key with compressed selectors.
    selectors: SelectorBits,
    compress_selectors: bool,
}

impl<C: CurveAffine> Made<C> {
    fn synthesize<ConcreteCircuit: Circuit<C::Scalar>>(
        session: &Session,
        k: u32,
        circuit: &ConcreteCircuit,
        compress_selectors: bool,
    ) -> Result<Self, Error> {
        let (domain, cs, config) = create_domain::<C, ConcreteCircuit>(
            k,
            #[cfg(feature = "circuit-params")]
            circuit.params(),
        );
        let rows = 1usize << k;
        if rows < cs.minimum_rows() {
            return Err(Error::not_enough_rows_available(k));
        }
        let assembly = session.workspace().run_here(|| Assembly::<C::Scalar>::new(session, k, &cs));
        let mut assembly = assembly.map_err(io::Error::other)?;
        {
            let _span = tracing::info_span!(target: "spillproof::step", "synthesize").entered();
            let constants = cs.constants.clone();
            ConcreteCircuit::FloorPlanner::synthesize(&mut assembly, circuit, config, constants)?;
        }
        let Assembly { fixed, mut selectors, copies, .. } = assembly;

        let _span = tracing::info_span!(target: "spillproof::step", "fixed columns").entered();
        let mut columns = fixed.into_columns().map_err(io::Error::other)?;
        let (cs, groups) = without_selectors(cs, &mut selectors, compress_selectors)?;
        columns.extend(selectors.columns(&groups).map_err(io::Error::other)?);
        let selectors = if compress_selectors { kept(session, selectors, rows)? } else { SelectorBits::default() };
        Ok(Self {
            domain,
            cs,
            fixed: columns.into_iter().map(from_column).collect(),
            copies,
            selectors,
            compress_selectors,
        })
    }

    /// The sigma polynomial of a permuted column.
    fn sigma(&mut self, column: usize) -> io::Result<Polynomial<C::Scalar, LagrangeCoeff>> {
        let (omega, delta) = (scalar(&self.domain.get_omega()), scalar(&C::Scalar::DELTA));
        self.copies.sigma(column, omega, delta).map(from_column).map_err(io::Error::other)
    }

    fn into_verifying_key<'params, P: Params<'params, C>>(self, params: &P, sigmas: Vec<C>) -> VerifyingKey<C>
    where
        C::Scalar: FromUniformBytes<64>,
    {
        let _span = tracing::info_span!(target: "spillproof::step", "commit fixed columns").entered();
        let fixed: Vec<_> = self.fixed.iter().map(|poly| (poly, Blind::default())).collect();
        let fixed_commitments = params.commit_lagrange_many(&fixed);
        let fixed_commitments = fixed_commitments.iter().map(|point| point.to_affine()).collect();
        VerifyingKey::spillproof_from_parts(
            self.domain,
            fixed_commitments,
            permutation::VerifyingKey::from_commitments(sigmas),
            self.cs,
            self.selectors,
            self.compress_selectors,
        )
    }
}

/// The constraint system without selectors, and for each column that takes their place, the selectors in it with the values
/// that they add.
fn without_selectors<F: Field>(
    cs: ConstraintSystem<F>,
    selectors: &mut Selectors,
    compress_selectors: bool,
) -> io::Result<(ConstraintSystem<F>, Vec<Vec<(usize, Scalar)>>)> {
    let count = selectors.count();
    let conflicts = match compress_selectors {
        true => selectors.conflicts().map_err(io::Error::other)?,
        false => Vec::new(),
    };
    // First each alone, then every pair that meets.
    let mut activations = vec![vec![false; count + conflicts.len()]; count];
    for (selector, rows) in activations.iter_mut().enumerate() {
        rows[selector] = true;
    }
    for (row, (one, other)) in conflicts.into_iter().enumerate() {
        activations[one][count + row] = true;
        activations[other][count + row] = true;
    }
    let (cs, columns) = if compress_selectors {
        cs.compress_selectors(activations)
    } else {
        cs.directly_convert_selectors_to_fixed(activations)
    };
    let group = |values: &Vec<F>| {
        let alone = values[..count].iter().enumerate();
        alone.filter(|(_, value)| **value != F::ZERO).map(|(selector, value)| (selector, scalar(value))).collect()
    };
    Ok((cs, columns.iter().map(group).collect()))
}

/// The selectors as the key keeps them.
fn kept(session: &Session, mut selectors: Selectors, rows: usize) -> io::Result<SelectorBits> {
    let write = || {
        let mut writer = SelectorWriter::new(session.workspace(), selectors.count(), rows)?;
        for selector in 0..selectors.count() {
            selectors.packed(selector, |bytes| writer.push(bytes))?;
        }
        writer.finish()
    };
    session.workspace().run(write).map_err(io::Error::other)
}

/// Takes the circuit's assignments.
struct Assembly<F: Field> {
    k: u32,
    usable_rows: Range<usize>,
    fixed: FixedCells<Scalar>,
    selectors: Selectors,
    permuted: Vec<Column<Any>>,
    copies: Copies,
    _marker: std::marker::PhantomData<F>,
}

impl<F: Field> Assembly<F> {
    fn new(session: &Session, k: u32, cs: &ConstraintSystem<F>) -> ::spillproof::Result<Self> {
        let (workspace, rows) = (session.workspace(), 1u64 << k);
        let permuted = cs.permutation.columns.clone();
        // The maps of fixed cells and selectors share what one group may keep in memory; copies have a group of their own.
        let maps = cs.num_fixed_columns + 1;
        let share = Residency::new(workspace, "fixed cells", Residency::default_share_bytes(workspace, maps), maps)?;
        Ok(Self {
            k,
            usable_rows: 0..rows as usize - (cs.blinding_factors() + 1),
            fixed: FixedCells::new(workspace, &share, cs.num_fixed_columns, rows)?,
            selectors: Selectors::new(workspace, &share, cs.num_selectors, rows)?,
            copies: Copies::new(workspace, permuted.len(), rows)?,
            permuted,
            _marker: std::marker::PhantomData,
        })
    }

    fn check_row(&self, row: usize) -> Result<(), Error> {
        if self.usable_rows.contains(&row) {
            return Ok(());
        }
        Err(Error::not_enough_rows_available(self.k))
    }

    fn permuted(&self, column: Column<Any>) -> usize {
        match self.permuted.iter().position(|permuted| *permuted == column) {
            Some(index) => index,
            None => panic!("{:?}", Error::ColumnNotInPermutation(column)),
        }
    }
}

impl<F: Field> Assignment<F> for Assembly<F> {
    fn enter_region<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn exit_region(&mut self) {}

    fn annotate_column<A, AR>(&mut self, _: A, _: Column<Any>)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self, _: Option<String>) {}

    fn enable_selector<A, AR>(&mut self, _: A, selector: &Selector, row: usize) -> Result<(), Error>
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.check_row(row)?;
        or_panic(self.selectors.enable(selector.0, row as u64).map_err(io::Error::other));
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
        if column.index() >= self.fixed.columns() {
            panic!("{:?}", Error::BoundsFailure);
        }
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let assigned = self.fixed.assign(column.index(), row as u64, numerator, denominator);
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
        or_panic(self.copies.copy(left, right).map_err(io::Error::other));
    }

    fn fill_from_row(
        &mut self,
        column: Column<Fixed>,
        from_row: usize,
        to: Value<Assigned<F>>,
    ) -> Result<(), Error> {
        self.check_row(from_row)?;
        if column.index() >= self.fixed.columns() {
            return Err(Error::BoundsFailure);
        }
        let to = to.assign()?;
        let rows = from_row as u64..self.usable_rows.end as u64;
        let (numerator, denominator) = (scalar(&to.numerator()), to.denominator().as_ref().map(scalar));
        let filled = self.fixed.fill(column.index(), rows, numerator, denominator);
        or_panic(filled.map_err(io::Error::other));
        Ok(())
    }

    fn get_challenge(&self, _: Challenge) -> Value<F> {
        Value::unknown()
    }
}
