//! Proofs of a session are verified before the prover returns: against a device that computes wrong, a disk
//! or a memory that lies, parameters that do not belong together, and a witness that does not satisfy the
//! circuit.
//!
//! ```text
//! the prover --writes--> Recording --the same--> the caller's transcript
//!                           |
//!                        Record --reads--> Replay <--reads-- upstream's verifier
//! ```
//!
//! The caller's transcript is any type at all: nothing can be read back from it, and what it absorbed it
//! keeps. So a `Recording` stands before it and writes down each point, scalar and challenge; a `Replay`
//! hands them to upstream's verifier, with the challenges that the caller's transcript gave. What is verified
//! is the argument: constraints, permutations, lookups, and the opening of every commitment, those of the
//! keys among them. A device cannot reach the rest, the hashing. It takes some milliseconds, whatever the
//! number of rows. [`set_self_verification`](super::set_self_verification) turns it off for proofs that no
//! device took part in.
//!
//! If a proof does not hold, it is too late to make it again in the same call: the caller's transcript cannot
//! go back, the rng is spent, and a circuit may be synthesised once only. So [`Unverified`] is returned, the
//! session's accelerator is not asked any more, and the same call with a new transcript and a new rng is the
//! processor's alone, with stock's bytes.
//!
//! | what an accelerator computed | how it is covered |
//! |---|---|
//! | commitments, transforms, openings of a proof | here |
//! | keys | they remember it, and each proof with them in a session is verified, whatever the switch says |
//! | keys that were read from a file | here, unless the switch is off: a file does not say that a device took part |
//! | a proof without a session, or with a multi-opening that is neither SHPLONK nor GWC | no device takes part |
//! | `params.commit` and transforms that a program asks for itself | not at all |
//!
//! Memory: the proof's own points and scalars, and a copy of the instances, leased.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::vec::IntoIter;

use ff::{Field, PrimeField};
use halo2curves::bn256::{Bn256, Fr, G1Affine};
use halo2curves::CurveAffine;
use pairing::Engine;
use rand_core::OsRng;
use spillproof_engine::accelerator;
use spillproof_engine::plan::Phase;
use spillproof_engine::session::{Participation, Task};
use spillproof_engine::Session;
use spillproof_plonk::{Opening, Transcript as Transcribed};
use spillproof_report::environment::{self, CircuitInWords, VERDICT};

use super::circuit::DegreeTooHigh;
use super::plan::{expected, minimum_bytes, rehearse, Work};
use super::switch::self_verification;
use crate::plonk::{self, verify_proof, ConstraintSystem, VerifyingKey};
use crate::poly::commitment::{CommitmentScheme, Verifier};
use crate::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use crate::poly::kzg::msm::DualMSM;
use crate::poly::kzg::multiopen::{VerifierGWC, VerifierSHPLONK};
use crate::poly::kzg::strategy::{GuardKZG, SingleStrategy};
use crate::transcript::{ChallengeScalar, EncodedChallenge, Transcript, TranscriptRead, TranscriptWrite};

/// A proof that does not verify. It is what `create_proof` returns inside of
/// [`plonk::Error::Transcript`]; [`Unverified::of`] finds it there.
#[derive(Clone, PartialEq, Eq)]
pub struct Unverified {
    /// Jobs of this proof that the accelerator did.
    pub jobs: u64,
    /// Jobs of its keys that an accelerator did.
    pub jobs_before: u64,
    /// Whether the keys are for a lower degree than the circuit's constraints have.
    pub degree: Option<DegreeTooHigh>,
    /// What the verifier said.
    pub reason: String,
}

impl Unverified {
    /// Of a proof that the processor made alone, with this key.
    pub fn by_processor<C: CurveAffine>(vk: &VerifyingKey<C>, reason: impl fmt::Display) -> Self {
        Self {
            jobs: 0,
            jobs_before: 0,
            degree: DegreeTooHigh::of(vk.cs()),
            reason: reason.to_string(),
        }
    }

    /// The one behind a prover's error, if there is one.
    pub fn of(error: &plonk::Error) -> Option<&Self> {
        match error {
            plonk::Error::Transcript(error) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            jobs,
            jobs_before,
            degree,
            reason,
        } = self;
        if let Some(degree) = degree {
            write!(
                f,
                "the proof does not verify ({reason}), and is not to be used: {degree}"
            )
        } else if *jobs > 0 {
            write!(
                f,
                "a device did {jobs} jobs of this proof, and it does not verify ({reason}): it is not to be used. The device is not \
                 asked any more in this session: prove again, with a new transcript and a new rng, and the processor does it alone. If \
                 that does not verify either, the keys were made wrong, or the witness does not satisfy the circuit"
            )
        } else if *jobs_before == 0 {
            write!(
                f,
                "the witness does not satisfy the circuit: the proof does not verify ({reason}), and is not to be used. \
                 MockProver shows where. If it finds nothing, the parameters or keys do not belong together, or a disk or a memory of this \
                 machine is at fault"
            )
        } else {
            write!(
                f,
                "no device took part in this proof, but one did {jobs_before} jobs of its keys, and the proof does not verify \
                 ({reason}): it is not to be used. Either the keys were made wrong (make them again, without a device), or the \
                 witness does not satisfy the circuit"
            )
        }
    }
}

/// Its words: `unwrap` prints them in the middle of the prover's error.
impl fmt::Debug for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unverified: {self}")
    }
}

impl StdError for Unverified {}

/// What a proof wrote or was given.
#[derive(Debug)]
enum Entry<C: CurveAffine> {
    Point(C),
    Scalar(C::Scalar),
    Challenge(C::Scalar),
}

/// What a proof absorbed without writing it.
#[derive(Debug, PartialEq)]
enum Common<C: CurveAffine> {
    Point(C),
    Scalar(C::Scalar),
}

/// A proof as it was written. What was only absorbed stands apart: in a proof of several circuits stock's
/// prover absorbs instances in another order among the rest than its verifier.
#[derive(Debug)]
pub struct Record<C: CurveAffine> {
    entries: Vec<Entry<C>>,
    common: Vec<Common<C>>,
}

/// A transcript that is written down, if that is wanted.
pub(crate) struct Recording<'t, C: CurveAffine, T> {
    inner: &'t mut T,
    record: Option<Record<C>>,
}

impl<C: CurveAffine, T> Recording<'_, C, T> {
    fn note(&mut self, entry: Entry<C>) {
        if let Some(record) = &mut self.record {
            record.entries.push(entry);
        }
    }

    fn note_common(&mut self, common: Common<C>) {
        if let Some(record) = &mut self.record {
            record.common.push(common);
        }
    }
}

impl<C: CurveAffine, E: EncodedChallenge<C>, T: TranscriptWrite<C, E>> Transcript<C, E>
    for Recording<'_, C, T>
{
    fn squeeze_challenge(&mut self) -> E {
        let challenge = self.inner.squeeze_challenge();
        self.note(Entry::Challenge(challenge.get_scalar()));
        challenge
    }

    fn squeeze_challenge_scalar<K>(&mut self) -> ChallengeScalar<C, K> {
        let challenge = self.inner.squeeze_challenge_scalar();
        self.note(Entry::Challenge(*challenge));
        challenge
    }

    fn common_point(&mut self, point: C) -> io::Result<()> {
        self.note_common(Common::Point(point));
        self.inner.common_point(point)
    }

    fn common_scalar(&mut self, scalar: C::Scalar) -> io::Result<()> {
        self.note_common(Common::Scalar(scalar));
        self.inner.common_scalar(scalar)
    }
}

impl<C: CurveAffine, E: EncodedChallenge<C>, T: TranscriptWrite<C, E>> TranscriptWrite<C, E>
    for Recording<'_, C, T>
{
    fn write_point(&mut self, point: C) -> io::Result<()> {
        self.note(Entry::Point(point));
        self.inner.write_point(point)
    }

    fn write_scalar(&mut self, scalar: C::Scalar) -> io::Result<()> {
        self.note(Entry::Scalar(scalar));
        self.inner.write_scalar(scalar)
    }
}

/// A challenge that another transcript gave.
struct Given<C: CurveAffine>(C::Scalar);

impl<C: CurveAffine> EncodedChallenge<C> for Given<C> {
    type Input = C::Scalar;

    fn new(input: &C::Scalar) -> Self {
        Self(*input)
    }

    fn get_scalar(&self) -> C::Scalar {
        self.0
    }
}

/// A record, as a verifier reads it.
struct Replay<C: CurveAffine> {
    entries: IntoIter<Entry<C>>,
    common: IntoIter<Common<C>>,
    /// Whether a challenge was asked for where something else was written: the method has no other way to say
    /// so.
    is_out_of_step: bool,
}

impl<C: CurveAffine> Replay<C> {
    fn new(record: Record<C>) -> Self {
        Self {
            entries: record.entries.into_iter(),
            common: record.common.into_iter(),
            is_out_of_step: false,
        }
    }

    fn absorb(&mut self, common: Common<C>) -> io::Result<()> {
        if self.common.next() == Some(common) {
            Ok(())
        } else {
            Err(out_of_step("absorbed"))
        }
    }

    /// Whether all was read, in order.
    fn is_at_its_end(&mut self) -> bool {
        !self.is_out_of_step && self.entries.next().is_none() && self.common.next().is_none()
    }
}

fn out_of_step(what: &str) -> io::Error {
    io::Error::other(format!("the prover and the verifier {what} different things"))
}

impl<C: CurveAffine> Transcript<C, Given<C>> for Replay<C> {
    fn squeeze_challenge(&mut self) -> Given<C> {
        match self.entries.next() {
            Some(Entry::Challenge(challenge)) => Given(challenge),
            // After the proof, GWC's verifier wants one more to add up equations with, which no prover asks
            // for. Any will do that no rule foresees.
            None => Given(C::Scalar::random(OsRng)),
            Some(_) => {
                self.is_out_of_step = true;
                Given(C::Scalar::ZERO)
            }
        }
    }

    fn common_point(&mut self, point: C) -> io::Result<()> {
        self.absorb(Common::Point(point))
    }

    fn common_scalar(&mut self, scalar: C::Scalar) -> io::Result<()> {
        self.absorb(Common::Scalar(scalar))
    }
}

impl<C: CurveAffine> TranscriptRead<C, Given<C>> for Replay<C> {
    fn read_point(&mut self) -> io::Result<C> {
        match self.entries.next() {
            Some(Entry::Point(point)) => Ok(point),
            _ => Err(out_of_step("wrote and read")),
        }
    }

    fn read_scalar(&mut self) -> io::Result<C::Scalar> {
        match self.entries.next() {
            Some(Entry::Scalar(scalar)) => Ok(scalar),
            _ => Err(out_of_step("wrote and read")),
        }
    }
}

/// How the proofs of a multi-opening are verified: parameters, key, instances of each circuit, what was
/// written.
pub type Check<Scheme> = fn(
    &<Scheme as CommitmentScheme>::ParamsProver,
    &VerifyingKey<<Scheme as CommitmentScheme>::Curve>,
    &[&[&[<Scheme as CommitmentScheme>::Scalar]]],
    Record<<Scheme as CommitmentScheme>::Curve>,
) -> Result<(), plonk::Error>;

/// How a multi-opening opens columns in the current session.
pub type Open<Scheme> =
    fn(&<Scheme as CommitmentScheme>::ParamsProver, &Opening<'_>, &mut dyn Transcribed) -> io::Result<()>;

/// [`Check`] of SHPLONK.
pub fn shplonk<E: Engine + fmt::Debug>(
    params: &ParamsKZG<E>,
    vk: &VerifyingKey<E::G1Affine>,
    instances: &[&[&[E::Fr]]],
    record: Record<E::G1Affine>,
) -> Result<(), plonk::Error>
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr>,
{
    verify_shplonk(Recorded::new(params, vk, instances, record)?)
}

/// [`Check`] of GWC.
pub fn gwc<E: Engine + fmt::Debug>(
    params: &ParamsKZG<E>,
    vk: &VerifyingKey<E::G1Affine>,
    instances: &[&[&[E::Fr]]],
    record: Record<E::G1Affine>,
) -> Result<(), plonk::Error>
where
    E::G1Affine: CurveAffine<ScalarExt = E::Fr>,
{
    verify_gwc(Recorded::new(params, vk, instances, record)?)
}

/// A recorded proof over BN254, the only curve of sessions.
struct Recorded<'p> {
    params: &'p ParamsKZG<Bn256>,
    vk: &'p VerifyingKey<G1Affine>,
    instances: Vec<Vec<Vec<Fr>>>,
    record: Record<G1Affine>,
}

impl<'p> Recorded<'p> {
    fn new<E>(
        params: &'p ParamsKZG<E>,
        vk: &'p VerifyingKey<E::G1Affine>,
        instances: &[&[&[E::Fr]]],
        record: Record<E::G1Affine>,
    ) -> Result<Self, plonk::Error>
    where
        E: Engine + fmt::Debug,
        E::G1Affine: CurveAffine<ScalarExt = E::Fr>,
    {
        let record: Box<dyn Any> = Box::new(record);
        let (Some(params), Some(vk), Ok(record)) = (
            (params as &dyn Any).downcast_ref::<ParamsKZG<Bn256>>(),
            (vk as &dyn Any).downcast_ref::<VerifyingKey<G1Affine>>(),
            record.downcast::<Record<G1Affine>>(),
        ) else {
            return Err(io::Error::other("a session over another curve than bn256").into());
        };
        let value = |value: &E::Fr| (value as &dyn Any).downcast_ref::<Fr>().copied();
        let instances = instances
            .iter()
            .map(|columns| {
                columns
                    .iter()
                    .map(|column| column.iter().filter_map(value).collect())
                    .collect()
            })
            .collect();
        Ok(Self {
            params,
            vk,
            instances,
            record: *record,
        })
    }
}

/// Not generic, so that the verifier is compiled in this crate and in no caller's.
#[inline(never)]
fn verify_shplonk(recorded: Recorded<'_>) -> Result<(), plonk::Error> {
    verify_recorded::<VerifierSHPLONK<'_, Bn256>>(recorded)
}

/// As [`verify_shplonk`].
#[inline(never)]
fn verify_gwc(recorded: Recorded<'_>) -> Result<(), plonk::Error> {
    verify_recorded::<VerifierGWC<'_, Bn256>>(recorded)
}

/// Upstream's verifier over a record.
fn verify_recorded<'params, V>(recorded: Recorded<'params>) -> Result<(), plonk::Error>
where
    V: Verifier<
        'params,
        KZGCommitmentScheme<Bn256>,
        MSMAccumulator = DualMSM<'params, Bn256>,
        Guard = GuardKZG<'params, Bn256>,
    >,
{
    let Recorded {
        params,
        vk,
        instances,
        record,
    } = recorded;
    let columns: Vec<Vec<&[Fr]>> = instances
        .iter()
        .map(|columns| columns.iter().map(Vec::as_slice).collect())
        .collect();
    let columns: Vec<&[&[Fr]]> = columns.iter().map(Vec::as_slice).collect();
    let mut replay = Replay::new(record);
    let strategy = SingleStrategy::new(params);
    verify_proof::<KZGCommitmentScheme<Bn256>, V, Given<G1Affine>, _, _>(
        params,
        vk,
        strategy,
        &columns,
        &mut replay,
    )?;
    if replay.is_at_its_end() {
        Ok(())
    } else {
        Err(out_of_step("wrote and read").into())
    }
}

/// A proof of a session from its beginning to its verification: admitted, on the session's account, and with
/// the session's device only, or with none if no verifier for the proof is known.
pub(crate) struct Watch {
    task: Task,
    can_be_verified: bool,
    verifies_itself: bool,
    /// Jobs of the keys that were a device's.
    jobs_before: u64,
}

/// While the guard lives, no device takes part: for stock's prover, which verifies nothing, and whose
/// parameters may be of a session.
pub(crate) fn processor_only() -> accelerator::ProcessorOnly {
    accelerator::processor_only()
}

/// Begins a proof (one phase), or the making of their keys (the others), when the session has room for it.
///
/// # Errors
/// Those of [`Session::admit`] and [`rehearse`].
pub(crate) fn admit<F: Field>(
    session: &Arc<Session>,
    cs: &ConstraintSystem<F>,
    work: Work,
    phase: Phase,
    accelerator: Participation,
) -> io::Result<Task> {
    // There are sessions over BN254 only.
    let cs = (cs as &dyn Any).downcast_ref::<ConstraintSystem<Fr>>().cloned();
    let (threads, keeps_rounds) = (session.threads(), session.checkpoints().is_some());
    let minimum_bytes = {
        let cs = cs.clone();
        move || match &cs {
            Some(cs) => minimum_bytes(cs, work, threads, keeps_rounds),
            None => Ok(u64::MAX),
        }
    };
    let task = session
        .admit(accelerator, minimum_bytes)
        .map_err(io::Error::other)?;
    if let Some(cs) = &cs {
        rehearse(&task, phase, cs, work).map_err(io::Error::other)?;
        environment::expect(phase, || expected(session, cs, work));
    }
    Ok(task)
}

impl Watch {
    /// Begins a proof with keys of which a device did `jobs_before` jobs.
    ///
    /// # Errors
    /// As [`admit`].
    pub(crate) fn begin<C: CurveAffine>(
        session: &Arc<Session>,
        vk: &VerifyingKey<C>,
        jobs_before: u64,
        work: Work,
        can_be_verified: bool,
    ) -> io::Result<Self> {
        if session.accelerator().is_some() && !can_be_verified {
            tracing::warn!("spillproof: no verifier is known for this multi-opening, so no device takes part in the proof");
        }
        let accelerator = match can_be_verified {
            true => Participation::MayTakePart,
            false => Participation::TakesNoPart,
        };
        environment::fact("rows", || format!("2^{}", work.k));
        environment::fact("circuit", || in_words(vk.cs(), work.circuits).to_string());
        environment::fact("verifying key", || {
            hex(vk.transcript_repr().to_repr().as_ref().iter().rev())
        });
        Ok(Self {
            task: admit(session, vk.cs(), work, Phase::Proof, accelerator)?,
            can_be_verified,
            verifies_itself: self_verification(),
            jobs_before,
        })
    }

    /// The transcript that the proof is to be written to.
    pub(crate) fn recording<'t, C: CurveAffine, T>(&self, inner: &'t mut T) -> Recording<'t, C, T> {
        let has_accelerator = self.task.session().accelerator().is_some();
        let is_wanted = self.verifies_itself || has_accelerator || self.jobs_before > 0;
        let may_be_verified = self.can_be_verified && is_wanted;
        let record = may_be_verified.then(|| Record {
            entries: Vec::new(),
            common: Vec::new(),
        });
        Recording { inner, record }
    }

    /// Verifies what was written, if the process wants it, or if an accelerator did anything for it or for
    /// its keys.
    ///
    /// # Errors
    /// [`Unverified`]; and for the work of an accelerator the budget's, if it has no room for a copy of the
    /// instances. A proof that the processor made alone is not verified then, with a warning.
    pub(crate) fn verify<Scheme: CommitmentScheme, T>(
        self,
        check: Option<Check<Scheme>>,
        params: &Scheme::ParamsProver,
        vk: &VerifyingKey<Scheme::Curve>,
        instances: &[&[&[Scheme::Scalar]]],
        recording: Recording<'_, Scheme::Curve, T>,
    ) -> Result<(), plonk::Error>
    where
        Scheme::ParamsProver: Sync,
    {
        let jobs = self.task.accelerator_jobs();
        let by_device = jobs + self.jobs_before > 0;
        let (Some(check), Some(record), true) = (check, recording.record, by_device || self.verifies_itself)
        else {
            environment::fact(VERDICT, || "not verified: self-verification is off".to_owned());
            return Ok(());
        };
        environment::fact("proof", || record.in_words());
        let _span = tracing::info_span!(target: "spillproof::step", "verify").entered();
        let session = self.task.session();
        let values: usize = instances
            .iter()
            .flat_map(|columns| columns.iter())
            .map(|column| column.len())
            .sum();
        let bytes = (values * size_of::<Fr>()) as u64;
        // On the session's threads: upstream's verifier computes in parallel, and this thread may be another
        // pool's.
        let checked = session.workspace().run(|| {
            let _copy = session.budget().lease(bytes, "instances of a proof to verify")?;
            Ok::<_, spillproof_engine::Error>(check(params, vk, instances, record))
        });
        let reason = match checked {
            Ok(Ok(())) => {
                environment::fact(VERDICT, || "the proof verifies".to_owned());
                return Ok(());
            }
            Ok(Err(reason)) => reason,
            Err(error) if by_device => return Err(io::Error::other(error).into()),
            Err(error) => {
                environment::warn(format_args!("the proof was not verified: {error}"));
                environment::fact(VERDICT, || format!("not verified: {error}"));
                return Ok(());
            }
        };
        let unverified = Unverified {
            jobs,
            jobs_before: self.jobs_before,
            ..Unverified::by_processor(vk, reason)
        };
        tracing::warn!("spillproof: {unverified}");
        if let Some(accelerator) = session.accelerator().filter(|_| by_device) {
            accelerator.distrust();
        }
        Err(io::Error::other(unverified).into())
    }
}

fn in_words<F: Field>(cs: &ConstraintSystem<F>, circuits: usize) -> CircuitInWords {
    CircuitInWords {
        advice: cs.num_advice_columns(),
        fixed: cs.num_fixed_columns(),
        instance: cs.num_instance_columns(),
        constraints: cs.gates().iter().map(|gate| gate.polynomials().len()).sum(),
        lookups: cs.lookups().len(),
        permuted: cs.permutation().get_columns().len(),
        degree: cs.degree(),
        circuits,
    }
}

fn hex<'b>(bytes: impl Iterator<Item = &'b u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

impl<C: CurveAffine> Record<C> {
    /// A line of the page: what was written, and a digest of it. With halo2's own transcripts these are the
    /// proof's bytes.
    fn in_words(&self) -> String {
        const DIGEST_BYTES: usize = 32;
        let mut digest = blake2b_simd::Params::new().hash_length(DIGEST_BYTES).to_state();
        let (mut points, mut scalars) = (0, 0);
        for entry in &self.entries {
            match entry {
                Entry::Point(point) => {
                    points += 1;
                    digest.update(point.to_bytes().as_ref());
                }
                Entry::Scalar(scalar) => {
                    scalars += 1;
                    digest.update(scalar.to_repr().as_ref());
                }
                Entry::Challenge(_) => {}
            }
        }
        let digest = hex(digest.finalize().as_bytes().iter());
        format!("{points} points, {scalars} scalars, BLAKE2b-256 {digest}")
    }
}
