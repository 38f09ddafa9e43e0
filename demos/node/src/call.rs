//! A call: its thread, its events, and its end.
//!
//! The function of the program's keeps Node's event loop alive while the thread has it, and no longer: what outlives
//! the thread ([`Call`], the steps of a [`Control`]) has it weakly.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Error, Status};
use napi_derive::napi;
use spillproof_engine::control::Control;

use crate::event::{Event, OnEvent};
use crate::outcome::{Failed, Outcome};
use crate::pieces::Asks;

/// A call that was begun.
#[napi]
pub struct Call {
    control: Control,
}

#[napi]
impl Call {
    /// Lets the call end soon, with nothing left of it.
    #[napi]
    pub fn stop(&self) {
        self.control.stop();
    }
}

/// The calls of an environment that have not ended, by number.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<BTreeMap<u64, Control>>>);

impl Running {
    /// Stops all of them.
    pub fn stop(&self) {
        self.lock().values().for_each(Control::stop);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Control>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a thread of its own. Its last event is the outcome.
    pub fn begin(
        &self,
        on_event: OnEvent,
        work: impl FnOnce(&Asks) -> Result<Outcome, Failed> + Send + 'static,
    ) -> napi::Result<Call> {
        let on_event = Arc::new(on_event);
        let steps = Arc::downgrade(&on_event);
        let control = Control::with_steps(move |name: &'static str| {
            if let Some(on_event) = steps.upgrade() {
                let step = Some(name.to_owned());
                let event = Event {
                    step,
                    ..Event::default()
                };
                on_event.call(event, ThreadsafeFunctionCallMode::NonBlocking);
            }
        });
        let (running, asks) = (self.clone(), Asks::new(on_event, control.clone()));
        let here = running.enter(&control);
        let run = move || {
            let outcome = {
                let _entered = asks.control().enter();
                // Nothing of the work is used after a panic.
                catch_unwind(AssertUnwindSafe(|| work(&asks))).unwrap_or(Err(Failed::Internal))
            };
            drop(here);
            asks.end(outcome.unwrap_or_else(Outcome::from));
        };
        let named = thread::Builder::new().name("spillproof-call".into());
        match named.spawn(run) {
            Ok(_detached) => Ok(Call { control }),
            Err(error) => Err(Error::new(
                Status::GenericFailure,
                format!(
                    "cannot start a thread: {error}: processes may be limited (ulimit -u); raise that limit"
                ),
            )),
        }
    }

    fn enter(&self, control: &Control) -> Here {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        self.lock().insert(number, control.clone());
        Here {
            running: self.clone(),
            number,
        }
    }
}

/// Counts a call as running until it is dropped.
struct Here {
    running: Running,
    number: u64,
}

impl Drop for Here {
    fn drop(&mut self) {
        self.running.lock().remove(&self.number);
    }
}
