//! Bytes that the program has, or makes as they are asked for.
//!
//! A piece is copied on the program's own thread, which is the only one that may look at its memory. Nothing waits
//! longer than [`LOOK`] for an environment that has ended: a call of it is stopped.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use napi::bindgen_prelude::Uint8Array;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Result as NapiResult, Status};
use spillproof_circom::prove::WitnessBytes;
use spillproof_engine::control::Control;
use spillproof_engine::{Error, Result};

use crate::event::{Ask, Event, OnEvent};
use crate::outcome::Outcome;

/// Time between two looks whether the call was stopped.
pub const LOOK: Duration = Duration::from_millis(50);

/// The way from a call's thread to its program.
pub struct Asks {
    on_event: Arc<OnEvent>,
    control: Control,
}

impl Asks {
    pub fn new(on_event: Arc<OnEvent>, control: Control) -> Self {
        Self { on_event, control }
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Says that the witness has been read.
    pub fn witness_read(&self) {
        self.say(Event {
            witness_read: Some(true),
            ..Event::default()
        });
    }

    /// Says the last word.
    pub fn end(self, outcome: Outcome) {
        self.say(Event {
            outcome: Some(outcome),
            ..Event::default()
        });
    }

    /// An environment that ends is told nothing.
    fn say(&self, event: Event) {
        self.on_event.call(event, ThreadsafeFunctionCallMode::NonBlocking);
    }

    /// Bytes of the key or of the witness.
    pub fn bytes<'a>(&'a self, of: &'static str, bytes: u64) -> Pieces<'a> {
        Pieces {
            asks: self,
            of,
            bytes,
        }
    }
}

/// A file whose bytes the program is asked for.
pub struct Pieces<'a> {
    asks: &'a Asks,
    of: &'static str,
    bytes: u64,
}

impl Pieces<'_> {
    /// What the program gives, unless the call is stopped while it is waited for.
    fn answer(&self, given: &Receiver<Option<Vec<u8>>>) -> Result<Option<Vec<u8>>> {
        loop {
            match given.recv_timeout(LOOK) {
                Ok(piece) => return Ok(piece),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if self.asks.control.is_stopped() => {
                    return Err(Error::Stopped);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl WitnessBytes for Pieces<'_> {
    fn len_bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let ask = Ask {
            of: self.of.to_owned(),
            offset: offset as f64,
            bytes: out.len() as u32,
        };
        let event = Event {
            ask: Some(ask),
            ..Event::default()
        };
        let (give, given) = sync_channel(1);
        let copied = move |piece: NapiResult<Option<Uint8Array>>, _| {
            let piece = piece.ok().flatten().map(|piece| piece.to_vec());
            // A call that was stopped meanwhile waits no more.
            let _ended = give.send(piece);
            Ok(())
        };
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        let status = self.asks.on_event.call_with_return_value(event, mode, copied);
        if status == Status::Ok {
            match self.answer(&given)? {
                Some(piece) if piece.len() == out.len() => {
                    out.copy_from_slice(&piece);
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(Error::Io {
            operation: "read",
            file: format!("the {}", self.of),
            offset,
            bytes: out.len() as u64,
            source: io::Error::other("the program gave other bytes, or none"),
        })
    }
}
