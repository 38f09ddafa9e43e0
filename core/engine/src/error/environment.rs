//! The names of the variables that made a session, for the remedies of errors.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The settings of the session that the environment made, of which a process has one at most.
pub(crate) struct OfEnvironment {
    /// The variable of the budget.
    pub(crate) memory_variable: &'static str,
    /// The budget.
    pub(crate) memory_bytes: u64,
    /// The variable of the folder.
    pub(crate) dir_variable: &'static str,
    /// The folder of scratch files.
    pub(crate) dir: PathBuf,
}

static SESSION: OnceLock<OfEnvironment> = OnceLock::new();

/// From now on, errors of this budget and this folder name their variables.
pub(crate) fn of_environment(session: OfEnvironment) {
    let _is_the_first = SESSION.set(session);
}

/// The variable of such a budget, if one set it.
pub(super) fn memory(limit_bytes: u64) -> String {
    let session = SESSION
        .get()
        .filter(|session| session.memory_bytes == limit_bytes);
    named(session.map(|session| session.memory_variable))
}

/// The variable of this folder, if one set it.
pub(super) fn dir(dir: &Path) -> String {
    let session = SESSION.get().filter(|session| session.dir == dir);
    named(session.map(|session| session.dir_variable))
}

fn named(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |variable| format!(" ({variable})"))
}
