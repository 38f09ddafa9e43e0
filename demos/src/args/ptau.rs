//! The command line of `spillproof ptau`.

use std::path::PathBuf;

use clap::Subcommand;

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
    /// Verify that all points are powers of one secret, and that the Lagrange bases, if there are any, are
    /// those of the powers; and that each contribution follows from those before it, and the powers from the
    /// last one, as `snarkjs powersoftau verify` does.
    Verify {
        /// The .ptau file.
        file: PathBuf,
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
