//! The parameters (SRS) of saved halo2 keys: a container for each curve, opened in place, and cut down to the rows of
//! each key.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillproof_circuits::axiom::dropin::saved::Axiom;
use spillproof_circuits::midnight::dropin::saved::Midnight;
use spillproof_circuits::saved::Saved;
use spillproof_engine::Session;
use spillproof_format::{Curve, HEADER_BYTES, Header};

use crate::settings::{Error, Result};

/// Those of each drop-in.
#[derive(Default)]
pub(crate) struct AllParameters {
    pub axiom: Option<Parameters<Axiom>>,
    pub midnight: Option<Parameters<Midnight>>,
}

impl AllParameters {
    /// Opens containers, of which each says its curve.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Parameters`]; [`Error::SameCurve`] for two over one curve.
    pub fn open(session: &Arc<Session>, files: &[PathBuf]) -> Result<Self> {
        let mut all = Self::default();
        for file in files {
            match header_of(file)? {
                Some(header) if header.curve() == Curve::Bls12381 => {
                    add(&mut all.midnight, Parameters::open(session, file, &header)?)?;
                }
                Some(header) => add(&mut all.axiom, Parameters::open(session, file, &header)?)?,
                None => {
                    let none = std::io::Error::new(ErrorKind::InvalidData, "it is no container");
                    return Err(Error::parameters(file, none));
                }
            }
        }
        Ok(all)
    }
}

fn add<S: Saved>(place: &mut Option<Parameters<S>>, parameters: Parameters<S>) -> Result<()> {
    let second = parameters.file.clone();
    match place.replace(parameters) {
        None => Ok(()),
        Some(first) => Err(Error::SameCurve {
            files: [first.file, second],
        }),
    }
}

/// Parameters that are open.
pub(crate) struct Parameters<S: Saved> {
    file: PathBuf,
    params: S::Params,
    /// Their container says that proofs over them can be forged.
    pub is_insecure: bool,
}

impl<S: Saved> Parameters<S> {
    fn open(session: &Arc<Session>, file: &Path, header: &Header) -> Result<Self> {
        let _pinned = session.pin();
        Ok(Self {
            params: S::open_params(file).map_err(|source| Error::parameters(file, source))?,
            is_insecure: header.is_insecure,
            file: file.to_owned(),
        })
    }

    /// Those for `2^k` rows. They share the points, but for the Lagrange form of fewer rows, which is made.
    ///
    /// # Errors
    /// [`Error::FewParameters`]; [`Error::Parameters`], if the machine has no room for them.
    pub fn of_rows(&self, key: &Path, k: u32) -> Result<S::Params> {
        let found = S::rows_of(&self.params);
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
            let cut = catch_unwind(AssertUnwindSafe(|| S::downsize(&mut params, k)));
            if let Err(panic) = cut {
                let source = match panic.downcast::<spillproof_engine::Error>() {
                    Ok(error) => std::io::Error::other(*error),
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                return Err(Error::parameters(&self.file, source));
            }
        }
        Ok(params)
    }
}

/// The header of a container; `None` for what is none.
///
/// # Errors
/// [`Error::File`].
pub(crate) fn header_of(file: &Path) -> Result<Option<Header>> {
    let failed = |source| Error::File {
        file: file.to_owned(),
        source,
    };
    let mut bytes = [0; HEADER_BYTES];
    match File::open(file).and_then(|mut opened| opened.read_exact(&mut bytes)) {
        Ok(()) => Ok(Header::decode(&bytes).ok()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
