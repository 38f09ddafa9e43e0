//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use spillproof_circuits::{Kind, Scheme, System};
use spillproof_cli::args::{Global, Pairing, StatementArgs, Values, size};
use spillproof_engine::budget::ByteSize;
use spillproof_gpu::Choice;

/// Measure spillproof beside the libraries that do the same in memory. Without --msm, --ntt and --prove: a
/// small case of each.
#[derive(Debug, Parser)]
#[command(name = "spillproof-bench", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Options that `spillproof` has, too.
    #[command(flatten)]
    pub global: Global,
    /// What is measured.
    #[command(flatten)]
    pub bench: Bench,
    /// Another task than measuring.
    #[command(subcommand)]
    pub task: Option<Task>,
}

/// Tasks besides measuring.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Prove a built-in circuit with the unmodified halo2, in memory.
    Stock(Stock),
    /// Run a command, and draw its output line by line, with the time of each line, as an animated SVG.
    Record(Record),
    /// Measure how keys and a proof scale with cores, step by step: speed-up, work, and the time in which one
    /// thread ran or none.
    Scaling(Scaling),
    /// Measure Groth16 proofs in --memory (128 MiB), under a hard limit where one can be set, beside other
    /// libraries' in memory.
    Groth16(Groth16),
    /// Measure proofs with a key and a witness that a program saved, in --memory (32 MiB), beside the
    /// unmodified halo2-axiom in memory.
    Saved(Saved),
    /// Prove with a key and a witness that a program saved, with the unmodified halo2-axiom, in memory.
    #[command(hide = true)]
    StockSaved(StockSaved),
    /// Prove with another library, with the key in memory.
    InMemory(InMemory),
    /// Run a command of `spillproof` in this program: each prover that is measured is a process of its own.
    #[command(hide = true, disable_help_flag = true)]
    Spillproof {
        /// The command line.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// A proof by the unmodified crate.
#[derive(Debug, Args)]
pub struct Stock {
    /// The statement.
    #[command(flatten)]
    pub statement: StatementArgs,
    /// The file for the proof.
    #[arg(long)]
    pub out: PathBuf,
}

/// How a proof scales.
#[derive(Debug, Args)]
pub struct Scaling {
    /// Which circuit.
    #[arg(long, value_enum, default_value_t = Kind::Chain)]
    pub circuit: Kind,
    /// 2^K rows.
    #[arg(long, value_parser = clap::value_parser!(u32).range(8..=28))]
    pub k: u32,
    /// Numbers of cores, the first of which the others are compared with; by default 1, those of this
    /// machine, and 16. More than this machine has are emulated (takes root and cgroup v1): each thread gets
    /// a share of a core, and seconds are scaled back.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub cores: Vec<u16>,
    /// A ParamsKZG file (raw bytes) of this k; without it, an INSECURE one is made.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Runs for each number of cores; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Draw the busy cores over time of the last run for each number of cores into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Which proofs of Groth16.
#[derive(Debug, Args)]
pub struct Groth16 {
    /// Circuits of 2^K rows.
    #[arg(long, value_delimiter = ',', default_value = "18", value_parser = clap::value_parser!(u32).range(8..=27))]
    pub k: Vec<u32>,
    /// The curve.
    #[arg(long, value_enum, default_value_t = Pairing::Bn128)]
    pub curve: Pairing,
    /// Witnesses of full-size values, or of zeros and ones.
    #[arg(long, value_delimiter = ',', value_enum, default_value = "full,bits")]
    pub values: Vec<Values>,
    /// The libraries beside it.
    #[arg(long, value_delimiter = ',', value_enum, default_value = "taceo-groth16")]
    pub peers: Vec<Peer>,
    /// Runs of each, in turns; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

/// A program's own circuit.
#[derive(Debug, Clone, Args)]
pub struct OfProgram {
    /// The proving key, as `halo2_axiom::spillproof::save_described_key` writes it.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The witness, as `halo2_axiom::spillproof::save_witness` writes it.
    #[arg(long, value_name = "FILE")]
    pub witness: PathBuf,
    /// The multi-opening argument.
    #[arg(long, value_enum, default_value_t = Scheme::Shplonk)]
    pub scheme: Scheme,
    /// The parameters of the key: a ParamsKZG file of its k or more.
    #[arg(long, value_name = "FILE")]
    pub srs: PathBuf,
}

/// Proofs of a program's own circuit.
#[derive(Debug, Args)]
pub struct Saved {
    /// The circuit.
    #[command(flatten)]
    pub of: OfProgram,
    /// Runs of each, in turns; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

/// A proof of a program's own circuit by the unmodified crate.
#[derive(Debug, Args)]
pub struct StockSaved {
    /// The circuit.
    #[command(flatten)]
    pub of: OfProgram,
    /// The file for the proof.
    #[arg(long)]
    pub out: PathBuf,
}

/// A library that proves with the key in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// taceo-groth16.
    TaceoGroth16,
    /// ark-groth16, with the reduction of circom's keys.
    ArkGroth16,
}

/// A proof with the key in memory.
#[derive(Debug, Args)]
pub struct InMemory {
    /// The .zkey file.
    pub key: PathBuf,
    /// The .wtns file.
    pub witness: PathBuf,
    /// The curve of both.
    #[arg(long, value_enum, default_value_t = Pairing::Bn128)]
    pub curve: Pairing,
    /// The library.
    #[arg(long, value_enum, default_value_t = Peer::TaceoGroth16)]
    pub peer: Peer,
}

/// A run of a command as a picture.
#[derive(Debug, Args)]
pub struct Record {
    /// The file of the picture.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The title; without it, the command.
    #[arg(long)]
    pub title: Option<String>,
    /// The command, after `--`.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// What is measured, and how often.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// MSMs of these sizes (powers of two), from disk in --memory (default 96 MiB; with --gpu 256 MiB, and
    /// sizes 20,22,24,26 by default, 18,20 for --groth16, 18,20,22,24 for --goldilocks).
    #[arg(long, value_delimiter = ',', value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(0..=28))]
    pub msm: Vec<u32>,
    /// Transforms of these sizes (powers of two), from disk in --memory (default 64 MiB; with --gpu as for
    /// --msm).
    #[arg(long, value_delimiter = ',', value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(0..=28))]
    pub ntt: Vec<u32>,
    /// Keys and proofs of these circuits in --memory (32 MiB), beside the unmodified prover without a limit
    /// on its memory.
    #[arg(long, value_delimiter = ',', value_enum, value_name = "CIRCUIT")]
    pub prove: Vec<Kind>,
    /// The proof system of the circuits.
    #[arg(long, value_enum, requires = "prove", default_value_t = System::Axiom)]
    pub system: System,
    /// Circuits of 2^K rows each: several values show how time scales.
    #[arg(long, value_delimiter = ',', requires = "prove", default_value = "16", value_parser = clap::value_parser!(u32).range(8..=28))]
    pub k: Vec<u32>,
    /// On N threads each, instead of --threads: several values show how time scales.
    #[arg(long, value_delimiter = ',', requires = "prove", value_name = "N")]
    pub cores: Vec<usize>,
    /// Measure also time against memory: from the smallest budget that works, doubled, up to all available
    /// memory.
    #[arg(long, requires = "prove")]
    pub curve: bool,
    /// Measure also the unmodified prover with a swap file, under the limit of spillproof (usually takes
    /// root).
    #[arg(long, requires = "prove")]
    pub swap: bool,
    /// A file for the proofs, ParamsKZG (raw bytes) or zcash's Params; without it, one is made for each K (of
    /// KZG, an INSECURE one).
    #[arg(long, requires = "prove", value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Measure a GPU instead: its rates, then MSMs, transforms and proofs from disk with it, beside the processor's;
    /// auto is the first one. Fails if there is none, if it fails, or if a result differs.
    #[arg(long, value_name = "auto|N", conflicts_with_all = ["prove", "k", "cores", "curve", "swap", "params", "no_ark"])]
    pub gpu: Option<Choice>,
    /// Budgets of the GPU's memory; auto is its free memory. Budgets above the free memory are left out.
    #[arg(long, value_delimiter = ',', requires = "gpu", value_name = "SIZE", default_value = "1GiB,4GiB,16GiB", value_parser = size)]
    pub vram: Vec<ByteSize>,
    /// With --gpu, whole proofs of Groth16 of 2^LOG_N rows, too.
    #[arg(long, value_delimiter = ',', requires = "gpu", value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(4..=27))]
    pub groth16: Vec<u32>,
    /// With --gpu, transforms over Goldilocks of these sizes, too, from memory to memory: seconds on the device alone,
    /// and with the transfers.
    #[arg(long, value_delimiter = ',', requires = "gpu", value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(1..=28))]
    pub goldilocks: Vec<u32>,
    /// Do not measure the processor; results are then compared between budgets only.
    #[arg(long, requires = "gpu")]
    pub no_cpu: bool,
    /// Runs of each, in turns; medians are printed.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Do not measure the MSMs of arkworks (the slowest peer).
    #[arg(long)]
    pub no_ark: bool,
    /// Draw the results into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> clap::error::Result<Arguments> {
        Arguments::try_parse_from(std::iter::once("spillproof-bench").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_measured() {
        assert!(parse("").unwrap().bench.msm.is_empty());
        assert!(parse("--prove chain,wide --k 16,18 --cores 1,2 --curve --swap --memory 96MiB").is_ok());
        let bench = parse("--gpu auto").unwrap().bench;
        assert_eq!((bench.gpu, bench.vram.len()), (Some(Choice::Auto), 3));
        assert!(parse("--gpu 1 --vram 1GiB,auto --msm 20 --ntt 20,22 --runs 5 --no-cpu").is_ok());
        for refused in [
            "--curve",
            "--msm 29",
            "--gpu first",
            "--vram 1GiB",
            "--no-cpu",
            "--gpu 0 --prove chain",
            "--gpu 0 --no-ark",
            "--gpu 0 --curve",
        ] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn other_tasks() {
        let Some(Task::Record(record)) = parse("record --out x -- a --b c").unwrap().task else {
            panic!("it is a recording");
        };
        assert_eq!(record.command, ["a", "--b", "c"]);
        let Some(Task::Scaling(scaling)) = parse("scaling --circuit wide --k 16 --cores 1,64").unwrap().task
        else {
            panic!("it is a report");
        };
        assert_eq!((scaling.cores, scaling.runs), (vec![1, 64], 3));
        assert!(parse("scaling --k 16 --cores 0").is_err() && parse("scaling --k 16 --scheme gwc").is_err());
        assert!(parse("stock --k 8 --json --circuit wide --out x").is_ok());
        let Some(Task::Groth16(groth16)) = parse("groth16 --k 18,20").unwrap().task else {
            panic!("it is a measurement of Groth16");
        };
        assert_eq!(
            (groth16.k, groth16.values.len(), groth16.runs),
            (vec![18, 20], 2, 3)
        );
        assert!(parse("groth16 --k 28").is_err() && parse("in-memory a.zkey").is_err());
        let Some(Task::Saved(saved)) = parse("saved --key a --witness b --srs c --memory 64MiB")
            .unwrap()
            .task
        else {
            panic!("it is a measurement of a saved key");
        };
        assert_eq!((saved.of.srs, saved.runs), ("c".into(), 3));
        assert!(
            parse("saved --key a --witness b").is_err()
                && parse("stock-saved --key a --witness b --srs c").is_err()
        );
        assert!(parse("record --out x").is_err() && parse("record -- a").is_err());
        let Some(Task::Spillproof { words }) = parse("spillproof prove --json --k 8").unwrap().task else {
            panic!("it is a command of the binary");
        };
        assert_eq!(words, ["prove", "--json", "--k", "8"]);
    }
}
