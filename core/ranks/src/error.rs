//! Errors of ranks: what a transport reports, and what a rank makes of it.
//!
//! In: a [`TransportFault`], or a message that is not the one that is due. Out: a [`RankError`] that names
//! this rank, the peer, the phase, what was found, and what to do. Errors are cheap to clone: the first one
//! of a [`Ranks`](crate::Ranks) is the answer to every later call.

use std::fmt;
use std::time::Duration;

/// What a [`Transport`](crate::Transport) reports.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportFault {
    /// A rank said that it gives up. It may be another one than the rank that was waited for.
    #[error("rank {peer} gave up: {reason}")]
    GaveUp {
        /// The rank that gave up.
        peer: usize,
        /// Its reason.
        reason: String,
        /// The rank whose message, or whose room for one, was still missing here.
        waits_for: Option<usize>,
    },
    /// The peer has ended without a word.
    #[error("rank {peer} is gone")]
    Gone {
        /// The rank that has ended.
        peer: usize,
    },
    /// The deadline passed.
    #[error("the deadline passed {direction} rank {peer}")]
    Late {
        /// The rank that was waited for.
        peer: usize,
        /// What was under way.
        direction: Direction,
    },
    /// A message that the buffer has no room for. It is not delivered.
    #[error("a message of {bytes} bytes came from rank {peer} to a buffer of {limit_bytes} bytes")]
    TooLong {
        /// The sender.
        peer: usize,
        /// The message's length.
        bytes: u64,
        /// The buffer's length.
        limit_bytes: u64,
    },
    /// Anything else, in the transport's own words.
    #[error("{what}")]
    Failed {
        /// The other end, where the transport knows it.
        peer: Option<usize>,
        /// What failed.
        what: String,
    },
}

/// Which half of an exchange was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The message to the peer.
    Sending,
    /// The message from the peer.
    Receiving,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sending => "sending to",
            Self::Receiving => "receiving from",
        })
    }
}

/// What can go wrong between ranks.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// Another rank gave up.
    #[error(
        "rank {rank}, phase \"{phase}\": rank {peer} gave up: {reason}{}",
        meanwhile(*waits_for, *waited)
    )]
    GaveUp {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The rank that said so.
        peer: usize,
        /// Its reason: where it passed on what a third rank said, that rank's.
        reason: String,
        /// The rank for which this one was waiting. Where a rank hangs, the first to run out of patience need
        /// not be the one that waits for it.
        waits_for: Option<usize>,
        /// How long it had waited.
        waited: Duration,
    },
    /// This rank gave up, for a reason that is not the transport's.
    #[error("rank {rank}, phase \"{phase}\": this rank gave up: {reason}")]
    Stopped {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The reason that was told to the other ranks.
        reason: String,
    },
    /// The peer has ended without a word.
    #[error("rank {rank}, phase \"{phase}\": rank {peer} is gone without a word: look at its output")]
    Gone {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The rank that has ended.
        peer: usize,
    },
    /// Nothing came, or nothing was taken, in time.
    #[error(
        "rank {rank}, phase \"{phase}\": waited {waited:.1?} {direction} rank {peer}, and ranks wait \
         {timeout:.1?} at most: look at the output of rank {peer}; if it is at work, give ranks a longer \
         timeout"
    )]
    Late {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The rank that was waited for.
        peer: usize,
        /// What was under way.
        direction: Direction,
        /// How long this rank waited.
        waited: Duration,
        /// How long ranks wait.
        timeout: Duration,
    },
    /// A message is not the one that is due: it was changed, cut, lost, doubled or reordered on its way, or
    /// the two ranks make different calls.
    #[error(
        "rank {rank}, phase \"{phase}\": a message from rank {peer} is damaged or out of order: its {field} \
         is {found}, expected {expected}"
    )]
    Damaged {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The sender.
        peer: usize,
        /// The field of the envelope that differs: `digest`, `sequence number`, ...
        field: &'static str,
        /// The value that is due.
        expected: String,
        /// The value that came.
        found: String,
    },
    /// The peer belongs to another job, or was started in another way.
    #[error(
        "rank {rank}, phase \"{phase}\": the {field} of rank {peer} is {found}, this rank's is {expected}: \
         start all ranks together, with one program, one statement and the same settings"
    )]
    Different {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The other rank.
        peer: usize,
        /// `version`, `job`, `number of ranks` or `piece`.
        field: &'static str,
        /// This rank's value.
        expected: String,
        /// The peer's value.
        found: String,
    },
    /// A message or a value is longer than its limit.
    #[error(
        "rank {rank}, phase \"{phase}\": rank {peer} sends {bytes} bytes, and {limit_bytes} bytes are the \
         limit here"
    )]
    TooLong {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The sender, which may be this rank.
        peer: usize,
        /// The length.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The transport failed.
    #[error("rank {rank}, phase \"{phase}\"{}: {what}", with(*peer))]
    Transport {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The other end, where the transport knows it.
        peer: Option<usize>,
        /// The transport's words.
        what: String,
    },
    /// A mistake in a call or a setting.
    #[error("rank {rank}, phase \"{phase}\": {what}")]
    Invalid {
        /// This rank.
        rank: usize,
        /// The phase of this rank.
        phase: &'static str,
        /// The mistake.
        what: String,
    },
}

fn with(peer: Option<usize>) -> String {
    peer.map_or_else(String::new, |peer| format!(", with rank {peer}"))
}

fn meanwhile(waits_for: Option<usize>, waited: Duration) -> String {
    waits_for.map_or_else(String::new, |peer| {
        format!("; this rank had waited {waited:.1?} for rank {peer}")
    })
}

impl RankError {
    /// The rank whose error it is.
    pub fn rank(&self) -> usize {
        match self {
            Self::GaveUp { rank, .. }
            | Self::Stopped { rank, .. }
            | Self::Gone { rank, .. }
            | Self::Late { rank, .. }
            | Self::Damaged { rank, .. }
            | Self::Different { rank, .. }
            | Self::TooLong { rank, .. }
            | Self::Transport { rank, .. }
            | Self::Invalid { rank, .. } => *rank,
        }
    }

    /// The phase in which that rank was.
    pub fn phase(&self) -> &'static str {
        match self {
            Self::GaveUp { phase, .. }
            | Self::Stopped { phase, .. }
            | Self::Gone { phase, .. }
            | Self::Late { phase, .. }
            | Self::Damaged { phase, .. }
            | Self::Different { phase, .. }
            | Self::TooLong { phase, .. }
            | Self::Transport { phase, .. }
            | Self::Invalid { phase, .. } => phase,
        }
    }

    /// The other rank, where there is one.
    pub fn peer(&self) -> Option<usize> {
        match self {
            Self::GaveUp { peer, .. }
            | Self::Gone { peer, .. }
            | Self::Late { peer, .. }
            | Self::Damaged { peer, .. }
            | Self::Different { peer, .. }
            | Self::TooLong { peer, .. } => Some(*peer),
            Self::Transport { peer, .. } => *peer,
            Self::Stopped { .. } | Self::Invalid { .. } => None,
        }
    }

    /// The reason that other ranks are told. What a peer gave as its reason is passed on as it is, so that
    /// every rank names the rank where the trouble began.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::GaveUp { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }
}
