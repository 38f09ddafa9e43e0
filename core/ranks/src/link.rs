//! A link between ranks, and when a message over it leaves and arrives: the arithmetic that the model and
//! the paced transport share.
//!
//! A rank has a port that sends and one that receives; each is busy for `bytes / port` seconds a message. A
//! message that is ready at t leaves at `L = max(t, port free) + bytes / port`, and arrives at `max(L +
//! latency, receiving port free + bytes / port)`. Through a shared switch it also leaves no earlier than
//! `max(start, switch free) + bytes / switch`. Seconds are f64, bytes those of whole messages, envelope
//! included.

use std::sync::{Mutex, PoisonError};

/// What a link does. Bytes a second of infinity are a port without limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds from the end of sending to the end of receiving.
    pub latency: f64,
    /// Bytes a second through each port of a rank, in each direction.
    pub port_bytes_per_second: f64,
    /// Bytes a second of all messages together, where they go through one switch, bus or memory.
    pub switch_bytes_per_second: Option<f64>,
}

/// When the ports of one rank are free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ports {
    sends_from: f64,
    receives_from: f64,
}

impl Ports {
    /// A message that is ready at `now`: when it has left.
    pub(crate) fn send(&mut self, link: &Link, switch: Option<&Switch>, now: f64, bytes: usize) -> f64 {
        let start = now.max(self.sends_from);
        let mut left = start + bytes as f64 / link.port_bytes_per_second;
        if let (Some(switch), Some(rate)) = (switch, link.switch_bytes_per_second) {
            left = left.max(switch.pass(rate, start, bytes));
        }
        self.sends_from = left;
        left
    }

    /// A message that left at `left`: when it has arrived.
    pub(crate) fn receive(&mut self, link: &Link, left: f64, bytes: usize) -> f64 {
        let taken = self.receives_from + bytes as f64 / link.port_bytes_per_second;
        let arrived = taken.max(left + link.latency);
        self.receives_from = arrived;
        arrived
    }
}

/// What all messages pass through.
#[derive(Debug, Default)]
pub struct Switch {
    free_from: Mutex<f64>,
}

impl Switch {
    /// A switch that is free.
    pub fn new() -> Self {
        Self::default()
    }

    fn pass(&self, bytes_per_second: f64, start: f64, bytes: usize) -> f64 {
        let mut free_from = self.free_from.lock().unwrap_or_else(PoisonError::into_inner);
        *free_from = free_from.max(start) + bytes as f64 / bytes_per_second;
        *free_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link {
        latency: 1.0,
        port_bytes_per_second: 10.0,
        switch_bytes_per_second: Some(20.0),
    };

    #[test]
    fn a_port_sends_one_message_after_the_other() {
        let mut ports = Ports::default();
        assert_eq!(ports.send(&LINK, None, 0.0, 20), 2.0);
        assert_eq!(ports.send(&LINK, None, 0.5, 20), 4.0);
        assert_eq!(ports.send(&LINK, None, 7.0, 20), 9.0);
    }

    #[test]
    fn messages_of_two_senders_share_the_receiving_port() {
        let mut ports = Ports::default();
        assert_eq!(ports.receive(&LINK, 2.0, 20), 3.0);
        assert_eq!(ports.receive(&LINK, 2.0, 20), 5.0);
        assert_eq!(ports.receive(&LINK, 9.0, 20), 10.0);
    }

    #[test]
    fn all_ports_share_the_switch() {
        let switch = Switch::new();
        let mut ports = [Ports::default(); 4];
        let left: Vec<f64> = ports
            .iter_mut()
            .map(|ports| ports.send(&LINK, Some(&switch), 0.0, 20))
            .collect();
        assert_eq!(left, [2.0, 2.0, 3.0, 4.0]);
    }
}
