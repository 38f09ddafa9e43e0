//! One sum over several devices: shares of points are dealt out as devices come for them, each device adds up its own, and the host adds
//! one point from each.
//!
//! A device that fails (for a reason of its own, [`Error::leaves_the_processor`]) is dealt nothing more, and the share that it had goes to
//! another one; what no device takes is left to the processor. Sums are exact, so who did which share does not show in the result;
//! [`Shared`] tells. Memory: what each device's plan leases, on that device.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ark_bn254::G1Projective;
use ark_ec::AdditiveGroup;

use super::Msm;
use crate::error::{Error, Result};
use crate::ring::{Source, Upload};

/// Some of a sum's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The first one.
    pub first: u64,
    /// How many.
    pub points: u64,
}

/// What sums shares on one device, on a thread of its own.
pub type OnDevice<'a> = Box<dyn FnMut(Share) -> Result<G1Projective> + Send + 'a>;

/// What a device did of a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worked {
    /// Points.
    pub points: u64,
    /// Why it was dealt nothing more, if it failed.
    pub stopped: Option<String>,
}

/// A sum, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The sum.
    pub sum: G1Projective,
    /// By device, in the caller's order.
    pub devices: Vec<Worked>,
    /// Points that were left to the processor.
    pub by_processor: u64,
}

/// A device's part of [`over_devices`]: shares no longer than its plan, from a source of each.
pub fn on_device<'a, S: Source>(
    mut msm: Msm,
    mut upload: Upload,
    mut source: impl FnMut(Share) -> S + Send + 'a,
) -> OnDevice<'a> {
    Box::new(move |share| msm.run_points(share.points, &mut upload, &mut source(share)))
}

/// Sums `points` points in shares of `share_points`.
///
/// # Errors
/// [`Error::Invalid`] for shares of none; those of a device that are the job's own, such as [`Error::Source`]; those of `processor`.
pub fn over_devices<E: From<Error>>(
    points: u64,
    share_points: u64,
    devices: Vec<OnDevice<'_>>,
    mut processor: impl FnMut(Share) -> Result<G1Projective, E>,
) -> Result<Shared, E> {
    if share_points == 0 {
        let details = format!("{points} points in shares of none");
        return Err(E::from(Error::Invalid { what: "MSM", details }));
    }
    let deck = Deck {
        share_points,
        points,
        state: Mutex::default(),
        changed: Condvar::new(),
    };
    let parts: Vec<(G1Projective, Worked)> = std::thread::scope(|scope| {
        let work = |device| scope.spawn(|| deck.worked(device));
        let threads: Vec<_> = devices.into_iter().map(work).collect();
        let joined = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    if let Some(error) = deck.state().failed.take() {
        return Err(E::from(error));
    }
    let mut sum: G1Projective = parts.iter().map(|part| part.0).sum();
    let mut by_processor = 0;
    while let Some(share) = deck.left() {
        sum += processor(share)?;
        by_processor += share.points;
    }
    if by_processor > 0 {
        tracing::warn!(points = by_processor, "no device summed these, the processor did");
    }
    Ok(Shared {
        sum,
        devices: parts.into_iter().map(|part| part.1).collect(),
        by_processor,
    })
}

/// Shares that are left.
struct Deck {
    points: u64,
    share_points: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The first point that was never dealt.
    next: u64,
    /// What failed devices had.
    returned: Vec<Share>,
    /// Shares that somebody works on, and may return.
    out: usize,
    /// The job's own failure.
    failed: Option<Error>,
}

/// A share that is worked on: a thread that panics with it must not leave the others waiting.
struct Dealt<'a> {
    deck: &'a Deck,
    share: Share,
}

impl Drop for Dealt<'_> {
    fn drop(&mut self) {
        self.deck.state().out -= 1;
        self.deck.changed.notify_all();
    }
}

impl Deck {
    /// Nothing is half done when a thread panics, so poison is no matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next share, if there is one now.
    fn take(&self, state: &mut State) -> Option<Share> {
        state.returned.pop().or_else(|| {
            let points = self.share_points.min(self.points - state.next);
            let share = Share {
                first: state.next,
                points,
            };
            state.next += points;
            (points > 0).then_some(share)
        })
    }

    /// The next share; waits while there is none and one may still come back.
    fn deal(&self) -> Option<Dealt<'_>> {
        let mut state = self.state();
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(share) = self.take(&mut state) {
                state.out += 1;
                return Some(Dealt { deck: self, share });
            }
            if state.out == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What the devices have left.
    fn left(&self) -> Option<Share> {
        self.take(&mut self.state())
    }

    /// A device's thread.
    fn worked(&self, mut device: OnDevice<'_>) -> (G1Projective, Worked) {
        let mut sum = G1Projective::ZERO;
        let mut worked = Worked {
            points: 0,
            stopped: None,
        };
        while let Some(dealt) = self.deal() {
            match device(dealt.share) {
                Ok(part) => {
                    sum += part;
                    worked.points += dealt.share.points;
                }
                Err(error) if error.leaves_the_processor() => {
                    tracing::warn!(%error, "a device gives its share of a sum back");
                    worked.stopped = Some(error.to_string());
                    self.state().returned.push(dealt.share);
                    break;
                }
                Err(error) => {
                    self.state().failed.get_or_insert(error);
                    break;
                }
            }
        }
        (sum, worked)
    }
}
