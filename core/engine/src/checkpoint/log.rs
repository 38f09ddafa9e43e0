//! The log of a checkpoint: notes, each sealed, each bound to all before it.
//!
//! ```text
//! note = salt (32 random bytes) | length of the text (4, little endian) | check (16) | sealed text | tag (16)
//! ```
//!
//! A note's key follows from the log's key, the note's salt and the digest of all bytes before the note, so
//! that no two notes have the same one, and none opens in another place. `check` is a keyed digest of salt
//! and length: with it a length that a disk has changed is told from a note that a crash has cut off. What
//! was cut off was not synced, so nothing that came of it has left the process: it is as if it had not been
//! written.

use std::path::Path;
use std::sync::Arc;

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use crate::budget::{SecretKey, aes, random_bytes, wipe};
use crate::error::{Checkpoint, Error, Result};
use crate::storage::{Folder, Journal};

const SALT_BYTES: usize = 32;
const LEN_BYTES: usize = 4;
const CHECK_BYTES: usize = 16;
const HEAD_BYTES: usize = SALT_BYTES + LEN_BYTES + CHECK_BYTES;
const TAG_BYTES: usize = 16;

/// A log that is appended to.
pub(super) struct Log {
    key: Arc<SecretKey>,
    journal: Journal,
    /// Digest of all bytes of the log.
    chain: blake3::Hasher,
}

/// Why a note does not open.
enum Unread {
    /// The log ends inside of it, or in zeros.
    CutOff,
    Damaged,
    /// There is no key.
    Failed(Error),
}

impl Log {
    /// Reads the notes of the log `name` of a folder, and goes on behind them. A log that is missing is
    /// empty.
    ///
    /// # Errors
    /// [`Checkpoint::AnotherKey`] if the first note does not open, [`Checkpoint::Damaged`] if a later one
    /// doesn't; [`Error::Forked`]; the storage's.
    pub fn open(
        folder: &Folder,
        name: &str,
        bytes_max: u64,
        key: Arc<SecretKey>,
    ) -> Result<(Self, Vec<Vec<u8>>)> {
        let bytes = folder.read(name, bytes_max)?;
        let (mut chain, mut notes, mut at) = (blake3::Hasher::new(), Vec::new(), 0);
        while at < bytes.len() {
            match open(&key, &chain, &bytes[at..]) {
                Ok((text, note_bytes)) => {
                    chain.update(&bytes[at..at + note_bytes]);
                    at += note_bytes;
                    notes.push(text);
                }
                Err(Unread::CutOff) => break,
                Err(Unread::Failed(error)) => return Err(error),
                Err(Unread::Damaged) if at == 0 => {
                    let folder = folder.path().to_owned();
                    return Err(Checkpoint::AnotherKey { folder }.into());
                }
                Err(Unread::Damaged) => {
                    return Err(Checkpoint::Damaged {
                        file: Path::join(folder.path(), name),
                        offset: at as u64,
                    }
                    .into());
                }
            }
        }
        let journal = folder.journal(name, at as u64)?;
        Ok((Self { key, journal, chain }, notes))
    }

    /// Appends a note; when this returns, it is on the disk. `text` is wiped.
    pub fn append(&mut self, mut text: Vec<u8>) -> Result<()> {
        let mut salt = [0; SALT_BYTES];
        random_bytes(&mut salt)?;
        let len = (text.len() as u32).to_le_bytes();
        let mut sealed = text.clone();
        wipe(&mut text);
        let cipher = cipher(&self.key, &self.chain, &salt)?;
        let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
        let Ok(tag) = cipher.seal_in_place_separate_tag(nonce, Aad::empty(), &mut sealed) else {
            unreachable!("notes are far shorter than the cipher's limit of 64 GiB");
        };
        let check = check(&self.key, &self.chain, &salt, len)?;
        let note = [&salt[..], &len, &check, &sealed, tag.as_ref()].concat();
        self.journal.append(&note)?;
        self.chain.update(&note);
        Ok(())
    }
}

/// The text of the note at the start of `bytes`, and the note's length.
fn open(key: &SecretKey, chain: &blake3::Hasher, bytes: &[u8]) -> Result<(Vec<u8>, usize), Unread> {
    if bytes.len() < HEAD_BYTES {
        return Err(Unread::CutOff);
    }
    // Blocks that a crash left without content are at the end.
    let unread = || match bytes.ends_with(&[0; TAG_BYTES]) {
        true => Unread::CutOff,
        false => Unread::Damaged,
    };
    let (salt, rest) = bytes.split_at(SALT_BYTES);
    let (len, rest) = rest.split_at(LEN_BYTES);
    let (found, rest) = rest.split_at(CHECK_BYTES);
    let len: [u8; LEN_BYTES] = len.try_into().map_err(|_| Unread::Damaged)?;
    if found != check(key, chain, salt, len).map_err(Unread::Failed)? {
        return Err(unread());
    }
    let sealed_bytes = u32::from_le_bytes(len) as usize + TAG_BYTES;
    let Some(sealed) = rest.get(..sealed_bytes) else {
        return Err(Unread::CutOff);
    };
    let mut text = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
    let cipher = cipher(key, chain, salt).map_err(Unread::Failed)?;
    let opened = cipher.open_in_place(nonce, Aad::empty(), &mut text);
    if opened.is_err() {
        return Err(unread());
    }
    text.truncate(sealed_bytes - TAG_BYTES);
    Ok((text, HEAD_BYTES + sealed_bytes))
}

fn cipher(key: &SecretKey, chain: &blake3::Hasher, salt: &[u8]) -> Result<LessSafeKey> {
    let key = key.derived_for(&[b"note of the log ", chain.finalize().as_bytes(), salt]);
    Ok(aes(&mut key?))
}

fn check(
    key: &SecretKey,
    chain: &blake3::Hasher,
    salt: &[u8],
    len: [u8; LEN_BYTES],
) -> Result<[u8; CHECK_BYTES]> {
    let digest = key.derived_for(&[b"length of a note", chain.finalize().as_bytes(), salt, &len])?;
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&digest[..CHECK_BYTES]);
    Ok(check)
}
