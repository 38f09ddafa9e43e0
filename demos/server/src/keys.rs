//! Key files, their names, and the keys that are open.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use spillproof_circom::json::curve_name;
use spillproof_circom::prove::Key;
use spillproof_engine::Session;
use spillproof_format::iden3::FileKind;

use crate::settings::{Error, Result};

const NAME_CHARACTERS_MAX: usize = 128;

/// A key's file and name.
#[derive(Debug)]
pub(crate) struct KeyFile {
    name: String,
    file: PathBuf,
}

/// Finds the keys: each file that is named, and in folders the files that are keys by their first bytes or by the
/// ending `.zkey`. Names that begin with a dot are passed over.
///
/// # Errors
/// [`Error::File`], [`Error::NoKeys`], [`Error::Name`], [`Error::SameName`].
pub(crate) fn find(places: &[PathBuf]) -> Result<Vec<KeyFile>> {
    let mut found: Vec<KeyFile> = Vec::new();
    for place in places {
        let failed = |source| Error::File {
            file: place.clone(),
            source,
        };
        if !fs::metadata(place).map_err(failed)?.is_dir() {
            found.push(named(place)?);
            continue;
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(place).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if is_key(&file)? {
                files.push(named(&file)?);
            }
        }
        if files.is_empty() {
            return Err(Error::NoKeys {
                folder: place.clone(),
            });
        }
        found.append(&mut files);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some([one, other]) = found.windows(2).find_map(|pair| match pair {
        [one, other] if one.name == other.name => Some([one, other]),
        _ => None,
    }) {
        return Err(Error::SameName {
            name: one.name.clone(),
            files: [one.file.clone(), other.file.clone()],
        });
    }
    Ok(found)
}

fn is_key(file: &Path) -> Result<bool> {
    let failed = |source| Error::File {
        file: file.to_owned(),
        source,
    };
    let is_hidden = file
        .file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    if is_hidden || !fs::metadata(file).map_err(failed)?.is_file() {
        return Ok(false);
    }
    if file
        .extension()
        .is_some_and(|ending| ending == "zkey" || ending == "arkzkey")
    {
        return Ok(true);
    }
    let mut magic = [0; 8];
    let mut opened = fs::File::open(file).map_err(failed)?;
    let is_whole = opened.read_exact(&mut magic).is_ok();
    let [first, second, third, fourth, ..] = magic;
    let is_zkey = FileKind::detect([first, second, third, fourth]) == Some(FileKind::Zkey);
    Ok(is_whole && (is_zkey || magic == spillproof_format::header::MAGIC))
}

fn named(file: &Path) -> Result<KeyFile> {
    let name = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let is_part = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !begins || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(is_part) {
        return Err(Error::Name {
            file: file.to_owned(),
        });
    }
    Ok(KeyFile {
        name: name.to_owned(),
        file: file.to_owned(),
    })
}

/// How long a proof takes in what the budget has left; nothing, if it never fits.
fn work_of(session: &Session, key: &Key) -> spillproof_circom::Result<Duration> {
    let budget = session.budget();
    let left_bytes = budget.limit_bytes().saturating_sub(budget.held_bytes());
    match key.plan(session, left_bytes) {
        Ok(plan) => {
            let seconds = plan.of(None).seconds;
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        }
        Err(spillproof_circom::Error::Engine(spillproof_engine::Error::BudgetTooSmall { .. })) => {
            Ok(Duration::ZERO)
        }
        Err(other) => Err(other),
    }
}

/// A key that is open.
pub(crate) struct OpenKey {
    pub name: String,
    pub key: Key,
    /// What a proof with it needs of the budget at least.
    pub minimum_bytes: u64,
    /// How long a proof with it takes, as planned for a usual machine.
    pub work: Duration,
    verification_key: Vec<u8>,
}

impl OpenKey {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::Key`].
    pub fn open(session: &Session, file: KeyFile) -> Result<Self> {
        let opened = || -> spillproof_circom::Result<Self> {
            let key = Key::open(session, &file.file, &mut |_| ())?;
            Ok(Self {
                name: file.name.clone(),
                minimum_bytes: key.minimum_bytes(session)?,
                work: work_of(session, &key)?,
                verification_key: key.verification_key()?,
                key,
            })
        };
        opened().map_err(|source| Error::Key {
            file: file.file.clone(),
            source: Box::new(source),
        })
    }

    /// What is said of it in a list, with the budget that a server needs for a proof.
    pub fn summary(&self, needed_bytes: u64) -> Value {
        let (summary, shape) = (self.key.summary(), self.key.shape());
        json!({
            "name": self.name,
            "system": "groth16",
            "curve": curve_name(summary.curve),
            "signals": shape.signals,
            "publicSignals": shape.public,
            "logDomain": shape.log_domain,
            "coefficients": shape.coefficients,
            "witnessBytes": self.key.witness_bytes(),
            "neededBytes": needed_bytes,
            "insecure": summary.is_without_contribution,
        })
    }

    /// All that is said of it.
    ///
    /// # Errors
    /// None that a key which opened can cause.
    pub fn description(&self, needed_bytes: u64) -> serde_json::Result<Value> {
        let mut description = self.summary(needed_bytes);
        description["verificationKey"] = serde_json::from_slice(&self.verification_key)?;
        Ok(description)
    }
}
