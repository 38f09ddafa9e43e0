//! How fast this machine reads, writes and computes: measured in about a second, or given.
//!
//! Disk: [`Workspace::disk_rates`]. Compute: a transform and a sum over points in memory, and products of
//! scalars, each repeated for about [`MEASURED_SECONDS`]; the best of the repetitions counts, so that a moment
//! in which something else ran does not. Memory: that of the disk's rates; for the rest at most an eighth of
//! the budget, leased: it is as large as that allows, since short batches cost more.

use std::time::Instant;

use ark_bn254::{Fr, G1Affine, G1Projective, g1};
use ark_ec::AffineRepr;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, FftField, Field};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::column::{Workspace, side_by_side};
use crate::dry::Work;
use spillproof_kernels::curve::Point;
use spillproof_kernels::msm::{Msm, MsmConfig};
use spillproof_kernels::ntt::Domain;
use spillproof_kernels::poly::powers;
use spillproof_kernels::vector;

/// log2 of the elements of what is computed.
const LOG_LENS: std::ops::RangeInclusive<u32> = 10..=15;
/// Bytes that an element takes meanwhile: three scalars, a point, a projective point, and its share of the
/// sum's workspace.
const ELEMENT_BYTES: u64 = 512;
/// How long each kernel is measured.
const MEASURED_SECONDS: f64 = 0.1;

/// What a machine does in a second, on all threads of a session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes read from the scratch folder.
    pub bytes_read: f64,
    /// Bytes written to it.
    pub bytes_written: f64,
    /// Butterflies of a transform.
    pub butterflies: f64,
    /// Batched additions of points.
    pub additions: f64,
    /// Products of scalars.
    pub products: f64,
}

impl Default for Rates {
    /// Two cores and an NVMe disk of 2024.
    fn default() -> Self {
        Self::usual(2)
    }
}

impl Rates {
    /// So many cores and an NVMe disk of 2024.
    pub(super) fn usual(threads: usize) -> Self {
        let threads = threads as f64;
        Self {
            bytes_read: 2e9,
            bytes_written: 1e9,
            butterflies: 5e7 * threads,
            additions: 1e7 * threads,
            products: 1e8 * threads,
        }
    }

    /// Measures, on the session's threads.
    ///
    /// # Errors
    /// [`crate::Error::OverBudget`], [`crate::Error::File`], [`crate::Error::Io`].
    pub fn measure(workspace: &Workspace) -> Result<Self> {
        workspace.run(|| Self::measure_in_turn(workspace))
    }

    fn measure_in_turn(workspace: &Workspace) -> Result<Self> {
        let (bytes_read, bytes_written) = workspace.disk_rates()?;
        let fits = |log_len: &u32| (ELEMENT_BYTES << log_len) <= workspace.budget.available_bytes() / 8;
        let log_len = LOG_LENS.rev().find(fits).unwrap_or(*LOG_LENS.start());
        let len = 1usize << log_len;
        let _lease = workspace.budget.lease(ELEMENT_BYTES << log_len, "rates")?;
        let mut values = vec![Fr::ONE; len];
        powers(&mut values, &Fr::from(3u64), &Fr::from(7u64));
        let domain = Domain::new(log_len, Fr::get_root_of_unity(1 << log_len).unwrap_or(Fr::ONE))?;
        let transforms = per_second(|| domain.forward(&mut values));
        let factors = values.clone();
        let mut out = vec![Fr::ZERO; len];
        let one_thread = per_second(|| vector::product(&mut out, &values, &factors));

        let points: Vec<G1Projective> = (0..len)
            .scan(G1Affine::generator().into_group(), |point, _| {
                *point += G1Affine::generator();
                Some(*point)
            })
            .collect();
        let points: Vec<Point<g1::Config>> = G1Projective::normalize_batch(&points)
            .iter()
            .map(Point::<g1::Config>::from_affine::<g1::Config>)
            .collect();
        // About the window that a sum over so many points would take, and chunks in flight as there.
        let config = MsmConfig::new(log_len - 3, len / 4, 1, rayon::current_num_threads()).in_chunks(2);
        let sums = per_second(|| {
            let mut msm = Msm::<g1::Config>::new(config);
            msm.update(&points, &[&values]);
            msm.finish();
        });
        Ok(Self {
            bytes_read,
            bytes_written,
            butterflies: transforms * len as f64 * f64::from(log_len) / 2.0,
            additions: sums * config.cost::<g1::Config>(len as u64),
            products: one_thread * (len * rayon::current_num_threads()) as f64,
        })
    }

    /// How long so much takes.
    pub(super) fn seconds(&self, read: u64, written: u64, work: &Work) -> f64 {
        let disk = read as f64 / self.bytes_read + written as f64 / self.bytes_written;
        let compute = work.additions / self.additions
            + work.butterflies / self.butterflies
            + work.products / self.products;
        side_by_side(disk, compute)
    }
}

/// How often `work` is done in a second, by the quickest of its repetitions.
fn per_second(mut work: impl FnMut()) -> f64 {
    work();
    let (begun, mut least) = (Instant::now(), f64::MAX);
    while begun.elapsed().as_secs_f64() < MEASURED_SECONDS {
        let started = Instant::now();
        work();
        least = least.min(started.elapsed().as_secs_f64());
    }
    1.0 / least.max(1e-9)
}
