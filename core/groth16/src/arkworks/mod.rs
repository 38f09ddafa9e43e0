//! Keys and circuits of `ark-groth16`: its proofs, with the key and the constraints on disk.
//!
//! [`CircuitKey::new`] writes a key and the constraints of a circuit to scratch columns once, after which the
//! caller may drop the key; [`CircuitKey::read`] takes a serialised key from a file, and never has the whole
//! of it in memory. [`CircuitKey::prove`] synthesises the assignment of a circuit without its constraints (32
//! bytes for each variable, in memory that arkworks allocates), writes it to a column, and proves. A proof is
//! that of `Groth16::create_proof_with_reduction`, byte for byte.
//!
//! ```no_run
//! use std::sync::Arc;
//! use ark_bn254::{Bn254, Fr};
//! use ark_relations::gr1cs::ConstraintSynthesizer;
//! use spillproof_groth16::arkworks::{CircuitKey, Reduction};
//!
//! fn prove<C>(circuit: C, [r, s]: [Fr; 2]) -> spillproof_engine::Result<ark_groth16::Proof<Bn254>>
//! where
//!     C: ConstraintSynthesizer<Fr> + Clone,
//! {
//!     let session = Arc::new(spillproof_engine::Session::builder().memory("128MiB").dir("/nvme").build()?);
//!     let (file, reduction) = ("circuit.key".as_ref(), Reduction::Libsnark);
//!     let key = CircuitKey::<Bn254>::read(&session, file, circuit.clone(), reduction, &mut |_| ())?;
//!     key.prove(circuit, [r, s])
//! }
//! ```
//!
//! Memory within the budget: a few runs of points; up to 256 bytes for each distinct value of the
//! coefficients while a key is made; then that of a proof.
//!
//! Memory outside of the budget: the key that `new` is given; the constraints that arkworks holds while `new`
//! or `read` runs; the assignment, while it is synthesised.

mod file;
mod matrices;

use std::path::Path;
use std::sync::Arc;

use ark_ec::short_weierstrass::Affine;
use ark_ff::FftField;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisMode,
};
use ark_relations::utils::error::SynthesisError;

use crate::{Domain, G1Point, G2Point, PairingCurve, ProvingKey, QuotientBasis, VerifyingKey, prove_in};
use matrices::Matrices;
use spillproof_engine::Result;
pub use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::Session;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::field::KernelField;

/// Points and coefficients that are converted at a time.
const CHUNK: usize = 4096;

/// The polynomials whose sums a key's `h_query` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `ark_groth16::r1cs_to_qap::LibsnarkReduction`, which `Groth16<E>` has unless told otherwise: multiples
    /// of the vanishing polynomial by powers of X.
    Libsnark,
    /// `CircomReduction` of `ark-circom`: the Lagrange basis of the odd powers of a root of twice the order.
    Circom,
}

impl Reduction {
    /// Rows of the domain that a key has no `h` point for.
    fn unused_points(self) -> u64 {
        match self {
            Self::Libsnark => 1,
            Self::Circom => 0,
        }
    }
}

/// The points of a key. A column has one point for each signal or row; where the key has no point, the column
/// has infinity.
#[doc(hidden)]
pub struct Parts<E: PairingCurve> {
    /// alpha, beta, delta.
    points_g1: [Affine<E::G1Config>; 3],
    /// beta, gamma, delta.
    points_g2: [Affine<E::G2Config>; 3],
    ic: Column<G1Point<E>>,
    a: Column<G1Point<E>>,
    b_g1: Column<G1Point<E>>,
    b_g2: Column<G2Point<E>>,
    c: Column<G1Point<E>>,
    h: Column<G1Point<E>>,
}

/// A key and the constraints of its circuit, on the disk of a session.
pub struct CircuitKey<E: PairingCurve> {
    session: Arc<Session>,
    key: ProvingKey<E>,
}

impl<E: PairingCurve> CircuitKey<E> {
    /// Writes `key` and the constraints of `circuit`, which needs no assignment, to scratch columns.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] if the circuit cannot be synthesised, or has constraints of another kind than
    /// rank-1; [`Invalid::Length`] if the key belongs to another circuit; [`Invalid::PowerOfTwo`] for more
    /// constraints than the field has roots of unity for; [`spillproof_engine::Error::BudgetTooSmall`] with
    /// the smallest budget that takes the constraints; what writing columns may give.
    pub fn new<C>(
        session: &Arc<Session>,
        key: &ark_groth16::ProvingKey<E>,
        circuit: C,
        reduction: Reduction,
    ) -> Result<Self>
    where
        C: ConstraintSynthesizer<E::Scalar>,
    {
        let parts = E::parts(session.workspace(), key, reduction)?;
        Self::of(session, parts, circuit, reduction)
    }

    /// Reads a key that `serialize_uncompressed` or `serialize_compressed` has written to a file. Points are
    /// checked to be on their curves, as by `deserialize_with_mode` without its check of the subgroup.
    ///
    /// # Errors
    /// As [`Self::new`]; [`spillproof_engine::Error::Format`] for a file that is no such key;
    /// [`spillproof_engine::Error::File`], [`spillproof_engine::Error::Io`],
    /// [`spillproof_engine::Error::OverBudget`].
    pub fn read<C>(
        session: &Arc<Session>,
        path: &Path,
        circuit: C,
        reduction: Reduction,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Self>
    where
        C: ConstraintSynthesizer<E::Scalar>,
    {
        let parts = E::read_parts(session.workspace(), path, reduction, progress)?;
        Self::of(session, parts, circuit, reduction)
    }

    fn of<C>(session: &Arc<Session>, parts: Parts<E>, circuit: C, reduction: Reduction) -> Result<Self>
    where
        C: ConstraintSynthesizer<E::Scalar>,
    {
        let system = synthesised::<E>(circuit, SynthesisMode::Setup)?;
        E::circuit_key(session, parts, system, reduction)
    }

    /// The proof that `create_proof_with_reduction` makes with the random values `r` and `s`.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] if the circuit cannot be synthesised; otherwise as [`prove_in`]:
    /// [`Invalid::NotSatisfied`] for an assignment that does not satisfy the constraints, [`Invalid::Length`]
    /// for one of another circuit.
    pub fn prove<C>(&self, circuit: C, random: [E::Scalar; 2]) -> Result<ark_groth16::Proof<E>>
    where
        C: ConstraintSynthesizer<E::Scalar>,
    {
        let mode = SynthesisMode::Prove {
            construct_matrices: false,
            generate_lc_assignments: false,
        };
        E::prove_system(self, synthesised::<E>(circuit, mode)?, random)
    }

    /// What a proof takes.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::BudgetTooSmall`] with the smallest budget that works.
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        self.key.plan(budget_bytes, threads, rates)
    }

    /// The key, for the engine's own functions.
    pub fn key(&self) -> &ProvingKey<E> {
        &self.key
    }
}

fn refused(error: SynthesisError) -> spillproof_engine::Error {
    Invalid::ProofSystem {
        what: "synthesis of the circuit",
        reason: error.to_string(),
    }
    .into()
}

/// What a circuit makes of an empty system.
fn synthesised<E: PairingCurve>(
    circuit: impl ConstraintSynthesizer<E::Scalar>,
    mode: SynthesisMode,
) -> Result<ConstraintSystemRef<E::Scalar>> {
    let system = E::empty_system(mode);
    circuit.generate_constraints(system.clone()).map_err(refused)?;
    Ok(system)
}

pub(crate) fn empty_system<F: KernelField>(mode: SynthesisMode) -> ConstraintSystemRef<F> {
    let system = ConstraintSystem::new_ref();
    system.set_optimization_goal(OptimizationGoal::Constraints);
    system.set_mode(mode);
    system
}

pub(crate) fn parts<E: PairingCurve>(
    workspace: &Workspace,
    key: &ark_groth16::ProvingKey<E>,
    reduction: Reduction,
) -> Result<Parts<E>> {
    Ok(Parts {
        points_g1: [key.vk.alpha_g1, key.beta_g1, key.delta_g1],
        points_g2: [key.vk.beta_g2, key.vk.gamma_g2, key.vk.delta_g2],
        ic: points(workspace, "ic", [0, 0], &key.vk.gamma_abc_g1)?,
        a: points(workspace, "a", [0, 0], &key.a_query)?,
        b_g1: points(workspace, "b_g1", [0, 0], &key.b_g1_query)?,
        b_g2: points(workspace, "b_g2", [0, 0], &key.b_g2_query)?,
        c: points(
            workspace,
            "c",
            [key.vk.gamma_abc_g1.len() as u64, 0],
            &key.l_query,
        )?,
        h: points(workspace, "h", [0, reduction.unused_points()], &key.h_query)?,
    })
}

pub(crate) fn read_parts<E: PairingCurve>(
    workspace: &Workspace,
    path: &Path,
    reduction: Reduction,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Parts<E>> {
    workspace.run(|| file::read::<E>(workspace, path, reduction, progress))
}

pub(crate) fn circuit_key<E: PairingCurve>(
    session: &Arc<Session>,
    parts: Parts<E>,
    system: ConstraintSystemRef<E::Scalar>,
    reduction: Reduction,
) -> Result<CircuitKey<E>> {
    system.finalize();
    let (signals, public) = (
        system.num_variables() as u64,
        system.num_instance_variables() as u64,
    );
    let rows = (system.num_constraints() as u64 + public).next_power_of_two();
    for (what, given, expected) in [
        ("gamma_abc_g1", parts.ic.len(), public),
        ("a_query", parts.a.len(), signals),
        ("b_g1_query", parts.b_g1.len(), signals),
        ("b_g2_query", parts.b_g2.len(), signals),
        ("l_query", parts.c.len() - parts.ic.len(), signals - public),
        (
            "h_query",
            parts.h.len() - reduction.unused_points(),
            rows - reduction.unused_points(),
        ),
    ] {
        if given != expected {
            return Err(Invalid::Length {
                what: format!("points of `{what}` of a key for this circuit"),
                given,
                expected,
            }
            .into());
        }
    }
    let domain = arkworks_domain(rows)?;
    let matrices = Matrices::of(&system)?;
    let constraints = matrices.constraints_or_smallest(session.workspace())?;
    let [alpha_g1, beta_g1, delta_g1] = parts.points_g1;
    let [beta_g2, gamma_g2, delta_g2] = parts.points_g2;
    Ok(CircuitKey {
        session: session.clone(),
        key: ProvingKey {
            verifying: VerifyingKey {
                alpha_g1,
                beta_g2,
                gamma_g2,
                delta_g2,
                ic: parts.ic,
            },
            beta_g1,
            delta_g1,
            a: parts.a,
            b_g1: parts.b_g1,
            b_g2: parts.b_g2,
            c: parts.c,
            h: parts.h,
            constraints,
            domain,
            quotient: match reduction {
                Reduction::Libsnark => QuotientBasis::Monomial,
                Reduction::Circom => QuotientBasis::Coset,
            },
            share: None,
        },
    })
}

pub(crate) fn prove_system<E: PairingCurve>(
    key: &CircuitKey<E>,
    system: ConstraintSystemRef<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<ark_groth16::Proof<E>> {
    system.finalize();
    let system = system
        .borrow()
        .ok_or_else(|| refused(SynthesisError::MissingCS))?;
    let parts = [system.instance_assignment(), system.witness_assignment()];
    let [public, private] = parts.map(|part| part.map_err(refused));
    let (public, private) = (public?, private?);
    let len = (public.len() + private.len()) as u64;
    let workspace = key.session.workspace();
    let mut writer = Writer::scratch(workspace, "assignment", len, Placement::Disk)?;
    writer.push(public)?;
    writer.push(private)?;
    let proof = prove_in(&key.session, &key.key, &writer.finish()?, random)?;
    Ok(ark_groth16::Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    })
}

/// The domain of so many rows, with arkworks' roots of unity.
fn arkworks_domain<F: KernelField>(rows: u64) -> Result<Domain<F>> {
    let omega = F::get_root_of_unity(rows).ok_or(Invalid::PowerOfTwo {
        what: "rows of a circuit",
        given: rows,
        log_limit: F::TWO_ADICITY,
    })?;
    // Any coset does for the monomial basis.
    let shift = F::get_root_of_unity(2 * rows).unwrap_or(<F as FftField>::GENERATOR);
    Ok(Domain { omega, shift })
}

/// So many points at infinity, those of a key, and so many at infinity again.
fn points<P: Curve>(
    workspace: &Workspace,
    what: &str,
    [before, after]: [u64; 2],
    points: &[Affine<P>],
) -> Result<Column<Point<P>>> {
    let len = before + points.len() as u64 + after;
    let mut writer = Writer::scratch(workspace, what, len, Placement::Disk)?;
    let mut tile = (workspace.budget).vec(CHUNK, Point::<P>::INFINITY, "points of a key")?;
    push_infinities::<P>(&mut writer, before)?;
    for points in points.chunks(CHUNK) {
        for (place, point) in tile.iter_mut().zip(points) {
            *place = Point::<P>::from_affine::<P>(point);
        }
        writer.push(&tile[..points.len()])?;
    }
    push_infinities::<P>(&mut writer, after)?;
    writer.finish()
}

fn push_infinities<P: Curve>(writer: &mut Writer<Point<P>>, count: u64) -> Result<()> {
    (0..count).try_for_each(|_| writer.push(&[Point::<P>::INFINITY]))
}
