//! A body on its way to sealed scratch.
//!
//! The connection's task takes frames of the body from hyper, and hands them through a channel of one to a thread
//! that decodes values and writes a sealed column. So a witness is never whole in memory, nor in plain on a disk:
//! a few frames of at most 64 KiB are, and what [`STREAM_BYTES`] says.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use spillproof_circuits::axiom::dropin::saved::SentWitness;
use spillproof_engine::budget::Budget;
use spillproof_groth16::iden3;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout_at};

use crate::job::{Job, Told};
use crate::jobs::{Jobs, Receiving};
use crate::problem::{Code, Problem};
use crate::system::{SystemWitness, WitnessLength};

/// A body that comes more slowly than this, beside the time that it may stand still, is given up.
const BYTES_PER_SECOND_MIN: u64 = 16 << 10;

/// What a witness of any system leases on its way at most.
pub(crate) const STREAM_BYTES: u64 = match (iden3::STREAM_BYTES, SentWitness::STREAM_BYTES) {
    (groth16, halo2) if groth16 > halo2 => groth16,
    (_, halo2) => halo2,
};

/// Places for witnesses on their way.
pub(crate) struct Uploads {
    places: Arc<Semaphore>,
    stands_still: Duration,
    /// Digests of bodies are of this process alone.
    digest_key: [u8; blake3::KEY_LEN],
}

impl Uploads {
    /// So many at a time, whose bodies may stand still for so long.
    ///
    /// # Errors
    /// Those of the system's random numbers.
    pub fn new(uploads: usize, stands_still: Duration) -> spillproof_engine::Result<Self> {
        let mut digest_key = [0; blake3::KEY_LEN];
        spillproof_engine::budget::random_bytes(&mut digest_key)?;
        Ok(Self {
            places: Arc::new(Semaphore::new(uploads)),
            stands_still,
            digest_key,
        })
    }

    /// Takes the body of a job's request to scratch, and the job to the queue.
    ///
    /// # Errors
    /// What was wrong with the body; the job has ended with it.
    pub async fn receive(&self, jobs: &Jobs, receiving: Receiving, body: Body) -> Result<(), Problem> {
        let job = Arc::clone(receiving.job());
        let received = match self.witness(jobs, &job, body).await {
            Ok(received) => received,
            Err(problem) => {
                receiving.fail(problem.clone());
                let stopped = job.inner().stop.map(crate::job::Cause::problem);
                return Err(stopped.unwrap_or(problem));
            }
        };
        jobs.metrics.received(received.bytes);
        receiving.queue(received.witness, received.digest);
        Ok(())
    }

    async fn witness(&self, jobs: &Jobs, job: &Arc<Job>, body: Body) -> Result<Received, Problem> {
        let mut told = job.told.subscribe();
        let place = tokio::select! {
            place = Arc::clone(&self.places).acquire_owned() => place,
            () = stopping(&mut told) => return Err(job.stopped()),
        };
        let place = place.map_err(|error| Problem::internal(&error))?;
        let (sender, receiver) = mpsc::channel(1);
        let (session, of_thread) = (Arc::clone(jobs.session()), Arc::clone(job));
        let thread = tokio::task::spawn_blocking(move || {
            let _place = place;
            let _entered = of_thread.control.enter();
            let mut source = Source {
                frames: receiver,
                frame: Bytes::new(),
            };
            let ledger = Budget::new(STREAM_BYTES);
            (of_thread.key.key).witness_of_stream(&session, ledger, &mut source)
        });
        let mut walk = Walk::new(self, body, job.key.key.witness_length());
        let sent = tokio::select! {
            sent = walk.read(Some(&sender)) => sent,
            () = stopping(&mut told) => Err(job.stopped()),
        };
        drop(sender);
        let read = thread.await.map_err(|error| Problem::internal(&error))?;
        match (sent, read) {
            (Ok(()), Ok(witness)) => Ok(Received {
                witness,
                digest: walk.hasher.finalize(),
                bytes: walk.bytes,
            }),
            // The thread has met something in the bytes, or the disk.
            (Ok(()), Err(problem)) | (Err(problem), _) => Err(problem),
        }
    }

    /// Reads the body of a request that repeats an earlier one.
    ///
    /// # Errors
    /// What was wrong with the body.
    pub async fn digest(&self, body: Body, length: WitnessLength) -> Result<blake3::Hash, Problem> {
        let mut walk = Walk::new(self, body, length);
        walk.read(None).await?;
        Ok(walk.hasher.finalize())
    }
}

/// A witness that came.
struct Received {
    witness: SystemWitness,
    digest: blake3::Hash,
    bytes: u64,
}

async fn stopping(told: &mut watch::Receiver<Told>) {
    // Its sender is the job, which is there.
    let _is_there = told.wait_for(|told| told.is_stopping).await.is_ok();
}

/// A body that is read.
struct Walk {
    body: Body,
    stands_still: Duration,
    /// When all of it has to be there.
    end: Instant,
    length: WitnessLength,
    /// How many came.
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Walk {
    fn new(uploads: &Uploads, body: Body, length: WitnessLength) -> Self {
        Self {
            body,
            stands_still: uploads.stands_still,
            end: Instant::now()
                + uploads.stands_still
                + Duration::from_secs(length.bytes_max / BYTES_PER_SECOND_MIN),
            length,
            bytes: 0,
            hasher: blake3::Hasher::new_keyed(&uploads.digest_key),
        }
    }

    /// Reads all of it, and sends it on, for as long as it is taken there.
    async fn read(&mut self, sender: Option<&mpsc::Sender<Bytes>>) -> Result<(), Problem> {
        let WitnessLength { bytes_max, is_exact } = self.length;
        loop {
            let next = self.end.min(Instant::now() + self.stands_still);
            let frame = timeout_at(next, self.body.frame()).await.map_err(|_| {
                let (bytes, seconds) = (self.bytes, self.stands_still.as_secs_f64());
                let detail = format!(
                    "{bytes} of {bytes_max} bytes came: a body may stand still for {seconds} seconds, and has {BYTES_PER_SECOND_MIN} bytes a second at least"
                );
                Problem::new(Code::BodyTimeout, detail)
            })?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| {
                let detail = format!("the body broke off after {} bytes of {bytes_max}", self.bytes);
                Problem::new(Code::BodyIncomplete, detail)
            })?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            self.bytes += data.len() as u64;
            if self.bytes > bytes_max {
                return Err(too_large(self.length));
            }
            self.hasher.update(&data);
            if let Some(sender) = sender
                && sender.send(data).await.is_err()
            {
                return Ok(());
            }
        }
        match is_exact && self.bytes < bytes_max {
            true => Err(wrong_length(self.bytes, self.length)),
            // Of a witness of no certain length, who decodes it knows where it ends.
            false => Ok(()),
        }
    }
}

/// For a body of more bytes than a witness of its key.
pub(crate) fn too_large(length: WitnessLength) -> Problem {
    let bytes_max = length.bytes_max;
    let has = match length.is_exact {
        true => format!("has {bytes_max} bytes, as circom's and snarkjs' tools write it"),
        false => format!("has {bytes_max} bytes at most, as its program saves it"),
    };
    let detail = format!("a witness of this key {has}, and the body has more");
    Problem::new(Code::TooLarge, detail)
}

/// For a body of fewer.
pub(crate) fn wrong_length(bytes: u64, length: WitnessLength) -> Problem {
    Problem::new(
        Code::WitnessLength,
        format!(
            "the body has {bytes} bytes, and a witness of this key {}: it belongs to another circuit",
            length.bytes_max
        ),
    )
}

/// Frames that come through a channel, as a reader.
struct Source {
    frames: mpsc::Receiver<Bytes>,
    frame: Bytes,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.frame.is_empty() {
            match self.frames.blocking_recv() {
                Some(frame) => self.frame = frame,
                None => return Ok(0),
            }
        }
        let bytes = into.len().min(self.frame.len());
        into[..bytes].copy_from_slice(&self.frame.split_to(bytes));
        Ok(bytes)
    }
}
