//! The key of checkpoints: 32 bytes that the user keeps elsewhere.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::budget::{KEY_BYTES, SecretKey, wipe};
use crate::error::{Invalid, Result};
use crate::storage::read_start;

/// The variable that names the file of the key.
pub const CHECKPOINT_KEY_FILE_VARIABLE: &str = "SPILLPROOF_CHECKPOINT_KEY_FILE";
/// The variable that holds the key, in hexadecimal digits.
pub const CHECKPOINT_KEY_VARIABLE: &str = "SPILLPROOF_CHECKPOINT_KEY";

/// More than a key file has.
const FILE_BYTES_MAX: u64 = 4096;

/// The key with which checkpoints are sealed.
#[derive(Clone)]
pub struct CheckpointKey(pub(super) Arc<SecretKey>);

impl CheckpointKey {
    /// From a file of 32 bytes, or of 64 hexadecimal digits; a pipe will do.
    ///
    /// # Errors
    /// [`Invalid::Setting`] for a file that cannot be read, or of another length.
    pub fn from_file(path: &Path) -> Result<Self> {
        let invalid = |reason| Invalid::Setting {
            name: "file of the checkpoint key",
            reason: format!("{}: {reason}", path.display()),
        };
        let remedy = || {
            format!(
                "a key is {KEY_BYTES} bytes, or {} hexadecimal digits (`head -c {KEY_BYTES} /dev/urandom` makes one)",
                2 * KEY_BYTES
            )
        };
        let mut bytes = read_start(path, FILE_BYTES_MAX).map_err(|error| match error.kind() {
            ErrorKind::NotFound => invalid(format!("{error}: {}", remedy())),
            _ => invalid(error.to_string()),
        })?;
        let key = match <[u8; KEY_BYTES]>::try_from(&bytes[..]) {
            Ok(key) => Some(key),
            Err(_) => of_digits(&bytes),
        };
        let read = bytes.len();
        wipe(&mut bytes);
        let mut key = key.ok_or_else(|| invalid(format!("{read} bytes that are no key: {}", remedy())))?;
        Ok(Self(Arc::new(SecretKey::of(&mut key)?)))
    }

    /// From 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`Invalid::Setting`] for anything else.
    pub fn from_hex(digits: &str) -> Result<Self> {
        let mut key = of_digits(digits.as_bytes()).ok_or_else(|| Invalid::Setting {
            name: "checkpoint key",
            reason: format!(
                "{} characters that are no key: it is {} hexadecimal digits",
                digits.len(),
                2 * KEY_BYTES
            ),
        })?;
        Ok(Self(Arc::new(SecretKey::of(&mut key)?)))
    }
}

fn of_digits(text: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    hex::decode_to_slice(text.trim_ascii(), &mut key).ok()?;
    Some(key)
}

impl fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckpointKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bytes_or_digits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let of = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            CheckpointKey::from_file(&path).map(|key| key.0.derived(0).unwrap())
        };
        let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
        let bytes = hex::decode(&digits).unwrap();
        let expected = of(&bytes).unwrap();
        assert_eq!(of(digits.as_bytes()).unwrap(), expected);
        assert_eq!(of(format!(" {digits}\n").as_bytes()).unwrap(), expected);
        let of_digits = CheckpointKey::from_hex(&digits).unwrap();
        assert_eq!(of_digits.0.derived(0).unwrap(), expected);
        for wrong in [&b""[..], &bytes[1..], &digits.as_bytes()[1..], &[b'g'; 64]] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("no key") && error.contains("/key"), "{error}");
        }
        assert!(
            CheckpointKey::from_hex("12")
                .unwrap_err()
                .to_string()
                .contains("64 hex")
        );
        // A device that never ends.
        assert!(CheckpointKey::from_file(Path::new("/dev/zero")).is_err());
        assert!(CheckpointKey::from_file(dir.path()).is_err());
        let missing = CheckpointKey::from_file(&dir.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("head -c 32"), "{missing}");
    }
}
