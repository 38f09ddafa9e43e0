//! A caller's hold on its work: other threads stop it, and hear of its steps.
//!
//! Work belongs to the [`Control`] that its thread has [entered](Control::enter); a stage takes it along to the session's threads.
//! Once it is stopped, the work ends with [`Error::Stopped`] where it next takes memory, reads a column, begins a stage, or waits for
//! its turn or for room in the budget; a computation in memory comes to its end first. What it had made is dropped, as after any error.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::{Error, Result};

/// How long a wait lasts until it looks whether it is stopped.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);

thread_local! {
    /// The control that this thread has entered.
    static OF_THIS_THREAD: RefCell<Option<Control>> = const { RefCell::new(None) };
}

/// What is called with the name of each step that begins.
type OnStep = dyn Fn(&'static str) + Send + Sync;

/// A hold on work. Clones are one and the same.
///
/// ```
/// use spillproof_engine::budget::Budget;
/// use spillproof_engine::control::Control;
///
/// let budget = Budget::new(1 << 20);
/// let control = Control::new();
/// let _entered = control.enter();
/// assert!(budget.lease(4096, "tile").is_ok());
/// control.clone().stop();
/// assert!(budget.lease(4096, "tile").is_err());
/// ```
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

struct Shared {
    is_stopped: AtomicBool,
    on_step: Option<Box<OnStep>>,
}

/// While it lives, what this thread asks of sessions belongs to a control.
#[must_use = "the thread leaves the control when this is dropped"]
#[derive(Debug)]
pub struct Entered {
    before: Option<Control>,
    /// It is the thread's.
    _not_send: PhantomData<*const ()>,
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("is_stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}

impl Control {
    /// A hold on work that is not stopped.
    pub fn new() -> Self {
        Self::of(None)
    }

    /// The same, which calls `on_step` on the working thread with the name of each step that begins ("constraints", "sum over A").
    pub fn with_steps(on_step: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self::of(Some(Box::new(on_step)))
    }

    fn of(on_step: Option<Box<OnStep>>) -> Self {
        let shared = Shared {
            is_stopped: AtomicBool::new(false),
            on_step,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Makes what this thread asks of sessions belong to this control, and no longer to one that it had entered before, until the
    /// guard is dropped.
    pub fn enter(&self) -> Entered {
        Entered {
            before: OF_THIS_THREAD.replace(Some(self.clone())),
            _not_send: PhantomData,
        }
    }

    /// Stops the work, for good.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Relaxed)
    }

    /// The one that this thread has entered: other threads that work for this one enter it, too.
    pub fn of_this_thread() -> Option<Self> {
        OF_THIS_THREAD.with_borrow(Clone::clone)
    }

    /// Refuses work that was stopped.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_stopped() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        OF_THIS_THREAD.set(self.before.take());
    }
}

/// Refuses work of a control that was stopped.
///
/// # Errors
/// [`Error::Stopped`].
pub(crate) fn check() -> Result<()> {
    OF_THIS_THREAD.with_borrow(|control| control.as_ref().map_or(Ok(()), Control::check))
}

/// A step of this thread's work begins: calls the listener of the thread's control.
pub(crate) fn begin_step(name: &'static str) {
    // The borrow ends first: the listener may do what it likes.
    if let Some(control) = Control::of_this_thread()
        && let Some(on_step) = &control.shared.on_step
    {
        on_step(name);
    }
}
