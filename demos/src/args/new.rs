//! The command line of `spillproof new`.

use std::path::PathBuf;

use clap::Args;
use spillproof_circuits::System;

/// A small program with a circuit of its own.
#[derive(Debug, Clone, Args)]
pub struct New {
    /// The folder to make; its name is the program's.
    pub folder: PathBuf,
    /// The proof system: axiom (halo2-axiom: KZG over BN254) or zcash (halo2_proofs: inner products over
    /// Vesta).
    #[arg(long, value_enum, default_value_t = System::Axiom)]
    pub system: System,
    /// The clone of spillproof's repository, which has the drop-ins; unless given, the clone that this program
    /// or the current folder is in.
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}
