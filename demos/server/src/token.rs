//! The bearer token.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use axum::http::HeaderValue;

use crate::settings::{Error, Result};

const TOKEN_CHARACTERS_MIN: usize = 16;
const TOKEN_CHARACTERS_MAX: usize = 1024;
/// Reading and writing by everyone.
const BY_OTHERS: u32 = 0o006;

/// A token, of which only a digest is kept.
pub(crate) struct Token {
    digest: blake3::Hash,
}

impl Token {
    /// Reads one. Spaces and line ends around it do not count.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::TokenForAll`]; [`Error::Token`].
    pub fn read(file: &Path) -> Result<Self> {
        let failed = |source| Error::File {
            file: file.to_owned(),
            source,
        };
        // The permissions are those of the file that is read, whatever gets its name meanwhile.
        let opened = File::open(file).map_err(failed)?;
        let mode = opened.metadata().map_err(failed)?.mode() & 0o777;
        if mode & BY_OTHERS != 0 {
            return Err(Error::TokenForAll {
                file: file.to_owned(),
                mode,
            });
        }
        let mut text = Vec::new();
        let mut limited = opened.take(2 * TOKEN_CHARACTERS_MAX as u64);
        limited.read_to_end(&mut text).map_err(failed)?;
        let token = text.trim_ascii();
        let fits = (TOKEN_CHARACTERS_MIN..=TOKEN_CHARACTERS_MAX).contains(&token.len());
        if !fits || !token.iter().all(u8::is_ascii_graphic) {
            return Err(Error::Token {
                file: file.to_owned(),
                least: TOKEN_CHARACTERS_MIN,
                most: TOKEN_CHARACTERS_MAX,
            });
        }
        Ok(Self {
            digest: blake3::hash(token),
        })
    }

    /// Whether an `Authorization` header has it. The time that this takes does not depend on how much of the token is
    /// right: digests are compared, in constant time.
    pub fn is_in(&self, authorization: Option<&HeaderValue>) -> bool {
        let Some((scheme, token)) = authorization.and_then(|value| value.as_bytes().split_at_checked(7))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"Bearer ") && blake3::hash(token.trim_ascii()) == self.digest
    }
}
