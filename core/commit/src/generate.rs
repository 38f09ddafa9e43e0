//! An SRS from a known secret. For tests and demonstrations only: the secret is enough to forge proofs.
//!
//! `g[i] = s^i * G` and `g_lagrange[i] = L_i(s) * G`, with `L_i(s) = (s^n - 1) / n * w^i / (s - w^i)` and
//! halo2's root of unity w, as containers have it, both by fixed-base multiplication, a chunk at a time,
//! written as they come. Memory: a table of multiples of `G` and one chunk.

use std::path::Path;

use ark_bn254::{G1Affine, G1Projective, G2Projective, g2};
use ark_ec::scalar_mul::BatchMulPreprocessing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use spillproof_format::{Curve, Kind, SRS_FRAME_BYTES_DEFAULT, native, srs as layout};

use super::srs::{K_MAX, omega};
use super::{G1, HALO2_ROOT_OF_UNITY, Scalar, Srs};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Container, ContainerWriter, Draft, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::field::CoordinateField;
use spillproof_kernels::poly::{invert_chunk, powers};

/// Points that are made at a time, where the budget allows.
const CHUNK: u64 = 1 << 14;
/// Points that are made at a time at least.
const CHUNK_MIN: u64 = 1 << 8;

/// Bytes for chunks of `chunk` points: the table, whose windows have about `ln(chunk)` bits; scalars, sums in
/// three coordinates, affine points twice.
fn leased_bytes(chunk: u64) -> u64 {
    let window_bits = u64::from(chunk.max(32).ilog2()) * 69 / 100;
    let table_points = (254 / window_bits + 1) << window_bits;
    let point = size_of::<G1Affine>() as u64;
    let each = size_of::<Scalar>() as u64 + size_of::<G1Projective>() as u64 + 2 * point;
    table_points * point + chunk * each
}

/// Generates an SRS for `2^k` points into a container at `path`. **Insecure**: the caller knows `secret`; the
/// container says so ([`Srs::is_insecure`]).
/// Calls `progress` with the points made so far, of `2^(k+1)`.
///
/// # Errors
/// [`Error::Invalid`] for `k` above 28 or a secret that is zero or in the domain; [`Error::Io`],
/// [`Error::OverBudget`].
pub fn generate(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: Scalar,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Srs> {
    to_container(workspace, path, k, secret, &mut progress)
}

fn to_container(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: Scalar,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Srs> {
    workspace.run(|| generate_in_turn(workspace, path, k, secret, progress))
}

fn generate_in_turn(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: Scalar,
    progress: &mut dyn FnMut(u64),
) -> Result<Srs> {
    let format = |source| Error::Format {
        file: path.to_path_buf(),
        source,
    };
    let sections = layout::sections(k, true, true).map_err(format)?;
    let mut writer = ContainerWriter::create(
        workspace,
        path,
        Kind::Srs,
        Curve::Bn254,
        SRS_FRAME_BYTES_DEFAULT,
        [0; 32],
        &sections,
    )?;
    writer.mark_insecure();
    let powers_of_secret = Powers::new(workspace, k, secret)?;
    powers_of_secret.monomial(Writer::new(writer.draft(0)?), progress)?;
    powers_of_secret.lagrange(Writer::new(writer.draft(1)?), progress)?;
    let mut pair = Writer::new(writer.draft::<[u8; native::G2_BYTES]>(2)?);
    for point in pair_of(secret) {
        let mut bytes = [0; native::G2_BYTES];
        native::write_point::<g2::Config>(&point, &mut bytes);
        pair.push(&[bytes])?;
    }
    pair.finish()?;
    writer.publish()?;
    Srs::of(&Container::open(workspace, path)?)
}

/// Generates an SRS for `2^k` points into nameless scratch files. **Insecure**, as [`generate`].
///
/// # Errors
/// As [`generate`].
pub fn generate_scratch(
    workspace: &Workspace,
    k: u32,
    secret: Scalar,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Srs> {
    to_scratch(workspace, k, secret, &mut progress)
}

fn to_scratch(
    workspace: &Workspace,
    k: u32,
    secret: Scalar,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Srs> {
    workspace.run(|| generate_scratch_in_turn(workspace, k, secret, progress))
}

fn generate_scratch_in_turn(
    workspace: &Workspace,
    k: u32,
    secret: Scalar,
    progress: &mut dyn FnMut(u64),
) -> Result<Srs> {
    let powers_of_secret = Powers::new(workspace, k, secret)?;
    let draft = |what| -> Result<Writer<G1>> {
        let frame_bytes = super::SRS_FRAME_BYTES;
        Ok(Writer::new(Draft::scratch_with_frames(
            workspace,
            what,
            1 << k,
            Placement::Disk,
            frame_bytes,
        )?))
    };
    let monomial = powers_of_secret.monomial(draft("SRS, monomial")?, progress)?;
    let lagrange = powers_of_secret.lagrange(draft("SRS, Lagrange")?, progress)?;
    Ok(Srs::from_columns(k, Some(monomial), Some(lagrange), pair_of(secret))?.marked_insecure(true))
}

fn pair_of(secret: Scalar) -> [ark_bn254::G2Affine; 2] {
    let g2 = G2Projective::generator();
    [g2.into_affine(), (g2 * secret).into_affine()]
}

struct Powers {
    k: u32,
    secret: Scalar,
    chunk: u64,
    table: BatchMulPreprocessing<G1Projective>,
    _lease: spillproof_engine::budget::Lease,
}

impl Powers {
    fn new(workspace: &Workspace, k: u32, secret: Scalar) -> Result<Self> {
        if k > K_MAX {
            return Err(Invalid::DomainSize {
                log_n: k,
                log_limit: K_MAX,
            }
            .into());
        }
        if secret == Scalar::ZERO || secret.pow([1u64 << k]) == Scalar::ONE {
            return Err(Invalid::Secret.into());
        }
        // Leave half of what there is to the writers.
        let available = workspace.budget.available_bytes() / 2;
        let mut chunk = CHUNK.min(1 << k);
        while chunk > CHUNK_MIN && leased_bytes(chunk) > available {
            chunk /= 2;
        }
        let lease = workspace.budget.lease(leased_bytes(chunk), "SRS generation")?;
        let table = BatchMulPreprocessing::new(G1Projective::generator(), chunk as usize);
        Ok(Self {
            k,
            secret,
            chunk,
            table,
            _lease: lease,
        })
    }

    fn monomial(
        &self,
        writer: Writer<G1>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<spillproof_engine::column::Column<G1>> {
        self.write(writer, 0, progress, |start, scalars| {
            powers(scalars, &self.secret.pow([start]), &self.secret);
        })
    }

    fn lagrange(
        &self,
        writer: Writer<G1>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<spillproof_engine::column::Column<G1>> {
        let n = 1u64 << self.k;
        let omega = omega(HALO2_ROOT_OF_UNITY, self.k)?;
        let size_inverse = Scalar::from(n).inverse().unwrap_or(Scalar::ONE);
        let multiplier = (self.secret.pow([n]) - Scalar::ONE) * size_inverse;
        self.write(writer, n, progress, |start, scalars| {
            let first = omega.pow([start]);
            powers(scalars, &first, &omega);
            for value in scalars.iter_mut() {
                *value = self.secret.minus(value);
            }
            invert_chunk(scalars);
            let mut factor = multiplier.times(&first);
            for value in scalars.iter_mut() {
                *value = value.times(&factor);
                factor = factor.times(&omega);
            }
        })
    }

    fn write(
        &self,
        mut writer: Writer<G1>,
        done: u64,
        progress: &mut dyn FnMut(u64),
        mut scalars_from: impl FnMut(u64, &mut [Scalar]),
    ) -> Result<spillproof_engine::column::Column<G1>> {
        let mut scalars = vec![Scalar::ZERO; self.chunk as usize];
        for start in (0..1u64 << self.k).step_by(self.chunk as usize) {
            scalars_from(start, &mut scalars);
            let points = self.table.batch_mul(&scalars);
            let points: Vec<G1> = points
                .iter()
                .map(G1::from_affine::<ark_bn254::g1::Config>)
                .collect();
            writer.push(&points)?;
            progress(done + start + self.chunk);
        }
        writer.finish()
    }
}
