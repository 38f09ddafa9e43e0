//! The command line of `spillproof ptau`.

use std::path::PathBuf;

use clap::Subcommand;

use super::AllowInsecure;

/// Powers of tau (.ptau files): the first phase of a ceremony.
#[derive(Debug, Subcommand)]
pub enum Ptau {
    /// Add the Lagrange bases of all sizes, as `snarkjs powersoftau prepare phase2` does. Setups of keys are
    /// faster with them.
    Prepare {
        /// The .ptau file.
        file: PathBuf,
        /// The new .ptau file.
        out: PathBuf,
    },
    /// Cut a file to fewer powers, as `snarkjs powersoftau truncate` does, Lagrange bases included.
    Truncate {
        /// The .ptau file.
        file: PathBuf,
        /// The new .ptau file.
        out: PathBuf,
        /// The new file's power: it is for circuits of up to 2^POWER rows. Below the power of FILE.
        #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=27))]
        power: u32,
    },
    /// Verify that all points are powers of one secret, and that the Lagrange bases, if there are any, are
    /// those of the powers; and that each contribution follows from those before it, and the powers from the
    /// last one, as `snarkjs powersoftau verify` does. A file without a contribution is refused.
    Verify {
        /// The .ptau file.
        file: PathBuf,
        /// Whether a file without a contribution is taken.
        #[command(flatten)]
        allow: AllowInsecure,
    },
    /// Make an SRS for halo2 of a .ptau file over bn128: its first 2^K powers, and their Lagrange form.
    Import {
        /// The .ptau file.
        file: PathBuf,
        /// The new container.
        #[arg(short, long)]
        out: PathBuf,
        /// log2 of the number of points. All that the file has are taken by default.
        #[arg(short, long)]
        k: Option<u32>,
    },
}
