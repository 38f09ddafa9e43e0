//! The session that environment variables ask for. Errors name the variable that they come from.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::variables::name_unknown_variables;
use super::{
    DIR_VARIABLE, GPU_VARIABLE, LIMIT_VARIABLE, MEMORY_VARIABLE, OpenAccelerator, SCRATCH_VARIABLE,
    STRICT_SECRETS_VARIABLE, Session,
};
use crate::Error;
use crate::Result;
use crate::accelerator::Accelerator;
use crate::budget::{ByteSize, ParseSizeError};
use crate::checkpoint::{CHECKPOINT_KEY_FILE_VARIABLE, Checkpoints};
use crate::error::{self, Invalid};
use crate::storage::check_scratch_folder;

/// The value of an environment variable; an empty one counts as not set.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder of scratch files that [`DIR_VARIABLE`] names, or the system's one for temporary files.
///
/// # Errors
/// [`Invalid::Setting`] for a folder that does not exist: it may be a disk that is not mounted, and is not
/// made.
pub fn dir_of_environment() -> Result<PathBuf> {
    name_unknown_variables();
    match variable(DIR_VARIABLE) {
        None => Ok(std::env::temp_dir()),
        Some(dir) => existing(dir.into()),
    }
}

fn existing(dir: PathBuf) -> Result<PathBuf> {
    match check_scratch_folder(&dir) {
        Ok(()) => Ok(dir),
        Err(error) => Err(setting(DIR_VARIABLE, error.to_string())),
    }
}

/// The size that a variable holds, if it is set.
fn size_of(name: &'static str) -> Result<Option<ByteSize>> {
    let size = variable(name).map(|size| size.to_string_lossy().parse());
    size.transpose()
        .map_err(|error: ParseSizeError| setting(name, error.to_string()))
}

fn setting(name: &'static str, reason: String) -> Error {
    Invalid::Setting { name, reason }.into()
}

impl Session {
    pub(super) fn from_environment(open: OpenAccelerator) -> Result<Option<Arc<Self>>> {
        name_unknown_variables();
        let (memory, limit) = (size_of(MEMORY_VARIABLE)?, size_of(LIMIT_VARIABLE)?);
        if memory.is_none() && limit.is_none() {
            return match device_asked_for() {
                None => Ok(None),
                Some(asked) => Err(setting(
                    GPU_VARIABLE,
                    format!(
                        "`{asked}`: a device takes part in a session only; set {MEMORY_VARIABLE} too (`auto` will do), or say `off`"
                    ),
                )),
            };
        }
        let dir = dir_of_environment()?;
        let mut builder = Self::builder().dir(&dir);
        if let Some(memory) = memory {
            let memory_bytes = memory.resolve();
            let memory_bytes = memory_bytes.map_err(|error| setting(MEMORY_VARIABLE, error.to_string()))?;
            builder = builder.memory(ByteSize::Bytes(memory_bytes));
        }
        if let Some(limit) = limit {
            builder = builder.limit(limit);
        }
        if let Some(scratch) = variable(SCRATCH_VARIABLE) {
            let scratch = scratch.to_string_lossy().parse();
            builder = builder.scratch(scratch.map_err(|reason| setting(SCRATCH_VARIABLE, reason))?);
        }
        let strict = variable(STRICT_SECRETS_VARIABLE);
        let strict = match strict.as_ref().map(|strict| strict.to_str()) {
            Some(Some("1")) => true,
            None | Some(Some("0")) => false,
            Some(_) => {
                let strict = strict.unwrap_or_default();
                let reason = format!("`{}`: say `1` or `0`", strict.to_string_lossy());
                return Err(setting(STRICT_SECRETS_VARIABLE, reason));
            }
        };
        builder = builder.strict_secrets(strict);
        let checkpoints = Checkpoints::configured(None, None).map_err(|error| match error {
            Error::Invalid(Invalid::Setting { reason, .. }) => setting(CHECKPOINT_KEY_FILE_VARIABLE, reason),
            other => other,
        })?;
        if let Some(checkpoints) = checkpoints {
            builder = builder.checkpoints(checkpoints);
        }
        if let Some(accelerator) = open()? {
            if limit.is_some() {
                let reason = "the memory of a device's driver is in no limit: set SPILLPROOF_MEMORY instead, or SPILLPROOF_GPU to `off`";
                return Err(setting(LIMIT_VARIABLE, reason.to_owned()));
            }
            builder = builder.accelerator(accelerator);
        }
        let mut session = builder.build().map_err(|error| match error {
            Error::File { .. } => setting(DIR_VARIABLE, format!("`{}`: {error}", dir.display())),
            Error::Unavailable { .. } if strict => setting(STRICT_SECRETS_VARIABLE, format!("`1`: {error}")),
            Error::Unavailable { .. } => setting(SCRATCH_VARIABLE, error.to_string()),
            Error::Invalid(Invalid::LittleLimit { .. } | Invalid::NoHardLimit) => {
                setting(LIMIT_VARIABLE, error.to_string())
            }
            other => other,
        })?;
        session.is_from_environment = true;
        let memory_bytes = session.budget().limit_bytes();
        let is_of_limit = session
            .limit()
            .is_some_and(|limit| limit.budget_bytes == memory_bytes);
        error::of_environment(error::OfEnvironment {
            memory_variable: if is_of_limit {
                LIMIT_VARIABLE
            } else {
                MEMORY_VARIABLE
            },
            memory_bytes,
            dir_variable: DIR_VARIABLE,
            dir,
        });
        tracing::info!(budget_bytes = memory_bytes, dir = %session.dir.display(), "spillproof session");
        Ok(Some(Arc::new(session)))
    }
}

/// What [`GPU_VARIABLE`] asks for; `None` if that is no device.
fn device_asked_for() -> Option<String> {
    let asked = variable(GPU_VARIABLE)?;
    let asked = asked.to_string_lossy();
    (asked != "off").then(|| asked.into_owned())
}

/// For programs that know no devices.
///
/// # Errors
/// If the environment asks for one.
pub fn no_device() -> Result<Option<Arc<dyn Accelerator>>> {
    match device_asked_for() {
        None => Ok(None),
        Some(asked) => Err(setting(
            GPU_VARIABLE,
            format!(
                "`{asked}`: this program was built without devices; build it with the feature `gpu` of the drop-in `halo2-axiom`, or \
                 say `off`"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_to_exist() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(existing(dir.path().to_owned()).unwrap(), dir.path());
        let missing = dir.path().join("not mounted");
        let file = std::env::current_exe().unwrap();
        for (path, words) in [(&missing, "mount its disk"), (&file, "is no folder;")] {
            let refused = existing(path.clone()).unwrap_err().to_string();
            let named = format!("SPILLPROOF_DIR: `{}`", path.display());
            assert!(
                refused.starts_with(&named) && refused.contains(words),
                "{refused}"
            );
        }
        assert!(!missing.exists());
    }
}
