//! Ranks: processes, each with its own memory and disk, that prove together.
//!
//! What flows in: a [`Transport`] (threads of one process here, MPI in `spillproof-mpi`), and the bytes of
//! one rank. What flows out: the bytes of the others, in order, each message checked, or a [`RankError`] that
//! names rank, peer and phase: on every rank, within a bounded time. [`Ranks::traffic`] counts, and [`Link`]
//! tells the seconds. Who may use it: the engine's stages that move dealt columns, proof systems over ranks,
//! and the binary. Architecture invariant: it knows no field, no column, no file and no MPI.
//!
//! ```
//! use std::sync::Arc;
//! use spillproof_ranks::{RankError, Ranks, Settings, one_process};
//!
//! // Four ranks as threads; under MPI, each is a process with one transport.
//! let threads = one_process(4).into_iter().map(|transport| {
//!     std::thread::spawn(move || {
//!         let ranks = Ranks::new(Arc::new(transport), Settings::default())?;
//!         let _phase = ranks.phase("sum of ranks");
//!         let mut sum = [ranks.rank() as u8];
//!         ranks.reduce(0, &mut sum, &mut |sum, more| sum[0] += more[0])?;
//!         ranks.broadcast(0, &mut sum)?;
//!         Ok::<u8, RankError>(sum[0])
//!     })
//! });
//! for thread in threads.collect::<Vec<_>>() {
//!     assert_eq!(thread.join().unwrap()?, 6);
//! }
//! # Ok::<(), RankError>(())
//! ```

mod envelope;
mod error;
pub mod faults;
mod launcher;
mod link;
mod measure;
mod model;
mod one_process;
mod paced;
mod ranks;
mod schedule;
mod traffic;
mod transport;

pub use envelope::ENVELOPE_BYTES;
pub use error::{Direction, RankError, TransportFault};
pub use launcher::{Launched, is_started_by_mpi, launched};
pub use link::{Link, Switch};
pub use measure::measure_link;
pub use one_process::{OneProcess, one_process};
pub use paced::{Clock, Paced, SimulatedClock, SystemClock};
pub use ranks::{Asked, PIECE_BYTES_MAX, Phase, Ranks, Settings, Sink, Source, VALUE_BYTES_MAX};
pub use traffic::PhaseTraffic;
pub use transport::{REASON_BYTES_MAX, Transport, bounded_reason};
