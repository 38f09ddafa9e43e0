//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use spillproof::budget::{ByteSize, parse_size};
use spillproof::storage::Backend;
use spillproof_format::params_kzg::SerdeFormat;
use spillproof_gpu::Choice;
use spillproof_gpu::tier::Offload;

use crate::peers::Peer;
use spillproof_cli::circuits::{Kind, Scheme};

/// Proofs, commitments and multi-scalar multiplications larger than the machine: set a number of bytes, the rest lives on disk.
#[derive(Debug, Parser)]
#[command(name = "spillproof", version, arg_required_else_help = false)]
pub struct Arguments {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do; the demo, if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What holds for every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The memory budget: 512MiB, 2G, auto (what there is, less a margin).
    #[arg(long, global = true, value_name = "SIZE", env = "SPILLPROOF_MEMORY", value_parser = size)]
    pub memory: Option<ByteSize>,
    /// Where scratch files go; best on NVMe, never on a tmpfs.
    #[arg(long, global = true, value_name = "DIR", env = "SPILLPROOF_DIR")]
    pub dir: Option<PathBuf>,
    /// Machine-readable results on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Compute threads; 0 is one for each core.
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// How files are read and written.
    #[arg(long, global = true, value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,
}

/// Names of the storage backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// io_uring where the kernel lets us, else pread.
    Auto,
    /// io_uring, or fail.
    Uring,
    /// Threads that read and threads that write.
    Pread,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Self {
        match name {
            BackendName::Auto => Self::Auto,
            BackendName::Uring => Self::Uring,
            BackendName::Pread => Self::Pread,
        }
    }
}

/// What a GPU gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OffloadName {
    /// What it does faster than the processor.
    Measured,
    /// Whatever it can do.
    Always,
}

impl From<OffloadName> for Offload {
    fn from(name: OffloadName) -> Self {
        match name {
            OffloadName::Measured => Self::Measured,
            OffloadName::Always => Self::Always,
        }
    }
}

/// Names of halo2's formats of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Coordinates in Montgomery form: `SerdeFormat::RawBytes`.
    Raw,
    /// The same bytes, by the name that trusts them: `SerdeFormat::RawBytesUnchecked`.
    RawUnchecked,
    /// Compressed points: `SerdeFormat::Processed`.
    Processed,
}

impl From<FormatName> for SerdeFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Raw => Self::RawBytes,
            FormatName::RawUnchecked => Self::RawBytesUnchecked,
            FormatName::Processed => Self::Processed,
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, convert and check structured reference strings on disk.
    #[command(subcommand)]
    Srs(Srs),
    /// A multi-scalar multiplication over bases on disk.
    Msm(Msm),
    /// Commit to a polynomial over an SRS on disk.
    Commit(Commit),
    /// Prove a built-in circuit.
    Prove(Prove),
    /// Say what keys and a proof of a built-in circuit will take, without any of that work.
    Plan(Plan),
    /// Check a proof of a built-in circuit with the unmodified halo2-axiom.
    Verify(Verify),
    /// Show what this is about, in a minute.
    Demo(Demo),
    /// Measure against the in-memory libraries.
    Bench(Bench),
}

/// Make, convert and check structured reference strings on disk.
#[derive(Debug, Subcommand)]
pub enum Srs {
    /// Make an INSECURE one from a seed: whoever knows the seed can forge proofs. For tests.
    Gen {
        /// For 2^k rows.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=28))]
        k: u32,
        /// Where the secret comes from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The file to make.
        #[arg(long)]
        out: PathBuf,
    },
    /// Take a ParamsKZG file of a halo2 user; every point is checked, and the parts against each other.
    Import {
        /// The ParamsKZG file.
        file: PathBuf,
        /// The file to make.
        #[arg(long)]
        out: PathBuf,
        /// How its points are written; found from the file's length if not given.
        #[arg(long, value_enum)]
        format: Option<FormatName>,
    },
    /// Write a ParamsKZG file, byte for byte as stock would.
    Export {
        /// The SRS.
        file: PathBuf,
        /// The file to make.
        #[arg(long)]
        out: PathBuf,
        /// How its points are to be written.
        #[arg(long, value_enum, default_value_t = FormatName::Raw)]
        format: FormatName,
    },
    /// Compute the Lagrange points of an SRS from its monomial points, out of core, and write an SRS with both.
    Lagrange {
        /// An SRS, or a ParamsKZG file, of which only monomial points are read.
        file: PathBuf,
        /// The file to make.
        #[arg(long)]
        out: PathBuf,
        /// Take the first 2^k points; all of them if not given.
        #[arg(long, value_parser = clap::value_parser!(u32).range(0..=28))]
        k: Option<u32>,
        /// How a ParamsKZG file's points are written; found from its length if not given.
        #[arg(long, value_enum)]
        format: Option<FormatName>,
    },
    /// Check every frame of a file against its digest, and the parts of an SRS against each other.
    Verify {
        /// The file.
        file: PathBuf,
    },
    /// Say what a file holds.
    Inspect {
        /// The file.
        file: PathBuf,
    },
}

/// A multi-scalar multiplication over bases on disk.
#[derive(Debug, Clone, Args)]
pub struct Msm {
    /// 2^N points.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=28))]
    pub log_n: u32,
    /// Where points and scalars come from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Take the points of this SRS (its monomial form) instead.
    #[arg(long, conflicts_with = "in_memory")]
    pub srs: Option<PathBuf>,
    /// Hold everything in memory, as other libraries do; no budget.
    #[arg(long, conflicts_with = "gpu")]
    pub in_memory: bool,
    /// The library that computes in memory.
    #[arg(long, value_enum, default_value_t = Peer::Halo2curves)]
    pub peer: Peer,
    /// Compare with both libraries, in memory, afterwards (needs that much).
    #[arg(long, conflicts_with_all = ["in_memory", "srs"])]
    pub check: bool,
    /// Sum on a GPU.
    #[command(flatten)]
    pub gpu: Gpu,
}

/// Whether GPUs work, too.
#[derive(Debug, Clone, Args)]
pub struct Gpu {
    /// Which GPUs take part: auto (the first one, if there is any), off, all, or their numbers. What one does not do, or fails at,
    /// another one does, or the processor.
    #[arg(long, value_name = "auto|off|all|N,N", default_value_t = Choice::Off)]
    pub gpu: Choice,
    /// The budget of each GPU's memory; auto is what is free there.
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    pub vram: ByteSize,
    /// The budget of page-locked memory, through which data goes to the GPUs and back: kept from job to job, within --memory; each
    /// GPU has an equal part. auto is 80MiB for each.
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    pub pinned: ByteSize,
    /// Page-locked memory on the way to the GPUs is write-combined: a little faster to copy from, but nothing is read from disk
    /// straight into it.
    #[arg(long)]
    pub write_combined: bool,
}

/// Which jobs of a proof GPUs get.
#[derive(Debug, Clone, Args)]
pub struct ProofOn {
    /// Which GPUs.
    #[command(flatten)]
    pub gpu: Gpu,
    /// What the GPU gets: measured (what it does faster than the processor, as measured at the first sum and transform), or
    /// always (whatever it can do, however small).
    #[arg(long, value_enum, default_value_t = OffloadName::Measured)]
    pub offload: OffloadName,
}

/// Say what keys and a proof will take.
#[derive(Debug, Clone, Args)]
pub struct Plan {
    /// Of what.
    #[command(flatten)]
    pub shape: Shape,
    /// Say which jobs a GPU would do, and how, too; its rates are measured for that.
    #[command(flatten)]
    pub on: ProofOn,
}

/// Commit to a polynomial over an SRS on disk.
#[derive(Debug, Clone, Args)]
pub struct Commit {
    /// The SRS.
    #[arg(long)]
    pub srs: PathBuf,
    /// A file of coefficients (with --lagrange: of values): 32 bytes each, little-endian, below the modulus.
    #[arg(long)]
    pub polynomial: PathBuf,
    /// The file holds values on the domain, not coefficients.
    #[arg(long, conflicts_with = "open_at")]
    pub lagrange: bool,
    /// Open the commitment at this point: 64 hexadecimal digits, the most significant first.
    #[arg(long, value_name = "HEX")]
    pub open_at: Option<String>,
    /// Whether GPUs sum, too: whatever fits them, however small.
    #[command(flatten)]
    pub gpu: Gpu,
}

/// Which circuit, how large.
#[derive(Debug, Clone, Copy, Args)]
pub struct Shape {
    /// 2^k rows.
    #[arg(long, value_parser = clap::value_parser!(u32).range(4..=28))]
    pub k: u32,
    /// The circuit.
    #[arg(long, value_enum, default_value_t = Kind::Chain)]
    pub circuit: Kind,
    /// The multi-opening argument.
    #[arg(long, value_enum, default_value_t = Scheme::Shplonk)]
    pub scheme: Scheme,
}

/// Which circuit, from which seed.
#[derive(Debug, Clone, Args)]
pub struct Statement {
    /// Which circuit, how large.
    #[command(flatten)]
    pub shape: Shape,
    /// Where the witness and the prover's randomness come from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A ParamsKZG file (raw bytes), of this k; without it, an INSECURE one is made from --srs-seed.
    #[arg(long)]
    pub params: Option<PathBuf>,
    /// Where the secret of an insecure SRS comes from.
    #[arg(long, default_value_t = 1)]
    pub srs_seed: u64,
}

/// Prove a built-in circuit.
#[derive(Debug, Clone, Args)]
pub struct Prove {
    /// What to prove.
    #[command(flatten)]
    pub statement: Statement,
    /// The file for the proof.
    #[arg(long)]
    pub out: PathBuf,
    /// Prove in memory, with the drop-in and no session: stock, by another name.
    #[arg(long, conflicts_with = "gpu")]
    pub no_session: bool,
    /// Prove with the unmodified crate, in memory: what people have today.
    #[arg(long, conflicts_with_all = ["no_session", "gpu"])]
    pub stock: bool,
    /// Prove with a GPU.
    #[command(flatten)]
    pub on: ProofOn,
    /// Write a page into this file: memory against the budget over time, disk rates, phases.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Draw the memory curve into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Check a proof of a built-in circuit with the unmodified halo2-axiom.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// What was proved.
    #[command(flatten)]
    pub statement: Statement,
    /// The proof.
    pub proof: PathBuf,
}

/// Show what this is about.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Another demo than the usual one.
    #[command(subcommand)]
    pub which: Option<Which>,
    /// 2^k rows in the proof.
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(8..=20))]
    pub k: u32,
    /// The picture of the memory curve.
    #[arg(long, value_name = "FILE", default_value = "spillproof-demo.svg")]
    pub svg: PathBuf,
}

/// Demos.
#[derive(Debug, Clone, Subcommand)]
pub enum Which {
    /// The same work twice under a hard memory limit of the kernel: in memory it is killed, from disk it finishes.
    Oom(Oom),
}

/// A multi-scalar multiplication or, with --circuit, a whole proof with its keys.
#[derive(Debug, Clone, Args)]
pub struct Oom {
    /// An MSM of 2^N points; the limit is --memory and 32 MiB for what no budget holds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..=28))]
    pub log_n: u32,
    /// Keys and a proof of this circuit; --memory is the limit on the whole process.
    #[arg(long, value_enum, conflicts_with = "log_n")]
    pub circuit: Option<Kind>,
    /// 2^k rows of the circuit.
    #[arg(long, requires = "circuit", default_value_t = 20, value_parser = clap::value_parser!(u32).range(8..=26))]
    pub k: u32,
}

/// Measure against the in-memory libraries. Say what: --msm, --ntt, --prove; if nothing is said, a bit of each.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// MSMs of these sizes (powers of two), from disk in --memory (96 MiB; with --gpu 256 MiB, and 20,22,24,26 if nothing is said).
    #[arg(long, value_delimiter = ',', value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(0..=28))]
    pub msm: Vec<u32>,
    /// Transforms of these sizes (powers of two), from disk in --memory (64 MiB; with --gpu as MSMs).
    #[arg(long, value_delimiter = ',', value_name = "LOG_N", value_parser = clap::value_parser!(u32).range(0..=28))]
    pub ntt: Vec<u32>,
    /// Keys and proofs of these circuits in --memory (32 MiB), against the unmodified prover with all the memory it wants.
    #[arg(long, value_delimiter = ',', value_enum, value_name = "CIRCUIT")]
    pub prove: Vec<Kind>,
    /// With 2^K rows each: several show how that scales.
    #[arg(long, value_delimiter = ',', requires = "prove", default_value = "16", value_parser = clap::value_parser!(u32).range(8..=28))]
    pub k: Vec<u32>,
    /// On so many threads each, instead of --threads: several show how that scales.
    #[arg(long, value_delimiter = ',', requires = "prove", value_name = "N")]
    pub cores: Vec<usize>,
    /// Time against memory too: from the smallest budget that works, doubled up to all there is.
    #[arg(long, requires = "prove")]
    pub curve: bool,
    /// The unmodified prover with a swap file under our limit too (usually takes root).
    #[arg(long, requires = "prove")]
    pub swap: bool,
    /// A ParamsKZG file (raw bytes) for the proofs; without it, an INSECURE one is made for each K.
    #[arg(long, requires = "prove", value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Measure a GPU instead: what it is and does in a second, then MSMs and transforms from disk with it, beside the processor's;
    /// auto is the first one. Fails where there is none, where it fails, and where a result differs.
    #[arg(long, value_name = "auto|N", conflicts_with_all = ["prove", "k", "cores", "curve", "swap", "params", "no_ark"])]
    pub gpu: Option<Choice>,
    /// Budgets of the GPU's memory; auto is what is free there. Those that it has not are left out.
    #[arg(long, value_delimiter = ',', requires = "gpu", value_name = "SIZE", default_value = "1GiB,4GiB,16GiB", value_parser = size)]
    pub vram: Vec<ByteSize>,
    /// Leave the processor out; results are then compared between budgets only.
    #[arg(long, requires = "gpu")]
    pub no_cpu: bool,
    /// Each is run so often, in turns; medians count.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Leave arkworks out of the MSMs (it is the slowest).
    #[arg(long)]
    pub no_ark: bool,
    /// Draw it into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

fn size(text: &str) -> Result<ByteSize, String> {
    parse_size(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn global_options_go_anywhere() {
        let parse = |line: &str| Arguments::try_parse_from(line.split_whitespace());
        let arguments = parse("spillproof msm --log-n 4 --memory 96MiB --json").unwrap();
        assert_eq!(arguments.global.memory, Some(ByteSize::Bytes(96 << 20)));
        assert!(arguments.global.json);
        assert!(parse("spillproof").unwrap().command.is_none());
        assert!(parse("spillproof --memory lots").is_err());
        assert!(parse("spillproof demo oom --log-n 18 --memory 24M").is_ok());
        assert!(parse("spillproof demo oom --circuit chain --k 20 --memory 128MiB").is_ok());
        assert!(parse("spillproof demo oom --circuit chain --log-n 20").is_err());
        assert!(parse("spillproof bench --prove chain,wide --k 16,18 --cores 1,2 --curve --swap").is_ok());
        assert!(parse("spillproof bench --curve").is_err());
        let Some(Command::Bench(bench)) = parse("spillproof bench --gpu auto").unwrap().command else {
            panic!("it is a benchmark");
        };
        assert_eq!((bench.gpu, bench.vram.len()), (Some(Choice::Auto), 3));
        assert!(
            parse("spillproof bench --gpu 1 --vram 1GiB,auto --msm 20 --ntt 20,22 --runs 5 --no-cpu").is_ok()
        );
        assert!(parse("spillproof bench --msm 29").is_err());
        for refused in [
            "--gpu first",
            "--vram 1GiB",
            "--no-cpu",
            "--gpu 0 --prove chain",
            "--gpu 0 --no-ark",
            "--gpu 0 --curve",
        ] {
            assert!(
                parse(&format!("spillproof bench {refused}")).is_err(),
                "{refused}"
            );
        }
        assert!(parse("spillproof msm --log-n 4 --gpu auto --vram 2GiB").is_ok());
        assert!(parse("spillproof msm --log-n 4 --gpu 0").is_ok());
        assert!(parse("spillproof msm --log-n 4 --gpu all --pinned 64MiB --write-combined").is_ok());
        assert!(parse("spillproof msm --log-n 4 --gpu 0,1").is_ok());
        assert!(parse("spillproof msm --log-n 4 --gpu first").is_err());
        assert!(parse("spillproof msm --log-n 4 --gpu 0 --pinned some").is_err());
        assert!(parse("spillproof msm --log-n 4 --in-memory --gpu auto").is_err());
        assert!(parse("spillproof msm --log-n 4 --in-memory").is_ok());
        let proof = "spillproof prove --k 8 --out p";
        assert!(parse(&format!("{proof} --gpu auto --vram 2GiB --offload always")).is_ok());
        assert!(parse(&format!("{proof} --no-session")).is_ok());
        assert!(parse("spillproof plan --k 8 --gpu all --vram 2GiB --pinned 1MiB --offload always").is_ok());
        assert!(parse("spillproof plan --k 8 --gpu first").is_err());
        assert!(parse(&format!("{proof} --no-session --gpu auto")).is_err());
        assert!(parse(&format!("{proof} --stock --gpu 0")).is_err());
    }
}
