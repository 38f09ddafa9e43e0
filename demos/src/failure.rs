//! The errors of a run, and their exit codes.

use std::error::Error;
use std::path::PathBuf;

/// A run that failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The engine's own errors.
    #[error(transparent)]
    Engine(#[from] spillproof::Error),
    /// halo2's errors.
    #[error("{doing}: {reason}")]
    Halo2 {
        /// The operation that failed.
        doing: &'static str,
        /// halo2's error.
        reason: String,
    },
    /// A file of the user's.
    #[error("{}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file with the wrong content.
    #[error("{}: {details}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The content that was found, and the expected one.
        details: String,
    },
    /// Two ways to the same result gave different ones: this is a bug.
    #[error("{0}: the results differ; this is a bug in spillproof, please report it")]
    Different(String),
    /// A GPU that was named and cannot be used.
    #[error(transparent)]
    Gpu(#[from] spillproof_gpu::Error),
    /// A GPU is to be measured, and the machine has none.
    #[error("{0}")]
    NoGpu(spillproof_gpu::NotUsed),
    /// A GPU that was measured declined jobs or computed wrong results; one a line.
    #[error("{0}")]
    Unmeasured(String),
    /// A proof that a GPU took part in and that does not verify.
    #[error(
        "a GPU took part in this proof, and it does not verify ({0}): nothing was written. Prove with --gpu off, and do not trust \
         that GPU or its driver"
    )]
    Unverified(String),
    /// A group with a memory limit cannot be made or read.
    #[error(transparent)]
    Group(#[from] spillproof_cgroup_tests::Refusal),
    /// A demonstration without the expected outcome.
    #[error("{0}")]
    Demonstration(String),
    /// The result cannot be written as JSON.
    #[error("the result as JSON")]
    Json(#[from] serde_json::Error),
    /// A command line that cannot be carried out.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// For a file that cannot be read or written.
    pub fn file(file: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let file = file.into();
        move |source| Self::File { file, source }
    }

    /// For halo2, whose errors do not name the operation.
    pub fn halo2<E: std::fmt::Debug>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Halo2 {
            doing,
            reason: format!("{error:?}"),
        }
    }

    /// 2 for a wrong command line, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage(_)) { 2 } else { 1 }
    }

    /// The whole chain of causes, one line each; a cause that is part of its effect's text is left out.
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
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let failure = Failure::file("/nowhere")(missing);
        assert_eq!(failure.explain(), "error: /nowhere\n  because: entity not found");
        let engine = spillproof::Error::Io {
            operation: "read",
            file: "x.srs".into(),
            offset: 4096,
            bytes: 8,
            source: std::io::Error::from(std::io::ErrorKind::UnexpectedEof),
        };
        assert_eq!(Failure::from(engine).explain().lines().count(), 1);
    }
}
