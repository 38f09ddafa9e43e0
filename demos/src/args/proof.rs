//! The command line of keys, proofs and verification.

use std::path::PathBuf;

use clap::Args;

use super::ProofOn;
use crate::failure::Failure;
use spillproof_circuits::{Kind, Scheme, System};

/// Which circuit, how large.
#[derive(Debug, Clone, Copy, Args)]
pub struct Shape {
    /// 2^k rows.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(4..=28))]
    pub k: u32,
    /// The circuit.
    #[arg(long, value_enum, default_value_t = Kind::Chain)]
    pub circuit: Kind,
    /// The proof system: axiom (halo2-axiom: KZG over BN254) or zcash (halo2_proofs: inner products over Vesta, without a setup).
    #[arg(long, value_enum, default_value_t = System::Axiom)]
    pub system: System,
    /// The multi-opening argument of halo2-axiom; shplonk unless said.
    #[arg(long, value_enum)]
    pub scheme: Option<Scheme>,
}

impl Shape {
    /// A circuit of a system, with its usual opening.
    pub fn of(system: System, circuit: Kind, k: u32) -> Self {
        Self {
            k,
            circuit,
            system,
            scheme: None,
        }
    }

    /// The multi-opening argument of halo2-axiom.
    pub fn scheme(&self) -> Scheme {
        self.scheme.unwrap_or(Scheme::Shplonk)
    }

    /// The name of the opening, in any system.
    pub fn opening(&self) -> &'static str {
        match (self.system, self.scheme()) {
            (System::Zcash, _) => "ipa",
            (System::Axiom, Scheme::Shplonk) => "shplonk",
            (System::Axiom, Scheme::Gwc) => "gwc",
        }
    }

    /// Refuses options that the system does not have.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self) -> Result<(), Failure> {
        refuse(self.system, "--scheme", self.scheme.is_some())
    }
}

/// Refuses an option of halo2-axiom where the system is another one.
pub(super) fn refuse(system: System, option: &str, is_given: bool) -> Result<(), Failure> {
    match system {
        System::Zcash if is_given => Err(Failure::Usage(format!(
            "{option} is for --system axiom: leave it out, --system zcash has nothing of the kind"
        ))),
        _ => Ok(()),
    }
}

/// Which circuit, from which seed.
#[derive(Debug, Clone, Args)]
pub struct Statement {
    /// Which circuit, how large.
    #[command(flatten)]
    pub shape: Shape,
    /// The seed of the witness and of the prover's randomness.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Its parameters.
    #[command(flatten)]
    pub parameters: Parameters,
}

/// Where parameters come from.
#[derive(Debug, Clone, Default, Args)]
pub struct Parameters {
    /// The parameters: a container of `spillproof srs`, the file that halo2 writes (ParamsKZG; for zcash Params), a ceremony's powers of tau (.ptau),
    /// or the folder in which halo2-base keeps kzg_bn254_{k}.srs (PARAMS_DIR). KZG's may be for a larger k.
    /// Without it, an INSECURE SRS is made from --srs-seed; zcash's parameters are computed.
    #[arg(
        id = "srs",
        long = "srs",
        visible_alias = "params",
        value_name = "FILE",
        conflicts_with = "seed_of_srs"
    )]
    pub file: Option<PathBuf>,
    /// The seed of the secret of an insecure SRS; 1 unless said.
    #[arg(id = "seed_of_srs", long = "srs-seed", value_name = "SRS_SEED")]
    pub seed: Option<u64>,
}

impl Statement {
    /// A circuit with the witness of seed 1 and parameters that are made.
    pub fn of(shape: Shape) -> Self {
        Self {
            shape,
            seed: 1,
            parameters: Parameters::default(),
        }
    }

    /// The seed of the secret of an insecure SRS.
    pub fn srs_seed(&self) -> u64 {
        self.parameters.seed.unwrap_or(1)
    }

    /// Refuses options that the system does not have.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self) -> Result<(), Failure> {
        self.shape.check()?;
        refuse(self.shape.system, "--srs-seed", self.parameters.seed.is_some())
    }
}

/// Prove a built-in circuit.
#[derive(Debug, Clone, Args)]
pub struct Prove {
    /// The statement.
    #[command(flatten)]
    pub statement: Statement,
    /// The file for the proof.
    #[arg(short, long)]
    pub out: PathBuf,
    /// The proving key of the circuit, from `spillproof keygen`; without it, keys are made.
    #[arg(long, value_name = "FILE", conflicts_with = "no_session")]
    pub key: Option<PathBuf>,
    /// Prove in memory, with the drop-in and without a session: upstream's own code.
    #[arg(long, conflicts_with = "gpu")]
    pub no_session: bool,
    /// Prove with a GPU.
    #[command(flatten)]
    pub on: ProofOn,
    /// Keep the proof's rounds in this folder, sealed, so that after a crash the same command goes on from there. Else the variable
    /// SPILLPROOF_CHECKPOINT names the folder, if it is set.
    #[arg(long, value_name = "DIR", conflicts_with = "no_session")]
    pub checkpoint: Option<PathBuf>,
    /// The key of the checkpoint: a file of 32 random bytes, or 64 hexadecimal digits, in another folder. Else the variable
    /// SPILLPROOF_CHECKPOINT_KEY_FILE names the file, or SPILLPROOF_CHECKPOINT_KEY is the key.
    #[arg(long, value_name = "FILE", conflicts_with = "no_session")]
    pub checkpoint_key: Option<PathBuf>,
    /// Write a page into this file: memory against the budget over time, disk rates, busy cores, phases.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write memory, bytes and processors' time into this file, sampled every few milliseconds, as comma-separated values.
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Draw the memory curve into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Prove {
    /// Refuses options that the system does not have.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self) -> Result<(), Failure> {
        let system = self.statement.shape.system;
        self.statement.check()?;
        self.on.check(system)?;
        let keeps_rounds = self.checkpoint.is_some() || self.checkpoint_key.is_some();
        refuse(system, "--checkpoint", keeps_rounds)?;
        refuse(system, "--key", self.key.is_some())
    }
}

/// Make the keys of a built-in circuit, and write them into files.
#[derive(Debug, Clone, Args)]
pub struct Keygen {
    /// The circuit.
    #[command(flatten)]
    pub shape: Shape,
    /// Its parameters.
    #[command(flatten)]
    pub parameters: Parameters,
    /// The file for the proving key: a container, which `prove --key` opens in place.
    #[arg(short, long)]
    pub out: PathBuf,
    /// The file for the verifying key, in the bytes that halo2 writes (`SerdeFormat::RawBytes`), for `verify --vk`.
    #[arg(long, value_name = "FILE")]
    pub vk: Option<PathBuf>,
}

impl Keygen {
    /// The circuit with these parameters; the witness has no part in keys.
    pub fn statement(&self) -> Statement {
        Statement {
            parameters: self.parameters.clone(),
            ..Statement::of(self.shape)
        }
    }

    /// Refuses what the system does not have.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self) -> Result<(), Failure> {
        if self.shape.system == System::Zcash {
            return Err(Failure::Usage(
                "keygen is for --system axiom: halo2_proofs has no file format for keys".into(),
            ));
        }
        self.statement().check()
    }
}

/// Check a proof of a built-in circuit with the unmodified halo2.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// The statement.
    #[command(flatten)]
    pub statement: Statement,
    /// The verifying key of the circuit, from `spillproof keygen --vk`; without it, the key is made, which takes parameters in memory.
    #[arg(long, value_name = "FILE")]
    pub vk: Option<PathBuf>,
    /// The proof.
    pub proof: PathBuf,
}
