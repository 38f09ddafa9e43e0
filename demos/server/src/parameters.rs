//! The parameters (SRS) of saved halo2 keys: one container, opened in place, and cut down to the rows of each key.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillproof_circuits::axiom::dropin::proof::{Params, downsize, rows_of};
use spillproof_circuits::axiom::dropin::saved::open_params;
use spillproof_engine::Session;
use spillproof_format::{HEADER_BYTES, Header};

use crate::settings::{Error, Result};

/// Parameters that are open.
pub(crate) struct Parameters {
    file: PathBuf,
    params: Params,
    /// Their container says that proofs over them can be forged.
    pub is_insecure: bool,
}

impl Parameters {
    /// Opens those of a container.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Parameters`].
    pub fn open(session: &Arc<Session>, file: &Path) -> Result<Self> {
        let _pinned = session.pin();
        let params = open_params(file).map_err(|source| Error::Parameters {
            file: file.to_owned(),
            source,
        })?;
        Ok(Self {
            is_insecure: is_insecure(file)?,
            file: file.to_owned(),
            params,
        })
    }

    /// Those for `2^k` rows. They share the points, but for the Lagrange form of fewer rows, which is made.
    ///
    /// # Errors
    /// [`Error::FewParameters`]; [`Error::Parameters`], if the machine has no room for them.
    pub fn of_rows(&self, key: &Path, k: u32) -> Result<Params> {
        let found = rows_of(&self.params);
        if found < k {
            return Err(Error::FewParameters {
                file: self.file.clone(),
                found,
                key: key.to_owned(),
                k,
            });
        }
        let mut params = self.params.clone();
        if found > k {
            // It has no error of its own: the engine's is what it panics with.
            let cut = catch_unwind(AssertUnwindSafe(|| downsize(&mut params, k)));
            if let Err(panic) = cut {
                let source = match panic.downcast::<spillproof_engine::Error>() {
                    Ok(error) => std::io::Error::other(*error),
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                let file = self.file.clone();
                return Err(Error::Parameters { file, source });
            }
        }
        Ok(params)
    }
}

fn is_insecure(file: &Path) -> Result<bool> {
    let mut bytes = [0; HEADER_BYTES];
    let read = File::open(file).and_then(|mut opened| opened.read_exact(&mut bytes));
    read.map_err(|source| Error::File {
        file: file.to_owned(),
        source,
    })?;
    // It has been opened as a container.
    Ok(Header::decode(&bytes).is_ok_and(|header| header.is_insecure))
}
