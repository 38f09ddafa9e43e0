//! Shares of the points of a sum, dealt to devices: each idle device takes the next share and sums it, for
//! all vectors, and the host adds the results.
//!
//! A device that stops gets no more shares, and its share goes to another device. Sums are exact, so the
//! result does not depend on the distribution.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use spillproof_engine::accelerator::Totals;
use spillproof_engine::control::Control;

use super::stop::Stop;
use crate::lock::locked;

/// The reason to decline if all devices stop.
pub(super) const ALL_FAILED: &str = "all devices failed at the sum";

/// A range of the points of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Its first point.
    pub first: u64,
    /// Its number of points.
    pub points: u64,
}

/// Makes the sums of shares on one device, on a thread of its own. Any [`Stop`] but that of the host ends the
/// work of this device only.
pub(super) type ShareWorker<'a> = Box<dyn FnMut(Share) -> Result<Totals, Stop> + Send + 'a>;

/// Sums, and the points of each worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DealtSums {
    pub sums: Totals,
    /// In the order of the workers.
    pub points: Vec<u64>,
}

/// Sums `points` points in shares of `share_points`. A stop of the caller's work stops the workers.
///
/// # Errors
/// An error of the host; a reason to decline if no device is left for some share.
pub(super) fn deal(points: u64, share_points: u64, workers: Vec<ShareWorker<'_>>) -> Result<DealtSums, Stop> {
    let deck = Deck {
        points,
        share_points,
        state: Mutex::default(),
        changed: Condvar::new(),
    };
    let control = Control::of_this_thread();
    let work = |mut worker: ShareWorker<'_>| {
        let _entered = control.as_ref().map(Control::enter);
        // A share may take no memory and read no column, which would refuse it.
        let next = |share| match control.as_ref().is_some_and(Control::is_stopped) {
            true => Err(spillproof_engine::Error::Stopped.into()),
            false => worker(share),
        };
        deck.work(next)
    };
    let parts: Vec<(Option<Totals>, u64)> = std::thread::scope(|scope| {
        let start = |worker| std::thread::Builder::new().spawn_scoped(scope, || work(worker));
        let threads: Vec<_> = workers.into_iter().map(start).collect();
        let joined = threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Its shares are the other devices', or the processor's.
            Err(error) => {
                tracing::warn!(%error, "no thread can be started for a device");
                (None, 0)
            }
        });
        joined.collect()
    });
    let mut state = deck.state();
    if let Some(error) = state.failed.take() {
        return Err(Stop::Host(error));
    }
    if deck.take(&mut state).is_some() {
        return Err(Stop::Declined(ALL_FAILED.to_owned()));
    }
    let (mut total, mut of_workers) = (None, Vec::new());
    for (sums, points) in parts {
        if let Some(sums) = sums {
            add(&mut total, sums);
        }
        of_workers.push(points);
    }
    Ok(DealtSums {
        sums: total.unwrap_or_default(),
        points: of_workers,
    })
}

/// Adds sums; there is no total before the first share.
fn add(total: &mut Option<Totals>, sums: Totals) {
    match total {
        Some(total) => total.add(&sums),
        None => *total = Some(sums),
    }
}

/// The shares, as they are handed out.
struct Deck {
    points: u64,
    share_points: u64,
    state: Mutex<DeckState>,
    changed: Condvar,
}

#[derive(Default)]
struct DeckState {
    /// The first point that no device has had.
    next: u64,
    /// Shares of devices that stopped.
    returned: Vec<Share>,
    /// Shares in work, which may be returned.
    out: usize,
    /// The error of the host.
    failed: Option<spillproof_engine::Error>,
}

/// A share in work. Its drop counts it as done, so a thread that panics does not leave the others waiting.
struct ShareInWork<'a> {
    deck: &'a Deck,
    share: Share,
}

impl Drop for ShareInWork<'_> {
    fn drop(&mut self) {
        self.deck.state().out -= 1;
        self.deck.changed.notify_all();
    }
}

impl Deck {
    fn state(&self) -> MutexGuard<'_, DeckState> {
        locked(&self.state)
    }

    /// The next share, if there is one now.
    fn take(&self, state: &mut DeckState) -> Option<Share> {
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

    /// The next share. Waits while none is left and one in work may be returned.
    fn next(&self) -> Option<ShareInWork<'_>> {
        let mut state = self.state();
        loop {
            if state.failed.is_some() {
                return None;
            }
            if let Some(share) = self.take(&mut state) {
                state.out += 1;
                return Some(ShareInWork { deck: self, share });
            }
            if state.out == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The work of the thread of a device: its sums, and their points.
    fn work(&self, mut worker: impl FnMut(Share) -> Result<Totals, Stop>) -> (Option<Totals>, u64) {
        let (mut total, mut points) = (None, 0);
        while let Some(in_work) = self.next() {
            match worker(in_work.share) {
                Ok(sums) => {
                    add(&mut total, sums);
                    points += in_work.share.points;
                }
                Err(Stop::Host(error)) => {
                    self.state().failed.get_or_insert(error);
                    break;
                }
                Err(stop) => {
                    tracing::warn!(?stop, "a device stops and returns its share of a sum");
                    self.state().returned.push(in_work.share);
                    break;
                }
            }
        }
        (total, points)
    }
}

#[cfg(test)]
mod tests {
    use ark_bn254::{Fr, G1Projective, G2Projective};
    use ark_ec::PrimeGroup;
    use spillproof_engine::budget::Budget;

    use super::*;

    /// Sums over a range: of the numbers of its points, and of their squares, times the generators.
    fn sums(share: Share) -> Totals {
        let numbers = || (share.first..share.first + share.points).map(Fr::from);
        let [sum, squares]: [Fr; 2] = [numbers().sum(), numbers().map(|x| x * x).sum()];
        let (g1, g2) = (G1Projective::generator(), G2Projective::generator());
        Totals {
            g1: vec![g1 * sum, g1 * squares],
            g2: vec![g2 * sum],
        }
    }

    fn all(points: u64) -> Totals {
        sums(Share { first: 0, points })
    }

    fn good<'a>() -> ShareWorker<'a> {
        Box::new(|share| Ok(sums(share)))
    }

    /// A device that makes `good` shares, then stops.
    fn failing<'a>(mut good: u32) -> ShareWorker<'a> {
        Box::new(move |share| match good.checked_sub(1) {
            Some(left) => {
                good = left;
                Ok(sums(share))
            }
            None => Err(Stop::Declined("this one is lost".into())),
        })
    }

    #[test]
    fn devices_take_shares_until_none_is_left() {
        for count in [1, 2, 4] {
            for share_points in [7, 50, 203, 500] {
                let workers = (0..count).map(|_| good()).collect();
                let dealt = deal(203, share_points, workers).unwrap();
                assert_eq!(dealt.sums, all(203));
                assert_eq!((dealt.points.len(), dealt.points.iter().sum()), (count, 203));
            }
        }
    }

    #[test]
    fn a_device_that_stops_leaves_its_share_to_the_others() {
        for good_shares in [0, 1, 3] {
            let dealt = deal(120, 15, vec![good(), failing(good_shares)]).unwrap();
            assert_eq!(dealt.sums, all(120));
            assert_eq!(dealt.points.iter().sum::<u64>(), 120);
            assert!(dealt.points[1] <= u64::from(good_shares) * 15);
        }
        for workers in [Vec::new(), vec![failing(3)], vec![failing(0), failing(7)]] {
            let stop = deal(120, 15, workers).unwrap_err();
            assert!(matches!(stop, Stop::Declined(why) if why == ALL_FAILED));
        }
    }

    #[test]
    fn an_error_of_the_host_ends_the_sum() {
        let reader = || -> ShareWorker<'_> {
            Box::new(|share| match share.first {
                ..30 => Ok(sums(share)),
                first => Err(Stop::Host(
                    spillproof_engine::error::Invalid::Index {
                        what: "point",
                        index: first,
                        count: 30,
                    }
                    .into(),
                )),
            })
        };
        let stop = deal(100, 10, vec![reader(), reader()]).unwrap_err();
        assert!(matches!(stop, Stop::Host(_)), "{stop:?}");
    }

    #[test]
    fn a_stop_of_the_caller_ends_the_sum() {
        let budget = Budget::new(1 << 20);
        // A worker that needs memory, and the next shares of one that does not.
        for (share_points, lease_bytes) in [(100, 4096), (10, 0)] {
            let control = Control::new();
            let _entered = control.enter();
            let stopping = || -> ShareWorker<'_> {
                Box::new(|share| {
                    control.stop();
                    if lease_bytes > 0 {
                        budget.lease(lease_bytes, "slots")?;
                    }
                    Ok(sums(share))
                })
            };
            let stop = deal(100, share_points, vec![stopping(), stopping()]).unwrap_err();
            assert!(
                matches!(stop, Stop::Host(spillproof_engine::Error::Stopped)),
                "{share_points}: {stop:?}"
            );
        }
    }
}
