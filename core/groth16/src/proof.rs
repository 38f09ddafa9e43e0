//! Proofs: the sums over a key's points, blinding, verification.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::Zero;

use super::constraints::Share;
use super::{PairingCurve, PairingGroups, ProvingKey, Shape, VerifyingKey, quotient};
use spillproof_engine::Result;
use spillproof_engine::accelerator::TaskAccelerator;
use spillproof_engine::column::{Column, Element, Placement, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::step;
use spillproof_engine::stream::{Scalars, Terms, msm, msm_of, sums_of_terms};

/// A proof.
pub struct Proof<E: PairingCurve> {
    /// The first element, in the first group.
    pub a: Affine<E::G1Config>,
    /// The second element, in the second group.
    pub b: Affine<E::G2Config>,
    /// The third element, in the first group.
    pub c: Affine<E::G1Config>,
}

// Derives would ask the same of the curves' types, which have none of it.
impl<E: PairingCurve> Clone for Proof<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: PairingCurve> Copy for Proof<E> {}

impl<E: PairingCurve> PartialEq for Proof<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.a, self.b, self.c) == (other.a, other.b, other.c)
    }
}

impl<E: PairingCurve> Eq for Proof<E> {}

impl<E: PairingCurve> std::fmt::Debug for Proof<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proof")
            .field("a", &self.a)
            .field("b", &self.b)
            .field("c", &self.c)
            .finish()
    }
}

/// The proof that the prover of the same key makes in memory with the random values r and s. `witness` has a
/// value for each signal, the constant one first.
///
/// # Errors
/// [`Invalid::Length`] for a witness of another circuit, [`Invalid::WitnessStart`] if its first value is not
/// one, [`Invalid::NotSatisfied`] if the proof does not verify; [`spillproof_engine::Error::BudgetTooSmall`],
/// [`spillproof_engine::Error::OverBudget`]; what reading and writing columns may give.
pub fn prove<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<Proof<E>> {
    E::prove(key, witness, random)
}

pub(crate) fn prove_over<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    random: [E::Scalar; 2],
) -> Result<Proof<E>> {
    let workspace = witness.workspace();
    key.check_whole()?;
    let shape = key.shape()?;
    if witness.len() != shape.signals {
        return Err(Invalid::Length {
            what: "values of a witness".into(),
            given: witness.len(),
            expected: shape.signals,
        }
        .into());
    }
    workspace.run(|| {
        let public = public_signals_of(witness, shape.public)?;
        let proof = Sums::made(key, witness, &shape)?.proof(key, random);
        if holds(workspace, key, &public, &proof)? {
            return Ok(proof);
        }
        let has_taken_part = TaskAccelerator::jobs_of_this_thread().map(|jobs| jobs > 0);
        let accelerator = workspace.accelerator.as_ref();
        if let Some(accelerator) = accelerator.filter(|_| has_taken_part != Some(false)) {
            // It computed wrong, or the witness is: the processor's proof tells which.
            let _processor_only = TaskAccelerator::none().enter();
            let proof = Sums::made(key, witness, &shape)?.proof(key, random);
            if holds(workspace, key, &public, &proof)? {
                accelerator.distrust();
                tracing::warn!("the accelerator computed wrong: the processor has made the proof again, and will make those to come");
                return Ok(proof);
            }
        }
        Err(unsatisfied(key)?)
    })
}

/// Whether a proof verifies. In a dry workspace it does.
pub(crate) fn holds<E: PairingCurve>(
    workspace: &Workspace,
    key: &ProvingKey<E>,
    public: &[E::Scalar],
    proof: &Proof<E>,
) -> Result<bool> {
    let _step = step!(workspace, "verification");
    Ok(workspace.is_dry() || verify(&key.verifying, public, proof)?)
}

/// Why a proof of the processor's does not verify.
///
/// # Errors
/// What is wrong with the key's points, which is the other cause.
pub(crate) fn unsatisfied<E: PairingCurve>(key: &ProvingKey<E>) -> Result<spillproof_engine::Error> {
    key.check_points()?;
    Ok(Invalid::NotSatisfied.into())
}

/// The sums over a key's points.
#[derive(Clone, Copy)]
pub(crate) struct Sums<E: PairingCurve> {
    pub a: Projective<E::G1Config>,
    pub b_g1: Projective<E::G1Config>,
    pub b_g2: Projective<E::G2Config>,
    pub c: Projective<E::G1Config>,
    pub h: Projective<E::G1Config>,
}

impl<E: PairingCurve> Sums<E> {
    /// All of them, one after the other.
    fn made(key: &ProvingKey<E>, witness: &Column<E::Scalar>, shape: &Shape) -> Result<Self> {
        let workspace = witness.workspace();
        let terms = Terms::first(shape.signals);
        // First, so that the witness is there for the constraints.
        let (of_g1, of_g2) = sums_together(key, witness, terms)?;
        let (domain, placement) = ((shape.log_domain, &key.domain), Placement::Passing);
        let offered = quotient::offered(&key.constraints, witness, domain, key.quotient, placement)?;
        let quotient = match offered {
            Some(quotient) => quotient,
            None => {
                let values = {
                    let _step = step!(workspace, "constraints");
                    (key.constraints).evaluate(witness, shape, Share::all(shape), placement)?
                };
                let _step = step!(workspace, "quotient");
                quotient::quotient(values, domain, key.quotient, placement)?
            }
        };
        let h = {
            let _step = step!(workspace, "sum over H");
            let sums = msm::<E::G1Config>(&key.h, &[Scalars::Column(&quotient)])?;
            sums.into_iter().next().unwrap_or_default()
        };
        drop(quotient);
        let [a, b_g1, c] = match of_g1 {
            Some(sums) => sums,
            None => [
                sum_over_a(key, witness, terms)?,
                sum_over_b_g1(key, witness, terms)?,
                sum_over_c(key, witness, terms)?,
            ],
        };
        let b_g2 = match of_g2 {
            Some(sum) => sum,
            None => sum_over_b_g2(key, witness, terms)?,
        };
        Ok(Self { a, b_g1, b_g2, c, h })
    }

    /// The proof that they make.
    pub(crate) fn proof(self, key: &ProvingKey<E>, [r, s]: [E::Scalar; 2]) -> Proof<E> {
        let a = self.a + key.verifying.alpha_g1 + key.delta_g1 * r;
        let b_g1 = self.b_g1 + key.beta_g1 + key.delta_g1 * s;
        let b_g2 = self.b_g2 + key.verifying.beta_g2 + key.verifying.delta_g2 * s;
        let c = self.c + self.h + a * s + b_g1 * r - key.delta_g1 * (r * s);
        Proof {
            a: a.into_affine(),
            b: b_g2.into_affine(),
            c: c.into_affine(),
        }
    }
}

/// The sums over A, B1 and C, and that over B2, as far as they are made.
pub(crate) type Together<E> = (
    Option<[Projective<<E as PairingGroups>::G1Config>; 3]>,
    Option<Projective<<E as PairingGroups>::G2Config>>,
);

/// Some terms of the sums over the witness as one job of an accelerator, which then has and sorts it once. What it
/// does not make, the processor has to.
pub(crate) fn sums_together<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    terms: Terms,
) -> Result<Together<E>> {
    if witness.workspace().accelerator.is_none() {
        return Ok((None, None));
    }
    let _step = step!(witness.workspace(), "sums over A, B1, C and B2");
    let first = [&key.a, &key.b_g1, &key.c];
    let sums = sums_of_terms::<E::G1Config, E::G2Config>(witness, terms, &first, &[&key.b_g2])?;
    let (of_g1, of_g2) = sums.unwrap_or_default();
    Ok((of_g1.try_into().ok(), of_g2.into_iter().next()))
}

pub(crate) fn sum_over_a<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    terms: Terms,
) -> Result<Projective<E::G1Config>> {
    let _step = step!(witness.workspace(), "sum over A");
    msm_of(&key.a, witness, terms)
}

pub(crate) fn sum_over_b_g1<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    terms: Terms,
) -> Result<Projective<E::G1Config>> {
    let _step = step!(witness.workspace(), "sum over B1");
    msm_of(&key.b_g1, witness, terms)
}

pub(crate) fn sum_over_b_g2<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    terms: Terms,
) -> Result<Projective<E::G2Config>> {
    let _step = step!(witness.workspace(), "sum over B2");
    msm_of(&key.b_g2, witness, terms)
}

pub(crate) fn sum_over_c<E: PairingCurve>(
    key: &ProvingKey<E>,
    witness: &Column<E::Scalar>,
    terms: Terms,
) -> Result<Projective<E::G1Config>> {
    let _step = step!(witness.workspace(), "sum over C");
    msm_of(&key.c, witness, terms)
}

/// The first `public` values of a witness after the constant one: its public signals.
///
/// # Errors
/// [`Invalid::WitnessStart`] if the first value is not one; what reading columns may give.
pub fn public_signals<E: PairingCurve>(witness: &Column<E::Scalar>, public: u64) -> Result<Vec<E::Scalar>> {
    E::public_signals(witness, public)
}

pub(crate) fn public_signals_of<F: Element + ark_ff::Field>(
    witness: &Column<F>,
    public: u64,
) -> Result<Vec<F>> {
    if witness.workspace().is_dry() {
        return Ok(Vec::new());
    }
    let mut signals = witness.prefix(public + 1)?.to_vec()?;
    if signals.first() != Some(&F::ONE) {
        return Err(Invalid::WitnessStart {
            witness: witness.name().to_owned(),
        }
        .into());
    }
    signals.remove(0);
    Ok(signals)
}

/// Whether a proof verifies for these public signals.
///
/// # Errors
/// [`Invalid::Length`] for a number of signals that is not the key's; what reading the key may give.
pub fn verify<E: PairingCurve>(
    key: &VerifyingKey<E>,
    public: &[E::Scalar],
    proof: &Proof<E>,
) -> Result<bool> {
    E::verify(key, public, proof)
}

pub(crate) fn verify_over<E: PairingCurve>(
    key: &VerifyingKey<E>,
    public: &[E::Scalar],
    proof: &Proof<E>,
) -> Result<bool> {
    let expected = key.ic.len().saturating_sub(1);
    if public.len() as u64 != expected {
        return Err(Invalid::Length {
            what: "public signals".into(),
            given: public.len() as u64,
            expected,
        }
        .into());
    }
    key.ic.workspace().run(|| {
        // What checks proofs does not depend on what made them.
        let _processor_only = TaskAccelerator::none().enter();
        let mut scalars = Vec::with_capacity(public.len() + 1);
        scalars.push(E::Scalar::from(1u64));
        scalars.extend_from_slice(public);
        let sums = msm::<E::G1Config>(&key.ic, &[Scalars::Slice(&scalars)])?;
        let inputs = sums.into_iter().next().unwrap_or_default();
        Ok(pairing_holds(key, &inputs, proof))
    })
}

/// `e(a, b) = e(alpha, beta) e(inputs, gamma) e(c, delta)`.
fn pairing_holds<E: PairingCurve>(
    key: &VerifyingKey<E>,
    inputs: &Projective<E::G1Config>,
    proof: &Proof<E>,
) -> bool {
    let (b, inputs) = (proof.b, inputs.into_affine());
    let first = [proof.a, -key.alpha_g1, -inputs, -proof.c];
    let second = [b, key.beta_g2, key.gamma_g2, key.delta_g2];
    E::multi_pairing(first, second).is_zero()
}
