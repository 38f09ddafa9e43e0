//! Key files, their names, and the keys that are open.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use spillproof_circom::prove::Key;
use spillproof_engine::Session;
use spillproof_format::iden3::FileKind;
use spillproof_format::{Curve, Kind};

use crate::halo2::Halo2Key;
use crate::parameters::{AllParameters, header_of};
use crate::settings::{Error, Result};
use crate::system::{Need, SystemKey};

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

/// A key that is open.
pub(crate) struct OpenKey {
    pub name: String,
    pub key: SystemKey,
    pub need: Need,
}

impl OpenKey {
    /// Opens it. Saved halo2 keys take parameters.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::NoParameters`], [`Error::FewParameters`], [`Error::Parameters`].
    pub fn open(session: &Arc<Session>, file: KeyFile, parameters: &AllParameters) -> Result<Self> {
        let KeyFile { name, file } = file;
        let saved = header_of(&file)?.filter(|header| header.kind() == Kind::ProvingKeyBundle);
        let key = match saved.map(|header| header.curve()) {
            None => groth16(session, &file).map_err(|error| Error::key(&file, error))?,
            Some(Curve::Bls12381) => {
                let parameters = parameters.midnight.as_ref();
                SystemKey::Midnight(Box::new(Halo2Key::open(session, &file, parameters)?))
            }
            Some(_) => {
                let parameters = parameters.axiom.as_ref();
                SystemKey::Axiom(Box::new(Halo2Key::open(session, &file, parameters)?))
            }
        };
        let need = key.need(session).map_err(|error| Error::key(&file, error))?;
        Ok(Self { name, key, need })
    }

    /// What is said of it in a list, with the budget that a server needs for a proof.
    pub fn summary(&self, needed_bytes: u64) -> Value {
        let mut summary = self.key.summary();
        summary["name"] = self.name.as_str().into();
        summary["witnessBytes"] = self.key.witness_length().bytes_max.into();
        summary["neededBytes"] = needed_bytes.into();
        summary
    }

    /// All that is said of it.
    ///
    /// # Errors
    /// None that a key which opened can cause.
    pub fn description(&self, needed_bytes: u64) -> serde_json::Result<Value> {
        let mut description = self.summary(needed_bytes);
        if let Some(verification_key) = self.key.verification_key() {
            description["verificationKey"] = serde_json::from_slice(verification_key)?;
        }
        Ok(description)
    }
}

fn groth16(session: &Session, file: &Path) -> spillproof_circom::Result<SystemKey> {
    let key = Key::open(session, file, &mut |_| ())?;
    Ok(SystemKey::Groth16 {
        verification_key: key.verification_key()?,
        key: Box::new(key),
    })
}
