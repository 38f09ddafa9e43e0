//! The command line.

mod files;
mod global;
mod groth16;
mod kept;
mod new;
mod opening;
mod pairing;
mod proof;
mod ptau;
mod ranks;
mod serve;
mod shell;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use spillproof_engine::budget::{ByteSize, parse_size};
use spillproof_format::params_kzg::{Dialect, SerdeFormat};
use spillproof_gpu::Choice;
use spillproof_gpu::accelerator::Offload;

pub use self::files::Files;
pub use self::global::{BackendName, Global};
pub use self::groth16::{AllowInsecure, Groth16, Groth16Example, Values};
pub use self::kept::Kept;
pub use self::new::{New, ProgramOver};
pub use self::opening::{Open, OpenVerify};
pub use self::pairing::Pairing;
use self::proof::refuse;
pub use self::proof::{
    BuiltIn, Keygen, OfProgram, Parameters, Prove, Proved, PublicInputs, Shape, Statement, StatementArgs,
    Verified, Verify, opening,
};
pub use self::ptau::Ptau;
pub use self::ranks::{
    CutName, LinkName, LinkOf, Messages, OnRanks, PlannedRanks, Ranks, RanksBench, Sharing,
};
pub use self::serve::Serve;
pub use self::shell::{Completions, completions, for_help, man, options};
use crate::failure::Failure;
use crate::peers::Peer;
use spillproof_circuits::zcash::params::Pasta;
use spillproof_circuits::{Kind, System};

/// Proofs, commitments and multi-scalar multiplications larger than the machine: set a number of bytes, the
/// rest lives on disk.
#[derive(Debug, Parser)]
#[command(
    name = "spillproof",
    version,
    arg_required_else_help = false,
    max_term_width = 80
)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command; without one, the demo.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which jobs a GPU gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OffloadName {
    /// Those that it does faster than the processor.
    Measured,
    /// All that it can do.
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
    /// The same bytes: `SerdeFormat::RawBytesUnchecked`, which halo2 reads without checks.
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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a small program with a circuit of its own, which proves within a budget: a folder for cargo.
    New(New),
    /// Make, convert and check structured reference strings on disk.
    #[command(subcommand)]
    Srs(Srs),
    /// A multi-scalar multiplication over bases on disk.
    Msm(Msm),
    /// Commit to a polynomial over an SRS on disk.
    Commit(Commit),
    /// Check openings of commitments.
    #[command(subcommand)]
    Open(Open),
    /// Make the keys of a built-in circuit, and write them into files.
    Keygen(Keygen),
    /// Prove a built-in circuit, or a program's own by the key and the witness that it saved.
    Prove(Prove),
    /// Groth16 over the files of circom and snarkjs: prove, verify; make keys and contribute to them.
    #[command(subcommand)]
    Groth16(Groth16),
    /// Prove over HTTP: keys are opened once, and all jobs share one budget. Built with --features serve.
    Serve(Serve),
    /// Processes that prove together under mpirun: measure the link between them.
    #[command(subcommand)]
    Ranks(Ranks),
    /// Powers of tau (.ptau files): prepare, verify, import for halo2.
    #[command(subcommand)]
    Ptau(Ptau),
    /// Print the memory, bytes and seconds that keys and a proof of a circuit will take, step by step.
    Plan(Plan),
    /// Check a proof of a circuit with the unmodified halo2.
    Verify(Verify),
    /// Prove and sum from disk and in memory, and compare: one to two minutes on two cores.
    Demo(Demo),
    /// Print a script that completes command lines in a shell.
    Completions(Completions),
    /// Print the manual page, in roff: `spillproof man > spillproof.1`.
    Man,
    /// Print the options of every command.
    Options,
}

/// Make, convert and check structured reference strings on disk.
#[derive(Debug, Subcommand)]
pub enum Srs {
    /// Make an INSECURE one from a seed, for tests: the seed is enough to forge proofs. With --curve bls12-381:
    /// for midnight-proofs. With --system zcash: compute the parameters of halo2_proofs, which need no secret.
    Gen {
        /// The SRS is for 2^k rows.
        #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..=28))]
        k: u32,
        /// The seed of the secret (default: 1).
        #[arg(long)]
        seed: Option<u64>,
        /// Which parameters.
        #[command(flatten)]
        of: ParamsOf,
        /// The file to make.
        #[arg(short, long)]
        out: PathBuf,
    },
    /// Read a file of halo2 or midnight-proofs: ParamsKZG (bls_midnight_2p{k} is one), or with --system zcash
    /// Params. Every point is checked, and the parts are checked against each other.
    Import {
        /// The file of parameters.
        file: PathBuf,
        /// Which parameters.
        #[command(flatten)]
        of: ParamsOf,
        /// The file to make.
        #[arg(short, long)]
        out: PathBuf,
        /// The format of the points of ParamsKZG; without it, the file's length and k decide.
        #[arg(long, value_enum)]
        format: Option<FormatName>,
    },
    /// Write a file of parameters, ParamsKZG or zcash's Params, byte for byte as halo2 or, over BLS12-381,
    /// midnight-proofs writes it.
    Export {
        /// The SRS.
        file: PathBuf,
        /// The file to make.
        #[arg(short, long)]
        out: PathBuf,
        /// The format of the points of ParamsKZG (default: raw).
        #[arg(long, value_enum)]
        format: Option<FormatName>,
    },
    /// Compute the Lagrange points of an SRS from its monomial points, out of core, and write an SRS with
    /// both.
    Lagrange {
        /// An SRS, or a ParamsKZG file, of which only monomial points are read.
        file: PathBuf,
        /// The file to make.
        #[arg(short, long)]
        out: PathBuf,
        /// Take the first 2^k points; all of them if not given.
        #[arg(short, long, value_parser = clap::value_parser!(u32).range(0..=28))]
        k: Option<u32>,
        /// The format of the points of ParamsKZG (default: the one that the file's length and k show).
        #[arg(long, value_enum)]
        format: Option<FormatName>,
    },
    /// Check every frame of a file against its digest, and the parts of an SRS against each other, also of a
    /// ParamsKZG file of raw points. The points of zcash's parameters are computed again and compared.
    Verify {
        /// The file.
        file: PathBuf,
    },
    /// Print what a file is, and its contents.
    Inspect {
        /// The file.
        file: PathBuf,
    },
}

/// The system of parameters, and the curve of their points.
#[derive(Debug, Clone, Copy, Args)]
pub struct ParamsOf {
    /// The proof system: axiom (halo2-axiom: KZG over BN254), midnight (midnight-proofs: KZG over BLS12-381) or
    /// zcash (halo2_proofs: inner products). Without it, parameters are of KZG over the curve.
    #[arg(long, value_enum)]
    pub system: Option<System>,
    /// The curve. Of KZG: what the file shows, or else bn254. With --system zcash: vesta.
    #[arg(long, value_enum)]
    pub curve: Option<CurveName>,
}

/// Curves of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CurveName {
    /// Of halo2's KZG.
    Bn254,
    /// Of midnight-proofs: its files are called `bls_midnight_2p{k}`.
    #[value(name = "bls12-381", alias = "bls12381")]
    Bls12381,
    /// Of zcash's halo2_proofs: the curve of orchard's commitments.
    Vesta,
    /// Of zcash's halo2_proofs.
    Pallas,
}

/// Which parameters are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamsKind {
    /// KZG, in the files of these programs if that is said.
    Kzg(Option<Dialect>),
    /// zcash's.
    Zcash(Pasta),
}

impl ParamsOf {
    /// Which ones.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a curve of another system.
    pub fn kind(&self) -> Result<ParamsKind, Failure> {
        let refused = |reason: &str| Err(Failure::Usage(reason.into()));
        match (self.system, self.curve) {
            (Some(System::Zcash), None | Some(CurveName::Vesta)) => Ok(ParamsKind::Zcash(Pasta::Vesta)),
            (Some(System::Zcash), Some(CurveName::Pallas)) => Ok(ParamsKind::Zcash(Pasta::Pallas)),
            (Some(System::Zcash), Some(_)) => refused("--system zcash is over vesta or pallas"),
            (Some(System::Axiom), None) | (Some(System::Axiom) | None, Some(CurveName::Bn254)) => {
                Ok(ParamsKind::Kzg(Some(Dialect::Halo2)))
            }
            (Some(System::Midnight), None) | (Some(System::Midnight) | None, Some(CurveName::Bls12381)) => {
                Ok(ParamsKind::Kzg(Some(Dialect::Midnight)))
            }
            (Some(System::Axiom), Some(_)) => refused("--system axiom is over BN254 only"),
            (Some(System::Midnight), Some(_)) => refused("--system midnight is over BLS12-381 only"),
            (None, None) => Ok(ParamsKind::Kzg(None)),
            (None, Some(CurveName::Vesta | CurveName::Pallas)) => {
                refused("--curve vesta and pallas are for --system zcash")
            }
        }
    }
}

/// A multi-scalar multiplication over bases on disk.
#[derive(Debug, Clone, Args)]
pub struct Msm {
    /// 2^N points.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=28))]
    pub log_n: u32,
    /// The seed of points and scalars.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Take the points of this SRS instead: a container, ParamsKZG or powers of tau (.ptau).
    #[arg(long, conflicts_with = "in_memory")]
    pub srs: Option<PathBuf>,
    /// Hold everything in memory, as other libraries do, without a budget.
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

/// GPUs for a session.
#[derive(Debug, Clone, Args)]
pub struct Gpu {
    /// Which GPUs take part: auto (the first one, if there is one), off, all, or their numbers. A job that a
    /// GPU declines or fails is done by another one or by the processor.
    #[arg(long, value_name = "auto|off|all|N,N", default_value_t = Choice::Off)]
    pub gpu: Choice,
    /// The budget of each GPU's memory; auto is its free memory.
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    pub vram: ByteSize,
    /// The budget of page-locked memory, through which data goes to the GPUs and back. It is part of --memory
    /// and kept from job to job; each GPU has an equal part. auto is 80MiB for each.
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    pub pinned: ByteSize,
    /// Make page-locked memory on the way to the GPUs write-combined: a little faster to copy from, but disk
    /// reads cannot go straight into it.
    #[arg(long)]
    pub write_combined: bool,
}

/// Which jobs of a proof GPUs get.
#[derive(Debug, Clone, Args)]
pub struct ProofOn {
    /// Which GPUs.
    #[command(flatten)]
    pub gpu: Gpu,
    /// Which jobs GPUs get: measured (those that they do faster than the processor, as measured at the first
    /// sum and transform), or always (all that they can do, however small).
    #[arg(long, value_enum, default_value_t = OffloadName::Measured)]
    pub offload: OffloadName,
}

/// What keys and a proof will take.
#[derive(Debug, Clone, Args)]
pub struct Plan {
    /// The circuit.
    #[command(flatten)]
    pub built_in: BuiltIn,
    /// The proving key of a program's own circuit, or of `spillproof keygen`: the plan is of a proof with it,
    /// whose witness is in a file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["k", "circuit", "system"])]
    pub key: Option<PathBuf>,
    /// Print the time for each of several budgets, from the smallest that works up to this machine's memory,
    /// and no steps.
    #[arg(long)]
    pub ladder: bool,
    /// Print also which jobs GPUs would do, and how; their rates are measured for that.
    #[command(flatten)]
    pub on: ProofOn,
}

/// Commit to a polynomial over an SRS on disk.
#[derive(Debug, Clone, Args)]
pub struct Commit {
    /// The SRS, for the polynomial's length or more: a container, ParamsKZG or powers of tau (.ptau).
    #[arg(long)]
    pub srs: PathBuf,
    /// A file of coefficients (with --lagrange: of values): 32 bytes each, little-endian, below the modulus.
    #[arg(long)]
    pub polynomial: PathBuf,
    /// The file holds values on the domain, not coefficients.
    #[arg(long, conflicts_with = "open_at")]
    pub lagrange: bool,
    /// Open the commitment at this point: a decimal number, or 0x and hexadecimal digits, below the modulus;
    /// 64 digits are hexadecimal.
    #[arg(long, value_name = "POINT")]
    pub open_at: Option<String>,
    /// Write commitment and opening into this file, as JSON, for `open verify`; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// GPUs that sum: all sums that fit them, however small.
    #[command(flatten)]
    pub gpu: Gpu,
}

impl ProofOn {
    /// Refuses GPUs where they have no part.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self, system: System) -> Result<(), Failure> {
        refuse(system, proof::AXIOM, "--gpu", self.is_asked_for())?;
        self.check_options()
    }

    /// Refuses options that have no effect without a GPU.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check_options(&self) -> Result<(), Failure> {
        let offload = self.offload != OffloadName::Measured;
        self.gpu.check_beside([("--offload", offload)])
    }

    /// Whether any GPU is to take part.
    pub fn is_asked_for(&self) -> bool {
        self.gpu.gpu != Choice::Off
    }
}

impl Gpu {
    /// Refuses options that have no effect without a GPU.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self) -> Result<(), Failure> {
        self.check_beside([])
    }

    /// The same, with options of the command's own.
    fn check_beside<const N: usize>(&self, more: [(&'static str, bool); N]) -> Result<(), Failure> {
        let mine = [
            ("--vram", self.vram != ByteSize::Auto),
            ("--pinned", self.pinned != ByteSize::Auto),
            ("--write-combined", self.write_combined),
        ];
        let mut all = mine.into_iter().chain(more);
        match all.find(|(_, is_given)| *is_given && self.gpu == Choice::Off) {
            Some((option, _)) => Err(Failure::Usage(format!(
                "{option} has no effect without a GPU: add --gpu auto, or leave it out"
            ))),
            None => Ok(()),
        }
    }
}

/// The demo.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Another demo than the usual one.
    #[command(subcommand)]
    pub which: Option<Which>,
    /// 2^k rows in the proof, and four times as many points in the sum.
    #[arg(long, default_value_t = 18, value_parser = clap::value_parser!(u32).range(8..=20))]
    pub k: u32,
    /// The picture of the memory over time; spillproof-demo.svg in the folder of scratch files unless given.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Demos.
#[derive(Debug, Clone, Subcommand)]
pub enum Which {
    /// The same work twice under a hard memory limit of the kernel: in memory it is killed, from disk it
    /// finishes.
    Oom(Oom),
}

/// A multi-scalar multiplication or, with --circuit or --groth16, a whole proof.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("whole").args(["circuit", "groth16"])))]
pub struct Oom {
    /// An MSM of 2^N points; the limit is --memory and 32 MiB for what no budget holds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..=28))]
    pub log_n: u32,
    /// Keys and a proof of this circuit; --limit (or --memory) is the limit on the whole process, 128MiB
    /// by default.
    #[arg(long, value_enum, conflicts_with = "log_n")]
    pub circuit: Option<Kind>,
    /// The proof system of the circuit.
    #[arg(long, value_enum, requires = "circuit", default_value_t = System::Axiom)]
    pub system: System,
    /// A Groth16 proof over the files of a built-in circuit; --limit (or --memory) is the limit on the whole
    /// process.
    #[arg(long, conflicts_with_all = ["log_n", "circuit"])]
    pub groth16: bool,
    /// 2^k rows of the circuit.
    #[arg(long, requires = "whole", default_value_t = 20, value_parser = clap::value_parser!(u32).range(8..=26))]
    pub k: u32,
}

/// The name of a value on the command line.
pub fn name_of(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

/// A size in bytes as people write it.
///
/// # Errors
/// Text that is no size, with the reason.
pub fn size(text: &str) -> Result<ByteSize, String> {
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
        assert!(parse("spillproof demo oom --groth16 --k 18 --memory 96MiB").is_ok());
        assert!(parse("spillproof demo oom --groth16 --circuit chain").is_err());
        assert!(parse("spillproof demo oom --k 18").is_err());
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
        assert!(parse("spillproof demo oom --system zcash --circuit chain --k 18").is_ok());
        assert!(parse("spillproof demo oom --system midnight --circuit chain --k 18").is_ok());
    }

    #[test]
    fn options_of_another_system_are_refused() {
        for (options, is_fine) in [
            ("--system zcash", true),
            ("--scheme gwc --srs-seed 2 --gpu auto --checkpoint d", true),
            ("--system zcash --scheme gwc", false),
            ("--system zcash --srs-seed 2", false),
            ("--system zcash --gpu auto", false),
            ("--system zcash --checkpoint d", false),
            ("--system zcash --checkpoint-key f", false),
            ("--system zcash --key f", false),
            ("--system midnight --srs-seed 2 --key f --checkpoint d", true),
            ("--system midnight --scheme gwc", false),
            ("--system midnight --gpu auto", false),
        ] {
            let line = format!("spillproof prove --k 8 --out p {options}");
            let parsed = Arguments::try_parse_from(line.split_whitespace()).unwrap();
            let Some(Command::Prove(prove)) = parsed.command else {
                panic!("it is a proof");
            };
            assert_eq!(prove.proved().is_ok(), is_fine, "{options}");
        }
    }
}
