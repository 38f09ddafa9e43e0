//! Sealing: frames of scratch files are encrypted and authenticated, so that what is on a disk tells nothing
//! of a witness, then or later, and what comes back is what was written.
//!
//! A frame is encrypted with AES-256-GCM (NIST SP 800-38D) under a key of its file, which is derived from the
//! session's, and a nonce that no other frame of the file has. The session's key is in memory only: when the
//! session goes, so does everything that its files held.
//!
//! - **Frames that are written once**, of elements with spare bits: the nonce is the frame's number, and a
//!   bit for each frame sees to it that none is written twice. The authentication tag takes the last 16 bytes
//!   of the frame, whose content moves to the spare bits of the first elements ([`super::tag`]) before they
//!   are encrypted. So a sealed frame is as long as its elements, and takes no memory but the bit.
//! - **Others**: the nonce is the number of the write, which is kept in memory with the tag: 32 bytes a
//!   frame.
//!
//! A flipped bit, a torn or a lost write, a frame of another place, of another file or (where nonces are
//! kept) of an earlier write does not authenticate. What a disk still sees: lengths, places, and when they
//! are read and written.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce, Tag};

use super::tag::{DIGEST_BYTES, TAG_BYTES, TagPlaces};
use crate::budget::{Budget, Lease, LeasedVec, PAGE_BYTES, SecretKey, aes};
use crate::error::{Error, Result};

/// Bytes of a write's number.
const NUMBER_BYTES: usize = 8;

/// How the frames of one file are sealed.
pub(super) struct Seal {
    key: Arc<SecretKey>,
    /// The file: no other of the process has it.
    id: u64,
    home: Home,
}

/// Where tags and nonces are.
enum Home {
    Inside {
        places: TagPlaces,
        /// A bit for each frame that was written.
        written: Vec<AtomicU64>,
        _lease: Option<Lease>,
    },
    Table {
        /// The number of the write, and the tag.
        entries: RwLock<LeasedVec<[u8; DIGEST_BYTES]>>,
        writes: AtomicU64,
    },
}

/// A file's key, while frames are sealed or opened.
pub(super) struct Cipher(LessSafeKey);

/// Why a frame could not be sealed.
pub(super) enum Refused {
    /// It was written before.
    WrittenBefore,
    /// Its elements use bits that no value of their field has.
    UsedSpareBits,
}

/// What is leased of a budget for a bit for each frame: whole pages; nothing for the first one.
pub(super) fn bits_bytes(frames: u64) -> u64 {
    match frames.div_ceil(8).next_multiple_of(PAGE_BYTES as u64) {
        bytes if bytes <= PAGE_BYTES as u64 => 0,
        bytes => bytes,
    }
}

impl Home {
    fn inside(places: TagPlaces, frames: u64, budget: &Budget) -> Result<Self> {
        const WHAT: &str = "bits of written frames";
        let leased_bytes = bits_bytes(frames);
        let lease = (leased_bytes > 0).then(|| budget.lease(leased_bytes, WHAT));
        let (lease, words) = (lease.transpose()?, frames.div_ceil(u64::BITS.into()) as usize);
        let mut written = Vec::new();
        written.try_reserve_exact(words).map_err(|_| Error::Memory {
            what: WHAT.into(),
            bytes: leased_bytes,
            source: std::io::ErrorKind::OutOfMemory.into(),
        })?;
        written.resize_with(words, || AtomicU64::new(0));
        Ok(Self::Inside {
            places,
            written,
            _lease: lease,
        })
    }
}

impl Seal {
    /// For `frames` frames: inside of them, where `places` says how, else in a table.
    pub fn new(
        key: &Arc<SecretKey>,
        id: u64,
        frames: u64,
        places: Option<TagPlaces>,
        budget: &Budget,
    ) -> Result<Self> {
        let home = match places {
            Some(places) => Home::inside(places, frames, budget)?,
            None => Home::Table {
                entries: RwLock::new(budget.vec(frames as usize, [0; DIGEST_BYTES], "frame digests")?),
                writes: AtomicU64::new(0),
            },
        };
        Ok(Self {
            key: Arc::clone(key),
            id,
            home,
        })
    }

    /// The key of the file.
    ///
    /// # Errors
    /// [`crate::Error::Forked`].
    pub fn cipher(&self) -> Result<Cipher> {
        Ok(Cipher(aes(&mut self.key.derived(self.id)?)))
    }

    /// Seals a frame that is about to be written.
    pub fn close(&self, cipher: &Cipher, frame: u64, bytes: &mut [u8]) -> Result<(), Refused> {
        match &self.home {
            Home::Inside { places, written, .. } => {
                let bit = 1 << (frame % u64::from(u64::BITS));
                let before = written[(frame / u64::from(u64::BITS)) as usize].fetch_or(bit, Relaxed);
                if before & bit != 0 {
                    return Err(Refused::WrittenBefore);
                }
                let at = bytes.len() - TAG_BYTES;
                let mut moved = [0; DIGEST_BYTES];
                moved[..TAG_BYTES].copy_from_slice(&bytes[at..]);
                if !places.put(&moved, bytes) {
                    return Err(Refused::UsedSpareBits);
                }
                let tag = cipher.close(frame, &mut bytes[..at]);
                bytes[at..].copy_from_slice(tag.as_ref());
            }
            Home::Table { entries, writes } => {
                let number = writes.fetch_add(1, Relaxed);
                let tag = cipher.close(number, bytes);
                let mut entry = [0; DIGEST_BYTES];
                entry[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
                entry[NUMBER_BYTES..NUMBER_BYTES + TAG_BYTES].copy_from_slice(tag.as_ref());
                let mut entries = entries.write().unwrap_or_else(PoisonError::into_inner);
                entries[frame as usize] = entry;
            }
        }
        Ok(())
    }

    /// Opens a frame that was read; `false` if it is not the one that was written last.
    pub fn open(&self, cipher: &Cipher, frame: u64, bytes: &mut [u8]) -> bool {
        match &self.home {
            Home::Inside { places, .. } => {
                let at = bytes.len() - TAG_BYTES;
                let (sealed, tag) = bytes.split_at_mut(at);
                let Ok(found) = Tag::try_from(&*tag) else {
                    return false;
                };
                if !cipher.open(frame, sealed, found) {
                    return false;
                }
                let moved = places.take(bytes);
                bytes[at..].copy_from_slice(&moved[..TAG_BYTES]);
                true
            }
            Home::Table { entries, .. } => {
                let entry = entries.read().unwrap_or_else(PoisonError::into_inner)[frame as usize];
                let (number, tag) = entry[..NUMBER_BYTES + TAG_BYTES].split_at(NUMBER_BYTES);
                let number = number.try_into().map(u64::from_le_bytes);
                match (number, Tag::try_from(tag)) {
                    (Ok(number), Ok(tag)) => cipher.open(number, bytes, tag),
                    _ => false,
                }
            }
        }
    }
}

impl Cipher {
    fn close(&self, number: u64, bytes: &mut [u8]) -> Tag {
        match (self.0).seal_in_place_separate_tag(nonce(number), Aad::empty(), bytes) {
            Ok(tag) => tag,
            Err(_) => unreachable!("frames are far shorter than the cipher's limit of 64 GiB"),
        }
    }

    fn open(&self, number: u64, bytes: &mut [u8], tag: Tag) -> bool {
        (self.0)
            .open_in_place_separate_tag(nonce(number), Aad::empty(), tag, bytes, 0..)
            .is_ok()
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use ark_ff::UniformRand;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::column::Element;

    fn frame_of<E: Element + UniformRand>(frame_bytes: usize, seed: u64) -> Vec<u8> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut frame = vec![0; frame_bytes];
        frame
            .chunks_exact_mut(E::BYTES)
            .for_each(|bytes| E::rand(&mut rng).encode(bytes));
        frame
    }

    fn seals<E: Element + UniformRand>(frame_bytes: usize, is_inside: bool) {
        let budget = Budget::new(1 << 20);
        let key = Arc::new(SecretKey::random().unwrap());
        let places =
            TagPlaces::of::<E>(frame_bytes as u64).and_then(|places| places.beside_tail(frame_bytes));
        assert_eq!(places.is_some(), is_inside);
        let seal = |id| Seal::new(&key, id, 100, places, &budget).unwrap();
        let (one, other) = (seal(1), seal(2));
        let cipher = one.cipher().unwrap();
        let elements = frame_of::<E>(frame_bytes, 7);
        let mut sealed = elements.clone();
        assert!(one.close(&cipher, 70, &mut sealed).is_ok());
        // No element stands there any more.
        let same = sealed.chunks(8).zip(elements.chunks(8)).filter(|(a, b)| a == b);
        assert_eq!(same.count(), 0);
        let mut opened = sealed.clone();
        assert!(one.open(&cipher, 70, &mut opened) && opened == elements);
        for at in (0..8 * frame_bytes).step_by(8 * frame_bytes / 97) {
            let mut changed = sealed.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(!one.open(&cipher, 70, &mut changed), "bit {at}");
        }
        assert!(!one.open(&cipher, 71, &mut sealed.clone()), "another place");
        assert!(
            !other.open(&other.cipher().unwrap(), 70, &mut sealed.clone()),
            "another file"
        );
        // Equal frames are not equal on disk.
        let mut second = elements.clone();
        assert!(one.close(&cipher, 71, &mut second).is_ok() && second != sealed);
        let again = one.close(&cipher, 70, &mut elements.clone());
        match is_inside {
            true => assert!(matches!(again, Err(Refused::WrittenBefore))),
            false => assert!(
                again.is_ok() && !one.open(&cipher, 70, &mut sealed),
                "an earlier write"
            ),
        }
    }

    #[test]
    fn frames_are_sealed_and_opened() {
        seals::<ark_bn254::Fr>(4096, true);
        seals::<ark_bn254::Fr>(16384, true);
        seals::<ark_bls12_381::Fr>(16384, true);
        // One spare bit in each of 128 elements: the last one is where the tag goes.
        seals::<ark_bls12_381::Fr>(4096, false);
        let used = &mut [0xff; 4096];
        let budget = Budget::new(1 << 20);
        let key = Arc::new(SecretKey::random().unwrap());
        let places = TagPlaces::of::<ark_bn254::Fr>(4096).and_then(|places| places.beside_tail(4096));
        let seal = Seal::new(&key, 1, 1, places, &budget).unwrap();
        assert!(matches!(
            seal.close(&seal.cipher().unwrap(), 0, used),
            Err(Refused::UsedSpareBits)
        ));
    }
}
