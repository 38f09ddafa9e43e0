//! Options of commands that several ranks run together.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use spillproof_engine::budget::ByteSize;
use spillproof_groth16::Cut;

use super::{Gpu, Pairing, ProofOn, size};

/// How a proof is dealt out to ranks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
pub struct Sharing {
    /// The share of each rank, in the order of ranks: `2,1,1` gives half of the work to rank 0. The default is
    /// equal shares.
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',')]
    pub share: Vec<u64>,
    /// How the transforms are cut. The default, auto, is the cut that is quickest by the plan over --link;
    /// without --link, prove and import take the layout.
    #[arg(long, value_enum, default_value_t = CutName::Auto)]
    pub cut: CutName,
}

/// What is asked of the ranks of a job. All of them are started with the same options.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
pub struct OnRanks {
    /// Shares and cut.
    #[command(flatten)]
    pub sharing: Sharing,
    /// Messages between them.
    #[command(flatten)]
    pub messages: Messages,
}

/// How messages between ranks go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
pub struct Messages {
    /// How many seconds a rank waits for another one before it gives up.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub rank_timeout: u64,
    /// Slow messages down to this link: 1g, 10g, 100g, nvlink, or a file of `ranks bench --json`. For ranks of
    /// one machine, to see what a cluster's link would do.
    #[arg(long, value_name = LINK)]
    pub pace: Option<LinkOf>,
}

/// Processes that prove together.
#[derive(Debug, Subcommand)]
pub enum Ranks {
    /// Measure the link between ranks, and how fast each rank computes, reads, writes and proves while the
    /// others do the same: mpirun -n 4 spillproof ranks bench. `groth16 plan --link FILE` takes the JSON.
    Bench(RanksBench),
}

/// The link that is measured.
#[derive(Debug, Clone, Args)]
pub struct RanksBench {
    /// The bytes of each stream.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub bytes: ByteSize,
    /// Each rank proves a circuit of 2^K rows, three times.
    #[arg(short, long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=24))]
    pub k: u32,
    /// The curve of these proofs, by snarkjs's name: that of the key of which proofs are planned.
    #[arg(long, value_enum, default_value_t = Pairing::Bn128)]
    pub curve: Pairing,
    /// GPUs whose rates are measured, too: each rank has its own.
    #[command(flatten)]
    pub gpu: Gpu,
    /// Messages between them.
    #[command(flatten)]
    pub messages: Messages,
}

/// Ranks that a plan is for.
#[derive(Debug, Clone, Args)]
pub struct PlannedRanks {
    /// Plan for so many ranks, each with this budget, and say how far more ranks pay.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub ranks: Option<u32>,
    /// The link between them: 1g, 10g, 100g, nvlink, or a file of `ranks bench --json`, whose ranks then take
    /// the place of this machine.
    #[arg(long, value_name = LINK, default_value_t = LinkOf::Named(LinkName::TenGigabit), requires = "ranks")]
    pub link: LinkOf,
    /// GPUs: which jobs they would do. With --ranks, one a rank: their rates are measured here, unless the link's file
    /// has them.
    #[command(flatten)]
    pub gpu: ProofOn,
    /// Draw the seconds by number of ranks, over each link, into this file.
    #[arg(long, value_name = "FILE", requires = "ranks")]
    pub svg: Option<PathBuf>,
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

/// What stands for a link in help.
pub(super) const LINK: &str = "1g|10g|100g|nvlink|FILE";

/// A link: one with a name, or a measured one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkOf {
    /// By its name.
    Named(LinkName),
    /// By a file.
    File(PathBuf),
}

impl LinkOf {
    /// The file that it is in.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::Named(_) => None,
            Self::File(file) => Some(file),
        }
    }
}

impl FromStr for LinkOf {
    type Err = String;

    /// What is no name, and could be a file's, is one.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(name) = LinkName::from_str(text, true) {
            return Ok(Self::Named(name));
        }
        let looks_like_a_name = !text.contains(['.', '/']) && !PathBuf::from(text).exists();
        match looks_like_a_name {
            true => Err(format!("no link is called {text:?}, and no file is: {LINK}")),
            false => Ok(Self::File(text.into())),
        }
    }
}

impl Display for LinkOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => {
                let value = name.to_possible_value();
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
            Self::File(file) => file.display().fmt(f),
        }
    }
}

/// Names of cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CutName {
    /// The quickest one, by the plan over --link that rank 0 makes; without a link, the layout.
    Auto,
    /// By the layout of a four-step transform: two exchanges, nothing is gathered.
    Layout,
    /// By rows of the constraints: rank 0 gathers values and makes all transforms.
    Rows,
    /// By columns of the constraints: rank 0 adds up what all ranks send, and makes all transforms.
    Columns,
    /// By steps: rank 0 makes the quotient, the other ranks the sums over the witness meanwhile.
    Steps,
}

impl CutName {
    /// The cut; none where it is to be chosen.
    pub fn cut(self) -> Option<Cut> {
        match self {
            Self::Auto => None,
            Self::Layout => Some(Cut::Layout),
            Self::Rows => Some(Cut::Rows),
            Self::Columns => Some(Cut::Columns),
            Self::Steps => Some(Cut::Steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_name_or_a_file() {
        let parsed = |text: &str| text.parse::<LinkOf>();
        for name in LinkName::value_variants() {
            let named = LinkOf::Named(*name);
            assert_eq!(parsed(&named.to_string()), Ok(named));
        }
        assert_eq!(parsed("10G"), Ok(LinkOf::Named(LinkName::TenGigabit)));
        assert_eq!(parsed("links/10g"), Ok(LinkOf::File("links/10g".into())));
        assert_eq!(parsed("link.json"), Ok(LinkOf::File("link.json".into())));
        let refused = parsed("25g").unwrap_err();
        assert!(refused.contains("25g") && refused.contains("100g"), "{refused}");
    }
}
