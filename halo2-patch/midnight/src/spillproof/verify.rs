//! Proofs of a session are verified before the prover returns: against a disk or a memory that lies,
//! parameters that do not belong together, and a witness that does not satisfy the circuit.
//!
//! ```text
//! the prover --writes--> the caller's transcript, and the same bytes --> Record
//! a copy of that transcript from before, with Record --read--> upstream's verifier
//! ```
//!
//! It takes some milliseconds, whatever the number of rows. [`set_self_verification`] turns it off. It is too
//! late to make a proof that does not hold again in the same call: the caller's transcript cannot go back, and
//! the generator is spent. So [`Unverified`] is returned.
//!
//! Upstream's verifier accepts no proof of several circuits that have committed instances and others, and
//! panics where the first query of a circuit is not in the row itself: those are not verified.
//!
//! Memory: the proof's bytes.
//!
//! [`set_self_verification`]: super::set_self_verification

use std::error::Error as StdError;
use std::fmt;
use std::hash::Hash;
use std::io::{self, Cursor, Read as _};

use ff::{FromUniformBytes, PrimeField, WithSmallOrderMulGroup};
use spillproof_engine::Session;
use spillproof_plonk::Part;
use spillproof_report::environment::{self, VERDICT};

use super::switch::self_verification;
use crate::plonk::{self, prepare, ConstraintSystem, VerifyingKey};
use crate::poly::commitment::{Guard as _, PolynomialCommitmentScheme};
use crate::poly::Rotation;
use crate::spillproof_release::QUERIES;
use crate::transcript::{Hashable, Sampleable, Transcript};

/// A proof that does not verify. It is what `create_proof` returns inside of [`plonk::Error::Transcript`];
/// [`Unverified::of`] finds it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unverified {
    /// What the verifier said.
    pub reason: String,
}

impl Unverified {
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
        write!(
            f,
            "the proof does not verify ({}), and is not to be used: either the witness does not satisfy the circuit, or the keys or the \
             parameters are not those of the circuit; SPILLPROOF_SELF_VERIFICATION=0 returns such proofs",
            self.reason
        )
    }
}

impl StdError for Unverified {}

/// What a prover has written, and the commitments that verifier and prover have in common.
pub(crate) struct Record<C> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) committed: Vec<C>,
}

impl<C> Default for Record<C> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            committed: Vec::new(),
        }
    }
}

/// A transcript that reads a proof which another one was written to.
#[derive(Clone)]
struct Replay<T> {
    inner: T,
    proof: Cursor<Vec<u8>>,
}

impl<T: Transcript> Transcript for Replay<T> {
    type Hash = T::Hash;

    fn init() -> Self {
        Self::init_from_bytes(&[])
    }

    fn init_from_bytes(bytes: &[u8]) -> Self {
        Self {
            inner: T::init(),
            proof: Cursor::new(bytes.to_vec()),
        }
    }

    fn squeeze_challenge<V: Sampleable<Self::Hash>>(&mut self) -> V {
        self.inner.squeeze_challenge()
    }

    fn common<V: Hashable<Self::Hash>>(&mut self, input: &V) -> io::Result<()> {
        self.inner.common(input)
    }

    fn read<V: Hashable<Self::Hash>>(&mut self) -> io::Result<V> {
        let value = V::read(&mut self.proof)?;
        self.inner.common(&value)?;
        Ok(value)
    }

    fn write<V: Hashable<Self::Hash>>(&mut self, input: &V) -> io::Result<()> {
        self.inner.common(input)?;
        self.proof.get_mut().extend_from_slice(&input.to_bytes());
        Ok(())
    }

    fn finalize(self) -> Vec<u8> {
        self.proof.into_inner()
    }

    fn assert_empty(&mut self) -> io::Result<()> {
        match self.proof.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other("more was written than is read")),
        }
    }
}

/// A proof that is to be verified.
pub(crate) struct Check<'c, F: PrimeField, CS: PolynomialCommitmentScheme<F>, T> {
    pub(crate) params: &'c CS::Parameters,
    pub(crate) vk: &'c VerifyingKey<F, CS>,
    /// Of each circuit.
    pub(crate) instances: &'c [&'c [&'c [F]]],
    /// How many of their columns, the first ones, are committed.
    pub(crate) committed: usize,
    /// The caller's, before the proof.
    pub(crate) transcript: T,
}

impl<F, CS, T> Check<'_, F, CS, T>
where
    F: WithSmallOrderMulGroup<3>,
    CS: PolynomialCommitmentScheme<F>,
{
    /// This check, if it is wanted, and upstream's verifier can say anything of such a proof.
    pub(crate) fn wanted(self) -> Option<Self> {
        let why_not = match self_verification() {
            true => self.unverifiable(),
            false => Some("self-verification is off"),
        };
        let Some(why_not) = why_not else { return Some(self) };
        environment::fact(VERDICT, || format!("not verified: {why_not}"));
        None
    }

    /// Why upstream's verifier can say nothing of such a proof, if it can't.
    fn unverifiable(&self) -> Option<&'static str> {
        let Self { vk, committed, .. } = self;
        let has_both = *committed > 0 && *committed < vk.cs().num_instance_columns;
        if has_both && self.instances.len() > 1 {
            return Some(
                "upstream verifies no proof of several circuits with committed instances and others",
            );
        }
        if first_rotation(vk.cs(), *committed).is_some_and(|rotation| rotation != Rotation::cur()) {
            return Some("upstream's verifier panics where the first query is not in the row itself");
        }
        // Its own assertion refuses commitments of instances, of which it makes sums.
        let is_asserted = cfg!(all(debug_assertions, feature = "truncated-challenges"));
        (is_asserted && *committed > 0).then_some("an assertion of upstream's refuses its own sums")
    }
}

/// Where the first query of advice and committed instances is.
fn first_rotation<F: PrimeField>(cs: &ConstraintSystem<F>, committed: usize) -> Option<Rotation> {
    let advice = || cs.advice_queries.first().map(|(_, rotation)| *rotation);
    let mut instances = cs.instance_queries.iter();
    let mut instance = || {
        instances
            .find(|(column, _)| column.index() < committed)
            .map(|(_, rotation)| *rotation)
    };
    QUERIES.iter().find_map(|part| match part {
        Part::Advice => advice(),
        Part::Instances => instance(),
        _ => None,
    })
}

impl<F, CS, T> Check<'_, F, CS, T>
where
    F: WithSmallOrderMulGroup<3>
        + FromUniformBytes<64>
        + Hash
        + Ord
        + Hashable<T::Hash>
        + Sampleable<T::Hash>,
    CS: PolynomialCommitmentScheme<F, Commitment: Hashable<T::Hash>>,
    T: Transcript,
{
    /// Verifies what was written.
    ///
    /// # Errors
    /// [`Unverified`].
    pub(crate) fn verify(
        self,
        session: &Session,
        record: Record<CS::Commitment>,
    ) -> Result<(), plonk::Error> {
        let _step = spillproof_engine::step!(session.workspace(), "verify");
        match self.checked(record) {
            Ok(()) => {
                environment::fact(VERDICT, || "the proof verifies".to_owned());
                Ok(())
            }
            Err(reason) => {
                let unverified = Unverified { reason };
                tracing::warn!("spillproof: {unverified}");
                Err(io::Error::other(unverified).into())
            }
        }
    }

    fn checked(self, record: Record<CS::Commitment>) -> Result<(), String> {
        let plain: Vec<Vec<&[F]>> = self
            .instances
            .iter()
            .map(|columns| columns[self.committed..].to_vec())
            .collect();
        let plain: Vec<&[&[F]]> = plain.iter().map(Vec::as_slice).collect();
        #[cfg(feature = "committed-instances")]
        let committed: Vec<&[CS::Commitment]> = match self.committed {
            0 => vec![&[]; plain.len()],
            columns => record.committed.chunks(columns).collect(),
        };
        let mut replay = Replay {
            inner: self.transcript,
            proof: Cursor::new(record.bytes),
        };
        let guard = prepare(
            self.vk,
            #[cfg(feature = "committed-instances")]
            &committed,
            &plain,
            &mut replay,
        );
        let guard = guard.map_err(|error| error.to_string())?;
        let verified = guard.verify(&CS::get_verifier_params(self.params));
        verified.map_err(|error| format!("{error:?}"))?;
        replay.assert_empty().map_err(|error| error.to_string())
    }
}
