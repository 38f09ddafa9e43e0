//! Sums over several devices: each idle device takes the next share of the points and sums it, and the host
//! adds the results.
//!
//! A device that fails (for a reason of its own, [`Error::leaves_the_processor`]) gets no more shares, and
//! its share goes to another device. Shares that no device takes are left to the processor. Sums are exact,
//! so the result does not depend on the distribution; [`Shared`] reports it. Memory: the plan of each device,
//! on that device.

use std::ops::AddAssign;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ark_bn254::G1Projective;

use super::Msm;
use crate::error::{Error, Result, Values};
use crate::lock::locked;
use crate::ring::{Source, Upload};

/// A range of the points of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its first point.
    pub first: u64,
    /// Its number of points.
    pub points: u64,
}

/// Sums shares on one device, on a thread of its own. The result is one sum, or another type that adds up
/// from its default.
pub type ShareWorker<'a, T = G1Projective, D = Error> = Box<dyn FnMut(Share) -> Result<T, D> + Send + 'a>;

/// An error of a [`ShareWorker`].
pub trait DeviceError: Send {
    /// The reason why this device stops, if another device or the processor can go on; `None` if the job
    /// itself has failed.
    fn stops_the_device(&self) -> Option<String>;
}

impl DeviceError for Error {
    fn stops_the_device(&self) -> Option<String> {
        self.leaves_the_processor().then(|| self.to_string())
    }
}

/// The part of a device in a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worked {
    /// Points that it summed.
    pub points: u64,
    /// The reason why it got no more shares, if it failed.
    pub stopped: Option<String>,
}

/// A sum, and the parts of the devices in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared<T = G1Projective> {
    /// The sum.
    pub sum: T,
    /// The parts of the devices, in the caller's order.
    pub devices: Vec<Worked>,
    /// Points that were left to the processor.
    pub by_processor: u64,
}

/// A worker over `msm`: shares no longer than its plan, each from its own source.
pub fn share_worker<'a, S: Source>(
    mut msm: Msm,
    mut upload: Upload,
    mut source: impl FnMut(Share) -> S + Send + 'a,
) -> ShareWorker<'a> {
    Box::new(move |share| msm.run_points(share.points, &mut upload, &mut source(share)))
}

/// Sums `points` points in shares of `share_points`.
///
/// # Errors
/// [`Error::Invalid`] for empty shares; errors of a device that concern the job, such as [`Error::Source`];
/// errors of `processor`.
pub fn over_devices<T, D, E>(
    points: u64,
    share_points: u64,
    devices: Vec<ShareWorker<'_, T, D>>,
    mut processor: impl FnMut(Share) -> Result<T, E>,
) -> Result<Shared<T>, E>
where
    T: AddAssign + Default + Send,
    D: DeviceError,
    E: From<Error> + From<D>,
{
    if share_points == 0 {
        let what = "points of a share of an MSM";
        return Err(Error::from(Values::Empty { what }).into());
    }
    let deck = Deck {
        share_points,
        points,
        state: Mutex::new(State {
            next: 0,
            returned: Vec::new(),
            out: 0,
            failed: None,
        }),
        changed: Condvar::new(),
    };
    let parts: Vec<(T, Worked)> = std::thread::scope(|scope| {
        let work = |device| std::thread::Builder::new().spawn_scoped(scope, || deck.worked(device));
        let threads: Vec<_> = devices.into_iter().map(work).collect();
        let joined = threads.into_iter().map(|thread| match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Its shares are the other devices', or the processor's.
            Err(source) => {
                let stopped = Some(Error::NoThread { source }.to_string());
                (T::default(), Worked { points: 0, stopped })
            }
        });
        joined.collect()
    });
    if let Some(error) = deck.state().failed.take() {
        return Err(E::from(error));
    }
    let mut sum = T::default();
    let mut worked = Vec::new();
    for (part, of_device) in parts {
        sum += part;
        worked.push(of_device);
    }
    let mut by_processor = 0;
    while let Some(share) = deck.left() {
        sum += processor(share)?;
        by_processor += share.points;
    }
    if by_processor > 0 {
        tracing::warn!(
            points = by_processor,
            "the processor summed points that no device could"
        );
    }
    Ok(Shared {
        sum,
        devices: worked,
        by_processor,
    })
}

/// The shares, as they are handed out.
struct Deck<D> {
    points: u64,
    share_points: u64,
    state: Mutex<State<D>>,
    changed: Condvar,
}

struct State<D> {
    /// The first point that no device has had.
    next: u64,
    /// Shares of failed devices.
    returned: Vec<Share>,
    /// Shares in work, which may be returned.
    out: usize,
    /// The error of the job itself.
    failed: Option<D>,
}

/// A share in work. Its drop counts it as done, so a thread that panics does not leave the others waiting.
struct Dealt<'a, D> {
    deck: &'a Deck<D>,
    share: Share,
}

impl<D> Drop for Dealt<'_, D> {
    fn drop(&mut self) {
        self.deck.state().out -= 1;
        self.deck.changed.notify_all();
    }
}

impl<D> Deck<D> {
    fn state(&self) -> MutexGuard<'_, State<D>> {
        locked(&self.state)
    }

    /// The next share, if there is one now.
    fn take(&self, state: &mut State<D>) -> Option<Share> {
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
    fn deal(&self) -> Option<Dealt<'_, D>> {
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

    /// The next share that the devices have left.
    fn left(&self) -> Option<Share> {
        self.take(&mut self.state())
    }

    /// The work of the thread of a device.
    fn worked<T>(&self, mut device: ShareWorker<'_, T, D>) -> (T, Worked)
    where
        T: AddAssign + Default,
        D: DeviceError,
    {
        let mut sum = T::default();
        let mut worked = Worked {
            points: 0,
            stopped: None,
        };
        while let Some(dealt) = self.deal() {
            let error = match device(dealt.share) {
                Ok(part) => {
                    sum += part;
                    worked.points += dealt.share.points;
                    continue;
                }
                Err(error) => error,
            };
            if let Some(why) = error.stops_the_device() {
                tracing::warn!(why, "a device stops and returns its share of a sum");
                worked.stopped = Some(why);
                self.state().returned.push(dealt.share);
            } else {
                self.state().failed.get_or_insert(error);
            }
            break;
        }
        (sum, worked)
    }
}
