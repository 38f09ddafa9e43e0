//! An SRS from a known secret. For tests and demonstrations only: the secret is enough to forge proofs.
//!
//! `g[i] = s^i * G` and `g_lagrange[i] = L_i(s) * G`, with `L_i(s) = (s^n - 1) / n * w^i / (s - w^i)` and
//! the root of unity w that containers have, both by fixed-base multiplication, a chunk at a time,
//! written as they come. Memory: a table of multiples of `G`, half a MiB a thread, and one chunk.

use std::path::Path;

use ark_ec::short_weierstrass::Affine;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field};
use spillproof_format::params_kzg::root_of_unity;
use spillproof_format::{Kind, srs as layout};

use super::Srs;
use super::chunks::points_frame_bytes;
use super::compiled::KzgCurve;
use super::srs::{check_k, curve_id, of_container};
use spillproof_engine::Error;
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Container, ContainerWriter, Draft, Placement, Workspace, Writer};
use spillproof_engine::error::Invalid;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::field::CoordinateField;
use spillproof_kernels::pairing::{G1Point, G2Point, PairingGroups};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::points::{Multiples, MultiplesWorker};
use spillproof_kernels::poly::{invert_chunk, powers};

/// Points that are made at a time, where the budget allows.
const CHUNK: u64 = 1 << 14;
/// Points that are made at a time at least.
const CHUNK_MIN: u64 = 1 << 8;

/// How the multiples are made.
#[derive(Clone, Copy)]
struct Cut {
    /// Of the table.
    digit_bits: u32,
    workers: u64,
    /// Points at a time.
    chunk: u64,
}

impl Cut {
    /// For `2^k` points twice, within so many bytes as far as that goes.
    fn within<E: PairingGroups>(k: u32, bytes: u64) -> Self {
        let table_bytes = bytes / 2;
        let mut cut = Self {
            digit_bits: Multiples::<E::G1Config>::digit_bits(2 << k, table_bytes),
            workers: rayon::current_num_threads() as u64,
            chunk: CHUNK.min(1 << k),
        };
        while cut.workers > 1 && cut.bytes::<E>() > bytes {
            cut.workers -= 1;
        }
        while cut.chunk > CHUNK_MIN && cut.bytes::<E>() > bytes {
            cut.chunk /= 2;
        }
        cut
    }

    /// The table, what threads work with, scalars and points.
    fn bytes<E: PairingGroups>(self) -> u64 {
        let each = size_of::<E::Scalar>() + size_of::<G1Point<E>>();
        Multiples::<E::G1Config>::bytes(self.digit_bits)
            + self.workers * MultiplesWorker::<E::G1Config>::bytes()
            + self.chunk * each as u64
    }
}

/// Generates an SRS for `2^k` points into a container at `path`. **Insecure**: the caller knows `secret`; the
/// container says so ([`Srs::is_insecure`]).
/// Calls `progress` with the points made so far, of `2^(k+1)`.
///
/// # Errors
/// [`Error::Invalid`] for a `k` for which the scalars have no domain, or a secret that is zero or in the domain; [`Error::Io`],
/// [`Error::OverBudget`].
pub fn generate<E: KzgCurve>(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: E::Scalar,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Srs<E>> {
    E::generate(workspace, path, k, secret, &mut progress)
}

pub(super) fn to_container<E: PairingGroups>(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: E::Scalar,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Srs<E>> {
    workspace.run(|| generate_in_turn(workspace, path, k, secret, progress))
}

fn generate_in_turn<E: PairingGroups>(
    workspace: &Workspace,
    path: &Path,
    k: u32,
    secret: E::Scalar,
    progress: &mut dyn FnMut(u64),
) -> Result<Srs<E>> {
    let format = |source| Error::Format {
        file: path.to_path_buf(),
        source,
    };
    let curve = curve_id::<E>()?;
    let sections = layout::sections(curve, k, true, true).map_err(format)?;
    let mut writer = ContainerWriter::create(
        workspace,
        path,
        Kind::Srs,
        curve,
        layout::frame_bytes(curve),
        [0; 32],
        &sections,
    )?;
    writer.mark_insecure();
    let powers_of_secret = Powers::<E>::new(workspace, k, secret)?;
    powers_of_secret.monomial(Writer::new(writer.draft(0)?), progress)?;
    powers_of_secret.lagrange(Writer::new(writer.draft(1)?), progress)?;
    let mut pair = Writer::new(writer.draft::<G2Point<E>>(2)?);
    pair.push(&pair_of::<E>(secret).map(|point| G2Point::<E>::from_affine(&point)))?;
    pair.finish()?;
    writer.publish()?;
    of_container(&Container::open(workspace, path)?)
}

/// Generates an SRS for `2^k` points into nameless scratch files. **Insecure**, as [`generate`].
///
/// # Errors
/// As [`generate`].
pub fn generate_scratch<E: KzgCurve>(
    workspace: &Workspace,
    k: u32,
    secret: E::Scalar,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Srs<E>> {
    E::generate_scratch(workspace, k, secret, &mut progress)
}

pub(super) fn to_scratch<E: PairingGroups>(
    workspace: &Workspace,
    k: u32,
    secret: E::Scalar,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Srs<E>> {
    workspace.run(|| generate_scratch_in_turn(workspace, k, secret, progress))
}

fn generate_scratch_in_turn<E: PairingGroups>(
    workspace: &Workspace,
    k: u32,
    secret: E::Scalar,
    progress: &mut dyn FnMut(u64),
) -> Result<Srs<E>> {
    let powers_of_secret = Powers::<E>::new(workspace, k, secret)?;
    let draft = |what| -> Result<Writer<G1Point<E>>> {
        let frame_bytes = points_frame_bytes::<G1Point<E>>();
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
    Ok(Srs::from_columns(k, Some(monomial), Some(lagrange), pair_of::<E>(secret))?.marked_insecure(true))
}

fn pair_of<E: PairingGroups>(secret: E::Scalar) -> [Affine<E::G2Config>; 2] {
    let g2 = E::G2::generator();
    [g2.into_affine(), (g2 * secret).into_affine()]
}

struct Powers<E: PairingGroups> {
    k: u32,
    secret: E::Scalar,
    cut: Cut,
    table: Multiples<E::G1Config>,
    _lease: spillproof_engine::budget::Lease,
}

impl<E: PairingGroups> Powers<E> {
    fn new(workspace: &Workspace, k: u32, secret: E::Scalar) -> Result<Self> {
        check_k::<E::Scalar>(k)?;
        if secret == E::Scalar::ZERO || secret.pow([1u64 << k]) == E::Scalar::ONE {
            return Err(Invalid::Secret.into());
        }
        // Leave half of what there is to the writers.
        let available = workspace.budget.available_bytes() / 2;
        let cut = Cut::within::<E>(k, available);
        let lease = workspace.budget.lease(cut.bytes::<E>(), "SRS generation")?;
        let table = Multiples::new(Backend::detect(), &E::G1::generator(), cut.digit_bits);
        Ok(Self {
            k,
            secret,
            cut,
            table,
            _lease: lease,
        })
    }

    fn monomial(
        &self,
        writer: Writer<G1Point<E>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Column<G1Point<E>>> {
        self.write(writer, 0, progress, |start, scalars| {
            powers(scalars, &self.secret.pow([start]), &self.secret);
        })
    }

    fn lagrange(
        &self,
        writer: Writer<G1Point<E>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Column<G1Point<E>>> {
        let n = 1u64 << self.k;
        let omega: E::Scalar = root_of_unity(self.k).map_err(|source| Error::Format {
            file: "an SRS".into(),
            source,
        })?;
        let size_inverse = E::Scalar::from(n).inverse().unwrap_or(E::Scalar::ONE);
        let multiplier = (self.secret.pow([n]) - E::Scalar::ONE) * size_inverse;
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
        mut writer: Writer<G1Point<E>>,
        done: u64,
        progress: &mut dyn FnMut(u64),
        mut scalars_from: impl FnMut(u64, &mut [E::Scalar]),
    ) -> Result<Column<G1Point<E>>> {
        let Cut { workers, chunk, .. } = self.cut;
        let mut scalars = vec![E::Scalar::ZERO; chunk as usize];
        let mut points = vec![G1Point::<E>::INFINITY; chunk as usize];
        let each = chunk.div_ceil(workers) as usize;
        for start in (0..1u64 << self.k).step_by(chunk as usize) {
            scalars_from(start, &mut scalars);
            let parts = scalars.chunks(each).zip(points.chunks_mut(each)).parallel();
            parts.for_each_init(
                || self.table.worker(),
                |worker, (scalars, points)| self.table.multiply(worker, scalars, points),
            );
            writer.push(&points)?;
            progress(done + start + chunk);
        }
        writer.finish()
    }
}
