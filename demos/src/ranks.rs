//! This process as one rank of a job, where MPI started it as one.
//!
//! In: what the launcher says in the environment. Out: the [`Ranks`] of a statement, and at the end the same
//! outcome on all of them: every rank exits with 0, or none. A failure of one rank, before or after they
//! agreed on a statement, is told to the others at once.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::stream::all_gather;
use spillproof_ranks::{PhaseTraffic, Ranks, Settings, Transport};

use crate::args::{Global, Messages};
use crate::failure::Failure;
#[cfg(feature = "mpi")]
use crate::link::KnownLink;
use crate::pace;
use crate::run::Result;

/// The place of a rank among those of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// Ranks of the machine before this one.
    pub rank: usize,
    /// All of them.
    pub ranks: usize,
}

/// Pieces of an exchange, of which five are in memory, at most and at least.
const PIECE_BYTES_MAX: u64 = 4 << 20;
const PIECE_BYTES_MIN: u64 = 64 << 10;
/// A piece is this part of the budget at most.
const PIECE_SHARE: u64 = 64;

/// How long the others have to print their failures when one rank has failed.
#[cfg(feature = "mpi")]
const GRACE: Duration = Duration::from_secs(5);

/// A job of several ranks.
pub struct Job {
    transport: Arc<dyn Transport>,
    /// What ranks agree in, before they have a statement.
    lobby: Ranks,
    timeout: Duration,
    #[cfg(feature = "mpi")]
    mpi: spillproof_mpi::Mpi,
}

impl Job {
    /// The job that this process belongs to; `None` where it is alone. `shares` is how many were given: one a
    /// rank, or none.
    ///
    /// # Errors
    /// [`Failure::Usage`] in a program without MPI that was started as one of several; MPI's.
    pub fn join(messages: &Messages, shares: usize) -> Result<Option<Self>> {
        let Some(launched) = spillproof_ranks::launched() else {
            return refuse_alone(messages, shares);
        };
        if launched.size == Some(1) {
            return refuse_alone(messages, shares);
        }
        start(messages, shares)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.lobby.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.lobby.size()
    }

    /// Whether this is the rank that writes results.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The options of this rank: one rank speaks.
    ///
    /// # Errors
    /// [`Failure::Usage`] without a budget: ranks of one machine would each take all of its memory.
    pub fn global(&self, global: &Global) -> Result<Global> {
        if matches!(global.memory, None | Some(ByteSize::Auto)) && global.limit.is_none() {
            return Err(Failure::Usage(format!(
                "--memory (SPILLPROOF_MEMORY) is missing: each of the {} ranks has a budget of so many bytes",
                self.lobby.size()
            )));
        }
        Ok(self.quiet(global))
    }

    /// The same, where a budget need not be said.
    pub fn quiet(&self, global: &Global) -> Global {
        let is_first = self.is_first();
        Global {
            quiet: global.quiet || !is_first,
            json: global.json && is_first,
            ..global.clone()
        }
    }

    /// The place of this rank among those of its machine.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Ranks`].
    pub fn neighbours(&self) -> Result<Neighbours> {
        let all = all_gather(&self.lobby, blake3::hash(pace::machine().as_bytes()).as_bytes())?;
        Ok(neighbours(&all, self.rank()))
    }

    /// What rank 0 decides, on all ranks.
    ///
    /// # Errors
    /// Of the decision, on rank 0; [`spillproof_engine::Error::Ranks`].
    pub fn decided(&self, by_first: impl FnOnce() -> Result<u8>) -> Result<u8> {
        let mut decision = [0];
        if self.is_first() {
            decision[0] = by_first()?;
        }
        self.lobby.broadcast(0, &mut decision).map_err(engine)?;
        Ok(decision[0])
    }

    /// Refuses ranks that share a device, each of which would take all of its memory.
    ///
    /// # Errors
    /// [`Failure::Usage`] on rank 0; [`spillproof_engine::Error::Ranks`].
    pub fn check_devices(&self, devices: &[[u8; 16]], has_own_memory: bool) -> Result<()> {
        let all = self.lobby.gather(0, devices.as_flattened()).map_err(engine)?;
        let all: Vec<Vec<[u8; 16]>> = (all.unwrap_or_default().iter())
            .map(|devices| devices.as_chunks().0.to_vec())
            .collect();
        match shared_device(&all).filter(|_| !has_own_memory) {
            None => Ok(()),
            Some([first, second]) => Err(Failure::Usage(format!(
                "ranks {first} and {second} share a GPU: say with --vram how much of its memory each rank takes, or start a rank for each GPU"
            ))),
        }
    }

    /// The ranks, when all of them have the same statement. Pieces are those of the smallest budget.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Ranks`].
    pub fn ranks(&self, statement: &[u8], budget_bytes: u64) -> Result<Ranks> {
        let mut piece = piece_bytes(budget_bytes).to_le_bytes();
        let least = &mut |sum: &mut [u8], other: &[u8]| {
            let value = |bytes: &[u8]| bytes.try_into().map_or(PIECE_BYTES_MIN, u64::from_le_bytes);
            let least = value(sum).min(value(other));
            sum.copy_from_slice(&least.to_le_bytes());
        };
        self.lobby.reduce(0, &mut piece, least).map_err(engine)?;
        self.lobby.broadcast(0, &mut piece).map_err(engine)?;
        let settings = Settings {
            timeout: self.timeout,
            piece_bytes: u64::from_le_bytes(piece) as usize,
            job: *blake3::hash(statement).as_bytes(),
        };
        Ranks::new(Arc::clone(&self.transport), settings).map_err(engine)
    }

    /// What every rank did, on rank 0.
    ///
    /// # Errors
    /// [`spillproof_engine::Error::Ranks`].
    pub fn reports(
        &self,
        ranks: &Ranks,
        budget_peak_bytes: u64,
        gpu: Option<serde_json::Value>,
    ) -> Result<Option<Vec<RankReport>>> {
        let gpu = gpu.map(|gpu| gpu.to_string()).unwrap_or_default();
        let gpus = ranks.gather(0, gpu.as_bytes()).map_err(engine)?;
        let traffic = ranks.gather_traffic(0).map_err(engine)?;
        let peaks = ranks
            .gather(0, &budget_peak_bytes.to_le_bytes())
            .map_err(engine)?;
        let (Some(traffic), Some(peaks), Some(gpus)) = (traffic, peaks, gpus) else {
            return Ok(None);
        };
        let ranks = traffic.into_iter().zip(peaks).zip(gpus).enumerate();
        let report = ranks.map(|(rank, ((phases, peak), gpu))| RankReport {
            rank,
            budget_peak_bytes: peak.try_into().map_or(0, u64::from_le_bytes),
            phases: phases.iter().map(PhaseReport::of).collect(),
            gpu: serde_json::from_slice(&gpu).ok(),
        });
        Ok(Some(report.collect()))
    }

    /// Ends the job: with its outcome on this rank, or with that of another one that failed.
    ///
    /// # Errors
    /// The failure of this rank, or [`spillproof_engine::Error::Ranks`].
    pub fn end<T>(self, outcome: Result<T>) -> Result<T> {
        let outcome = outcome.and_then(|value| {
            self.lobby.barrier().map_err(engine)?;
            Ok(value)
        });
        match outcome {
            Ok(value) => {
                self.finish()?;
                Ok(value)
            }
            Err(failure) => self.fail(failure),
        }
    }

    #[cfg(feature = "mpi")]
    fn finish(self) -> Result<()> {
        Ok(self.mpi.finish()?)
    }

    /// A launcher ends all ranks when one has ended: so each prints its failure before.
    #[cfg(feature = "mpi")]
    fn fail<T>(self, failure: Failure) -> Result<T> {
        self.lobby.give_up(&failure);
        // In one piece: other ranks print at the same time.
        let line = format!("rank {}: {}\n", self.rank(), failure.explain());
        let _closed = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        self.mpi.fail(i32::from(failure.exit_code()), GRACE)
    }

    #[cfg(not(feature = "mpi"))]
    fn finish(self) -> Result<()> {
        Ok(())
    }

    #[cfg(not(feature = "mpi"))]
    fn fail<T>(self, failure: Failure) -> Result<T> {
        self.lobby.give_up(&failure);
        Err(failure)
    }
}

/// Bytes of a message that a budget has room for: a power of two.
pub fn piece_bytes(budget_bytes: u64) -> u64 {
    let share = (budget_bytes / PIECE_SHARE).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
    1 << share.ilog2()
}

/// Of the ranks on machines, the place of one among those of its own.
fn neighbours(machines: &[Vec<u8>], rank: usize) -> Neighbours {
    let is_here = |other: &&Vec<u8>| machines.get(rank) == Some(*other);
    Neighbours {
        rank: machines.iter().take(rank).filter(is_here).count(),
        ranks: machines.iter().filter(is_here).count(),
    }
}

/// Two ranks that have the same device, if there are any.
fn shared_device(devices: &[Vec<[u8; 16]>]) -> Option<[usize; 2]> {
    let has_any = |first: usize, second: usize| {
        let of_second = |device| devices[second].contains(device);
        devices[first].iter().any(of_second)
    };
    let mut pairs = (0..devices.len()).flat_map(|second| (0..second).map(move |first| [first, second]));
    pairs.find(|[first, second]| has_any(*first, *second))
}

fn engine(error: spillproof_ranks::RankError) -> Failure {
    Failure::Engine(error.into())
}

/// One rank alone has no use for shares, and sends no messages.
fn refuse_alone(messages: &Messages, shares: usize) -> Result<Option<Job>> {
    match shares {
        0 | 1 => match &messages.pace {
            None => Ok(None),
            Some(link) => Err(Failure::Usage(format!(
                "--pace {link} is for messages between ranks, and this process is one rank: start several, as with mpirun -n 2"
            ))),
        },
        shares => Err(Failure::Usage(format!(
            "--share has {shares} weights, and this process is one rank: start {shares} of them, with mpirun -n {shares}"
        ))),
    }
}

#[cfg(not(feature = "mpi"))]
fn start(_: &Messages, _: usize) -> Result<Option<Job>> {
    Err(Failure::Usage(
        "a launcher of MPI started this program as one rank of several, and it was built without MPI: build it with \
         `cargo build --release --features mpi`"
            .into(),
    ))
}

#[cfg(feature = "mpi")]
fn start(messages: &Messages, shares: usize) -> Result<Option<Job>> {
    let link = messages.pace.as_ref();
    let link = link.map(|link| KnownLink::of(link, None)).transpose()?;
    let mpi = spillproof_mpi::Mpi::start()?;
    let transport = mpi.transport();
    let timeout = Duration::from_secs(messages.rank_timeout);
    let settings = Settings {
        timeout,
        piece_bytes: PIECE_BYTES_MIN as usize,
        ..Settings::default()
    };
    let lobby = Ranks::new(Arc::clone(&transport), settings.clone()).map_err(engine)?;
    let mut job = Job {
        transport,
        lobby,
        timeout,
        mpi,
    };
    let paced = pace::paced(
        &job.lobby,
        Arc::clone(&job.transport),
        link.as_ref().map(|link| &link.link),
    );
    match paced {
        Ok(transport) if link.is_some() => {
            job.transport = transport;
            match Ranks::new(Arc::clone(&job.transport), settings) {
                Ok(lobby) => job.lobby = lobby,
                Err(error) => return job.fail(engine(error)),
            }
        }
        Ok(_) => {}
        Err(failure) => return job.fail(failure),
    }
    let ranks = job.lobby.size();
    if shares != 0 && shares != ranks {
        let failure = Failure::Usage(format!(
            "--share has {shares} weights, and there are {ranks} ranks"
        ));
        return job.fail(failure);
    }
    Ok(Some(job))
}

/// The phases of one rank, and what its buffers took.
#[derive(Debug, Clone, Serialize)]
pub struct RankReport {
    /// Its number.
    pub rank: usize,
    /// The most bytes that its buffers took.
    pub budget_peak_bytes: u64,
    /// Phase after phase.
    pub phases: Vec<PhaseReport>,
    /// The jobs of its devices, if any were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<serde_json::Value>,
}

/// One phase of one rank.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseReport {
    /// Its name.
    pub phase: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// How long it waited for other ranks.
    pub waited_seconds: f64,
    /// Bytes sent, without the envelopes of messages.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl PhaseReport {
    fn of(traffic: &PhaseTraffic) -> Self {
        Self {
            phase: traffic.name,
            seconds: traffic.elapsed.as_secs_f64(),
            waited_seconds: traffic.waited.as_secs_f64(),
            sent_bytes: traffic.sent_bytes,
            received_bytes: traffic.received_bytes,
        }
    }
}

/// The slowest rank of each phase, and what all ranks sent in it.
pub fn table(reports: &[RankReport]) -> String {
    use std::fmt::Write as _;
    let Some(first) = reports.first() else {
        return String::new();
    };
    let mut text = format!(
        "\n{:<16} {:>8} {:>8} {:>8} {:>12} {:>12}\n",
        "phase", "slowest", "seconds", "waited", "sent a rank", "sent by all"
    );
    for (index, phase) in first.phases.iter().enumerate() {
        let of_ranks = || {
            reports
                .iter()
                .filter_map(|report| Some((report.rank, report.phases.get(index)?)))
        };
        // A rank that waits for another one is not the slow one.
        let work = |phase: &PhaseReport| phase.seconds - phase.waited_seconds;
        let slowest = of_ranks().max_by(|(_, a), (_, b)| work(a).total_cmp(&work(b)));
        let Some((rank, slowest)) = slowest else {
            continue;
        };
        let sent = || of_ranks().map(|(_, phase)| phase.sent_bytes);
        let bytes = |bytes: u64| spillproof_engine::budget::format_bytes(bytes);
        let _infallible = writeln!(
            text,
            "{:<16} {:>8} {:>8.2} {:>8.2} {:>12} {:>12}",
            phase.phase,
            format!("rank {rank}"),
            slowest.seconds,
            slowest.waited_seconds,
            bytes(sent().max().unwrap_or(0)),
            bytes(sent().sum()),
        );
    }
    let peaks = reports.iter().map(|report| report.budget_peak_bytes);
    let peak = spillproof_engine::budget::format_bytes(peaks.max().unwrap_or(0));
    let _infallible = write!(
        text,
        "waited: for other ranks, on the slowest one; buffers of a rank: {peak} at most"
    );
    for report in reports {
        let said = report.gpu.as_ref().and_then(|gpu| gpu["said"].as_str());
        if let Some(said) = said {
            let _infallible = write!(text, "\nrank {}: {said}", report.rank);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_machine_are_counted_by_machine() {
        let machines: Vec<Vec<u8>> = [1, 2, 1, 1, 2].map(|machine| vec![machine]).to_vec();
        let places: Vec<_> = (0..5)
            .map(|rank| neighbours(&machines, rank))
            .map(|place| [place.rank, place.ranks])
            .collect();
        assert_eq!(places, [[0, 3], [0, 2], [1, 3], [2, 3], [1, 2]]);
    }

    #[test]
    fn a_device_that_two_ranks_have_is_found() {
        let device = |number: u8| [number; 16];
        let of = |numbers: &[&[u8]]| -> Option<[usize; 2]> {
            let devices = numbers.iter().map(|of| of.iter().copied().map(device).collect());
            shared_device(&devices.collect::<Vec<_>>())
        };
        assert_eq!(of(&[&[0], &[1], &[], &[2, 3]]), None);
        assert_eq!(of(&[&[0], &[1], &[2], &[3, 1]]), Some([1, 3]));
    }
}
