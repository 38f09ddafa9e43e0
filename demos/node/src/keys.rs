//! Keys that stay open: a program that proves with the same file again does not read it again.
//!
//! A file is the same while its path, place on the disk, length and times are. Its points stay in it; its
//! coefficients are in scratch, and so go with the process. Memory of an open key, in its session's budget: digests of
//! its frames. Where a call lacks room, keys that no call uses are closed first ([`close_idle`]).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use spillproof_circom::prove::Key;
use spillproof_engine::control::Control;
use spillproof_engine::{Error, Session};

use crate::outcome::Failed;
use crate::pieces::LOOK;

/// Keys that stay open.
const KEPT: usize = 4;

/// What tells a file from others, and from what it was before.
#[derive(Clone, PartialEq)]
struct Identity {
    path: PathBuf,
    place: [u64; 2],
    bytes: u64,
    modified: [i64; 2],
}

impl Identity {
    /// None for a file that is none of a disk's, or is not there.
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        Some(Self {
            path: path.to_owned(),
            place: [metadata.dev(), metadata.ino()],
            bytes: metadata.len(),
            modified: [metadata.mtime(), metadata.mtime_nsec()],
        })
    }
}

/// A key, from the first call that wants it on.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Closed,
    /// By a call.
    Opening,
    Open(Arc<Key>),
}

struct Entry {
    session: Arc<Session>,
    file: Identity,
    slot: Arc<Slot>,
}

/// The key that was wanted last is the last one.
static KNOWN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<Entry>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of a file, which is opened if it is not. One call opens it, others wait for that one.
pub fn key(session: &Arc<Session>, path: &Path, control: &Control) -> Result<Arc<Key>, Failed> {
    let Some(file) = Identity::of(path) else {
        return open(session, path);
    };
    let slot = slot(session, &file);
    let mut state = slot.lock();
    loop {
        match &*state {
            State::Open(key) => return Ok(Arc::clone(key)),
            State::Closed => break,
            State::Opening if control.is_stopped() => return Err(Error::Stopped.into()),
            State::Opening => {
                let waited = slot.changed.wait_timeout(state, LOOK);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
    *state = State::Opening;
    drop(state);
    let opening = Opening(&slot);
    let key = open(session, path)?;
    // Another file may have got the name meanwhile.
    if Identity::of(path).as_ref() == Some(&file) {
        opening.end(State::Open(Arc::clone(&key)));
    }
    Ok(key)
}

fn open(session: &Session, path: &Path) -> Result<Arc<Key>, Failed> {
    Ok(Arc::new(Key::open(session, path, &mut |_| ())?))
}

fn slot(session: &Arc<Session>, file: &Identity) -> Arc<Slot> {
    let mut gone = Vec::new();
    let mut known = known();
    let is_it = |entry: &Entry| Arc::ptr_eq(&entry.session, session) && entry.file == *file;
    let entry = match known.iter().position(is_it) {
        Some(at) => known.remove(at),
        None => Entry {
            session: Arc::clone(session),
            file: file.clone(),
            slot: Arc::default(),
        },
    };
    let slot = Arc::clone(&entry.slot);
    // What the file was before is of no use any more.
    let is_old = |old: &mut Entry| old.file.path == file.path && old.file != *file;
    gone.extend(known.extract_if(.., is_old));
    known.push(entry);
    let surplus = known.len().saturating_sub(KEPT);
    gone.extend(known.drain(..surplus));
    drop(known);
    // They are closed without the lock.
    drop(gone);
    slot
}

/// Closes the keys of a session that no call uses. Whether there were any.
pub fn close_idle(session: &Arc<Session>) -> bool {
    let is_idle = |entry: &mut Entry| {
        let is_used = match &*entry.slot.lock() {
            State::Open(key) => Arc::strong_count(key) > 1,
            State::Opening => true,
            State::Closed => false,
        };
        Arc::ptr_eq(&entry.session, session) && !is_used
    };
    let idle: Vec<Entry> = known().extract_if(.., is_idle).collect();
    !idle.is_empty()
}

/// Closes a key whose scratch cannot be read any more: the next call opens it again.
pub fn forget(key: &Arc<Key>) {
    let is_it =
        |entry: &mut Entry| matches!(&*entry.slot.lock(), State::Open(open) if Arc::ptr_eq(open, key));
    let gone: Vec<Entry> = known().extract_if(.., is_it).collect();
    drop(gone);
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot whose key is being opened by this call. When it is dropped the slot is closed, and the next call opens it.
struct Opening<'a>(&'a Slot);

impl Opening<'_> {
    fn end(self, state: State) {
        *self.0.lock() = state;
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Opening) {
            *state = State::Closed;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}
