//! Bodies of requests, within a share of the budget.
//!
//! The server holds the share from its start, so a body never takes what a proof needs, and a proof never
//! what a body needs. A body takes what it says that it has, all at once and before it is read: several that
//! are half there cannot wait for each other. A body that does not say its length takes as much as the
//! largest one, until it is there. Bodies that find no room wait in the order in which they came, and are not
//! read.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use spillproof_engine::budget::{Budget, Lease};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};

/// Bytes of a permit.
const PERMIT_BYTES: usize = 16 << 10;
/// Bytes of a block of a body, at most: large enough that a freed block goes back to the system.
const BLOCK_BYTES: usize = 256 << 10;
/// A client that sends nothing for so long has its request refused.
const PATIENCE: Duration = Duration::from_secs(30);

/// The share of the budget for bodies.
pub struct Bodies {
    permits: Arc<Semaphore>,
    share_permits: usize,
    limit_bytes: u64,
    patience: Duration,
    _lease: Lease,
}

impl Bodies {
    /// Takes `share_bytes` of the budget, for bodies of `limit_bytes` at most each.
    ///
    /// # Errors
    /// If the budget has less.
    pub fn new(budget: &Budget, share_bytes: u64, limit_bytes: u64) -> Result<Self> {
        let share_permits = (share_bytes / PERMIT_BYTES as u64) as usize;
        Ok(Self {
            permits: Arc::new(Semaphore::new(share_permits)),
            share_permits,
            limit_bytes: limit_bytes.min((share_permits * PERMIT_BYTES) as u64),
            patience: PATIENCE,
            _lease: budget.lease(share_bytes, "bodies of requests")?,
        })
    }

    /// The share, and how much of it is taken.
    pub fn share_and_taken_bytes(&self) -> (u64, u64) {
        let taken = self.share_permits - self.permits.available_permits();
        (
            (self.share_permits * PERMIT_BYTES) as u64,
            (taken * PERMIT_BYTES) as u64,
        )
    }

    /// Reads a body, when there is room for it.
    ///
    /// # Errors
    /// [`Failure::BodyTooLarge`], [`Failure::BodySlow`], [`Failure::BodyBroken`].
    pub async fn read(&self, incoming: &mut Incoming) -> Result<Body> {
        let too_large = Failure::BodyTooLarge {
            limit_bytes: self.limit_bytes,
        };
        let size = incoming.size_hint();
        if size.lower() > self.limit_bytes {
            return Err(too_large);
        }
        let most_bytes = size.upper().unwrap_or(self.limit_bytes).min(self.limit_bytes);
        let most_bytes = most_bytes as usize;
        let mut body = Body::new(most_bytes, self.room(most_bytes).await?);
        loop {
            let frame = timeout(self.patience, incoming.frame())
                .await
                .map_err(|_| Failure::BodySlow {
                    seconds: self.patience.as_secs(),
                })?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| Failure::BodyBroken)?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if (body.len + data.len()) as u64 > self.limit_bytes {
                return Err(too_large);
            }
            body.push(&data);
        }
        body.shrink();
        Ok(body)
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        let permits = bytes.div_ceil(PERMIT_BYTES) as u32;
        let room = Arc::clone(&self.permits).acquire_many_owned(permits).await;
        room.map_err(|_| Failure::Ending)
    }
}

/// The bytes of a body, wiped and given back as they are read.
pub struct Body {
    blocks: VecDeque<Zeroizing<Vec<u8>>>,
    /// Bytes of the first block that were read.
    read: usize,
    len: usize,
    /// The most that may come.
    most_bytes: usize,
    room: OwnedSemaphorePermit,
}

impl Body {
    fn new(most_bytes: usize, room: OwnedSemaphorePermit) -> Self {
        Self {
            blocks: VecDeque::new(),
            read: 0,
            len: 0,
            most_bytes,
            room,
        }
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let is_full = self
                .blocks
                .back()
                .is_none_or(|block| block.len() == block.capacity());
            if is_full {
                let left = self.most_bytes.saturating_sub(self.len).max(data.len());
                let block = Vec::with_capacity(left.min(BLOCK_BYTES));
                self.blocks.push_back(Zeroizing::new(block));
            }
            if let Some(block) = self.blocks.back_mut() {
                let (now, later) = data.split_at(data.len().min(block.capacity() - block.len()));
                block.extend_from_slice(now);
                self.len += now.len();
                data = later;
            }
        }
    }

    /// Gives room back that the body turned out not to need.
    fn shrink(&mut self) {
        let spare = self.room.num_permits() - self.len.div_ceil(PERMIT_BYTES);
        drop(self.room.split(spare));
    }

    /// The room that the body takes of the share, for what is made of its bytes.
    pub fn into_room(self) -> Room {
        Room { room: self.room }
    }
}

impl Read for Body {
    // Readers of the ledger take bytes one by one.
    fn read_exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            match self.read(into)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => into = &mut into[read..],
            }
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(block) = self.blocks.front() else {
            return Ok(0);
        };
        let now = into.len().min(block.len() - self.read);
        into[..now].copy_from_slice(&block[self.read..][..now]);
        self.read += now;
        if self.read == block.len() {
            self.blocks.pop_front();
            self.read = 0;
        }
        Ok(now)
    }
}

/// Room of the share for what was a body, until it is dropped.
pub struct Room {
    room: OwnedSemaphorePermit,
}

impl Room {
    /// Keeps as much as `bytes` need, if that is less.
    pub fn shrink_to(&mut self, bytes: usize) {
        let spare = self
            .room
            .num_permits()
            .saturating_sub(bytes.div_ceil(PERMIT_BYTES));
        drop(self.room.split(spare));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_gives_its_blocks_back_as_it_is_read() {
        let budget = Budget::new(1 << 22);
        let bodies = Bodies::new(&budget, 1 << 21, 1 << 20).unwrap();
        assert_eq!(budget.held_bytes(), 1 << 21);
        let sent: Vec<u8> = (0..3 * BLOCK_BYTES + 5).map(|index| index as u8).collect();
        for most_bytes in [sent.len(), 1 << 20] {
            let mut body = Body::new(most_bytes, bodies.room(most_bytes).await.unwrap());
            sent.chunks(7777).for_each(|data| body.push(data));
            assert_eq!((body.len(), body.blocks.len()), (sent.len(), 4));
            body.shrink();
            assert_eq!(
                bodies.share_and_taken_bytes(),
                (1 << 21, (3 * BLOCK_BYTES + PERMIT_BYTES) as u64)
            );
            let mut half = vec![0; 2 * BLOCK_BYTES + 1];
            body.read_exact(&mut half).unwrap();
            assert_eq!(body.blocks.len(), 2);
            let mut rest = Vec::new();
            body.read_to_end(&mut rest).unwrap();
            assert!(body.read_exact(&mut [0]).is_err());
            assert_eq!([half, rest].concat(), sent);
            let mut room = body.into_room();
            room.shrink_to(1);
            assert_eq!(bodies.share_and_taken_bytes().1, PERMIT_BYTES as u64);
            drop(room);
            assert_eq!(bodies.share_and_taken_bytes().1, 0);
        }
    }

    #[tokio::test]
    async fn bodies_that_find_no_room_wait_in_order() {
        let budget = Budget::new(1 << 20);
        let bodies = Arc::new(Bodies::new(&budget, 1 << 16, 1 << 16).unwrap());
        let first = bodies.room(1 << 16).await.unwrap();
        let waits = tokio::spawn({
            let bodies = Arc::clone(&bodies);
            async move { bodies.room(1 << 15).await.map(|_| ()) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waits.is_finished());
        drop(first);
        assert_eq!(waits.await.unwrap(), Ok(()));
    }
}
