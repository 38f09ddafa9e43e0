//! What a circuit's keys and a proof of it will take in a session, before any work.

use std::borrow::Cow;

use halo2curves::bn256::Fr;
use spillproof_engine::plan::Phase;
pub use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::Task;
use spillproof_engine::Result;
use spillproof_engine::Session;
use spillproof_plonk::curve::Config;
pub use spillproof_plonk::plan::Numerator;
use spillproof_plonk::plan::{self, Inputs};
use spillproof_plonk::saved::digests_bytes;
pub use spillproof_plonk::OpeningScheme;

use super::bundle::ROW_POLYNOMIALS;
use super::cells::AdviceCell;
use super::circuit::{constraint_system, domain_of};
use super::protocol::protocol;
use crate::plonk::ConstraintSystem;

/// What keys and a proof of one circuit of `2^k` rows will take within the budget of `session`, on its
/// threads, where only the parameters are there yet. `cs` is what a circuit's `configure` makes, or what a
/// key holds.
///
/// Rates are measured first, for about a second; [`Shape::plan`] takes given ones.
///
/// ```
/// use halo2_axiom::plonk::{ConstraintSystem, Expression};
/// use halo2_axiom::poly::Rotation;
/// use halo2_axiom::halo2curves::bn256::Fr;
/// use halo2_axiom::spillproof::{plan, ByteSize, OpeningScheme, Session};
///
/// let mut cs = ConstraintSystem::<Fr>::default();
/// let bit = cs.advice_column();
/// cs.create_gate("a bit", |cells| {
///     let bit = cells.query_advice(bit, Rotation::cur());
///     vec![bit.clone() * (Expression::Constant(Fr::one()) - bit)]
/// });
/// let session = Session::builder().memory(ByteSize::Bytes(16 << 20)).build()?;
/// let plan = plan(&session, &cs, 12, OpeningScheme::Shplonk)?;
/// assert!(plan.peak_bytes() <= 16 << 20);
/// println!("{} bytes read, {} at least", plan.of(None).bytes_read, plan.smallest_budget_bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`BudgetTooSmall`](spillproof_engine::Error::BudgetTooSmall) with the smallest budget that works; the
/// session's own, where its disk can't be measured.
pub fn plan(session: &Session, cs: &ConstraintSystem<Fr>, k: u32, scheme: OpeningScheme) -> Result<Plan> {
    let rates = Rates::measure(session.workspace())?;
    let shape = shape(cs, k, 1, scheme).in_session(session);
    shape.plan(session.budget().limit_bytes(), session.threads(), &rates)
}

/// What the resources of keys and a proof follow from, beside the constraint system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// `2^k` rows.
    pub(crate) k: u32,
    /// Circuits in the proof.
    pub(crate) circuits: usize,
    /// Where keys and witness come from.
    pub(crate) inputs: Inputs,
}

impl Work {
    /// Keys and a proof that are made.
    pub(crate) fn made(k: u32, circuits: usize) -> Self {
        Self {
            k,
            circuits,
            inputs: Inputs::Made,
        }
    }

    fn shape(&self, cs: &ConstraintSystem<Fr>, scheme: OpeningScheme) -> Shape {
        let mut shape = shape(cs, self.k, self.circuits, scheme);
        shape.0.inputs = self.inputs;
        shape
    }
}

/// The smallest budget in which keys and a proof of so many such circuits can be made, by whichever scheme.
pub(crate) fn minimum_bytes(
    cs: &ConstraintSystem<Fr>,
    work: Work,
    threads: usize,
    keeps_rounds: bool,
) -> Result<u64> {
    /// More than any circuit takes.
    const ENOUGH: u64 = 1 << 45;
    let shape = work
        .shape(cs, OpeningScheme::Shplonk)
        .keeping_rounds(keeps_rounds);
    let plan = shape.plan(ENOUGH, threads, &Rates::default())?;
    Ok(plan.smallest_budget_bytes)
}

/// Runs keys and a proof of so many such circuits dry, by whichever scheme, for the task that is to make one
/// phase of them.
///
/// # Errors
/// Those of [`rehearse`](spillproof_engine::plan::rehearse).
pub(crate) fn rehearse(task: &Task, phase: Phase, cs: &ConstraintSystem<Fr>, work: Work) -> Result<()> {
    let shape = work.shape(cs, OpeningScheme::Shplonk).in_session(task.session());
    shape.0.rehearse::<Config, AdviceCell>(task, phase)
}

/// The plan that the progress of keys, or of a proof of so many such circuits, is measured by: at usual
/// rates, as if opened by SHPLONK.
pub(crate) fn expected(session: &Session, cs: &ConstraintSystem<Fr>, work: Work) -> Result<Plan> {
    let shape = work.shape(cs, OpeningScheme::Shplonk).in_session(session);
    shape.plan(
        session.budget().limit_bytes(),
        session.threads(),
        &Rates::default(),
    )
}

/// What a plan is of.
#[derive(Clone, Debug)]
pub struct Shape(plan::Shape);

/// The shape of proofs of `circuits` circuits of `2^k` rows. Selectors that stand in `cs` still become a
/// column each, as they do in keys without compression; with compression there are fewer, and the proof takes
/// less.
pub fn shape(cs: &ConstraintSystem<Fr>, k: u32, circuits: usize, scheme: OpeningScheme) -> Shape {
    let (cs, selectors) = without_selectors(cs);
    let degree = cs.degree();
    Shape(plan::Shape {
        cs: constraint_system(&cs, degree),
        selectors,
        domain: domain_of::<Fr>(k, degree),
        circuits,
        protocol: protocol(scheme, false),
        keeps_rounds: false,
        inputs: Inputs::Made,
        accelerator: None,
    })
}

impl Shape {
    /// Proofs whose rounds are kept in a checkpoint, or not; they are not, unless it is said.
    #[must_use]
    pub fn keeping_rounds(mut self, keeps_rounds: bool) -> Self {
        self.0.keeps_rounds = keeps_rounds;
        self
    }

    /// Proofs in `session`: whose rounds are kept where it has checkpoints, and whose jobs its accelerator is
    /// offered, if it has one.
    #[must_use]
    pub fn in_session(self, session: &Session) -> Self {
        let mut shape = self.keeping_rounds(session.checkpoints().is_some());
        shape.0.accelerator = session.workspace().accelerator.clone();
        shape
    }

    /// Of a proof with a key and a witness that are in files: the plan has no keys and no synthesis.
    #[must_use]
    pub fn from_files(mut self) -> Self {
        let of = &self.0.cs;
        let columns = 2 * (of.fixed_columns + of.permuted.len()) + ROW_POLYNOMIALS + of.advice_columns();
        let held_bytes = digests_bytes(columns as u64, self.0.domain.rows());
        self.0.inputs = Inputs::Stored { held_bytes };
        self
    }

    /// The plan of keys and a proof within `budget_bytes` on `threads` threads, where only the parameters are
    /// there yet.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        self.0.plan::<Config, AdviceCell>(budget_bytes, threads, rates)
    }

    /// The numerator of the quotient, as a proof offers it to an accelerator; its challenges are any.
    pub fn numerator(&self) -> Numerator {
        self.0.numerator()
    }
}

/// With a column for each selector, and how many those are.
fn without_selectors(cs: &ConstraintSystem<Fr>) -> (Cow<'_, ConstraintSystem<Fr>>, usize) {
    if cs.num_selectors == 0 || !cs.selector_map.is_empty() {
        return (Cow::Borrowed(cs), 0);
    }
    let selectors = vec![vec![true]; cs.num_selectors];
    let (replaced, _) = cs.clone().directly_convert_selectors_to_fixed(selectors);
    (Cow::Owned(replaced), cs.num_selectors)
}
