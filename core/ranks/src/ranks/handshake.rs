//! The handshake: every rank greets every other one, and compares what all must have alike. Version and job
//! are in the envelope.

use super::Ranks;
use super::call::{Incoming, Outgoing};
use crate::envelope::{ENVELOPE_BYTES, Kind, VERSION};
use crate::error::RankError;

impl Ranks {
    /// Every rank greets every other one, and compares what both must have alike. Version and job are in the
    /// envelope.
    pub(super) fn handshake(&self) -> Result<(), RankError> {
        let (rank, size) = (self.rank(), self.size());
        let greeting = Greeting {
            version: u64::from(VERSION),
            size: size as u64,
            piece_bytes: self.piece_bytes() as u64,
        };
        let mut call = self.call()?;
        let [mut out, mut into] = [[0; ENVELOPE_BYTES + Greeting::BYTES]; 2];
        for step in 1..size {
            let (to, from) = ((rank + step) % size, (rank + size - step) % size);
            out[ENVELOPE_BYTES..].copy_from_slice(&greeting.encode());
            let sent = Outgoing {
                peer: to,
                message: &mut out,
                remaining_bytes: 0,
            };
            let received = Incoming {
                peer: from,
                buffer: &mut into,
            };
            let opened = call.exchange(Kind::Handshake, Some(sent), Some(received))?;
            let payload_bytes = opened.map_or(0, |opened| opened.payload_bytes);
            let theirs = &into[ENVELOPE_BYTES..ENVELOPE_BYTES + payload_bytes];
            greeting.compare(theirs).map_err(|different| {
                let GreetingDifference {
                    field,
                    expected,
                    found,
                } = different;
                self.fail(RankError::Different {
                    rank,
                    phase: "handshake",
                    peer: from,
                    field,
                    expected: expected.to_string(),
                    found: found.to_string(),
                })
            })?;
        }
        Ok(())
    }
}

/// What a handshake says.
struct Greeting {
    version: u64,
    size: u64,
    piece_bytes: u64,
}

struct GreetingDifference {
    field: &'static str,
    expected: u64,
    found: u64,
}

impl Greeting {
    const BYTES: usize = 24;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (bytes, value) in bytes.chunks_exact_mut(8).zip(self.fields()) {
            bytes.copy_from_slice(&value.1.to_le_bytes());
        }
        bytes
    }

    fn fields(&self) -> [(&'static str, u64); 3] {
        [
            ("version", self.version),
            ("number of ranks", self.size),
            ("piece", self.piece_bytes),
        ]
    }

    fn compare(&self, theirs: &[u8]) -> Result<(), GreetingDifference> {
        let mut values = theirs.chunks(8).map(|bytes| {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        });
        for (field, expected) in self.fields() {
            let found = values.next().unwrap_or_default();
            if found != expected {
                return Err(GreetingDifference {
                    field,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }
}
