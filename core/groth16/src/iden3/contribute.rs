//! Contributions to a key: snarkjs' `zkey contribute` and `zkey beacon`.
//!
//! A contributor multiplies delta by a secret x, and C and H by 1/x. Of x there is a proof: s and s·x for a
//! random point s, and sp·x for a point sp that follows from the hash of everything before.

use std::path::Path;

use ark_ec::CurveGroup;
use ark_ec::pairing::Pairing;
use ark_ff::Field;
use rand_chacha::ChaCha20Rng;
use rayon::current_num_threads;
use ring::digest::{SHA256, digest};
use spillproof_format::Element;
use spillproof_format::iden3::contributions::{
    self, Beacon, Contribution, Contributions, HASH_BYTES, NAME_CHARACTERS_MAX,
};
use spillproof_format::iden3::{ByteRange, FileKind, PointRange, zkey};
use zeroize::{Zeroize, Zeroizing};

use super::key::{Checked, Zkey, points_in_place};
use super::new_file::{NewFile, each_tile, encode_all};
use super::source::{Source, curve_of};
use super::transcript::{SecretGenerator, Transcript, generator, random_element, random_point};
use crate::{PairingCurve, over_curve};
use spillproof_engine::Result;
use spillproof_engine::budget::{Lease, random_bytes};
use spillproof_engine::column::runs::Progress;
use spillproof_engine::column::{Scratch, Workspace};
use spillproof_engine::error::Invalid;
use spillproof_engine::step;
use spillproof_engine::stream::block_points;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::points::Multiplier;

/// The log2 of a beacon's iterations, as snarkjs takes it.
const ITERATIONS_LOG: std::ops::RangeInclusive<u8> = 10..=63;
/// Iterations between two calls of the progress.
const ITERATIONS_PER_CALL: u64 = 1 << 18;

/// A contribution to a key over a curve.
pub(super) type ContributionOf<E> = Contribution<<E as Pairing>::G1Affine, <E as Pairing>::G2Affine>;
/// All of them.
pub(super) type ContributionsOf<E> = Contributions<<E as Pairing>::G1Affine, <E as Pairing>::G2Affine>;

/// A key's section of contributions.
pub(super) struct Section<E: PairingCurve> {
    pub range: ByteRange,
    pub bytes: Vec<u8>,
    pub contributions: ContributionsOf<E>,
    _lease: Lease,
}

impl<E: PairingCurve> Section<E> {
    /// # Errors
    /// [`spillproof_engine::Error::Format`] for contributions that are none;
    /// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`].
    pub fn read(key: &Zkey<E>) -> Result<Self> {
        let refuse = |error| key.source.refuse(error);
        let range = contributions::range(&key.source.sections).map_err(refuse)?;
        let (bytes, lease) = key.source.contributions(range)?;
        Ok(Self {
            contributions: ContributionsOf::<E>::parse(range, &bytes).map_err(refuse)?,
            range,
            bytes,
            _lease: lease,
        })
    }
}

/// The origin of a contribution's secret.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The system's entropy, with a text of the contributor's mixed in. The secret stays in memory, and is
    /// gone with the call.
    Entropy(Vec<u8>),
    /// A public random value that did not exist before the other contributions: anyone can repeat it, and it
    /// needs no trust.
    Beacon {
        /// The value: 1 to 255 bytes.
        value: Vec<u8>,
        /// log2 of the number of times that it is hashed (SHA-256): 10 to 63.
        iterations_log: u8,
    },
}

/// A contribution that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contributed {
    /// Its number, counted from 1.
    pub number: u64,
    /// The hash of the circuit.
    pub circuit_hash: [u8; HASH_BYTES],
    /// Its hash, which the contributor publishes.
    pub hash: [u8; HASH_BYTES],
}

/// Makes a new `.zkey` file, with one contribution more than `key` has.
///
/// # Errors
/// [`Invalid::Contribution`] for a name or a beacon that no contribution has;
/// [`spillproof_engine::Error::Format`] for a file that is no Groth16 key over this curve, has points off the
/// curve, or contributions that are none; [`spillproof_engine::Error::File`],
/// [`spillproof_engine::Error::Io`], [`spillproof_engine::Error::OverBudget`]. A file that has the target's
/// name keeps it then.
pub fn contribute(
    workspace: &Workspace,
    [key, target]: [&Path; 2],
    name: Option<&str>,
    origin: &Origin,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Contributed> {
    let curve = curve_of(workspace, key, FileKind::Zkey)?;
    over_curve!(curve, E => contribute_over::<E>(workspace, [key, target], (name, origin), progress))
}

fn contribute_over<E: PairingCurve>(
    workspace: &Workspace,
    [key, target]: [&Path; 2],
    (name, origin): (Option<&str>, &Origin),
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Contributed> {
    check_name(name)?;
    let workspace = workspace.clone().with_scratch(Scratch::Plain)?;
    let publish = workspace.storage.publish(target)?;
    workspace.run(|| {
        let old = Zkey::<E>::open(&workspace, key)?;
        let mut section = Section::<E>::read(&old)?;
        let before = &section.contributions;
        let mut random = SecretGenerator(origin.generator(progress)?);
        let secret = Zeroizing::new(random_element::<E::Scalar>(&mut random.0));
        let contribution = contribution_of::<E>(
            before,
            &old.points.delta1.into(),
            (name, origin),
            (&secret, &mut random.0),
        );
        drop(random);
        let made = Contributed {
            number: before.list.len() as u64 + 1,
            circuit_hash: before.circuit_hash,
            hash: hash_of::<E>(&contribution),
        };
        let count = (made.number as u32).to_le_bytes();
        section.bytes[HASH_BYTES..contributions::PREFIX_BYTES].copy_from_slice(&count);
        contribution.encode(&mut section.bytes);
        let mut points = old.points;
        points.delta1 = contribution.delta_after;
        points.delta2 = (points.delta2 * *secret).into_affine();
        // The secret follows from it, too.
        let inverse = Zeroizing::new(secret.inverse().ok_or(Invalid::Contribution {
            what: "secret",
            given: "zero".into(),
            remedy: "contribute again",
        })?);
        drop(secret);
        let file = NewFile::new(&workspace, publish, FileKind::Zkey, zkey::SECTIONS)?;
        write::<E>(&old, file, (&points, &inverse), &section.bytes, progress)?;
        Ok(made)
    })
}

fn check_name(name: Option<&str>) -> Result<()> {
    match name {
        Some(name) if name.is_empty() || name.encode_utf16().count() > NAME_CHARACTERS_MAX => {
            Err(Invalid::Contribution {
                what: "name",
                given: format!("{} characters long", name.encode_utf16().count()),
                remedy: "a name has 1 to 64 characters",
            }
            .into())
        }
        _ => Ok(()),
    }
}

impl Origin {
    /// The random values of a contribution.
    fn generator(&self, progress: &mut dyn FnMut(Progress)) -> Result<ChaCha20Rng> {
        match self {
            Self::Entropy(text) => {
                let mut bytes = [0; HASH_BYTES];
                random_bytes(&mut bytes)?;
                let mut hash = Transcript::new();
                hash.bytes(&bytes);
                hash.bytes(text);
                bytes.zeroize();
                let mut hash = hash.finish();
                let random = generator(&hash);
                hash.zeroize();
                Ok(random)
            }
            Self::Beacon {
                value,
                iterations_log,
            } => generator_of_beacon(value, *iterations_log, progress),
        }
    }
}

/// The random values that follow from a beacon.
pub(super) fn generator_of_beacon(
    value: &[u8],
    iterations_log: u8,
    progress: &mut dyn FnMut(Progress),
) -> Result<ChaCha20Rng> {
    let refuse = |what, given, remedy| Invalid::Contribution { what, given, remedy };
    if value.is_empty() || value.len() > usize::from(u8::MAX) {
        let given = format!("{} bytes long", value.len());
        return Err(refuse("beacon", given, "a beacon has 1 to 255 bytes").into());
    }
    if !ITERATIONS_LOG.contains(&iterations_log) {
        let given = iterations_log.to_string();
        return Err(refuse("log2 of a beacon's iterations", given, "it is from 10 to 63").into());
    }
    let total = 1u64 << iterations_log;
    let mut hash = digest(&SHA256, value);
    for done in 1..total {
        if done % ITERATIONS_PER_CALL == 0 {
            progress(Progress {
                what: "iterations of the beacon",
                done,
                total,
            });
        }
        hash = digest(&SHA256, hash.as_ref());
    }
    Ok(generator(hash.as_ref()))
}

/// The circuit's hash, and that of all contributions.
fn transcript_of<E: PairingCurve>(before: &ContributionsOf<E>) -> Transcript {
    let mut transcript = Transcript::new();
    transcript.bytes(&before.circuit_hash);
    for (_, contribution) in &before.list {
        hash_into::<E>(contribution, &mut transcript);
    }
    transcript
}

/// Hashes a contribution.
pub(super) fn hash_into<E: PairingCurve>(contribution: &ContributionOf<E>, transcript: &mut Transcript) {
    for point in [&contribution.delta_after, &contribution.s, &contribution.sx] {
        transcript.point::<E::G1Config>(point);
    }
    transcript.point::<E::G2Config>(&contribution.spx);
    transcript.bytes(&contribution.transcript);
}

/// The hash of a contribution, which the contributor publishes.
pub(super) fn hash_of<E: PairingCurve>(contribution: &ContributionOf<E>) -> [u8; HASH_BYTES] {
    let mut transcript = Transcript::new();
    hash_into::<E>(contribution, &mut transcript);
    transcript.finish()
}

/// The contribution of a secret to a key whose delta is `delta`.
fn contribution_of<E: PairingCurve>(
    before: &ContributionsOf<E>,
    delta: &E::G1,
    (name, origin): (Option<&str>, &Origin),
    (secret, random): (&E::Scalar, &mut ChaCha20Rng),
) -> ContributionOf<E> {
    let s = random_point::<E::G1Config>(random);
    let sx = (s * *secret).into_affine();
    let mut transcript = transcript_of::<E>(before);
    transcript.point::<E::G1Config>(&s);
    transcript.point::<E::G1Config>(&sx);
    let transcript = transcript.finish();
    let sp = random_point::<E::G2Config>(&mut generator(&transcript));
    Contribution {
        name: name.map(str::to_owned),
        beacon: match origin {
            Origin::Entropy(_) => None,
            Origin::Beacon {
                value,
                iterations_log,
            } => Some(Beacon {
                iterations_log: *iterations_log,
                value: value.clone(),
            }),
        },
        delta_after: (*delta * *secret).into_affine(),
        s,
        sx,
        spx: (sp * *secret).into_affine(),
        transcript,
    }
}

/// All sections in snarkjs' order, with other points in the header, C and H times `factor`, and the new
/// section of contributions.
fn write<E: PairingCurve>(
    old: &Zkey<E>,
    mut file: NewFile,
    (points, factor): (&zkey::VerifyingPoints<E::G1Config, E::G2Config>, &E::Scalar),
    contributions: &[u8],
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let (header, layout) = (&old.header, &old.layout);
    let header = zkey::Header::new(header.signals(), header.public(), header.log_domain(), points);
    let header = header.map_err(|error| old.source.refuse(error))?;
    file.section(zkey::PROTOCOL, &zkey::GROTH16.to_le_bytes())?;
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    file.section(zkey::HEADER, &bytes)?;
    let coefficients = layout.coefficients.byte_range();
    let coefficients = ByteRange {
        offset: coefficients.offset - 4,
        bytes: coefficients.bytes + 4,
    };
    for (id, range) in [
        (zkey::IC, layout.ic.byte_range()),
        (zkey::COEFFICIENTS, coefficients),
        (zkey::A, layout.a.byte_range()),
        (zkey::B1, layout.b1.byte_range()),
        (zkey::B2, layout.b2.byte_range()),
    ] {
        file.copy(id, (&old.source, range), progress)?;
    }
    for (id, range) in [(zkey::C, &layout.c), (zkey::H, &layout.h)] {
        write_multiples::<E::G1Config>(&mut file, id, (&old.source, range), factor, progress)?;
    }
    file.section(zkey::CONTRIBUTIONS, contributions)?;
    file.finish()
}

/// A section of points of another file, each times `factor`.
fn write_multiples<P: Curve>(
    file: &mut NewFile,
    id: u32,
    (source, range): (&Source, &PointRange),
    factor: &P::ScalarField,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let workspace = &source.workspace;
    let _step = step!(workspace, "multiples of points");
    let points = points_in_place::<P>(source, range, [0, 0], Checked::Curve);
    let block_points = block_points::<P>(&workspace.budget);
    let bytes = Multiplier::<P>::bytes(current_num_threads(), block_points);
    let _lease = workspace.budget.lease(bytes, "multiples of points")?;
    let multiplier = Multiplier::<P>::new(Backend::detect(), block_points);
    file.begin(id, range.count * Point::<P>::BYTES as u64)?;
    let mut done = 0;
    each_tile(&points, (0, range.count), |tile, bytes| {
        multiplier.multiply(tile, factor);
        encode_all(tile, bytes, Point::<P>::encode);
        done += tile.len() as u64;
        progress(Progress {
            what: range.what,
            done,
            total: range.count,
        });
        file.push(bytes)
    })
}
