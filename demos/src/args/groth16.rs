//! The command line of `spillproof groth16`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ranks::LINK;
use super::{Kept, LinkOf, OnRanks, Pairing, PlannedRanks, ProofOn};

/// Groth16 over the files of circom and snarkjs. Arguments are in the order of `snarkjs groth16`.
#[derive(Debug, Subcommand)]
pub enum Groth16 {
    /// Prove with a key and a witness, or with each witness of a folder. A proof is verified before it is
    /// written. Under mpirun, all ranks prove together, each within a budget of its own, and rank 0 writes the
    /// files.
    Prove {
        /// The proving key: a .zkey or .arkzkey file, or a container that `groth16 import` made of one, for as many ranks
        /// as prove.
        key: PathBuf,
        /// The witness: a .wtns file; or a folder, whose .wtns files are proved in the order of their names.
        witness: PathBuf,
        /// The proof's new file, in JSON as snarkjs has it. For a folder of witnesses a folder that is there:
        /// NAME.wtns gives NAME.proof.json.
        proof: PathBuf,
        /// The new file of public signals, in JSON as snarkjs has it. For a folder of witnesses a folder, for
        /// NAME.public.json.
        public: PathBuf,
        /// Where sums and exchanges are kept.
        #[command(flatten)]
        kept: Kept,
        /// GPUs that make sums and transforms over BN254.
        #[command(flatten)]
        gpu: ProofOn,
        /// Write a page into this file: memory against the budget over time, disk rates, busy cores, phases, and what
        /// crossed to GPUs and back.
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// What is asked of several ranks.
        #[command(flatten)]
        on: OnRanks,
        /// The link between ranks, by which --cut auto chooses: 1g, 10g, 100g, nvlink, or a file of `ranks bench
        /// --json`.
        #[arg(long, value_name = LINK, help_heading = "Several ranks (mpirun -n 4 spillproof ...)")]
        link: Option<LinkOf>,
    },
    /// Verify a proof; exit status 0 if it verifies. A key whose gamma and delta are equal, as before the
    /// first contribution, is refused: anyone can forge proofs with it.
    Verify {
        /// The verification key, in JSON as snarkjs has it.
        key: PathBuf,
        /// The public signals.
        public: PathBuf,
        /// The proof.
        proof: PathBuf,
        /// Whether such a key is taken.
        #[command(flatten)]
        allow: AllowInsecure,
    },
    /// Make the key of a circuit from the first phase of a ceremony, as snarkjs makes it.
    Setup {
        /// The circuit: a .r1cs file.
        circuit: PathBuf,
        /// The first phase: a .ptau file, prepared for the second phase or, which takes longer, not.
        powers: PathBuf,
        /// The new .zkey file, whose gamma and delta are one: INSECURE until someone contributes.
        key: PathBuf,
    },
    /// Contribute a secret to a key, as `snarkjs zkey contribute` does. The secret comes from the system, and
    /// is gone when the command ends.
    Contribute {
        /// The .zkey file of the contributor before.
        key: PathBuf,
        /// The new .zkey file.
        out: PathBuf,
        /// The contributor's name, which is kept in the key.
        #[arg(long)]
        name: Option<String>,
        /// A text of the contributor's own, which is mixed with the system's entropy.
        #[arg(long)]
        entropy: Option<String>,
    },
    /// Contribute a public random value that did not exist before the other contributions, as
    /// `snarkjs zkey beacon` does.
    Beacon {
        /// The .zkey file of the last contributor.
        key: PathBuf,
        /// The new .zkey file.
        out: PathBuf,
        /// The value, in hex: 1 to 255 bytes.
        beacon: String,
        /// It is hashed 2^LOG times: 10 to 63.
        #[arg(value_name = "LOG", value_parser = clap::value_parser!(u8).range(10..=63))]
        iterations_log: u8,
        /// The contribution's name, which is kept in the key.
        #[arg(long)]
        name: Option<String>,
    },
    /// Verify that a key is that of a circuit and of a first phase, with the contributions that it lists, as
    /// `snarkjs zkey verify` does. A key without a contribution is refused.
    VerifyKey {
        /// The circuit: a .r1cs file.
        circuit: PathBuf,
        /// The first phase: the .ptau file that the key was made from.
        powers: PathBuf,
        /// The .zkey file.
        key: PathBuf,
        /// Whether a key without a contribution is taken.
        #[command(flatten)]
        allow: AllowInsecure,
    },
    /// Write a built-in circuit's witness and INSECURE key, for trials and measurements: the seed is enough
    /// to forge proofs with it.
    Example(Groth16Example),
    /// Make a container of a .zkey file, which proves without reading the file anew. Every point is checked,
    /// its subgroup included. Under mpirun, the key is dealt to the ranks: each writes a share of its own
    /// beside the container, and the same number of ranks proves with it.
    Import {
        /// The .zkey or .arkzkey file.
        key: PathBuf,
        /// The new container. Shares of several ranks have its name and end with .RANK-of-RANKS.
        #[arg(short, long)]
        out: PathBuf,
        /// What is asked of several ranks.
        #[command(flatten)]
        on: OnRanks,
    },
    /// Write the verification key of a proving key, in JSON as snarkjs has it, without the pairing that no
    /// verifier reads.
    Vkey {
        /// The proving key: a .zkey file or a container.
        key: PathBuf,
        /// The verification key's new file.
        out: PathBuf,
    },
    /// Print the sizes of a proving key.
    Inspect {
        /// A .zkey file or a container.
        file: PathBuf,
    },
    /// Print the memory, bytes and seconds that a proof with a key will take, step by step.
    Plan {
        /// A .zkey file or a container.
        key: PathBuf,
        /// Print the time for each of several budgets, from the smallest that works up to this machine's
        /// memory, and no steps.
        #[arg(long, conflicts_with = "ranks")]
        ladder: bool,
        /// Ranks that it is for.
        #[command(flatten)]
        on: PlannedRanks,
    },
}

/// Whether files are taken with which anyone can forge proofs.
#[derive(Debug, Clone, Copy, Args)]
pub struct AllowInsecure {
    /// Take a file without a contribution, too, with which anyone can forge proofs: for tests.
    #[arg(id = "allow_insecure", long = "allow-insecure")]
    pub insecure: bool,
}

/// A circuit that fills 2^K rows.
#[derive(Debug, Clone, Args)]
pub struct Groth16Example {
    /// The new .zkey file.
    pub key: PathBuf,
    /// The new .wtns file.
    pub witness: PathBuf,
    /// 2^K rows. Some 100 MiB of memory are taken for any K.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(4..=27))]
    pub k: u32,
    /// The values of the witness: of full size as of a Poseidon hash, or zeros and ones as of SHA-256.
    #[arg(long, value_enum, default_value_t = Values::Full)]
    pub values: Values,
    /// The curve.
    #[arg(long, value_enum, default_value_t = Pairing::Bn128)]
    pub curve: Pairing,
    /// The seed of the witness, of the key's secrets and of those of the first phase.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the circuit, too, as a new .r1cs file.
    #[arg(long, value_name = "FILE")]
    pub r1cs: Option<PathBuf>,
    /// Write a first phase for it, too, as a new .ptau file. It is INSECURE, as the key.
    #[arg(long, value_name = "FILE")]
    pub ptau: Option<PathBuf>,
}

/// The values of a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Of full size, as of a Poseidon hash.
    Full,
    /// Zeros and ones, as of SHA-256.
    Bits,
}

impl From<Values> for spillproof_circom::example::Values {
    fn from(values: Values) -> Self {
        match values {
            Values::Full => Self::Full,
            Values::Bits => Self::Bits,
        }
    }
}
