//! The errors of a run, and their exit codes.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use halo2_axiom::spillproof::SavedError;
use spillproof_engine::budget::format_bytes;

/// A run that failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The engine's own errors.
    #[error(transparent)]
    Engine(#[from] spillproof_engine::Error),
    /// halo2's errors.
    #[error("{doing}: {reason}")]
    Halo2 {
        /// The operation that failed.
        doing: &'static str,
        /// halo2's error.
        reason: String,
    },
    /// A proof that the verifier refuses.
    #[error("{doing}: {reason}")]
    Refused {
        /// The verification.
        doing: &'static str,
        /// Why, in words.
        reason: String,
    },
    /// A file of the user's.
    #[error("{}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Results that belong together, of which some were written.
    #[error("{} was not written, and {} was: they belong together, run the command again", missing.display(), names(written))]
    Incomplete {
        /// The results that are there.
        written: Vec<PathBuf>,
        /// The first one that is not.
        missing: PathBuf,
        /// Why.
        source: Box<Failure>,
    },
    /// Witnesses of a folder that have no proof.
    #[error("{} of {} witnesses have no proof: {}", reasons.len(), made + reasons.len(), reasons.join("; "))]
    Unproved {
        /// How many proofs were written.
        made: usize,
        /// Of each of the others, the file and what is wrong with it.
        reasons: Vec<String>,
    },
    /// A file with the wrong content.
    #[error("{}: {details}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The content that was found, and the expected one.
        details: String,
    },
    /// The key or the witness of a program's own circuit.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// Two ways to the same result gave different ones: this is a bug.
    #[error("{0}: the results differ; this is a bug in spillproof, please report it")]
    Different(String),
    /// A GPU that was named and cannot be used.
    #[error(transparent)]
    Gpu(#[from] spillproof_gpu::Error),
    /// A GPU is to be measured, and the machine has none.
    #[error("{0}")]
    NoGpu(spillproof_gpu::GpuAbsence),
    /// A GPU that was measured declined jobs or computed wrong results; one a line.
    #[error("{0}")]
    Unmeasured(String),
    /// A proof that a GPU took part in and that does not verify.
    #[error(
        "a GPU took part in this proof, and it does not verify ({0}): nothing was written. Prove with --gpu off, and do not trust \
         that GPU or its driver"
    )]
    Unverified(String),
    /// A proof that the processor made alone and that does not verify.
    #[error("{0}. Nothing was written")]
    DoesNotVerify(String),
    /// A group with a memory limit cannot be made or read.
    #[error(transparent)]
    Group(#[from] spillproof_cgroup_tests::Refusal),
    /// A demonstration without the expected outcome.
    #[error("{0}")]
    Demonstration(String),
    /// MPI cannot be started or ended.
    #[cfg(feature = "mpi")]
    #[error(transparent)]
    Mpi(#[from] spillproof_mpi::MpiError),
    /// The server cannot start, or a key of it does not open.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Server(spillproof_server::Error),
    /// The result cannot be written as JSON.
    #[error("the result as JSON")]
    Json(#[from] serde_json::Error),
    /// A command line that cannot be carried out.
    #[error("{0}")]
    Usage(String),
}

/// Few commands do with a smaller budget.
const LEAST_BUDGET_MIB: u64 = 8;

impl From<spillproof_circom::Error> for Failure {
    fn from(error: spillproof_circom::Error) -> Self {
        use spillproof_circom::Error;
        match error {
            Error::Engine(error) => Self::Engine(error),
            Error::File { file, source } => Self::File { file, source },
            Error::Content { file, details } => Self::Content { file, details },
            Error::Json(error) => Self::Json(error),
            other => Self::Demonstration(other.to_string()),
        }
    }
}

#[cfg(feature = "serve")]
impl From<spillproof_server::Error> for Failure {
    fn from(error: spillproof_server::Error) -> Self {
        match error {
            spillproof_server::Error::Engine(error) => Self::Engine(error),
            other => Self::Server(other),
        }
    }
}

impl Failure {
    /// For a file that cannot be read or written.
    pub fn file(file: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::File { file, source }
    }

    /// For halo2, whose errors do not name the operation.
    pub fn halo2<E: std::fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Halo2 {
            doing,
            reason: error.to_string(),
        }
    }

    /// For an error of a drop-in's `Transcript` kind, which may be the engine's.
    pub fn drop_in(doing: &'static str, error: io::Error) -> Self {
        Self::inner(error).unwrap_or_else(Self::halo2(doing))
    }

    /// For a file that a drop-in reads or writes, whose errors may be the engine's.
    pub fn of_file(file: &Path, error: io::Error) -> Self {
        Self::inner(error).unwrap_or_else(Self::file(file))
    }

    /// The error of the engine, or of a saved key or witness, within one of a drop-in; else that error.
    fn inner(error: io::Error) -> Result<Self, io::Error> {
        match error.downcast() {
            Ok(engine) => Ok(Self::Engine(engine)),
            Err(other) => other.downcast().map(Self::Saved),
        }
    }

    /// 2 for a wrong command line, 3 for results of which some were written, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Incomplete { .. } => 3,
            Self::Unproved { made, .. } if *made > 0 => 3,
            _ => 1,
        }
    }

    /// The flag for the remedy that the engine's error names.
    fn flag(&self) -> Option<String> {
        use spillproof_engine::Error::{
            BudgetTooSmall, Checkpoint, DiskTooSmall, File, Invalid, Io, OverBudget,
        };
        use spillproof_engine::error::Invalid::{LittleLimit, NoFolder, Setting};
        let engine = match self {
            Self::Engine(engine) => engine,
            Self::File { source, .. } => source.get_ref()?.downcast_ref()?,
            #[cfg(feature = "serve")]
            Self::Server(spillproof_server::Error::Open { .. }) => {
                return Some("--token-file FILE, or --allow-anyone".into());
            }
            #[cfg(feature = "serve")]
            Self::Server(
                spillproof_server::Error::NoParameters { .. }
                | spillproof_server::Error::FewParameters { .. }
                | spillproof_server::Error::Parameters { .. },
            ) => return Some("--srs FILE".into()),
            _ => return None,
        };
        let needed_bytes = match engine {
            BudgetTooSmall { needed_bytes, .. } => *needed_bytes,
            OverBudget {
                asked_bytes,
                held_bytes,
                ..
            } => asked_bytes.saturating_add(*held_bytes),
            Io { source, .. } | File { source, .. } if !is_full(source) => return None,
            Checkpoint(spillproof_engine::error::Checkpoint::Full { .. }) => {
                return Some("--checkpoint (SPILLPROOF_CHECKPOINT) for the folder of checkpoints".into());
            }
            // It has the remedy in its own words: the place is not that of scratch files.
            File { source, .. } if source.get_ref().is_some() => return None,
            Io { .. } | File { .. } | DiskTooSmall { .. } => {
                return Some("--dir (SPILLPROOF_DIR) for the folder of scratch files".into());
            }
            Invalid(NoFolder { .. }) => {
                return Some("--dir (SPILLPROOF_DIR) for the folder of scratch files".into());
            }
            Invalid(LittleLimit { beside_bytes, .. }) => {
                let least_mib = (beside_bytes >> 20) + LEAST_BUDGET_MIB;
                return Some(format!("--limit {least_mib}MiB or more"));
            }
            Invalid(Setting { name, .. }) if *name == "memory budget" => {
                return Some("--memory (SPILLPROOF_MEMORY)".into());
            }
            Invalid(Setting { name, .. }) if name.ends_with("checkpoint key") => {
                return Some("--checkpoint DIR with --checkpoint-key FILE".into());
            }
            _ => return None,
        };
        let (option, needed_bytes) = match crate::limit::get() {
            Some(limit) if limit.budget_bytes < needed_bytes => ("--limit", limit.for_budget(needed_bytes)),
            _ => ("--memory", needed_bytes),
        };
        let whole_bytes = needed_bytes.checked_next_multiple_of(1 << 10);
        let size = format_bytes(whole_bytes.unwrap_or(needed_bytes));
        Some(format!("{option} {size} or more"))
    }

    /// The whole chain of causes, one line each; a cause that is part of its effect's text is left out. Then
    /// the flag that helps.
    pub fn explain(&self) -> String {
        let mut lines = vec![format!("error: {self}")];
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !lines.iter().any(|line| line.contains(&text)) {
                lines.push(format!("  because: {text}"));
            }
            cause = error.source();
        }
        lines.extend(self.flag().map(|flag| format!("  flag: {flag}")));
        lines.join("\n")
    }
}

/// Names of files in a sentence.
fn names(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(", ")
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let failure = Failure::file("/nowhere")(missing);
        assert_eq!(failure.explain(), "error: /nowhere\n  because: entity not found");
        let engine = spillproof_engine::Error::Io {
            operation: "read",
            file: "x.srs".into(),
            offset: 4096,
            bytes: 8,
            source: io::Error::from(io::ErrorKind::UnexpectedEof),
        };
        assert_eq!(Failure::from(engine).explain().lines().count(), 1);
    }

    #[test]
    fn remedies_have_flags() {
        let flag = |engine: spillproof_engine::Error| Failure::from(engine).flag();
        let too_small = || spillproof_engine::Error::BudgetTooSmall {
            what: "an MSM".into(),
            needed_bytes: (12 << 20) + 1,
            limit_bytes: 1 << 20,
        };
        let needed = Some("--memory 12289KiB or more".to_owned());
        assert_eq!(flag(too_small()), needed);
        let of_a_file = io::Error::other(too_small());
        assert_eq!(Failure::file("x.srs")(of_a_file).flag(), needed);
        let of_a_drop_in = || io::Error::other(too_small());
        assert_eq!(Failure::drop_in("the proof", of_a_drop_in()).flag(), needed);
        let file = Path::new("x.params");
        assert_eq!(Failure::of_file(file, of_a_drop_in()).flag(), needed);
        assert_eq!(Failure::of_file(file, io::ErrorKind::Other.into()).flag(), None);
        let over = spillproof_engine::Error::OverBudget {
            what: "tile".into(),
            asked_bytes: 3 << 20,
            held_bytes: 2 << 20,
            limit_bytes: 4 << 20,
            holders: "slots: 2097152".into(),
        };
        assert_eq!(flag(over).as_deref(), Some("--memory 5MiB or more"));
        let full = spillproof_engine::Error::File {
            operation: "create",
            file: "scratch".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(flag(full).is_some_and(|flag| flag.contains("--dir (SPILLPROOF_DIR)")));
        let mistake = spillproof_engine::error::Invalid::Secret;
        assert_eq!(flag(mistake.into()), None);
    }
}
