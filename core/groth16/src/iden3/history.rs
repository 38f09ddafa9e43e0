//! The history of a first phase: whether its contributions follow from one another, and the file from the
//! last one.
//!
//! A ceremony begins with tau = alpha = beta = 1. A contributor gets a challenge, the hash of the powers so
//! far, multiplies each of the three by a secret, and proves to know it: s and s·x for a random point s, and
//! sp·x for a point sp that follows from the challenge, s and s·x.

use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use blake2::{Blake2b512, Digest};
use spillproof_format::FormatError;
use spillproof_format::iden3::contributions::HASH_BYTES;
use spillproof_format::iden3::history::{self, Contribution, FirstPoints};
use spillproof_format::iden3::{LOG_DOMAIN_MAX, ptau};

use super::contribute::generator_of_beacon;
use super::powers::Ptau;
use super::resumed::digest_behind;
use super::transcript::{Transcript, encoded, generator, random_element, random_point};
use super::verify::{Contributor, NOT_A_BEACON, NOT_OF_ITS_BEACON, is_same_ratio};
use crate::PairingCurve;
use spillproof_engine::Result;
use spillproof_engine::budget::Lease;
use spillproof_engine::column::runs::Progress;
use spillproof_engine::step;

/// tau, alpha and beta, times the generators.
pub(super) type FirstPointsOf<E> = FirstPoints<<E as Pairing>::G1Affine, <E as Pairing>::G2Affine>;
type ContributionOf<E> = Contribution<<E as Pairing>::G1Affine, <E as Pairing>::G2Affine>;

/// The contributions to a first phase.
pub(super) struct History<'a, E: PairingCurve> {
    phase1: &'a Ptau,
    list: Vec<(u64, ContributionOf<E>)>,
    _lease: Lease,
}

impl<'a, E: PairingCurve> History<'a, E> {
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for contributions that are none;
    /// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`].
    pub fn read(phase1: &'a Ptau) -> Result<Self> {
        let source = &phase1.source;
        let refuse = |error| source.refuse(error);
        let range = history::range(&source.sections).map_err(refuse)?;
        let (bytes, lease) = source.contributions(range)?;
        Ok(Self {
            phase1,
            list: history::History::parse(range, &bytes).map_err(refuse)?.0,
            _lease: lease,
        })
    }

    /// That each contribution follows from those before it, and the file, whose first points are these, from
    /// the last one.
    ///
    /// # Errors
    /// [`FormatError::Contribution`], and [`FormatError::Field`] for a ceremony that is too large, in
    /// [`spillproof_engine::Error::Format`]; those of reading points.
    pub fn check(
        &self,
        first: &FirstPointsOf<E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Contributor>> {
        let (header, source) = (&self.phase1.header, &self.phase1.source);
        let _step = step!(source.workspace, "contributions");
        let Some((last_offset, last)) = self.list.last() else {
            return Ok(Vec::new());
        };
        self.check_power()?;
        let (one_g1, one_g2) = (E::G1Affine::generator(), E::G2Affine::generator());
        let mut before = &FirstPoints {
            tau_g1: one_g1,
            tau_g2: one_g2,
            alpha_g1: one_g1,
            beta_g1: one_g1,
            beta_g2: one_g2,
        };
        let mut challenge = first_challenge::<E>(header.ceremony_power, progress);
        let mut contributors = Vec::new();
        let refuse = |number: usize, offset: u64, fault| {
            Err(source.refuse(FormatError::Contribution {
                number: number as u64,
                offset,
                fault,
            }))
        };
        for (number, (offset, contribution)) in (1..).zip(&self.list) {
            let step = Step::<E> {
                before,
                challenge: &challenge,
                contribution,
            };
            if let Some(fault) = step.fault(number == 1, progress)? {
                return refuse(number, *offset, fault);
            }
            contributors.push(Contributor {
                name: contribution.name.clone(),
                beacon: contribution.beacon.clone(),
                hash: response_hash::<E>(contribution),
            });
            (before, challenge) = (&contribution.after, contribution.next_challenge);
        }
        let number = self.list.len();
        if last.after != *first {
            let fault = "tau, alpha or beta of the file is another than after the last contribution";
            return refuse(number, *last_offset, fault);
        }
        // The challenge of a file that was cut is the hash of more powers than it has.
        if header.power == header.ceremony_power {
            let hash = &contributors[number - 1].hash;
            if self.challenge_of_points(hash)? != last.next_challenge {
                return refuse(
                    number,
                    *last_offset,
                    "the powers of the file are not those that it left",
                );
            }
        }
        Ok(contributors)
    }

    /// That the first challenge takes minutes at most.
    fn check_power(&self) -> Result<()> {
        let (power, source) = (self.phase1.header.ceremony_power, &self.phase1.source);
        if power <= LOG_DOMAIN_MAX {
            return Ok(());
        }
        let range = ptau::Header::range(&source.sections);
        Err(source.refuse(FormatError::Field {
            what: "log2 of the ceremony's rows",
            offset: range.map_or(0, |range| range.offset),
            value: power.to_string(),
            remedy: "histories of ceremonies of up to 2^28 rows are verified: the file is damaged, or of a larger one",
        }))
    }

    /// The challenge behind the response of this hash that left the file's powers.
    fn challenge_of_points(&self, response: &[u8; HASH_BYTES]) -> Result<[u8; HASH_BYTES]> {
        let layout = &self.phase1.layout;
        let mut transcript = Transcript::new();
        transcript.bytes(response);
        let g1 = |transcript: &mut Transcript, range| {
            let points = self.phase1.part::<E::G1Config>(range, 0, range.count);
            transcript.points::<E::G1Config>(&points, (0, range.count))
        };
        let g2 = |transcript: &mut Transcript, range| {
            let points = self.phase1.part::<E::G2Config>(range, 0, range.count);
            transcript.points::<E::G2Config>(&points, (0, range.count))
        };
        g1(&mut transcript, &layout.tau_g1)?;
        g2(&mut transcript, &layout.tau_g2)?;
        g1(&mut transcript, &layout.alpha_tau_g1)?;
        g1(&mut transcript, &layout.beta_tau_g1)?;
        g2(&mut transcript, &layout.beta_g2)?;
        Ok(transcript.finish())
    }
}

/// A contribution, and what it follows from.
struct Step<'a, E: PairingCurve> {
    before: &'a FirstPointsOf<E>,
    challenge: &'a [u8; HASH_BYTES],
    contribution: &'a ContributionOf<E>,
}

impl<E: PairingCurve> Step<'_, E> {
    /// What does not follow.
    fn fault(&self, is_first: bool, progress: &mut dyn FnMut(Progress)) -> Result<Option<&'static str>> {
        let Contribution { after, proofs, .. } = self.contribution;
        let before = self.before;
        let sp = self.sp();
        // sp and sp·x of each secret.
        let in_g2 = [0, 1, 2].map(|secret| [&proofs[secret].spx, &sp[secret]]);
        for (proof, in_g2) in proofs.iter().zip(in_g2) {
            if !is_same_ratio::<E>([&proof.sx, &proof.s], in_g2) {
                return Ok(Some(match is_first {
                    true => {
                        "its proofs do not follow from the first challenge of a ceremony of the header's power (a file that was cut, and prepared \
                         after that, has another power there: verify the one that was not prepared)"
                    }
                    false => {
                        "its proofs do not follow from the challenge before it, or are of different secrets"
                    }
                }));
            }
        }
        let [tau, alpha, beta] = in_g2;
        let products = [
            ([&after.tau_g1, &before.tau_g1], tau),
            ([&after.alpha_g1, &before.alpha_g1], alpha),
            ([&after.beta_g1, &before.beta_g1], beta),
            ([&proofs[0].sx, &proofs[0].s], [&after.tau_g2, &before.tau_g2]),
            ([&proofs[2].sx, &proofs[2].s], [&after.beta_g2, &before.beta_g2]),
        ];
        if products
            .iter()
            .any(|(in_g1, in_g2)| !is_same_ratio::<E>(*in_g1, *in_g2))
        {
            return Ok(Some(
                "its secrets are not those that tau, alpha and beta were multiplied by",
            ));
        }
        self.beacon_fault(progress)
    }

    /// The points that follow from the challenge.
    fn sp(&self) -> [E::G2Affine; 3] {
        [0, 1, 2].map(|secret| {
            let proof = &self.contribution.proofs[secret];
            let mut transcript = Transcript::new();
            transcript.bytes(&[secret as u8]);
            transcript.bytes(self.challenge);
            transcript.point::<E::G1Config>(&proof.s);
            transcript.point::<E::G1Config>(&proof.sx);
            random_point::<E::G2Config>(&mut generator(&transcript.finish()))
        })
    }

    /// What does not follow from the beacon, if there is one.
    fn beacon_fault(&self, progress: &mut dyn FnMut(Progress)) -> Result<Option<&'static str>> {
        let Some(beacon) = &self.contribution.beacon else {
            return Ok(None);
        };
        let mut random = match generator_of_beacon(&beacon.value, beacon.iterations_log, progress) {
            Err(spillproof_engine::Error::Invalid(_)) => return Ok(Some(NOT_A_BEACON)),
            random => random?,
        };
        let secrets: [E::Scalar; 3] = [(); 3].map(|()| random_element(&mut random));
        let follows = secrets
            .iter()
            .zip(&self.contribution.proofs)
            .all(|(secret, proof)| {
                let s = random_point::<E::G1Config>(&mut random);
                s == proof.s && (s * secret).into_affine() == proof.sx
            });
        Ok((!follows).then_some(NOT_OF_ITS_BEACON))
    }
}

/// The challenge of the first contributor to a ceremony of so many powers, all of which are generators.
fn first_challenge<E: PairingCurve>(power: u32, progress: &mut dyn FnMut(Progress)) -> [u8; HASH_BYTES] {
    let (one_g1, one_g2) = (E::G1Affine::generator(), E::G2Affine::generator());
    let n = 1u64 << power;
    let mut transcript = Transcript::new();
    transcript.bytes(&Blake2b512::digest(b""));
    let (mut done, total) = (0, 5 * n);
    let mut each = |points| {
        done += points;
        progress(Progress {
            what: "points of the first challenge",
            done,
            total,
        });
    };
    transcript.repeated_point::<E::G1Config>(&one_g1, 2 * n - 1, &mut each);
    transcript.repeated_point::<E::G2Config>(&one_g2, n, &mut each);
    transcript.repeated_point::<E::G1Config>(&one_g1, 2 * n, &mut each);
    transcript.repeated_point::<E::G2Config>(&one_g2, 1, &mut each);
    transcript.finish()
}

/// The hash of a response, which the contributor publishes.
fn response_hash<E: PairingCurve>(contribution: &ContributionOf<E>) -> [u8; HASH_BYTES] {
    let proofs = &contribution.proofs;
    let in_g1 = proofs.iter().flat_map(|proof| [&proof.s, &proof.sx]);
    let in_g2 = proofs.iter().map(|proof| &proof.spx);
    let bytes: Vec<u8> = in_g1
        .flat_map(encoded::<E::G1Config>)
        .chain(in_g2.flat_map(encoded::<E::G2Config>))
        .collect();
    digest_behind(&contribution.response, &bytes)
}
