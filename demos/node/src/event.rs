//! What a call tells its program, and asks of it.

use napi::Status;
use napi::bindgen_prelude::Uint8Array;
use napi::threadsafe_function::ThreadsafeFunction;
use napi_derive::napi;

use crate::outcome::Outcome;

/// What a call says, or asks for: one of these.
#[napi(object)]
#[derive(Default)]
pub struct Event {
    /// A step of the work begins.
    pub step: Option<String>,
    /// Bytes are needed: the function returns them, or nothing to end the call.
    pub ask: Option<Ask>,
    /// All bytes of the witness have come.
    pub witness_read: Option<bool>,
    /// The end.
    pub outcome: Option<Outcome>,
}

/// Bytes that are needed.
#[napi(object)]
pub struct Ask {
    /// `key` or `witness`.
    pub of: String,
    /// The first of them.
    pub offset: f64,
    /// How many.
    pub bytes: u32,
}

/// The program's function for events.
pub type OnEvent = ThreadsafeFunction<Event, Option<Uint8Array>, Event, Status, false>;
