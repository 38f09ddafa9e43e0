//! Messages at the pace of a link, between processes of one machine.
//!
//! In: the ranks of a job, and the link that each was started with. Out: the transport, slowed down
//! ([`Paced`]). A message carries the time at which it has left the sender's port, by the clock of the machine
//! ([`SystemClock`](spillproof_ranks::SystemClock)), which all of its processes share: so ranks of several machines are refused. It can slow messages down, not
//! speed them up: a link that is faster than the machine's own messages is not reached.
//!
//! No process sees all messages, so a switch is dealt out: each port has an equal part of it at most.

use std::fs;
use std::sync::Arc;

use spillproof_ranks::{Link, Paced, Ranks, Transport};

use crate::failure::Failure;
use crate::run::Result;

/// What all ranks have to have in common.
#[derive(Debug, PartialEq, Eq)]
struct Pacing {
    link: String,
    clock: String,
    host: String,
}

impl Pacing {
    fn of(link: Option<&Link>) -> Self {
        let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Self {
            link: link.map_or("none".into(), described),
            clock: format!("{} {}", machine(), namespace.display()),
            host: host(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        [&*self.link, &*self.clock, &*self.host].join("\n").into_bytes()
    }

    fn decode(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        Self {
            link: next(),
            clock: next(),
            host: next(),
        }
    }

    /// Why this rank and another one cannot be paced together.
    fn differs(&self, (rank, other): (usize, &Self), is_paced: bool) -> Option<String> {
        if self.link != other.link {
            return Some(format!(
                "--pace of rank 0 is a link of {}, and that of rank {rank} is {}: start all ranks with the same one",
                self.link, other.link
            ));
        }
        (is_paced && self.clock != other.clock).then(|| {
            format!(
                "--pace is for ranks of one machine, whose clock they share; rank 0 is on {}, and rank {rank} on {}, with another clock: \
                 leave it out, or start all ranks on one",
                self.host, other.host
            )
        })
    }
}

fn described(link: &Link) -> String {
    format!(
        "{} bytes a second, latency {} s, switch {:?}",
        link.port_bytes_per_second, link.latency, link.switch_bytes_per_second
    )
}

/// The name of this machine.
pub fn host() -> String {
    of_kernel("hostname")
}

/// What is this machine's alone: of its kernel since it was started.
pub fn machine() -> String {
    of_kernel("random/boot_id")
}

/// A value of the kernel; empty where it is not to be seen.
fn of_kernel(name: &str) -> String {
    let value = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    value.unwrap_or_default().trim().to_owned()
}

/// `transport` at the pace of the link, if there is one. All ranks of the job call it.
///
/// # Errors
/// [`Failure::Usage`] on rank 0 where ranks have other links, or other clocks; those of the ranks.
pub fn paced(
    ranks: &Ranks,
    transport: Arc<dyn Transport>,
    link: Option<&Link>,
) -> Result<Arc<dyn Transport>> {
    let own = Pacing::of(link);
    let all = ranks.gather(0, &own.encode());
    let all = all.map_err(|error| Failure::Engine(error.into()))?;
    let others = all
        .iter()
        .flatten()
        .map(|other| Pacing::decode(other))
        .enumerate();
    for (rank, other) in others {
        if let Some(words) = own.differs((rank, &other), link.is_some()) {
            return Err(Failure::Usage(words));
        }
    }
    let Some(link) = link else {
        return Ok(transport);
    };
    let link = dealt_out(link, transport.size());
    Ok(Arc::new(Paced::new(transport, link)))
}

/// The link of one of so many ranks, each with its part of the switch.
fn dealt_out(link: &Link, ranks: usize) -> Link {
    let part = link.switch_bytes_per_second.map(|switch| switch / ranks as f64);
    let port = link.port_bytes_per_second;
    Link {
        port_bytes_per_second: part.map_or(port, |part| part.min(port)),
        switch_bytes_per_second: None,
        ..*link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link {
        latency: 1e-3,
        port_bytes_per_second: 1e6,
        switch_bytes_per_second: Some(2e6),
    };

    #[test]
    fn ranks_are_paced_alike_and_by_one_clock() {
        let own = Pacing::of(Some(&LINK));
        let other = Pacing::decode(&own.encode());
        assert_eq!(own, other);
        assert_eq!(own.differs((1, &other), true), None);
        let without = own.differs((1, &Pacing::of(None)), true).unwrap();
        assert!(
            without.contains("rank 1") && without.contains("none"),
            "{without}"
        );
        let elsewhere = Pacing {
            clock: "another".into(),
            ..Pacing::decode(&own.encode())
        };
        let refused = own.differs((3, &elsewhere), true).unwrap();
        assert!(
            refused.contains("one machine") && refused.contains("rank 3"),
            "{refused}"
        );
        assert_eq!(own.differs((3, &elsewhere), false), None);
    }

    #[test]
    fn a_switch_is_dealt_out() {
        let port = |ranks| dealt_out(&LINK, ranks).port_bytes_per_second;
        assert_eq!([port(1), port(2), port(4)], [1e6, 1e6, 5e5]);
    }
}
