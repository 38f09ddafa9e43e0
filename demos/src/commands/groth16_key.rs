//! What is said of a Groth16 key.

use std::path::Path;

use serde::Serialize;
use spillproof_circom::json::curve_name;
use spillproof_circom::prove::{Summary, WITHOUT_CONTRIBUTION};
use spillproof_groth16::iden3;

use crate::report::progress::Progress;
use crate::run::Run;

/// Shows how far reading is.
pub fn follow(progress: &Progress, now: iden3::Progress) {
    progress.length(now.total);
    progress.at(now.done);
}

/// What is said of a key.
#[derive(Serialize)]
pub struct Key {
    /// Its file.
    pub file: String,
    curve: &'static str,
    signals: u64,
    public: u64,
    log_domain: u32,
    coefficients: u64,
    /// Distinct values of coefficients, where they were counted.
    values: Option<u64>,
    /// Whether proofs can be forged with it: gamma and delta are equal.
    insecure: bool,
}

impl Key {
    /// What a summary says of a file.
    pub fn of(file: &Path, summary: &Summary) -> Self {
        let shape = &summary.shape;
        Self {
            file: file.display().to_string(),
            curve: curve_name(summary.curve),
            signals: shape.signals,
            public: shape.public,
            log_domain: shape.log_domain,
            coefficients: shape.coefficients,
            values: summary.are_values_counted.then_some(shape.values),
            insecure: summary.is_without_contribution,
        }
    }

    /// Says it.
    pub fn tell(&self, run: &Run) {
        let values = match self.values {
            Some(values) => format!(" with {values} values"),
            None => String::new(),
        };
        run.say(format_args!(
            "{}: a Groth16 key over {}: {} signals, {} of them public, 2^{} rows, {} coefficients{values}",
            self.file, self.curve, self.signals, self.public, self.log_domain, self.coefficients
        ));
        if self.insecure {
            run.say(WITHOUT_CONTRIBUTION);
        }
    }
}
