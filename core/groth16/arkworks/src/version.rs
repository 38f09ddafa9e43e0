//! Groth16 over the types of one version of arkworks, which the module around this one names.
//!
//! Elements have the same limbs in all versions, in Montgomery form: they are taken over as they are.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use super::ark_bls12_381::Bls12_381;
use super::ark_bn254::Bn254;
use super::ark_ec::AffineRepr;
use super::ark_ec::pairing::Pairing;
use super::ark_ec::short_weierstrass::Affine;
use super::ark_ff::UniformRand;
use super::ark_groth16::{PreparedVerifyingKey, Proof, ProvingKey, VerifyingKey};
use super::ark_snark::{CircuitSpecificSetupSNARK, SNARK};
use super::relations::ConstraintSynthesizer;
use super::system::{self, Matrices, System};
use super::{ark_bls12_381, ark_bn254, ark_ff, ark_groth16};
use crate::{Matrix, Synthesis};
use crate::{Progress, Reduction};
use rand::{CryptoRng, Rng, RngCore};
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::session::no_device;
use spillproof_engine::{Error, Result, Session};
use spillproof_groth16::arkworks::{GivenConstraints, GivenKey, GivenPoints};
use spillproof_groth16::{PairingCurve, PairingGroups, ProvingKey as KeyOnDisk};

/// Affine points of our own version.
type Of<P> = ::ark_ec::short_weierstrass::Affine<P>;
type G1<E> = Of<<<E as Curve>::Engine as PairingGroups>::G1Config>;
type G2<E> = Of<<<E as Curve>::Engine as PairingGroups>::G2Config>;
type Scalar<E> = <<E as Curve>::Engine as PairingGroups>::Scalar;

/// A curve: BN254 or BLS12-381.
pub trait Curve: Pairing {
    /// The engine's.
    #[doc(hidden)]
    type Engine: PairingCurve;

    #[doc(hidden)]
    fn scalar(scalar: &Self::ScalarField) -> Scalar<Self>;
    #[doc(hidden)]
    fn g1(point: &Self::G1Affine) -> G1<Self>;
    #[doc(hidden)]
    fn g2(point: &Self::G2Affine) -> G2<Self>;
    #[doc(hidden)]
    fn back_g1(point: &G1<Self>) -> Self::G1Affine;
    #[doc(hidden)]
    fn back_g2(point: &G2<Self>) -> Self::G2Affine;
}

/// Limbs are taken over, from their version to ours and back.
macro_rules! curves {
    ($($curve:ident, $theirs:ident, $ours:path;)*) => {
        $(
            impl Curve for $curve {
                type Engine = $ours;

                fn scalar(scalar: &Self::ScalarField) -> Scalar<Self> {
                    ::ark_ff::Fp::new_unchecked(::ark_ff::BigInt(scalar.0.0))
                }

                fn g1(point: &Self::G1Affine) -> G1<Self> {
                    let field = |value: $theirs::Fq| ::ark_ff::Fp::new_unchecked(::ark_ff::BigInt(value.0.0));
                    match point.is_zero() {
                        true => Of::identity(),
                        false => Of::new_unchecked(field(point.x), field(point.y)),
                    }
                }

                fn g2(point: &Self::G2Affine) -> G2<Self> {
                    let field = |value: $theirs::Fq| ::ark_ff::Fp::new_unchecked(::ark_ff::BigInt(value.0.0));
                    let pair = |value: $theirs::Fq2| ::ark_ff::QuadExtField::new(field(value.c0), field(value.c1));
                    match point.is_zero() {
                        true => Of::identity(),
                        false => Of::new_unchecked(pair(point.x), pair(point.y)),
                    }
                }

                fn back_g1(point: &G1<Self>) -> Self::G1Affine {
                    match point == &Of::identity() {
                        true => Affine::zero(),
                        false => Affine::new_unchecked(
                            $theirs::Fq::new_unchecked(ark_ff::BigInt(point.x.0.0)),
                            $theirs::Fq::new_unchecked(ark_ff::BigInt(point.y.0.0)),
                        ),
                    }
                }

                fn back_g2(point: &G2<Self>) -> Self::G2Affine {
                    macro_rules! pair {
                        ($value:expr) => {
                            $theirs::Fq2::new(
                                $theirs::Fq::new_unchecked(ark_ff::BigInt($value.c0.0.0)),
                                $theirs::Fq::new_unchecked(ark_ff::BigInt($value.c1.0.0)),
                            )
                        };
                    }
                    match point == &Of::identity() {
                        true => Affine::zero(),
                        false => Affine::new_unchecked(pair!(point.x), pair!(point.y)),
                    }
                }
            }
        )*
    };
}

curves! {
    Bn254, ark_bn254, ::ark_bn254::Bn254;
    Bls12_381, ark_bls12_381, ::ark_bls12_381::Bls12_381;
}

/// Which polynomials the `h_query` of a key belongs to.
pub trait QapReduction {
    /// The same as a value.
    const REDUCTION: Reduction;
}

pub use super::ark_groth16::r1cs_to_qap::LibsnarkReduction;

/// That of circom's keys, which `ark-circom` has under the same name.
#[derive(Clone, Copy, Debug)]
pub struct CircomReduction;

impl QapReduction for LibsnarkReduction {
    const REDUCTION: Reduction = Reduction::Libsnark;
}

impl QapReduction for CircomReduction {
    const REDUCTION: Reduction = Reduction::Circom;
}

/// In place of `ark_groth16::Groth16`: the same proofs, of the same values from the same generator, within a budget.
/// Keys are made, and proofs verified, by `ark_groth16`.
#[derive(Clone, Copy, Debug)]
pub struct Groth16<E, QAP = LibsnarkReduction>(PhantomData<(E, QAP)>);

/// The matrices of a circuit, as its owner has them.
struct Given<'a, E: Curve> {
    sides: [&'a Matrix<E::ScalarField>; 2],
    rows: usize,
    signals: usize,
    public: usize,
}

impl<E: Curve> GivenConstraints<Scalar<E>> for Given<'_, E> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn signals(&self) -> usize {
        self.signals
    }

    fn public(&self) -> usize {
        self.public
    }

    fn terms(&self, matrix: u32, row: usize, each: &mut dyn FnMut(Scalar<E>, usize)) {
        for (value, signal) in self.sides[matrix as usize].get(row).into_iter().flatten() {
            each(E::scalar(value), *signal);
        }
    }
}

/// A key in columns, for the circuit with these matrices.
fn key_on_disk<E: Curve>(
    session: &Session,
    key: &ProvingKey<E>,
    constraints: &Given<'_, E>,
    reduction: Reduction,
) -> Result<KeyOnDisk<E::Engine>> {
    fn g1<'a, E: Curve>(
        points: &'a [E::G1Affine],
    ) -> GivenPoints<'a, <E::Engine as PairingGroups>::G1Config> {
        GivenPoints::new(points.len(), |index| E::g1(&points[index]))
    }
    let given = GivenKey::<E::Engine> {
        points_g1: [&key.vk.alpha_g1, &key.beta_g1, &key.delta_g1].map(E::g1),
        points_g2: [&key.vk.beta_g2, &key.vk.gamma_g2, &key.vk.delta_g2].map(E::g2),
        ic: g1::<E>(&key.vk.gamma_abc_g1),
        a: g1::<E>(&key.a_query),
        b_g1: g1::<E>(&key.b_g1_query),
        b_g2: GivenPoints::new(key.b_g2_query.len(), |index| E::g2(&key.b_g2_query[index])),
        l: g1::<E>(&key.l_query),
        h: g1::<E>(&key.h_query),
    };
    let parts = E::Engine::given_parts(session.workspace(), &given, reduction)?;
    E::Engine::given_key(session.workspace(), parts, constraints, reduction)
}

/// The proof of public and private values.
fn prove_values<E: Curve>(
    session: &Arc<Session>,
    key: &KeyOnDisk<E::Engine>,
    values: [&[E::ScalarField]; 2],
    random: [E::ScalarField; 2],
) -> Result<Proof<E>> {
    let [public, private] = values;
    let value = |index: usize| match index.checked_sub(public.len()) {
        None => E::scalar(&public[index]),
        Some(index) => E::scalar(&private[index]),
    };
    let len = public.len() + private.len();
    let random = random.each_ref().map(E::scalar);
    let proof = E::Engine::prove_values(session, key, len, &value, random)?;
    Ok(Proof {
        a: E::back_g1(&proof.a),
        b: E::back_g2(&proof.b),
        c: E::back_g1(&proof.c),
    })
}

impl<E: Curve, QAP: QapReduction> Groth16<E, QAP> {
    /// The proof of a circuit, with two random values from `rng`.
    ///
    /// # Errors
    /// As [`CircuitKey::prove`].
    pub fn create_random_proof_with_reduction<C>(
        circuit: C,
        key: &ProvingKey<E>,
        rng: &mut impl Rng,
    ) -> Result<Proof<E>>
    where
        C: ConstraintSynthesizer<E::ScalarField>,
    {
        let r = E::ScalarField::rand(rng);
        let s = E::ScalarField::rand(rng);
        Self::create_proof_with_reduction(circuit, key, r, s)
    }

    /// The proof of a circuit, with these random values.
    ///
    /// # Errors
    /// As [`CircuitKey::prove`].
    pub fn create_proof_with_reduction<C>(
        circuit: C,
        key: &ProvingKey<E>,
        r: E::ScalarField,
        s: E::ScalarField,
    ) -> Result<Proof<E>>
    where
        C: ConstraintSynthesizer<E::ScalarField>,
    {
        let session = Session::current_or_shared(no_device)?;
        let system = System::of(circuit, Synthesis::Both)?;
        let key = {
            let [left, right] = system.matrices()?;
            let constraints = Given::<E> {
                sides: [&left, &right],
                rows: left.len(),
                signals: system.signals(),
                public: system.public(),
            };
            key_on_disk(&session, key, &constraints, QAP::REDUCTION)?
        };
        system.with_assignment(|public, private| prove_values::<E>(&session, &key, [public, private], [r, s]))
    }

    /// The proof of an assignment, the constant one first, for a circuit whose matrices the caller has: so `ark-circom`
    /// proves with circom's keys.
    ///
    /// # Errors
    /// As [`CircuitKey::prove`].
    pub fn create_proof_with_reduction_and_matrices(
        key: &ProvingKey<E>,
        r: E::ScalarField,
        s: E::ScalarField,
        matrices: &Matrices<E::ScalarField>,
        num_inputs: usize,
        num_constraints: usize,
        full_assignment: &[E::ScalarField],
    ) -> Result<Proof<E>> {
        let session = Session::current_or_shared(no_device)?;
        let sides = system::sides(matrices)?;
        for (what, len) in [("rows of A", sides[0].len()), ("rows of B", sides[1].len())] {
            if len < num_constraints {
                return Err(Invalid::TooShort {
                    what,
                    given: len as u64,
                    needed: num_constraints as u64,
                }
                .into());
            }
        }
        let constraints = Given::<E> {
            sides,
            rows: num_constraints,
            signals: full_assignment.len(),
            public: num_inputs,
        };
        let key = key_on_disk(&session, key, &constraints, QAP::REDUCTION)?;
        prove_values::<E>(&session, &key, [full_assignment, &[]], [r, s])
    }
}

impl<E: Curve> SNARK<E::ScalarField> for Groth16<E> {
    type ProvingKey = ProvingKey<E>;
    type VerifyingKey = VerifyingKey<E>;
    type Proof = Proof<E>;
    type ProcessedVerifyingKey = PreparedVerifyingKey<E>;
    type Error = Error;

    fn circuit_specific_setup<C: ConstraintSynthesizer<E::ScalarField>, R: RngCore + CryptoRng>(
        circuit: C,
        rng: &mut R,
    ) -> Result<(Self::ProvingKey, Self::VerifyingKey)> {
        ark_groth16::Groth16::<E>::circuit_specific_setup(circuit, rng).map_err(by_arkworks)
    }

    fn prove<C: ConstraintSynthesizer<E::ScalarField>, R: RngCore + CryptoRng>(
        key: &Self::ProvingKey,
        circuit: C,
        rng: &mut R,
    ) -> Result<Self::Proof> {
        Self::create_random_proof_with_reduction(circuit, key, rng)
    }

    fn process_vk(key: &Self::VerifyingKey) -> Result<Self::ProcessedVerifyingKey> {
        ark_groth16::Groth16::<E>::process_vk(key).map_err(by_arkworks)
    }

    fn verify_with_processed_vk(
        key: &Self::ProcessedVerifyingKey,
        public: &[E::ScalarField],
        proof: &Self::Proof,
    ) -> Result<bool> {
        ark_groth16::Groth16::<E>::verify_with_processed_vk(key, public, proof).map_err(by_arkworks)
    }
}

impl<E: Curve> CircuitSpecificSetupSNARK<E::ScalarField> for Groth16<E> {}

fn by_arkworks(error: impl std::error::Error) -> Error {
    Invalid::ProofSystem {
        what: "ark-groth16",
        reason: error.to_string(),
    }
    .into()
}

/// A key and the constraints of its circuit, on the disk of a session.
pub struct CircuitKey<E: Curve> {
    session: Arc<Session>,
    key: KeyOnDisk<E::Engine>,
}

impl<E: Curve> CircuitKey<E> {
    /// Writes `key` and the constraints of `circuit`, which needs no assignment, to scratch columns. The caller may
    /// drop the key.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] if the circuit cannot be synthesised, or has constraints of another kind than
    /// rank-1; [`Invalid::Length`] if the key belongs to another circuit; [`Invalid::PowerOfTwo`] for more
    /// constraints than the field has roots of unity for; [`Error::BudgetTooSmall`] with the smallest budget that
    /// takes the constraints; what writing columns may give.
    pub fn new<C>(
        session: &Arc<Session>,
        key: &ProvingKey<E>,
        circuit: C,
        reduction: Reduction,
    ) -> Result<Self>
    where
        C: ConstraintSynthesizer<E::ScalarField>,
    {
        let system = System::of(circuit, Synthesis::Constraints)?;
        let [left, right] = system.matrices()?;
        let key = key_on_disk(session, key, &Self::given(&system, [&left, &right]), reduction)?;
        Ok(Self {
            session: Arc::clone(session),
            key,
        })
    }

    /// Reads a key that `serialize_uncompressed` or `serialize_compressed` has written to a file. Points are
    /// checked to be on their curves, as by `deserialize_with_mode` without its check of the subgroup.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::Format`] for a file that is no such key; [`Error::File`], [`Error::Io`],
    /// [`Error::OverBudget`].
    pub fn read<C>(
        session: &Arc<Session>,
        path: &Path,
        circuit: C,
        reduction: Reduction,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Self>
    where
        C: ConstraintSynthesizer<E::ScalarField>,
    {
        let workspace = session.workspace();
        let parts = E::Engine::read_parts(workspace, path, reduction, progress)?;
        let system = System::of(circuit, Synthesis::Constraints)?;
        let [left, right] = system.matrices()?;
        let given = Self::given(&system, [&left, &right]);
        Ok(Self {
            session: Arc::clone(session),
            key: E::Engine::given_key(workspace, parts, &given, reduction)?,
        })
    }

    fn given<'a>(system: &System<E::ScalarField>, sides: [&'a Matrix<E::ScalarField>; 2]) -> Given<'a, E> {
        Given {
            sides,
            rows: sides[0].len(),
            signals: system.signals(),
            public: system.public(),
        }
    }

    /// The proof that `create_proof_with_reduction` makes with the random values r and s.
    ///
    /// # Errors
    /// [`Invalid::ProofSystem`] if the circuit cannot be synthesised; [`Invalid::NotSatisfied`] for an assignment
    /// that does not satisfy the constraints, [`Invalid::Length`] for one of another circuit; otherwise as
    /// [`spillproof_groth16::prove_in`].
    pub fn prove<C>(&self, circuit: C, random: [E::ScalarField; 2]) -> Result<Proof<E>>
    where
        C: ConstraintSynthesizer<E::ScalarField>,
    {
        let system = System::of(circuit, Synthesis::Assignment)?;
        system.with_assignment(|public, private| {
            prove_values::<E>(&self.session, &self.key, [public, private], random)
        })
    }

    /// What a proof takes.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] with the smallest budget that works.
    pub fn plan(&self, budget_bytes: u64, threads: usize, rates: &Rates) -> Result<Plan> {
        self.key.plan(budget_bytes, threads, rates)
    }

    /// The key, for the engine's own functions.
    pub fn key(&self) -> &KeyOnDisk<E::Engine> {
        &self.key
    }
}
