//! What was sent and received, by phase.
//!
//! In: the start and end of phases, and each exchange. Out: a list of [`PhaseTraffic`] in the order in which
//! phases began. A phase that is entered again adds to its line.

use std::time::{Duration, Instant};

use crate::envelope::ENVELOPE_BYTES;

/// The phase of calls outside of any.
pub(crate) const NO_PHASE: &str = "-";

/// One phase of one rank. Payload only: each message has an envelope of [`ENVELOPE_BYTES`] beside it.
///
/// A handshake is not in it, nor what goes from a rank to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseTraffic {
    /// The phase, or `-` outside of any.
    pub name: &'static str,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages received.
    pub received_messages: u64,
    /// How long the transport was waited for, in all.
    pub waited: Duration,
    /// How long the phase took, in all; that of phases inside of it included.
    pub elapsed: Duration,
}

impl PhaseTraffic {
    /// Bytes of [`Self::encode`].
    pub(crate) const BYTES: usize = 48;

    fn new(name: &'static str) -> Self {
        Self {
            name,
            sent_bytes: 0,
            received_bytes: 0,
            messages: 0,
            received_messages: 0,
            waited: Duration::ZERO,
            elapsed: Duration::ZERO,
        }
    }

    /// Bytes of envelopes sent.
    pub fn envelope_bytes(&self) -> u64 {
        self.messages * ENVELOPE_BYTES as u64
    }

    /// The numbers, for another rank that has the same phases.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let numbers = [
            self.sent_bytes,
            self.received_bytes,
            self.messages,
            self.received_messages,
            nanoseconds(self.waited),
            nanoseconds(self.elapsed),
        ];
        let mut bytes = [0; Self::BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The numbers of another rank's phase of this name.
    pub(crate) fn decode(name: &'static str, bytes: &[u8; Self::BYTES]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            u64::from_le_bytes(number)
        };
        Self {
            name,
            sent_bytes: number(0),
            received_bytes: number(1),
            messages: number(2),
            received_messages: number(3),
            waited: Duration::from_nanos(number(4)),
            elapsed: Duration::from_nanos(number(5)),
        }
    }

    /// The same without times, which no two runs share.
    #[must_use]
    pub fn counts(&self) -> Self {
        Self {
            waited: Duration::ZERO,
            elapsed: Duration::ZERO,
            ..self.clone()
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The lines, and the phase that is on.
#[derive(Debug)]
pub(crate) struct Traffic {
    phases: Vec<PhaseTraffic>,
    current: &'static str,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self {
            phases: Vec::new(),
            current: NO_PHASE,
        }
    }

    pub(crate) fn phases(&self) -> &[PhaseTraffic] {
        &self.phases
    }

    pub(crate) fn current(&self) -> &'static str {
        self.current
    }

    /// Begins a phase; the one that was on before.
    pub(crate) fn begin(&mut self, name: &'static str) -> &'static str {
        self.line(name);
        std::mem::replace(&mut self.current, name)
    }

    pub(crate) fn end(&mut self, name: &'static str, before: &'static str, begun: Instant) {
        self.line(name).elapsed += begun.elapsed();
        self.current = before;
    }

    /// One exchange in a phase: the payloads of the messages that it had.
    pub(crate) fn exchange(
        &mut self,
        phase: &'static str,
        sent: Option<usize>,
        received: Option<usize>,
        waited: Duration,
    ) {
        let line = self.line(phase);
        if let Some(bytes) = sent {
            line.sent_bytes += bytes as u64;
            line.messages += 1;
        }
        if let Some(bytes) = received {
            line.received_bytes += bytes as u64;
            line.received_messages += 1;
        }
        line.waited += waited;
    }

    fn line(&mut self, name: &'static str) -> &mut PhaseTraffic {
        // A run has some ten phases.
        let at = self.phases.iter().position(|phase| phase.name == name);
        let at = at.unwrap_or_else(|| {
            self.phases.push(PhaseTraffic::new(name));
            self.phases.len() - 1
        });
        &mut self.phases[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let line = PhaseTraffic {
            name: "a",
            sent_bytes: 1,
            received_bytes: 2,
            messages: 3,
            received_messages: 4,
            waited: Duration::from_nanos(5),
            elapsed: Duration::from_secs(6),
        };
        assert_eq!(PhaseTraffic::decode("a", &line.encode()), line);
    }

    #[test]
    fn phases_are_lines_in_order() {
        let mut traffic = Traffic::new();
        traffic.exchange(NO_PHASE, Some(1), None, Duration::ZERO);
        let outer = traffic.begin("b");
        traffic.exchange("b", Some(2), Some(3), Duration::from_secs(1));
        let inner = traffic.begin("a");
        traffic.exchange("a", None, Some(4), Duration::ZERO);
        traffic.end("a", inner, Instant::now());
        traffic.exchange("b", Some(0), None, Duration::from_secs(1));
        traffic.end("b", outer, Instant::now());
        assert_eq!(traffic.current(), NO_PHASE);
        let lines: Vec<_> = traffic.phases().iter().map(PhaseTraffic::counts).collect();
        let names: Vec<_> = lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["-", "b", "a"]);
        assert_eq!((lines[1].sent_bytes, lines[1].received_bytes), (2, 3));
        assert_eq!((lines[1].messages, lines[1].received_messages), (2, 1));
        assert_eq!(lines[1].envelope_bytes(), 256);
        assert_eq!(traffic.phases()[1].waited, Duration::from_secs(2));
    }
}
