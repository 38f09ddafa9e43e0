//! One sum or transform over columns on disk, or a proof of Groth16 over files, by the device or the processor,
//! whichever has the session's turn.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use ark_bn254::{Bn254, Fr, G1Affine};
use ark_ff::AdditiveGroup;
use spillproof_circom::example::{Circuit, Values};
use spillproof_commit::{G1, HALO2_ROOT_OF_UNITY, omega};
use spillproof_engine::Session;
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::stream::{Transform, ntt};
use spillproof_format::Curve;
use spillproof_groth16::iden3::{read_wtns, read_zkey};
use spillproof_groth16::{Proof, ProvingKey, prove_in};

use spillproof_cli::commands::msm::{msm_from_disk, points_to_disk, scalars_to_disk};
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::run::Result;

use super::line::Way;
use crate::kernels::SEED;

/// A job that is repeated.
pub enum Job {
    /// Of 2^`log_n` terms.
    Sum {
        /// log2 of the terms.
        log_n: u32,
        /// On disk.
        bases: Column<G1>,
        /// On disk.
        scalars: Column<Fr>,
    },
    /// Forward, of 2^`log_n` elements.
    Transform {
        /// log2 of the elements.
        log_n: u32,
        /// On disk.
        input: Column<Fr>,
    },
    /// A proof of Groth16 of 2^`log_n` rows, whose key is open.
    Proof {
        /// log2 of the rows.
        log_n: u32,
        /// Its points are on disk.
        key: Box<ProvingKey<Bn254>>,
        /// On disk.
        witness: Column<Fr>,
    },
}

/// A kind of job.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// Scalars times points.
    Sum,
    /// A forward transform.
    Transform,
    /// A whole proof.
    Proof,
}

impl Of {
    /// The ways in which a device can do it.
    pub fn ways(self) -> &'static [Way] {
        match self {
            Self::Sum => &[Way::Streamed, Way::Resident],
            Self::Transform => &[Way::Whole],
            Self::Proof => &[Way::Proof],
        }
    }

    /// Of 2^`log_n` points and scalars of the seed, written to disk.
    ///
    /// # Errors
    /// The engine's.
    pub fn job(self, session: &Session, log_n: u32) -> Result<Job> {
        let progress = Progress::start(&format!("{self:?} of 2^{log_n}: columns to disk"));
        let scalars = || scalars_to_disk(session, SEED, 1 << log_n, &progress);
        Ok(match self {
            Self::Sum => Job::Sum {
                log_n,
                bases: points_to_disk(session, SEED, 1 << log_n, &progress)?,
                scalars: scalars()?,
            },
            Self::Transform => Job::Transform {
                log_n,
                input: scalars()?,
            },
            Self::Proof => proof_of_files(session, log_n)?,
        })
    }
}

/// The example circuit of 2^`log_n` rows, with files that have no names any more.
fn proof_of_files(session: &Session, log_n: u32) -> Result<Job> {
    let (workspace, dir) = (session.workspace(), session.dir());
    let circuit = Circuit {
        k: log_n,
        values: Values::Full,
        seed: SEED,
    };
    let [zkey, wtns] = ["zkey", "wtns"].map(|kind| {
        let name = format!("spillproof-bench-{}-{log_n}.{kind}", std::process::id());
        Named(dir.join(name))
    });
    zkey.write(|out| circuit.write_key(Curve::Bn254, out))?;
    wtns.write(|out| circuit.write_witness(Curve::Bn254, out))?;
    Ok(Job::Proof {
        log_n,
        key: Box::new(read_zkey::<Bn254>(workspace, &zkey.0, &mut |_| ())?),
        witness: read_wtns::<Bn254>(workspace, &wtns.0, &mut |_| ())?,
    })
}

/// A file that loses its name when this is dropped.
struct Named(std::path::PathBuf);

impl Named {
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        let path: &Path = &self.0;
        let written = File::create_new(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        });
        written.map_err(Failure::file(path))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // It may not have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The result of a job.
pub enum Made {
    /// A sum.
    Point(G1Affine),
    /// A transformed column, on disk.
    Column(Column<Fr>),
    /// A proof, of fixed random values.
    Proof(Proof<Bn254>),
}

impl Job {
    /// Its name.
    pub fn what(&self) -> String {
        match self {
            Self::Sum { log_n, .. } => format!("MSM 2^{log_n}"),
            Self::Transform { log_n, .. } => format!("NTT 2^{log_n}"),
            Self::Proof { log_n, .. } => format!("Groth16 2^{log_n}"),
        }
    }

    /// Terms or elements.
    pub fn n(&self) -> u64 {
        match self {
            Self::Sum { log_n, .. } | Self::Transform { log_n, .. } | Self::Proof { log_n, .. } => 1 << log_n,
        }
    }

    /// Once, from disk, and to disk.
    ///
    /// # Errors
    /// The engine's.
    pub fn run(&self, session: &Arc<Session>) -> Result<Made> {
        match self {
            Self::Sum { bases, scalars, .. } => Ok(Made::Point(msm_from_disk(bases, scalars)?)),
            Self::Transform { log_n, input } => {
                let transform = Transform::forward(*log_n, omega(HALO2_ROOT_OF_UNITY, *log_n)?);
                let output = session.run(|| ntt(input, &transform, Placement::Disk))?;
                Ok(Made::Column(output))
            }
            Self::Proof { key, witness, .. } => {
                let random = [Fr::from(SEED), Fr::from(SEED + 1)];
                Ok(Made::Proof(prove_in(session, key, witness, random)?))
            }
        }
    }
}

impl Made {
    /// Whether both are the same, element by element; columns are read side by side.
    ///
    /// # Errors
    /// The engine's.
    pub fn is_same(&self, other: &Self, session: &Session) -> Result<bool> {
        match (self, other) {
            (Self::Point(a), Self::Point(b)) => Ok(a == b),
            (Self::Column(a), Self::Column(b)) => session.run(|| are_same(a, b)),
            (Self::Proof(a), Self::Proof(b)) => Ok(a == b),
            _ => Ok(false),
        }
    }
}

fn are_same(a: &Column<Fr>, b: &Column<Fr>) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    let chunk = a.sequential_chunk();
    let budget = &a.workspace().budget;
    let tile = || budget.vec(chunk as usize, Fr::ZERO, "results that are compared");
    let (mut from_a, mut from_b) = (tile()?, tile()?);
    let (mut a, mut b) = (a.read_ascending(chunk)?, b.read_ascending(chunk)?);
    loop {
        let regions = (a.next_into(&mut from_a)?, b.next_into(&mut from_b)?);
        let (Some(region), Some(_)) = regions else {
            return Ok(true);
        };
        let len = region.len() as usize;
        if from_a[..len] != from_b[..len] {
            return Ok(false);
        }
    }
}
