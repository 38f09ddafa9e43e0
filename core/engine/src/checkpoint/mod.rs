//! Checkpoints: what a proof needs to go on after a crash, in a folder of the user's, sealed with a key that
//! is kept elsewhere.
//!
//! ```text
//! DIR/used                        the numbers of checkpoints of which a proof has come out
//! DIR/STATEMENT/log               a header, then a note for each step of the proof (log.rs)
//! DIR/STATEMENT/ROUND.columns     the columns that a round has committed to (column/kept.rs)
//! ```
//!
//! STATEMENT is a digest of what is proved, so proofs of different statements may share DIR. A round is kept
//! before anything that depends on it leaves the process: its columns are written and synced, then its note
//! is.
//!
//! **No random value gets into two transcripts.** A proof draws its random values from a seed in the header.
//! With the reproducible switch it draws them from the caller's generator, and each round's note has a digest
//! of its blinds. The columns that were committed to come from the checkpoint. So a second run makes the same
//! proof, and a second run from a copy makes the same proof too. Another key, transcript, generator or
//! setting of the switch is refused; another statement has another folder. When a proof has come out, the
//! checkpoint's number is entered in `used`, and its folder is removed. A copy that is put back is refused.
//! If a crash comes in between, `DIR/STATEMENT/finished` says that the proof is out, and the next run removes
//! the rest.
//!
//! Memory: the notes of the earlier run.

mod key;
mod log;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use key::{CHECKPOINT_KEY_FILE_VARIABLE, CHECKPOINT_KEY_VARIABLE, CheckpointKey};

use crate::budget::{KEY_BYTES, SecretKey, random_bytes};
use crate::column::{self, Column, Element, Workspace};
use crate::error::{self, Invalid, is_full};
use crate::storage::{Folder, is_inside};
use crate::{Error, Result};
use log::Log;

/// The variable that names the folder of checkpoints.
pub const CHECKPOINT_VARIABLE: &str = "SPILLPROOF_CHECKPOINT";

/// The name of the log.
const LOG: &str = "log";
/// More than a log has: some hundred bytes a column.
const LOG_BYTES_MAX: u64 = 1 << 28;
/// The name of an empty file beside the log of a checkpoint of which a proof has come out, until its files
/// are gone.
const FINISHED: &str = "finished";
/// The name of the list of used checkpoints.
const USED: &str = "used";
const USED_BYTES_MAX: u64 = 1 << 28;
const ID_BYTES: usize = 16;
/// Bytes of a seed.
pub const SEED_BYTES: usize = 32;

/// Where checkpoints are, and the key that opens them.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    dir: PathBuf,
    key: CheckpointKey,
}

/// What a checkpoint is bound to from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A digest of what is proved: verifying key, instances, scheme.
    pub statement: [u8; 32],
    /// Whether random values are those of the caller's generator, and not of the seed.
    pub draws_are_the_callers: bool,
}

/// The checkpoint of one proof, which no other proof has meanwhile.
pub struct Checkpoint {
    folder: Folder,
    /// The folder around it.
    all: Folder,
    log: Log,
    header: Header,
    /// Of the earlier run, from the next one on.
    notes: VecDeque<Vec<u8>>,
}

/// The dry run of [`Checkpoint::keep`].
///
/// # Errors
/// [`Error::OverBudget`].
pub fn rehearse_keep<'c, E: Element>(mut columns: impl Iterator<Item = &'c Column<E>>) -> Result<()> {
    columns.try_for_each(column::rehearse_keep)
}

/// The key of a round's files.
#[derive(Clone)]
pub struct RoundKey([u8; KEY_BYTES]);

impl Checkpoints {
    /// Checkpoints in `dir`, which is made when the first one is.
    pub fn new(dir: impl Into<PathBuf>, key: CheckpointKey) -> Self {
        Self { dir: dir.into(), key }
    }

    /// Checkpoints in `dir`, with the key in `key_file`; what is `None` is taken from
    /// [`CHECKPOINT_VARIABLE`], and [`CHECKPOINT_KEY_FILE_VARIABLE`] or [`CHECKPOINT_KEY_VARIABLE`]. Without
    /// a folder there are none.
    ///
    /// # Errors
    /// [`Invalid::Setting`] for a folder without a key, or a key without a folder; for two keys; for a key
    /// file in the folder.
    pub fn configured(dir: Option<&Path>, key_file: Option<&Path>) -> Result<Option<Self>> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let or_variable = |given: Option<&Path>, name| match given {
            Some(given) => Some(given.to_owned()),
            None => variable(name).map(PathBuf::from),
        };
        let dir = or_variable(dir, CHECKPOINT_VARIABLE);
        let key_file = or_variable(key_file, CHECKPOINT_KEY_FILE_VARIABLE);
        let digits = variable(CHECKPOINT_KEY_VARIABLE);
        let invalid = |reason: String| {
            Err(Invalid::Setting {
                name: "checkpoint key",
                reason,
            }
            .into())
        };
        let Some(dir) = dir else {
            return match &key_file {
                None => Ok(None),
                Some(file) => invalid(format!(
                    "{}: there is a key, and no folder of checkpoints: name one",
                    file.display()
                )),
            };
        };
        let key = match (&key_file, digits) {
            (Some(_), Some(_)) => {
                return invalid(format!(
                    "a file and {CHECKPOINT_KEY_VARIABLE} both give a key: leave one out"
                ));
            }
            (None, None) => {
                return invalid(format!(
                    "there is none for checkpoints in {}: name a file of {KEY_BYTES} random bytes, in another folder",
                    dir.display()
                ));
            }
            (Some(file), None) if is_inside(file, &dir) => {
                return invalid(format!(
                    "{} is in the folder of checkpoints, so a copy of the folder would give the witness away: keep the key elsewhere",
                    file.display()
                ));
            }
            (Some(file), None) => CheckpointKey::from_file(file)?,
            (None, Some(digits)) => CheckpointKey::from_hex(&digits.to_string_lossy())?,
        };
        Ok(Some(Self::new(dir, key)))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The checkpoint of this statement: that of an earlier run, or a new one, whose seed follows from the
    /// system's entropy and the caller's.
    ///
    /// # Errors
    /// [`error::Checkpoint`]; [`Error::File`] for a folder that cannot be used;
    /// [`Error::Forked`] for a key that another process read.
    pub fn begin(
        &self,
        workspace: &Workspace,
        terms: &Terms,
        entropy: impl FnOnce(&mut [u8; SEED_BYTES]),
    ) -> Result<Checkpoint> {
        let path = self.dir.join(hex::encode(&terms.statement[..ID_BYTES]));
        let begun = self.begin_in(path, workspace, terms, entropy);
        begun.map_err(|error| full(&self.dir, error))
    }

    fn begin_in(
        &self,
        path: PathBuf,
        workspace: &Workspace,
        terms: &Terms,
        entropy: impl FnOnce(&mut [u8; SEED_BYTES]),
    ) -> Result<Checkpoint> {
        let key = &self.key.0;
        let all = workspace.storage.folder(&self.dir)?;
        let (folder, mut log, mut notes) = loop {
            let mut folder = workspace.storage.folder(&path)?;
            if !folder.lock()? {
                return Err(error::Checkpoint::InUse { folder: path }.into());
            }
            let log_key = Arc::new(SecretKey::of(
                &mut key.derived_for(&[b"key of a log    ", &terms.statement])?,
            )?);
            let (log, notes) = Log::open(&folder, LOG, LOG_BYTES_MAX, log_key)?;
            if !folder.has(FINISHED) {
                break (folder, log, VecDeque::from(notes));
            }
            // A crash came before its files had gone.
            retire(folder, &all, notes.first().and_then(|text| Header::decode(text)))?;
        };
        let header = match notes.pop_front() {
            Some(text) => Header::decode(&text).ok_or_else(|| error::Checkpoint::Differs {
                folder: path.clone(),
                what: "version of this program",
            })?,
            None => {
                let header = Header::new(terms, entropy)?;
                log.append(header.encode())?;
                header
            }
        };
        let used = all.read(USED, USED_BYTES_MAX)?;
        let id = header.id_text();
        if used
            .split(|byte| *byte == b'\n')
            .any(|line| line == id.as_bytes())
        {
            return Err(error::Checkpoint::Used { folder: path }.into());
        }
        if header.draws_are_the_callers != terms.draws_are_the_callers {
            return Err(error::Checkpoint::Differs {
                folder: path,
                what: "setting of the switch for reproducible proofs",
            }
            .into());
        }
        Ok(Checkpoint {
            folder,
            all,
            log,
            header,
            notes,
        })
    }
}

impl Checkpoint {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The seed of the proof's random values; `None` if they are those of the caller's generator.
    pub fn seed(&self) -> Option<&[u8; SEED_BYTES]> {
        (!self.header.draws_are_the_callers).then_some(&self.header.seed)
    }

    /// The notes of the earlier run that were not taken yet, in order.
    pub fn notes(&self) -> impl Iterator<Item = &[u8]> {
        self.notes.iter().map(Vec::as_slice)
    }

    /// Takes the next note of the earlier run.
    pub fn take_note(&mut self) -> Option<Vec<u8>> {
        self.notes.pop_front()
    }

    /// Appends a note, behind all of the earlier run. When this returns, it is on the disk.
    ///
    /// # Errors
    /// The storage's.
    pub fn note(&mut self, text: Vec<u8>) -> Result<()> {
        debug_assert!(self.notes.is_empty());
        self.log
            .append(text)
            .map_err(|error| full(self.all.path(), error))
    }

    /// Writes the columns of a round (numbered from 0 in the proof), all of one length. When this returns,
    /// they are on the disk. The key belongs in the round's note.
    ///
    /// # Errors
    /// The storage's, and those of reading the columns.
    pub fn keep<'c, E: Element>(
        &self,
        round: usize,
        mut columns: impl Iterator<Item = &'c Column<E>>,
    ) -> Result<RoundKey> {
        let mut key = [0; KEY_BYTES];
        random_bytes(&mut key)?;
        let round_key = RoundKey(key);
        let secret = Arc::new(SecretKey::of(&mut key)?);
        let name = file_name(round);
        let mut write = || {
            let file = self.folder.create(&name)?;
            for (index, column) in columns.by_ref().enumerate() {
                column::keep(column, &file, &secret, index as u64)?;
            }
            file.sync()?;
            self.folder.sync()
        };
        write().map_err(|error| full(self.all.path(), error))?;
        Ok(round_key)
    }

    /// The `count` columns of `len` elements each that a round of an earlier run has kept. They are read
    /// where they are.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is missing,
    /// [`Error::Damaged`] for one of another length.
    pub fn kept<E: Element>(
        &self,
        workspace: &Workspace,
        round: usize,
        key: &RoundKey,
        (count, len): (usize, u64),
    ) -> Result<Vec<Column<E>>> {
        let secret = Arc::new(SecretKey::of(&mut key.0.clone())?);
        let file = self.folder.open(&file_name(round))?;
        column::kept(workspace, &file, &secret, (count as u64, len))
    }

    /// The earlier run's proof is another one than this.
    pub fn differs(&self, what: &'static str) -> error::Checkpoint {
        let folder = self.folder.path().to_owned();
        error::Checkpoint::Differs { folder, what }
    }

    /// A proof has come out, or one that does not verify: the checkpoint is used, and its files go.
    ///
    /// # Errors
    /// The storage's. Then a later run may find the checkpoint, and makes the same proof from it.
    pub fn finish(self) -> Result<()> {
        self.folder.create(FINISHED)?;
        self.folder.sync()?;
        retire(self.folder, &self.all, Some(self.header))
    }
}

/// An error of writing in the folder of checkpoints: a full disk is theirs.
fn full(folder: &Path, error: Error) -> Error {
    match &error {
        Error::File { file, source, .. } | Error::Io { file, source, .. }
            if is_full(source) && Path::new(file).starts_with(folder) =>
        {
            error::Checkpoint::Full {
                folder: folder.to_owned(),
                reason: error.to_string(),
            }
            .into()
        }
        _ => error,
    }
}

/// Enters a finished checkpoint among the used ones, and removes its files.
fn retire(folder: Folder, all: &Folder, header: Option<Header>) -> Result<()> {
    if let Some(header) = header {
        all.append(USED, format!("\n{}\n", header.id_text()).as_bytes())?;
    }
    // Without a log there is nothing to go on from.
    folder.remove(LOG)?;
    all.sync()
}

impl RoundKey {
    /// Bytes of a key.
    pub const BYTES: usize = KEY_BYTES;

    /// Its bytes, for a note.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        self.0
    }

    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for RoundKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RoundKey")
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("folder", &self.folder.path())
            .field("notes", &self.notes.len())
            .finish_non_exhaustive()
    }
}

fn file_name(round: usize) -> String {
    format!("{round}.columns")
}

/// The first note of a log.
struct Header {
    id: [u8; ID_BYTES],
    seed: [u8; SEED_BYTES],
    draws_are_the_callers: bool,
}

impl Header {
    const VERSION: u8 = 1;

    fn new(terms: &Terms, entropy: impl FnOnce(&mut [u8; SEED_BYTES])) -> Result<Self> {
        let (mut id, mut callers, mut own) = ([0; ID_BYTES], [0; SEED_BYTES], [0; SEED_BYTES]);
        random_bytes(&mut id)?;
        random_bytes(&mut own)?;
        entropy(&mut callers);
        let seed = *blake3::keyed_hash(&own, &callers).as_bytes();
        Ok(Self {
            id,
            seed,
            draws_are_the_callers: terms.draws_are_the_callers,
        })
    }

    /// As it stands among the used ones.
    fn id_text(&self) -> String {
        hex::encode(self.id)
    }

    fn encode(&self) -> Vec<u8> {
        let flags = [Self::VERSION, u8::from(self.draws_are_the_callers)];
        [&flags[..], &self.id, &self.seed].concat()
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let (&[version, draws_are_the_callers], rest) = text.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (seed, rest) = rest.split_first_chunk()?;
        (version == Self::VERSION && rest.is_empty()).then_some(Self {
            id: *id,
            seed: *seed,
            draws_are_the_callers: draws_are_the_callers == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;

    use super::*;
    use crate::budget::Budget;
    use crate::column::{Placement, Writer};
    use crate::error::Error;
    use crate::storage::Storage;

    const TERMS: Terms = Terms {
        statement: [3; 32],
        draws_are_the_callers: false,
    };

    fn workspace(dir: &Path) -> Workspace {
        let storage = Storage::builder().dir(dir).build().unwrap();
        Workspace::new(storage, Budget::new(1 << 20))
    }

    fn checkpoints(dir: &Path) -> Checkpoints {
        let key = CheckpointKey::from_hex(&"5a".repeat(32)).unwrap();
        Checkpoints::new(dir.join("kept"), key)
    }

    fn begin(workspace: &Workspace, dir: &Path) -> Result<Checkpoint> {
        checkpoints(dir).begin(workspace, &TERMS, |entropy| entropy.fill(9))
    }

    fn said(result: Result<Checkpoint>) -> error::Checkpoint {
        match result {
            Err(Error::Checkpoint(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn notes_and_columns_come_back_until_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = workspace(dir.path());
        let values: Vec<Fr> = (0..3000u64).map(Fr::from).collect();
        let mut writer = Writer::scratch(&workspace, "values", 3000, Placement::Auto).unwrap();
        writer.push(&values).unwrap();
        let column = writer.finish().unwrap();

        let mut first = begin(&workspace, dir.path()).unwrap();
        assert_eq!(first.notes().count(), 0);
        let key = first.keep(4, [&column, &column].into_iter()).unwrap();
        first.note(key.to_bytes().to_vec()).unwrap();
        let (seed, folder) = (first.seed().copied(), first.folder().to_owned());
        assert!(matches!(
            said(begin(&workspace, dir.path())),
            error::Checkpoint::InUse { .. }
        ));
        drop(first);
        let files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap())
            .collect();
        assert_eq!(files.len(), 2);

        let mut second = begin(&workspace, dir.path()).unwrap();
        assert_eq!(second.seed().copied(), seed);
        let note = second.take_note().unwrap();
        let key = RoundKey::from_bytes(note.try_into().unwrap());
        let columns = second.kept::<Fr>(&workspace, 4, &key, (2, 3000)).unwrap();
        assert_eq!(columns.len(), 2);
        for column in columns {
            assert_eq!(column.to_vec().unwrap(), values);
        }
        for shape in [(2, 9000), (3, 3000), (1, 3000)] {
            assert!(matches!(
                second.kept::<Fr>(&workspace, 4, &key, shape),
                Err(Error::Damaged { .. })
            ));
        }
        let missing = second.kept::<Fr>(&workspace, 5, &key, (2, 3000));
        assert!(matches!(missing, Err(Error::File { .. })));
        // A copy of all files, put back when the proof has come out.
        let copy = |from: &Path, to: &Path| {
            std::fs::create_dir_all(to).unwrap();
            for file in std::fs::read_dir(from).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        };
        copy(&folder, &dir.path().join("copy"));
        // A crash between the end of the proof and that of the files.
        std::fs::write(folder.join(FINISHED), "").unwrap();
        drop(second);
        let third = begin(&workspace, dir.path()).unwrap();
        assert!(third.notes().next().is_none() && third.seed().copied() != seed);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        third.finish().unwrap();
        assert!(!folder.exists());
        copy(&dir.path().join("copy"), &folder);
        assert!(matches!(
            said(begin(&workspace, dir.path())),
            error::Checkpoint::Used { .. }
        ));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_ne!(begin(&workspace, dir.path()).unwrap().seed().copied(), seed);
    }

    #[test]
    fn other_keys_and_switches_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = workspace(dir.path());
        let folder = begin(&workspace, dir.path()).unwrap().folder().to_owned();
        let terms = Terms {
            draws_are_the_callers: true,
            ..TERMS
        };
        let other = checkpoints(dir.path()).begin(&workspace, &terms, |_| {});
        assert!(matches!(said(other), error::Checkpoint::Differs { .. }));
        let key = CheckpointKey::from_hex(&"5b".repeat(32)).unwrap();
        let other = Checkpoints::new(dir.path().join("kept"), key).begin(&workspace, &TERMS, |_| {});
        assert!(matches!(said(other), error::Checkpoint::AnotherKey { .. }));
        // Another statement's log, in the place of this one's.
        let terms = Terms {
            statement: [4; 32],
            ..TERMS
        };
        let other = checkpoints(dir.path()).begin(&workspace, &terms, |_| {}).unwrap();
        std::fs::copy(other.folder().join(LOG), folder.join(LOG)).unwrap();
        drop(other);
        assert!(matches!(
            said(begin(&workspace, dir.path())),
            error::Checkpoint::AnotherKey { .. }
        ));
    }

    #[test]
    fn a_log_that_is_cut_off_or_changed() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = workspace(dir.path());
        let mut first = begin(&workspace, dir.path()).unwrap();
        let mut ends = Vec::new();
        let path = first.folder().join(LOG);
        for note in ["one", "another", ""] {
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
            first.note(note.into()).unwrap();
        }
        drop(first);
        let whole = std::fs::read(&path).unwrap();
        ends.push(whole.len());
        for len in 0..=whole.len() {
            for zeros in [0, 100] {
                let cut = [&whole[..len], &vec![0; zeros]].concat();
                std::fs::write(&path, &cut).unwrap();
                let mut again = begin(&workspace, dir.path()).unwrap();
                // A note whose last bytes happen to be zeros is whole again with zeros behind it.
                let is_there = |end: &&usize| cut.len() >= **end && cut[..**end] == whole[..**end];
                let expected = ends[1..].iter().filter(is_there).count();
                assert_eq!(again.notes().count(), expected, "{len} bytes");
                while again.take_note().is_some() {}
                again.note(b"more".to_vec()).unwrap();
                drop(again);
                let again = begin(&workspace, dir.path()).unwrap();
                assert_eq!(again.notes().last(), Some(&b"more"[..]), "{len} bytes");
            }
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            let error = said(begin(&workspace, dir.path()));
            match at < ends[0] {
                true => assert!(matches!(error, error::Checkpoint::AnotherKey { .. })),
                false => {
                    let start = ends.iter().rev().find(|end| **end <= at).unwrap();
                    let offset = *start as u64;
                    assert_eq!(
                        error,
                        error::Checkpoint::Damaged {
                            file: path.clone(),
                            offset
                        }
                    );
                }
            }
            assert!(
                std::fs::read(&path).unwrap() == changed,
                "an error changed the log"
            );
        }
    }
}
