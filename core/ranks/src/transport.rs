//! The seam under the ranks: one call that moves bytes, one that says farewell.
//!
//! In: at most one message to send and one buffer to fill. Out: the length of what came, or a
//! [`TransportFault`]. Who may call it: [`Ranks`](crate::Ranks), from one thread at a time, and transports
//! that wrap another one. Architecture invariant: a transport knows no envelope, no phase and no collective.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use crate::error::TransportFault;

/// What carries bytes between ranks.
///
/// A message arrives whole, once, and in the order of sending for each pair of ranks. [`Ranks`](crate::Ranks)
/// checks that all the same.
pub trait Transport: Send + Sync + Debug {
    /// This rank, below [`Self::size`].
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Sends one message and receives one, both at the same time, so that no order of ranks can deadlock.
    /// Either may be absent; if both are, it only looks whether a rank has given up.
    ///
    /// It returns when the message to `send` may be forgotten by the caller and the other one is in the
    /// buffer, and says how many bytes came: 0 without `receive`. The peers are other ranks than this one.
    ///
    /// # Errors
    ///
    /// [`TransportFault::Late`] when the deadline passes; [`TransportFault::GaveUp`] if any rank gave up,
    /// also one that takes no part; [`TransportFault::TooLong`] if the message is longer than the buffer.
    /// After an error the transport is of use for [`Self::give_up`] alone.
    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        deadline: Instant,
    ) -> Result<usize, TransportFault>;

    /// Tells all peers that this rank gives up, and why. Best effort: it never waits long, and reports
    /// nothing.
    fn give_up(&self, reason: &str);

    /// The most memory that it holds for messages of this length, beside the caller's buffers.
    fn held_bytes(&self, message_bytes: usize) -> usize {
        let _ = message_bytes;
        0
    }
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn exchange(
        &self,
        send: Option<(usize, &[u8])>,
        receive: Option<(usize, &mut [u8])>,
        deadline: Instant,
    ) -> Result<usize, TransportFault> {
        (**self).exchange(send, receive, deadline)
    }

    fn give_up(&self, reason: &str) {
        (**self).give_up(reason);
    }

    fn held_bytes(&self, message_bytes: usize) -> usize {
        (**self).held_bytes(message_bytes)
    }
}

/// A reason is cut to this many bytes on its way.
pub const REASON_BYTES_MAX: usize = 1024;

/// The beginning of a reason, within [`REASON_BYTES_MAX`].
pub fn bounded_reason(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_cut_between_characters() {
        assert_eq!(bounded_reason("short"), "short");
        let long = "é".repeat(REASON_BYTES_MAX);
        assert_eq!(bounded_reason(&long).len(), REASON_BYTES_MAX);
        let odd = format!("x{long}");
        assert_eq!(bounded_reason(&odd).len(), REASON_BYTES_MAX - 1);
    }
}
