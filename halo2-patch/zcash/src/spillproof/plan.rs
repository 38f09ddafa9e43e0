//! What a circuit's keys and a proof of it will take in a session, before any work.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use ff::Field;
use pasta_curves::arithmetic::CurveAffine;
use spillproof_engine::plan::Phase;
pub use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::{Participation, Task};
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_plonk::plan::{self, Inputs};
use spillproof_report::environment;

use super::circuit::{constraint_system, domain};
use super::convert::{self, with_engine, Engine};
use super::protocol::PROTOCOL;
use crate::plonk::ConstraintSystem;

/// What keys and a proof of one circuit of `2^k` rows will take within the budget of `session`, on its
/// threads, where only the parameters are there yet. `cs` is what a circuit's `configure` makes. Rates are
/// measured first, for about a second.
///
/// ```
/// use halo2_proofs::pasta::{EqAffine, Fp};
/// use halo2_proofs::plonk::{ConstraintSystem, Expression};
/// use halo2_proofs::poly::Rotation;
/// use halo2_proofs::spillproof::{plan, ByteSize, Session};
///
/// let mut cs = ConstraintSystem::<Fp>::default();
/// let bit = cs.advice_column();
/// cs.create_gate("a bit", |cells| {
///     let bit = cells.query_advice(bit, Rotation::cur());
///     vec![bit.clone() * (Expression::Constant(Fp::one()) - bit)]
/// });
/// let session = Session::builder().memory(ByteSize::Bytes(16 << 20)).build()?;
/// let plan = plan::<EqAffine>(&session, &cs, 12)?;
/// assert!(plan.peak_bytes() <= 16 << 20);
/// println!("{} bytes read, {} at least", plan.of(None).bytes_read, plan.smallest_budget_bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works; the
/// session's own, where its disk can't be measured.
pub fn plan<C: CurveAffine>(session: &Session, cs: &ConstraintSystem<C::Scalar>, k: u32) -> Result<Plan> {
    let rates = Rates::measure(session.workspace())?;
    Shape::<C>::new(cs, k, 1).plan(session.budget().limit_bytes(), session.threads(), &rates)
}

/// What a plan is of: proofs of so many circuits of `2^k` rows over the curve `C`.
#[derive(Clone, Debug)]
pub struct Shape<C: CurveAffine> {
    cs: ConstraintSystem<C::Scalar>,
    k: u32,
    circuits: usize,
}

impl<C: CurveAffine> Shape<C> {
    /// Selectors that stand in `cs` become a column each; in keys they may share columns, and a proof then
    /// takes less.
    pub fn new(cs: &ConstraintSystem<C::Scalar>, k: u32, circuits: usize) -> Self {
        let cs = cs.clone();
        Self { cs, k, circuits }
    }

    /// The plan of keys and a proof within `budget_bytes` on `threads` threads, where only the parameters are
    /// there yet.
    ///
    /// # Errors
    /// As [`plan`]; [`Invalid::ProofSystem`](spillproof_engine::error::Invalid::ProofSystem) for a curve that
    /// is neither Pallas nor Vesta.
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        let planned = with_engine::<C, _>(Planned {
            shape: self,
            budget_bytes,
            threads,
            rates,
        });
        planned.unwrap_or_else(|| {
            Err(spillproof_engine::error::Invalid::ProofSystem {
                what: "plan",
                reason: "the engine computes over Pallas and Vesta only".to_owned(),
            }
            .into())
        })
    }

    fn of_engine<P: Engine>(&self) -> plan::Shape<P::ScalarField> {
        let (cs, selectors) = without_selectors(&self.cs);
        let degree = cs.degree();
        plan::Shape {
            cs: constraint_system(&cs, degree),
            selectors,
            domain: domain::<C::Scalar, _>(self.k, degree),
            circuits: self.circuits,
            protocol: PROTOCOL,
            keeps_rounds: false,
            inputs: Inputs::Made,
            accelerator: None,
        }
    }
}

struct Planned<'p, C: CurveAffine> {
    shape: &'p Shape<C>,
    budget_bytes: u64,
    threads: usize,
    rates: &'p Rates,
}

impl<C: CurveAffine> convert::Task<C> for Planned<'_, C> {
    type Output = Result<Plan>;

    fn run<P: Engine>(self) -> Self::Output {
        let shape = self.shape.of_engine::<P>();
        P::plan_limbs(&shape, self.budget_bytes, self.threads, self.rates)
    }
}

/// A task of a session, when there is room for it.
///
/// # Errors
/// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works; those of
/// [`rehearse`](spillproof_engine::plan::rehearse).
pub(crate) fn admit<C: CurveAffine, P: Engine>(
    session: &Arc<Session>,
    phase: Phase,
    shape: Shape<C>,
) -> io::Result<Task> {
    /// More than any circuit takes.
    const ENOUGH: u64 = 1 << 45;
    let of_engine = Arc::new(shape.of_engine::<P>());
    let (threads, asked) = (session.threads(), Arc::clone(&of_engine));
    let minimum_bytes = move || {
        let plan = P::plan_limbs(&asked, ENOUGH, threads, &Rates::default())?;
        Ok(plan.smallest_budget_bytes)
    };
    let admit = || {
        let task = session.admit(Participation::TakesNoPart, minimum_bytes)?;
        P::rehearse_limbs(&of_engine, &task, phase)?;
        let budget_bytes = session.budget().limit_bytes();
        environment::expect(phase, || {
            P::plan_limbs(&of_engine, budget_bytes, threads, &Rates::default())
        });
        Ok(task)
    };
    admit().map_err(|error: spillproof_engine::Error| io::Error::other(error))
}

/// With a column for each selector, and how many those are.
fn without_selectors<F: Field>(cs: &ConstraintSystem<F>) -> (Cow<'_, ConstraintSystem<F>>, usize) {
    if cs.num_selectors == 0 || !cs.selector_map.is_empty() {
        return (Cow::Borrowed(cs), 0);
    }
    // All on in one row: no two share a column.
    let (replaced, columns) = cs.clone().compress_selectors(vec![vec![true]; cs.num_selectors]);
    (Cow::Owned(replaced), columns.len())
}
