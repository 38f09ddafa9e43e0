//! The command line of `spillproof open`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// Check openings of commitments.
#[derive(Debug, Subcommand)]
pub enum Open {
    /// Check by a pairing that a committed polynomial has a value at a point; exit status 0 if it has.
    Verify(OpenVerify),
}

/// An opening: the file that `commit --out` wrote, or its parts.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("opening").required(true).args(["file", "commitment"])))]
pub struct OpenVerify {
    /// The SRS that was committed over: a container, ParamsKZG or powers of tau (.ptau). Three of its points
    /// are read.
    #[arg(long)]
    pub srs: PathBuf,
    /// The opening, as `spillproof commit --open-at POINT --out FILE` wrote it, or as `commit --json` printed
    /// it.
    #[arg(conflicts_with_all = ["commitment", "point", "value", "proof"])]
    pub file: Option<PathBuf>,
    /// The commitment: x,y in hexadecimal, or infinity.
    #[arg(long, value_name = "X,Y", requires_all = ["point", "value", "proof"])]
    pub commitment: Option<String>,
    /// The point: a decimal number, or 0x and hexadecimal digits; 64 digits are hexadecimal.
    #[arg(long, value_name = "Z", requires = "commitment")]
    pub point: Option<String>,
    /// The value there, written like the point.
    #[arg(long, value_name = "V", requires = "commitment")]
    pub value: Option<String>,
    /// The proof of the opening, written like the commitment.
    #[arg(long, value_name = "X,Y", requires = "commitment")]
    pub proof: Option<String>,
}
