//! Callers that wait for their turn, first come, first served.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Result;
use crate::control::{Control, LOOK_AGAIN};

/// A line of callers, one of whom has the turn.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    is_taken: bool,
    tickets: VecDeque<u64>,
    next_ticket: u64,
}

/// The turn, until it is dropped.
#[must_use = "the next caller's turn comes when this is dropped"]
pub(super) struct TurnOf<'l> {
    line: &'l Line,
}

impl Line {
    /// Waits for the turn; not any longer once the caller is stopped.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`].
    pub fn turn(&self, of: Option<&Control>) -> Result<TurnOf<'_>> {
        let mut waiting = self.waiting();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        waiting.tickets.push_back(ticket);
        let stopped = loop {
            if !waiting.is_taken && waiting.tickets.front() == Some(&ticket) {
                break Ok(());
            }
            let Some(control) = of else {
                waiting = self.moved.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if let Err(stopped) = control.check() {
                break Err(stopped);
            }
            let woken = self.moved.wait_timeout(waiting, LOOK_AGAIN);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        waiting.tickets.retain(|waiting| *waiting != ticket);
        if let Err(stopped) = stopped {
            drop(waiting);
            self.moved.notify_all();
            return Err(stopped);
        }
        waiting.is_taken = true;
        Ok(TurnOf { line: self })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnOf<'_> {
    fn drop(&mut self) {
        self.line.waiting().is_taken = false;
        self.line.moved.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::Error;

    #[test]
    fn turns_come_in_the_order_of_the_callers_and_who_is_stopped_leaves_the_line() {
        let line = Line::default();
        let stopped = Control::new();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let first = line.turn(None).unwrap();
            for caller in 0..8 {
                let (line, tell, stopped) = (&line, tell.clone(), &stopped);
                scope.spawn(move || {
                    // Every third is stopped while it waits.
                    let turn = line.turn((caller % 3 == 1).then_some(stopped));
                    let has_turn = match &turn {
                        Ok(_) => true,
                        Err(Error::Stopped) => false,
                        Err(other) => panic!("{other}"),
                    };
                    tell.send((caller, has_turn)).unwrap();
                });
                while line.waiting().tickets.len() <= caller {
                    thread::yield_now();
                }
            }
            stopped.stop();
            let mut left: Vec<_> = (0..3).map(|_| told.recv().unwrap()).collect();
            left.sort_unstable();
            assert_eq!(left, [(1, false), (4, false), (7, false)]);
            drop(first);
            let served: Vec<_> = (0..5).map(|_| told.recv().unwrap()).collect();
            assert_eq!(served, [0, 2, 3, 5, 6].map(|caller| (caller, true)));
        });
        assert!(line.turn(Some(&Control::new())).is_ok());
    }
}
