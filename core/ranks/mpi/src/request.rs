//! One message under way, whose bytes belong to it until MPI is done with them.
//!
//! In: bytes to send, or room for bytes. Out: the same vector, when MPI has completed the request. MPI has no
//! way to take back a message that was begun, so one that is dropped before its end leaves its bytes, and its
//! request, to the process: `ferrompi` would wait for the peer, which may never come. Persistent requests are
//! the ones of `ferrompi` that own their bytes; each is made for one message.

use ferrompi::{Communicator, PersistentRequest, Result};

/// A message that was begun.
pub(crate) struct Request {
    inner: Option<PersistentRequest<u8>>,
}

impl Request {
    /// Begins to send.
    pub(crate) fn send(world: &Communicator, bytes: Vec<u8>, to: i32, tag: i32) -> Result<Self> {
        Self::start(world.send_init(bytes, to, tag)?)
    }

    /// Begins to receive, into as many bytes as there are.
    pub(crate) fn receive(world: &Communicator, room: Vec<u8>, from: i32, tag: i32) -> Result<Self> {
        Self::start(world.recv_init(room, from, tag)?)
    }

    fn start(mut request: PersistentRequest<u8>) -> Result<Self> {
        request.start()?;
        Ok(Self { inner: Some(request) })
    }

    /// The vector, if MPI is done with it.
    pub(crate) fn test(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(request) = &mut self.inner else {
            return Ok(None);
        };
        if request.test()?.is_none() {
            return Ok(None);
        }
        self.inner.take().map(PersistentRequest::into_buffer).transpose()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(request) = self.inner.take()
            && request.is_active()
        {
            std::mem::forget(request);
        }
    }
}
