//! Options of commands that several ranks run together.

use clap::{Args, ValueEnum};
use spillproof_groth16::Cut;

/// How a proof is dealt out to ranks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
pub struct Sharing {
    /// The share of each rank, in the order of ranks: `2,1,1` gives half of the work to rank 0. The default is
    /// equal shares.
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',')]
    pub share: Vec<u64>,
    /// How the transforms are cut.
    #[arg(long, value_enum, default_value_t = CutName::Layout)]
    pub cut: CutName,
}

/// What is asked of the ranks of a job. All of them are started with the same options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
pub struct OnRanks {
    /// Shares and cut.
    #[command(flatten)]
    pub sharing: Sharing,
    /// How many seconds a rank waits for another one before it gives up.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub rank_timeout: u64,
}

/// Ranks that a plan is for.
#[derive(Debug, Clone, Args)]
pub struct PlannedRanks {
    /// Plan for so many ranks, each with this budget, and say how far more ranks pay.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub ranks: Option<u32>,
    /// The link between them.
    #[arg(long, value_enum, default_value_t = LinkName::TenGigabit, requires = "ranks")]
    pub link: LinkName,
    /// Shares and cut.
    #[command(flatten)]
    pub sharing: Sharing,
}

/// Names of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkName {
    /// A network of 1 Gbit/s.
    #[value(name = "1g")]
    Gigabit,
    /// A network of 10 Gbit/s.
    #[value(name = "10g")]
    TenGigabit,
    /// A network of 100 Gbit/s.
    #[value(name = "100g")]
    HundredGigabit,
    /// GPUs' own link, 450 GB/s in each direction.
    Nvlink,
}

/// Names of cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CutName {
    /// By the layout of a four-step transform: two exchanges, nothing is gathered.
    Layout,
    /// By rows of the constraints: rank 0 gathers values and makes all transforms.
    Rows,
    /// By columns of the constraints: rank 0 adds up what all ranks send, and makes all transforms.
    Columns,
}

impl From<CutName> for Cut {
    fn from(name: CutName) -> Self {
        match name {
            CutName::Layout => Self::Layout,
            CutName::Rows => Self::Rows,
            CutName::Columns => Self::Columns,
        }
    }
}
