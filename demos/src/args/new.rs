//! The command line of `spillproof new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

/// A small program with a circuit of its own.
#[derive(Debug, Clone, Args)]
pub struct New {
    /// The folder to make; its name is the program's.
    pub folder: PathBuf,
    /// The proof system.
    #[arg(long, value_enum, default_value_t = ProgramOver::Axiom)]
    pub system: ProgramOver,
    /// The clone of spillproof's repository, which has the drop-ins; unless given, the clone that this program
    /// or the current folder is in.
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

/// The proof systems that there is such a program for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramOver {
    /// halo2-axiom: KZG over BN254.
    Axiom,
    /// zcash's halo2_proofs: inner-product commitments over Vesta.
    Zcash,
}
