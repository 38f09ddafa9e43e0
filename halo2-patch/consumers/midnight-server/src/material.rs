//! Key material: a circuit with its keys, in a request or in the server's folder.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;

use midnight_base_crypto::data_provider::{FetchMode, MidnightDataProvider, OutputMode, BASE_URL};
use midnight_ledger::dust::DUST_EXPECTED_FILES;
use midnight_transient_crypto::proofs::{KeyLocation, ProvingKeyMaterial};
use midnight_zswap::ZSWAP_EXPECTED_FILES;

use crate::failure::{Failure, Result};
use crate::keys::{self, Key, KeyId, Keys};
use crate::now::now;

/// A circuit and its keys, the proving key perhaps as a handle.
pub struct Material<'m> {
    pub circuit: Cow<'m, [u8]>,
    pub verifier: Cow<'m, [u8]>,
    pub key: KeySource<'m>,
}

/// Where a proving key comes from.
pub enum KeySource<'m> {
    Held(Key),
    Bytes(KeyId, Cow<'m, [u8]>),
    File(KeyId, &'static str),
}

impl<'m> Material<'m> {
    /// Of a request; the bytes of a key that is held are dropped.
    pub fn of_request(material: ProvingKeyMaterial, keys: &Keys) -> Material<'static> {
        let id = keys::id_of(&material.prover_key);
        Material {
            circuit: material.ir_source.into(),
            verifier: material.verifier_key.into(),
            key: match keys.find(&id) {
                Some(key) => KeySource::Held(key),
                None => KeySource::Bytes(id, material.prover_key.into()),
            },
        }
    }

    /// Of a request that several proofs need.
    pub fn within_request(material: &'m ProvingKeyMaterial) -> Self {
        Self {
            circuit: (&material.ir_source).into(),
            verifier: (&material.verifier_key).into(),
            key: KeySource::Bytes(keys::id_of(&material.prover_key), (&material.prover_key).into()),
        }
    }

    /// Its bytes, without those of a key that is held or in a file.
    pub fn bytes(&self) -> usize {
        let of_key = match &self.key {
            KeySource::Bytes(_, bytes) => bytes.len(),
            KeySource::Held(_) | KeySource::File(..) => 0,
        };
        self.circuit.len() + self.verifier.len() + of_key
    }
}

/// The server's folder: parameters, and keys of Midnight's own circuits, whose digests the ledger's crates
/// pin. What is not there is not fetched.
pub struct Folder {
    files: MidnightDataProvider,
}

impl Folder {
    /// The folder `dir`.
    pub fn new(dir: PathBuf) -> Self {
        let expected = ZSWAP_EXPECTED_FILES.iter().chain(DUST_EXPECTED_FILES);
        Self {
            files: MidnightDataProvider {
                fetch_mode: FetchMode::Synchronous,
                base_url: BASE_URL.clone(),
                output_mode: OutputMode::Log,
                expected_data: expected.copied().collect(),
                dir,
            },
        }
    }

    /// The file of the parameters for `2^k` rows, which may not be there.
    pub fn params(&self, k: u8) -> PathBuf {
        self.files.dir.join(MidnightDataProvider::name_k(k))
    }

    /// The material of one of Midnight's own circuits: `midnight/zswap/spend` is
    /// `zswap/VERSION/spend.prover`, `.verifier` and `.bzkir`. The proving key is not read.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`]; for a file that has another digest.
    pub fn material(&self, location: &KeyLocation, keys: &Keys) -> Result<Material<'static>> {
        let (id, file) = self.find(location, "prover")?;
        Ok(Material {
            circuit: self.circuit(location)?.into(),
            verifier: self.read(self.find(location, "verifier")?.1)?.into(),
            key: match keys.find(&id) {
                Some(key) => KeySource::Held(key),
                None => KeySource::File(id, file),
            },
        })
    }

    /// The circuit alone.
    ///
    /// # Errors
    /// As [`Self::material`].
    pub fn circuit(&self, location: &KeyLocation) -> Result<Vec<u8>> {
        self.read(self.find(location, "bzkir")?.1)
    }

    /// Bytes of a file; none if it is not there.
    pub fn file_bytes(&self, name: &str) -> u64 {
        fs::metadata(self.files.dir.join(name)).map_or(0, |metadata| metadata.len())
    }

    /// A file whose digest is pinned.
    ///
    /// # Errors
    /// [`Failure::UnknownKey`] if it is not there; if it has another digest.
    pub fn read(&self, name: &'static str) -> Result<Vec<u8>> {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = now(self.files.get_file(name, name))?;
            let mut bytes = Vec::with_capacity(self.file_bytes(name) as usize);
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::UnknownKey,
            // Names and digests.
            _ => Failure::Internal {
                reason: error.to_string(),
            },
        })
    }

    fn find(&self, location: &KeyLocation, extension: &str) -> Result<(KeyId, &'static str)> {
        let parts: Vec<&str> = location.0.split('/').collect();
        let ["midnight", group, name] = parts[..] else {
            return Err(Failure::UnknownKey);
        };
        let file = self.files.expected_data.iter().find(|(file, ..)| {
            let of_group = file.strip_prefix(group).and_then(|rest| rest.strip_prefix('/'));
            let of_version = of_group.and_then(|rest| rest.split_once('/'));
            of_version.is_some_and(|(_, file)| file.split_once('.') == Some((name, extension)))
        });
        file.map(|(file, digest, _)| (*digest, *file))
            .ok_or(Failure::UnknownKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_circuits_are_found_by_their_locations() {
        let folder = Folder::new("/nowhere".into());
        for location in [
            "midnight/zswap/spend",
            "midnight/zswap/output",
            "midnight/zswap/sign",
            "midnight/dust/spend",
        ] {
            for extension in ["prover", "verifier", "bzkir"] {
                let (_, file) = folder.find(&KeyLocation(location.into()), extension).unwrap();
                let group = location.split('/').nth(1).unwrap();
                assert!(
                    file.starts_with(group) && file.ends_with(extension),
                    "{location}: {file}"
                );
            }
        }
        for unknown in [
            "spend",
            "midnight/zswap",
            "midnight/zswap/spend/",
            "midnight/../spend",
            "",
        ] {
            let found = folder.find(&KeyLocation(unknown.into()), "prover");
            assert_eq!(found.err(), Some(Failure::UnknownKey), "{unknown}");
        }
        let missing = folder.circuit(&KeyLocation("midnight/dust/spend".into()));
        assert_eq!(missing.err(), Some(Failure::UnknownKey));
    }
}
