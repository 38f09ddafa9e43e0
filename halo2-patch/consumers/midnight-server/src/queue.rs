//! The queue of jobs, and the threads that work on them.
//!
//! A request takes a [`Slot`] before its body is read, so a full queue says so at once; a job has the slot
//! until a worker begins it. A [`Ticket`] waits for the job's answer. Dropped, as when the client has gone,
//! it takes a job that waits out of the queue, with all that the job holds; a job that has begun comes to its
//! end, and its answer goes nowhere.

use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::failure::{Failure, Result};

/// What a worker does for a request.
type Work = Box<dyn FnOnce() -> Result<Vec<u8>> + Send>;

/// Jobs that wait, and how many are worked on. Clones share one queue.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    capacity: usize,
    time_limit: Duration,
    state: Mutex<State>,
    /// Tells workers of a job, and of the end.
    change: Condvar,
}

#[derive(Default)]
struct State {
    /// Slots that are taken: requests whose bodies are read, and jobs that wait.
    pending: usize,
    processing: usize,
    waiting: VecDeque<Job>,
    last_id: u64,
    is_closed: bool,
}

struct Job {
    id: u64,
    work: Work,
    deadline: Instant,
    answer: oneshot::Sender<Result<Vec<u8>>>,
    slot: Slot,
}

/// How full the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    pub processing: usize,
    pub pending: usize,
    pub capacity: usize,
}

impl Filling {
    /// Whether another request would be refused.
    pub fn is_full(self) -> bool {
        self.pending >= self.capacity
    }
}

impl Queue {
    /// A queue for `capacity` jobs, each of which has `time_limit` from when it is queued.
    pub fn new(capacity: usize, time_limit: Duration) -> Self {
        let shared = Shared {
            capacity,
            time_limit,
            state: Mutex::default(),
            change: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Starts threads that work on jobs until the queue is closed and empty.
    ///
    /// # Errors
    /// The system's.
    pub fn start(&self, workers: usize) -> std::io::Result<Vec<JoinHandle<()>>> {
        let start = |index| {
            let queue = self.clone();
            let thread = std::thread::Builder::new().name(format!("worker {index}"));
            // Synthesis of a circuit is not recursive; formats may be, up to 250 levels.
            thread.stack_size(8 << 20).spawn(move || queue.work())
        };
        (0..workers).map(start).collect()
    }

    /// A place in the queue.
    ///
    /// # Errors
    /// [`Failure::QueueFull`], [`Failure::Ending`].
    pub fn slot(&self) -> Result<Slot> {
        let capacity = self.shared.capacity;
        let mut state = self.shared.state();
        if state.is_closed {
            return Err(Failure::Ending);
        }
        if state.pending >= capacity {
            return Err(Failure::QueueFull { capacity });
        }
        state.pending += 1;
        Ok(Slot {
            shared: Arc::clone(&self.shared),
        })
    }

    /// How full it is.
    pub fn filling(&self) -> Filling {
        let state = self.shared.state();
        Filling {
            processing: state.processing,
            pending: state.pending,
            capacity: self.shared.capacity,
        }
    }

    /// No slots from now on; workers end when the last job is done.
    pub fn close(&self) {
        self.shared.state().is_closed = true;
        self.shared.change.notify_all();
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            let Job {
                work, answer, slot, ..
            } = job;
            drop(slot);
            let done = catch_unwind(AssertUnwindSafe(work));
            let done = done.unwrap_or_else(|payload| Err(Failure::of_panic(&*payload)));
            self.shared.state().processing -= 1;
            // The client may have gone.
            let _ = answer.send(done);
        }
    }

    /// The next job whose client is there and whose time is not over; its slot is free then.
    fn next(&self) -> Option<Job> {
        loop {
            let mut state = self.shared.state();
            let job = loop {
                match state.waiting.pop_front() {
                    Some(job) => break job,
                    None if state.is_closed && state.pending == 0 => return None,
                    None => {
                        state = self
                            .shared
                            .change
                            .wait(state)
                            .unwrap_or_else(PoisonError::into_inner)
                    }
                }
            };
            let is_awaited = !job.answer.is_closed() && Instant::now() < job.deadline;
            state.processing += usize::from(is_awaited);
            drop(state);
            if is_awaited {
                return Some(job);
            }
        }
    }
}

impl Shared {
    /// A panic of another thread cannot leave it half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, until it is dropped.
pub struct Slot {
    shared: Arc<Shared>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.state().pending -= 1;
        self.shared.change.notify_all();
    }
}

impl Slot {
    /// Queues the work.
    pub fn queue(self, work: impl FnOnce() -> Result<Vec<u8>> + Send + 'static) -> Ticket {
        let shared = Arc::clone(&self.shared);
        let deadline = Instant::now() + shared.time_limit;
        let (sender, receiver) = oneshot::channel();
        let mut state = shared.state();
        state.last_id += 1;
        let id = state.last_id;
        state.waiting.push_back(Job {
            id,
            work: Box::new(work),
            deadline,
            answer: sender,
            slot: self,
        });
        drop(state);
        shared.change.notify_one();
        Ticket {
            id,
            deadline,
            answer: receiver,
            shared,
        }
    }
}

/// Waits for a job's answer.
pub struct Ticket {
    id: u64,
    deadline: Instant,
    answer: oneshot::Receiver<Result<Vec<u8>>>,
    shared: Arc<Shared>,
}

impl Ticket {
    /// The answer.
    ///
    /// # Errors
    /// The job's; [`Failure::TimeLimit`].
    pub async fn answer(mut self) -> Result<Vec<u8>> {
        let seconds = self.shared.time_limit.as_secs();
        match tokio::time::timeout_at(self.deadline.into(), &mut self.answer).await {
            Err(_) => Err(Failure::TimeLimit { seconds }),
            Ok(Ok(answer)) => answer,
            // A worker drops a job without an answer where its time is over.
            Ok(Err(_)) => Err(Failure::TimeLimit { seconds }),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let at = state.waiting.iter().position(|job| job.id == self.id);
        let job = at.and_then(|at| state.waiting.remove(at));
        drop(state);
        // Its slot takes the lock.
        drop(job);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn pending(queue: &Queue) -> usize {
        queue.filling().pending
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_client_that_goes_makes_room() {
        let queue = Queue::new(2, LONG);
        let first = queue.slot().unwrap();
        let second = queue.slot().unwrap();
        assert_eq!(queue.slot().err(), Some(Failure::QueueFull { capacity: 2 }));
        drop(second);
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        let ticket = first.queue(move || {
            drop(theirs);
            Ok(vec![1])
        });
        assert_eq!((pending(&queue), Arc::strong_count(&held)), (1, 2));
        drop(ticket);
        assert_eq!((pending(&queue), Arc::strong_count(&held)), (0, 1));
    }

    #[tokio::test]
    async fn jobs_are_done_in_order_and_a_panic_is_an_answer() {
        let queue = Queue::new(8, LONG);
        let (sender, receiver) = mpsc::channel();
        let job = |number: u8| {
            let sender = sender.clone();
            queue.slot().unwrap().queue(move || {
                sender.send(number).unwrap();
                Ok(vec![number])
            })
        };
        let (first, second) = (job(1), job(2));
        let bad = queue.slot().unwrap().queue(|| panic!("a library's"));
        let workers = queue.start(1).unwrap();
        assert_eq!(second.answer().await, Ok(vec![2]));
        assert_eq!(first.answer().await, Ok(vec![1]));
        assert!(matches!(bad.answer().await, Err(Failure::Internal { .. })));
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
        queue.close();
        assert_eq!(queue.slot().err(), Some(Failure::Ending));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(queue.filling().processing, 0);
    }

    #[tokio::test]
    async fn a_job_whose_time_is_over_is_not_begun() {
        let queue = Queue::new(8, Duration::from_millis(300));
        let (begun, has_begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let long = queue.slot().unwrap().queue(move || {
            begun.send(()).unwrap();
            ended.recv().unwrap();
            Ok(vec![])
        });
        let workers = queue.start(1).unwrap();
        has_begun.recv().unwrap();
        let (sender, receiver) = mpsc::channel::<()>();
        let waits = queue.slot().unwrap().queue(move || {
            sender.send(()).unwrap();
            Ok(vec![])
        });
        let over = Err(Failure::TimeLimit { seconds: 0 });
        assert_eq!(waits.answer().await, over);
        assert_eq!(long.answer().await, over);
        assert_eq!((pending(&queue), queue.filling().processing), (0, 1));
        end.send(()).unwrap();
        queue.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(receiver.recv().is_err());
    }
}
