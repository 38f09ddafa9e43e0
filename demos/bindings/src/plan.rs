//! What a commitment, an opening, a sum or a transform will take, before any work: the engine's dry run of
//! it.

use spillproof_commit::{Engine, G1, SRS_FRAME_BYTES, Scalar, Srs, kzg};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Draft, Placement, Workspace, Writer};
use spillproof_engine::plan::{Plan, Rates};
use spillproof_engine::step;
use spillproof_engine::stream::{self, Scalars};

use crate::work::{Domain, Roots};
use crate::{Error, Result};

/// Work over values on disk, as in [`crate::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// A commitment to a polynomial.
    Commit,
    /// An opening of a polynomial.
    Open,
    /// A sum of scalars times points.
    Msm,
    /// A transform, in either direction.
    Ntt,
}

impl Job {
    /// By its name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "commit" => Ok(Self::Commit),
            "open" => Ok(Self::Open),
            "msm" => Ok(Self::Msm),
            "ntt" => Ok(Self::Ntt),
            _ => Err(Error::Unknown {
                what: "the job of a plan",
                given: name.to_owned(),
                known: "commit, open, msm, ntt",
            }),
        }
    }

    /// The plan for `count` scalars within a budget on so many threads (0: one for each core). A transform's
    /// `count` is rounded up to a power of two. Seconds are a guess for two cores and an NVMe disk.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest one that works.
    pub fn plan(self, count: u64, memory: ByteSize, threads: usize) -> Result<Plan> {
        let log_n = count.max(1).checked_next_power_of_two().map_or(64, u64::ilog2);
        // More than the field has domains for is refused, whatever the job.
        let domain = Domain {
            log_n,
            roots: Roots::Halo2,
            shift: Scalar::from(1u64),
            is_inverse: false,
        };
        let transform = domain.transform()?;
        let run = |workspace: &Workspace| {
            let points = || points(workspace, 1 << log_n);
            let values = || Writer::<Scalar>::scratch(workspace, "values", count, Placement::Disk)?.finish();
            match self {
                Self::Commit | Self::Open => {
                    let srs = <Srs>::from_columns(log_n, Some(points()?), None, Default::default())?;
                    let values = values()?;
                    if self == Self::Commit {
                        let _step = step!(workspace, "commit");
                        kzg::commit(&srs, &[Scalars::Column(&values)])?;
                    } else {
                        let _step = step!(workspace, "open");
                        kzg::open(&srs, &values, Scalar::from(0u64))?;
                    }
                }
                Self::Msm => {
                    let (points, values) = (points()?, values()?);
                    let _step = step!(workspace, "msm");
                    kzg::commit_over::<Engine>(&points, &[Scalars::Column(&values)])?;
                }
                Self::Ntt => {
                    let values = values()?;
                    let _step = step!(workspace, "ntt");
                    stream::ntt(&values, &transform, Placement::Disk)?;
                }
            }
            Ok(())
        };
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        Ok(Plan::new(&run, memory.resolve()?, threads, &Rates::default())?)
    }
}

/// Points that were written before.
fn points(workspace: &Workspace, count: u64) -> spillproof_engine::Result<Column<G1>> {
    Draft::scratch_with_frames(workspace, "points", count, Placement::Disk, SRS_FRAME_BYTES)?
        .finish_unwritten()
}
