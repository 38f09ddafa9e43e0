//! A key that is only in memory: in a page of its own that is locked there where the system allows it, left
//! out of core dumps, wiped in a forked process and when it is dropped. A forked process gets an error in
//! place of the key: its page is zeros there, which anyone can guess.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use rustix::mm::{Advice, MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};

use super::entropy::random_bytes;
use super::pages::{PAGE_BYTES, advise};
use crate::error::{Error, Result};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Behind the key in its page, while the page has not been wiped.
const MARK: u8 = 0xA5;

/// A random key. What was encrypted with it is lost when it is dropped.
pub(crate) struct SecretKey {
    page: NonNull<u8>,
    /// The process that made it.
    process: u32,
}

// SAFETY: the page is owned by this value alone, and written only when it is made and dropped.
unsafe impl Send for SecretKey {}
// SAFETY: as above.
unsafe impl Sync for SecretKey {}

impl SecretKey {
    /// From the system's entropy.
    ///
    /// # Errors
    /// [`Error::Memory`] without a page, [`Error::Unavailable`] without entropy.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        random_bytes(&mut bytes)?;
        Self::of(&mut bytes)
    }

    /// The key that these bytes are, which are wiped.
    ///
    /// # Errors
    /// [`Error::Memory`] without a page.
    pub fn of(bytes: &mut [u8; KEY_BYTES]) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new map at an address of the kernel's choice touches no existing memory.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, protection, MapFlags::PRIVATE) };
        let page = page.map_err(|errno| no_key(errno.into()))?.cast::<u8>();
        let page = NonNull::new(page).ok_or_else(|| no_key(std::io::ErrorKind::OutOfMemory.into()))?;
        let process = std::process::id();
        let key = Self { page, process };
        for advice in [Advice::LinuxDontDump, Advice::LinuxWipeOnFork] {
            // Refused by old kernels: the key is as safe as the rest of memory then.
            // SAFETY: advice on a page of our own, which has no content yet.
            let _ = unsafe { advise(page.as_ptr(), PAGE_BYTES, advice) };
        }
        if !cfg!(miri) {
            // Refused where no memory may be locked.
            // SAFETY: locking a page of our own changes no content.
            let _ = unsafe { mlock(page.as_ptr().cast(), PAGE_BYTES) };
        }
        // SAFETY: the page is longer than a key and a mark, and no other thread knows it yet.
        unsafe {
            page.as_ptr().cast::<[u8; KEY_BYTES]>().write(*bytes);
            page.as_ptr().add(KEY_BYTES).write(MARK);
        }
        wipe(bytes);
        Ok(key)
    }

    /// The key of one purpose, named by a number that is used once.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn derived(&self, purpose: u64) -> Result<[u8; KEY_BYTES]> {
        self.derived_for(&[&purpose.to_le_bytes()])
    }

    /// The key of one purpose, named by these bytes, one after the other. What differs in length is to differ
    /// in its beginning too.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn derived_for(&self, purpose: &[&[u8]]) -> Result<[u8; KEY_BYTES]> {
        // SAFETY: written by `of`, and not since: the kernel wipes pages of another process, where no thread
        // has read it before.
        let (key, mark) = unsafe {
            let start = self.page.as_ptr();
            (&*start.cast::<[u8; KEY_BYTES]>(), *start.add(KEY_BYTES))
        };
        // In a process namespace of its own, another process may have the same number.
        if mark != MARK || self.process != std::process::id() {
            return Err(Error::Forked { maker: self.process });
        }
        let mut hasher = blake3::Hasher::new_keyed(key);
        purpose.iter().for_each(|bytes| {
            hasher.update(bytes);
        });
        Ok(*hasher.finalize().as_bytes())
    }
}

fn no_key(source: std::io::Error) -> Error {
    Error::Memory {
        what: "key of sealed files".into(),
        bytes: KEY_BYTES as u64,
        source,
    }
}

/// AES-256-GCM under this key, which is wiped.
pub(crate) fn aes(key: &mut [u8; KEY_BYTES]) -> LessSafeKey {
    let cipher = UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new);
    wipe(key);
    match cipher {
        Ok(cipher) => cipher,
        Err(_) => unreachable!("the key has the cipher's length"),
    }
}

/// Makes bytes zero, also if they are not read again.
pub(crate) fn wipe(bytes: &mut [u8]) {
    for byte in bytes {
        // SAFETY: a byte that is borrowed uniquely. Volatile, or the write would be left out.
        unsafe { ptr::from_mut(byte).write_volatile(0) };
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        // SAFETY: the key's bytes, which no borrow outlives.
        wipe(unsafe { std::slice::from_raw_parts_mut(self.page.as_ptr(), KEY_BYTES) });
        // SAFETY: the map made in `random`, unmapped once.
        let unmapped = unsafe { munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
        debug_assert!(unmapped.is_ok());
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_session_and_by_purpose() {
        let (one, other) = (SecretKey::random().unwrap(), SecretKey::random().unwrap());
        let derived = |key: &SecretKey, purpose| key.derived(purpose).unwrap();
        assert_eq!(derived(&one, 7), derived(&one, 7));
        assert_ne!(derived(&one, 7), derived(&one, 8));
        assert_ne!(derived(&one, 7), derived(&other, 7));
        assert_eq!(format!("{one:?}"), "SecretKey");
    }

    /// What a forked process sees: the kernel's zeros, or, from an old kernel, the maker's bytes.
    #[test]
    fn a_key_of_another_process_is_refused() {
        let mut key = SecretKey::random().unwrap();
        key.process += 1;
        assert!(matches!(key.derived(7), Err(Error::Forked { maker }) if maker == key.process));
        key.process -= 1;
        assert!(key.derived(7).is_ok());
        // SAFETY: the page of a key that no other code uses.
        wipe(unsafe { std::slice::from_raw_parts_mut(key.page.as_ptr(), PAGE_BYTES) });
        assert!(matches!(key.derived(7), Err(Error::Forked { .. })));
    }

    #[test]
    fn wiped_bytes_are_zero() {
        let mut bytes = [7; 40];
        wipe(&mut bytes[1..39]);
        assert_eq!((bytes[0], bytes[39]), (7, 7));
        assert!(bytes[1..39].iter().all(|byte| *byte == 0));
    }
}
