//! What a circuit's keys and a proof of it will take in a session, before any work.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use ff::PrimeField;
use midnight_curves::Fq;
use spillproof_engine::plan::Phase;
pub use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::{Participation, Task};
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_plonk::plan::{self, Inputs};
use spillproof_plonk::saved::digests_bytes;
use spillproof_plonk::ProverCurve as _;
use spillproof_report::environment;

use super::circuit::{constraint_system, domain};
use super::convert::{same, Scalar, P};
use super::protocol::protocol;
use crate::plonk::ConstraintSystem;

/// What keys and a proof of one circuit of `2^k` rows will take within the budget of `session`, on its
/// threads, where only the parameters are there yet. `cs` is what a circuit's `configure` makes. Rates are
/// measured first, for about a second.
///
/// ```
/// use midnight_curves::Fq;
/// use midnight_proofs::plonk::{Constraints, ConstraintSystem, Expression};
/// use midnight_proofs::poly::Rotation;
/// use midnight_proofs::spillproof::{plan, ByteSize, Session};
///
/// let mut cs = ConstraintSystem::<Fq>::default();
/// let bit = cs.advice_column();
/// cs.create_gate("a bit", |cells| {
///     let bit = cells.query_advice(bit, Rotation::cur());
///     let product = bit.clone() * (Expression::from(1) - bit);
///     Constraints::without_selector(vec![product])
/// });
/// let session = Session::builder().memory(ByteSize::Bytes(16 << 20)).build()?;
/// let plan = plan(&session, &cs, 12)?;
/// assert!(plan.peak_bytes() <= 16 << 20);
/// println!("{} bytes read, {} at least", plan.of(None).bytes_read, plan.smallest_budget_bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works; the
/// session's own, where its disk can't be measured.
pub fn plan(session: &Session, cs: &ConstraintSystem<Fq>, k: u32) -> Result<Plan> {
    let rates = Rates::measure(session.workspace())?;
    let shape = Shape::new(cs, k).keeping_rounds(session.checkpoints().is_some());
    shape.plan(session.budget().limit_bytes(), session.threads(), &rates)
}

/// What a plan is of: proofs of circuits of `2^k` rows.
#[derive(Clone, Debug)]
pub struct Shape {
    cs: ConstraintSystem<Fq>,
    k: u32,
    circuits: usize,
    committed: usize,
    keeps_rounds: bool,
    inputs: Inputs,
}

impl Shape {
    /// One circuit, all of whose instances the verifier has as values.
    pub fn new(cs: &ConstraintSystem<Fq>, k: u32) -> Self {
        Self {
            cs: cs.clone(),
            k,
            circuits: 1,
            committed: 0,
            keeps_rounds: false,
            inputs: Inputs::Made,
        }
    }

    /// With so many circuits in a proof.
    pub fn with_circuits(self, circuits: usize) -> Self {
        Self { circuits, ..self }
    }

    /// With so many instance columns, the first ones, that the verifier has as commitments.
    pub fn with_committed_instances(self, committed: usize) -> Self {
        Self { committed, ..self }
    }

    /// Whose rounds are kept in a checkpoint, or not; they are not, unless it is said.
    pub fn keeping_rounds(self, keeps_rounds: bool) -> Self {
        Self { keeps_rounds, ..self }
    }

    /// Of a proof with a key and a witness that are in files: the plan has no keys and no synthesis.
    pub fn from_files(self) -> Self {
        /// What is leased comes in whole ones.
        const PAGE_BYTES: u64 = 4096;
        let of = &self.cs;
        let fixed = of.num_fixed_columns + of.num_selectors;
        let polynomials = 2 * (fixed + of.permutation.columns.len());
        let digests = |columns: usize| {
            let bytes = digests_bytes(columns as u64, 1 << self.k);
            bytes.next_multiple_of(PAGE_BYTES)
        };
        // Public inputs are in memory; how many they are, a key does not say.
        let public = of.num_instance_columns as u64 * PAGE_BYTES;
        let held_bytes = digests(polynomials) + digests(of.num_advice_columns) + public;
        self.with_inputs(Inputs::Stored { held_bytes })
    }

    /// With this origin of keys and witness.
    pub(crate) fn with_inputs(self, inputs: Inputs) -> Self {
        Self { inputs, ..self }
    }

    /// The plan of keys and a proof within `budget_bytes` on `threads` threads, where only the parameters are
    /// there yet.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        P::plan_limbs(&self.of_engine(), budget_bytes, threads, rates)
    }

    fn of_engine(&self) -> plan::Shape<Scalar> {
        let (cs, selectors) = without_selectors(&self.cs);
        let degree = cs.degree();
        plan::Shape {
            cs: constraint_system(&cs, degree),
            selectors,
            domain: domain::<Fq>(self.k, degree),
            circuits: self.circuits,
            protocol: protocol(self.committed),
            keeps_rounds: self.keeps_rounds,
            inputs: self.inputs,
            accelerator: None,
        }
    }
}

/// The constraint system by the name of its field.
pub(crate) fn known<F: PrimeField>(cs: &ConstraintSystem<F>) -> &ConstraintSystem<Fq> {
    same(cs)
}

/// A task of a session, when there is room for it.
///
/// # Errors
/// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works; those of
/// [`rehearse`](spillproof_engine::plan::rehearse).
pub(crate) fn admit(session: &Arc<Session>, phase: Phase, shape: &Shape) -> io::Result<Task> {
    /// More than any circuit takes.
    const ENOUGH: u64 = 1 << 45;
    let of_engine = Arc::new(shape.of_engine());
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
fn without_selectors(cs: &ConstraintSystem<Fq>) -> (Cow<'_, ConstraintSystem<Fq>>, usize) {
    let selectors = cs.num_selectors;
    if selectors == 0 {
        return (Cow::Borrowed(cs), 0);
    }
    let (replaced, _) = cs
        .clone()
        .directly_convert_selectors_to_fixed(vec![Vec::new(); selectors]);
    (Cow::Owned(replaced), selectors)
}
