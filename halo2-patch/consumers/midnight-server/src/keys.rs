//! Keys: read once from their bytes into columns of the session, then held as handles, the last used of them.
//!
//! A client sends its key with each request. The key is known by the digest of its bytes, so that those of a
//! key which is held are given back before the request waits for anything.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::read::GzDecoder;
use midnight_proofs::utils::SerdeFormat;
use midnight_serialize::{Deserializable, Tagged as _, GLOBAL_TAG};
use midnight_transient_crypto::proofs::ProverKey;
use midnight_zk_stdlib::{MidnightPK, Relation as _};
use midnight_zkir::IrSource;
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Result};

/// The largest k that Midnight has parameters for.
pub const K_MAX: u8 = 25;
/// More columns than any circuit of the standard library has.
const COLUMNS_MAX: u32 = 256;
/// Version of the format of keys.
const VERSION: u8 = 3;

/// Digest of a key's bytes.
pub type KeyId = [u8; 32];

/// The digest of a key's bytes.
pub fn id_of(bytes: &[u8]) -> KeyId {
    Sha256::digest(bytes).into()
}

/// A proving key as a handle. Clones share its columns.
#[derive(Clone)]
pub struct Key {
    pub k: u8,
    pub prover: ProverKey<IrSource>,
}

/// Keys that are held, the latest last.
pub struct Keys {
    held_max: usize,
    held: Mutex<Vec<Held>>,
}

struct Held {
    id: KeyId,
    slot: Arc<Slot>,
}

/// Locked while the key is read: others that want the same key wait for it.
type Slot = Mutex<Option<Key>>;

impl Keys {
    /// Holds so many keys at most.
    pub fn new(held_max: usize) -> Self {
        Self {
            held_max,
            held: Mutex::default(),
        }
    }

    /// How many are held, or being read.
    pub fn held(&self) -> usize {
        self.lock().len()
    }

    /// The most that are held.
    pub fn held_max(&self) -> usize {
        self.held_max
    }

    /// A key that is held and read.
    pub fn find(&self, id: &KeyId) -> Option<Key> {
        let mut held = self.lock();
        let at = held.iter().position(|held| held.id == *id)?;
        let found = held.remove(at);
        let key = found.slot.try_lock().ok().and_then(|slot| slot.clone());
        held.push(found);
        key
    }

    /// The key of this digest, read if it is not held.
    ///
    /// # Errors
    /// Those of reading it; the next request for it reads it again.
    pub fn get(&self, id: &KeyId, read: impl FnOnce() -> Result<Key>) -> Result<Key> {
        let slot = self.slot(id);
        let mut key = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = &*key {
            return Ok(key.clone());
        }
        match read() {
            Ok(read) => Ok(key.insert(read).clone()),
            Err(failure) => {
                self.lock().retain(|held| !Arc::ptr_eq(&held.slot, &slot));
                Err(failure)
            }
        }
    }

    fn slot(&self, id: &KeyId) -> Arc<Slot> {
        let mut held = self.lock();
        let at = held.iter().position(|held| held.id == *id);
        let found = match at {
            Some(at) => held.remove(at),
            None => Held {
                id: *id,
                slot: Arc::default(),
            },
        };
        let slot = Arc::clone(&found.slot);
        held.push(found);
        let spare = held.len().saturating_sub(self.held_max);
        // A key that a job works with goes when the job is done.
        let dropped: Vec<Held> = held.drain(..spare).collect();
        drop(held);
        drop(dropped);
        slot
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a key of tagged bytes: a tag, a length, and gzip of the key in the format without checks of points.
/// `is_there` says whether there are parameters of a k. What sizes memory is checked before it is read: bytes
/// inflate a thousand times.
///
/// # Errors
/// [`Failure::Key`] for another format; that of `is_there`; the engine's, where the session has no room.
pub fn read(tagged: &[u8], circuit: &IrSource, is_there: impl FnOnce(u8) -> Result<()>) -> Result<Key> {
    let refuse = |reason| Failure::Key { reason };
    let mut inflated = GzDecoder::new(untagged(tagged)?);
    let mut sizes = [0; 2];
    let [_, k] = {
        let read = inflated.read_exact(&mut sizes);
        read.map_err(|_| refuse("the proving key is no gzip of a key"))?;
        sizes
    };
    if k > K_MAX {
        return Err(refuse("the proving key is for more than 2^25 rows"));
    }
    is_there(k)?;
    let mut relation = Vec::new();
    let written = circuit.write_relation(&mut relation);
    written.map_err(|error| Failure::of_error(&error))?;
    let mut of_key = vec![0; relation.len()];
    let same = inflated.read_exact(&mut of_key).is_ok() && of_key == relation;
    if !same {
        return Err(refuse("the proving key is another circuit's"));
    }
    // Version, k, and the number of fixed columns.
    let mut head = [0; 6];
    let read = inflated.read_exact(&mut head);
    read.map_err(|_| refuse("the proving key ends early"))?;
    let columns = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    if head[0] != VERSION || head[1] != k || columns > COLUMNS_MAX {
        return Err(refuse("the proving key is of another format"));
    }
    let mut reader = (&sizes[..]).chain(&relation[..]).chain(&head[..]).chain(inflated);
    let key = MidnightPK::<IrSource>::read(&mut reader, SerdeFormat::RawBytesUnchecked);
    let damaged = || refuse("the proving key is damaged");
    let key = key.map_err(|error| match Failure::of_error(&error) {
        Failure::Internal { .. } => damaged(),
        other => other,
    })?;
    // The checksum comes after the last byte.
    match reader.read(&mut [0]) {
        Ok(0) => {}
        _ => return Err(damaged()),
    }
    Ok(Key {
        k,
        prover: ProverKey::from(key),
    })
}

/// The bytes after the tag and the length.
fn untagged(tagged: &[u8]) -> Result<&[u8]> {
    let refuse = || Failure::Key {
        reason: "the proving key has another tag, or another length",
    };
    let tag = format!("{GLOBAL_TAG}{}:", ProverKey::<IrSource>::tag());
    let mut rest = tagged.strip_prefix(tag.as_bytes()).ok_or_else(refuse)?;
    let length = <u32 as Deserializable>::deserialize(&mut rest, 0).map_err(|_| refuse())?;
    match rest.len() == length as usize {
        true => Ok(rest),
        false => Err(refuse()),
    }
}
