//! The command line of keys, proofs and verification.

use std::path::{Path, PathBuf};

use clap::Args;

use super::kept::Kept;
use super::{ProofOn, name_of};
use crate::failure::Failure;
use spillproof_circuits::{Kind, Scheme, System};

/// Which built-in circuit, how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// 2^k rows.
    pub k: u32,
    /// The circuit.
    pub circuit: Kind,
    /// The proof system.
    pub system: System,
    /// The multi-opening argument of halo2-axiom; SHPLONK where there is none.
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
        match self.system {
            System::Axiom => opening(self.scheme()),
            System::Midnight => "kzg",
            System::Zcash => "ipa",
        }
    }
}

/// The name of an opening of halo2-axiom.
pub fn opening(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Shplonk => "shplonk",
        Scheme::Gwc => "gwc",
    }
}

/// A built-in circuit on a command line.
#[derive(Debug, Clone, Copy, Args)]
pub struct BuiltIn {
    /// 2^k rows of a built-in circuit.
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(4..=28))]
    pub k: Option<u32>,
    /// The built-in circuit (default: chain).
    #[arg(long, value_enum)]
    pub circuit: Option<Kind>,
    /// The proof system: axiom (halo2-axiom: KZG over BN254; the default), midnight (midnight-proofs: KZG over
    /// BLS12-381) or zcash (halo2_proofs: inner products over Vesta, without a setup).
    #[arg(long, value_enum)]
    pub system: Option<System>,
    /// The multi-opening argument of halo2-axiom (default: shplonk).
    #[arg(long, value_enum)]
    pub scheme: Option<Scheme>,
}

impl BuiltIn {
    /// The circuit, if its system has these options.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn shape(&self) -> Result<Shape, Failure> {
        let system = self.system.unwrap_or(System::Axiom);
        refuse(system, AXIOM, "--scheme", self.scheme.is_some())?;
        let Some(k) = self.k else {
            return Err(Failure::Usage(
                "--k is missing: a built-in circuit is required to have 2^k rows (a circuit of a program's own has them in its --key)".into(),
            ));
        };
        Ok(Shape {
            k,
            circuit: self.circuit.unwrap_or(Kind::Chain),
            system,
            scheme: self.scheme,
        })
    }
}

/// The system with all options.
pub(super) const AXIOM: &[System] = &[System::Axiom];
/// The systems of KZG.
const KZG: &[System] = &[System::Axiom, System::Midnight];

/// Refuses an option that the system does not have.
pub(super) fn refuse(system: System, of: &[System], option: &str, is_given: bool) -> Result<(), Failure> {
    if !is_given || of.contains(&system) {
        return Ok(());
    }
    let names: Vec<String> = of.iter().map(name_of).collect();
    Err(Failure::Usage(format!(
        "{option} is for --system {}: leave it out, --system {} has nothing of the kind",
        names.join(" and "),
        name_of(&system)
    )))
}

/// A built-in circuit, from which seed.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Which circuit, how large.
    pub shape: Shape,
    /// The seed of the witness and of the prover's randomness.
    pub seed: u64,
    /// Its parameters.
    pub parameters: Parameters,
}

/// A circuit of a program's own, which saved its key.
#[derive(Debug, Clone)]
pub struct OfProgram {
    /// The proving key, with a description of its circuit.
    pub key: PathBuf,
    /// The multi-opening argument, for a key of halo2-axiom; its usual one, if there is none.
    pub scheme: Option<Scheme>,
    /// The seed of the prover's randomness, which is secret unless there is one.
    pub seed: Option<u64>,
    /// The parameters of the key.
    pub parameters: Parameters,
}

/// What is proved.
#[derive(Debug, Clone)]
pub enum Proved {
    /// A built-in circuit.
    BuiltIn(Statement),
    /// A circuit of a program's own, with the witness that it saved.
    OfProgram(OfProgram, PathBuf),
}

impl Proved {
    /// Where its parameters come from.
    pub fn parameters(&self) -> &Parameters {
        match self {
            Self::BuiltIn(statement) => &statement.parameters,
            Self::OfProgram(of, _) => &of.parameters,
        }
    }
}

/// What a proof is verified of.
#[derive(Debug, Clone)]
pub enum Verified {
    /// A built-in circuit.
    BuiltIn(Statement),
    /// A circuit of a program's own, with the public inputs.
    OfProgram(OfProgram, PublicInputs),
}

impl Verified {
    /// Where its parameters come from.
    pub fn parameters(&self) -> &Parameters {
        match self {
            Self::BuiltIn(statement) => &statement.parameters,
            Self::OfProgram(of, _) => &of.parameters,
        }
    }
}

/// Where public inputs of a program's own circuit are.
#[derive(Debug, Clone)]
pub enum PublicInputs {
    /// In its witness.
    Witness(PathBuf),
    /// In the file that `prove --public` wrote.
    Json(PathBuf),
}

/// A statement on a command line.
#[derive(Debug, Clone, Args)]
pub struct StatementArgs {
    /// Which circuit, how large.
    #[command(flatten)]
    pub built_in: BuiltIn,
    /// The seed of the witness and of the prover's randomness (default: 1). With --witness: a proof that is
    /// the same each time, for tests, since the seed is enough to compute the witness from the proof; without
    /// it, randomness is the system's.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Its parameters.
    #[command(flatten)]
    pub parameters: Parameters,
}

impl StatementArgs {
    /// The statement of a built-in circuit.
    ///
    /// # Errors
    /// [`Failure::Usage`] for options that the system does not have.
    pub fn statement(&self) -> Result<Statement, Failure> {
        let shape = self.built_in.shape()?;
        refuse(shape.system, KZG, "--srs-seed", self.parameters.seed.is_some())?;
        Ok(Statement {
            shape,
            seed: self.seed.unwrap_or(1),
            parameters: self.parameters.clone(),
        })
    }

    /// A program's own circuit, by its key.
    fn of_program(&self, key: &Path) -> Result<OfProgram, Failure> {
        if self.parameters.file.is_none() && self.parameters.seed.is_none() {
            return Err(Failure::Usage(
                "--srs is missing: the parameters that the key was made with (--srs-seed for insecure ones)"
                    .into(),
            ));
        }
        Ok(OfProgram {
            key: key.to_owned(),
            scheme: self.built_in.scheme,
            seed: self.seed,
            parameters: self.parameters.clone(),
        })
    }
}

/// Where parameters come from.
#[derive(Debug, Clone, Default, Args)]
pub struct Parameters {
    /// The parameters: a container of `spillproof srs`, the file that halo2 writes (ParamsKZG; for zcash
    /// Params), a ceremony's powers of tau (.ptau; for axiom), or the folder in which halo2-base keeps
    /// kzg_bn254_{k}.srs (PARAMS_DIR), or Midnight's programs bls_midnight_2p{k} (MIDNIGHT_PP). KZG's may be for
    /// a larger k. Without it, an INSECURE SRS is made from --srs-seed; zcash's parameters are computed. For
    /// verify, a container and powers of tau need --vk or --key.
    #[arg(
        id = "srs",
        long = "srs",
        visible_alias = "params",
        value_name = "FILE",
        conflicts_with = "seed_of_srs"
    )]
    pub file: Option<PathBuf>,
    /// The seed of the secret of an insecure SRS (default: 1).
    #[arg(id = "seed_of_srs", long = "srs-seed", value_name = "SRS_SEED")]
    pub seed: Option<u64>,
}

impl Parameters {
    /// The seed of the secret of an insecure SRS.
    pub fn srs_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
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
}

/// Prove a built-in circuit, or one of a program's own.
#[derive(Debug, Clone, Args)]
pub struct Prove {
    /// The statement.
    #[command(flatten)]
    pub statement: StatementArgs,
    /// The file for the proof.
    #[arg(short, long)]
    pub out: PathBuf,
    /// The proving key of the circuit, from `spillproof keygen` or a program; without it, keys are made.
    #[arg(long, value_name = "FILE", conflicts_with = "no_session")]
    pub key: Option<PathBuf>,
    /// The witness of a program's own circuit, which the program saved as it saved --key
    /// (`spillproof::save_described_key` and `save_witness` of the drop-in).
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with_all = ["k", "circuit", "system"])]
    pub witness: Option<PathBuf>,
    /// Write the public inputs of the witness into this file, as JSON, for `verify --public`.
    #[arg(long, value_name = "FILE", requires = "witness")]
    pub public: Option<PathBuf>,
    /// Prove in memory, with the drop-in and without a session: upstream's own code.
    #[arg(long, conflicts_with_all = ["gpu", "checkpoint", "checkpoint_key"])]
    pub no_session: bool,
    /// Prove with a GPU.
    #[command(flatten)]
    pub on: ProofOn,
    /// Where its rounds are kept.
    #[command(flatten)]
    pub kept: Kept,
    /// Write a page into this file: memory against the budget over time, disk rates, busy cores, phases.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write memory, bytes and processors' time into this file, sampled every few milliseconds, as
    /// comma-separated values.
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Draw the memory curve into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl Prove {
    /// What is proved, if its system has these options.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn proved(&self) -> Result<Proved, Failure> {
        let system = self.statement.built_in.system.unwrap_or(System::Axiom);
        let proved = match (&self.key, &self.witness) {
            (Some(key), Some(witness)) => Proved::OfProgram(self.statement.of_program(key)?, witness.clone()),
            _ => Proved::BuiltIn(self.statement.statement()?),
        };
        self.on.check(system)?;
        refuse(system, KZG, "--checkpoint", self.kept.is_asked())?;
        refuse(system, KZG, "--key", self.key.is_some())?;
        Ok(proved)
    }
}

/// Make the keys of a built-in circuit, and write them into files.
#[derive(Debug, Clone, Args)]
pub struct Keygen {
    /// The circuit.
    #[command(flatten)]
    pub built_in: BuiltIn,
    /// Its parameters.
    #[command(flatten)]
    pub parameters: Parameters,
    /// The file for the proving key: a container, which `prove --key` opens in place; for midnight the bytes
    /// that midnight-proofs writes (`SerdeFormat::RawBytes`).
    #[arg(short, long)]
    pub out: PathBuf,
    /// The file for the verifying key, in the bytes that halo2 writes (`SerdeFormat::RawBytes`), for
    /// `verify --vk`.
    #[arg(long, value_name = "FILE")]
    pub vk: Option<PathBuf>,
}

impl Keygen {
    /// The circuit with these parameters; the witness has no part in keys.
    ///
    /// # Errors
    /// [`Failure::Usage`] for what the system does not have.
    pub fn statement(&self) -> Result<Statement, Failure> {
        if self.built_in.system == Some(System::Zcash) {
            return Err(Failure::Usage(
                "keygen is for --system axiom and midnight: halo2_proofs has no file format for keys".into(),
            ));
        }
        Ok(Statement {
            parameters: self.parameters.clone(),
            ..Statement::of(self.built_in.shape()?)
        })
    }
}

/// Check a proof of a built-in circuit, or of a program's own, with the unmodified halo2.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// The statement.
    #[command(flatten)]
    pub statement: StatementArgs,
    /// The verifying key of the circuit, from `spillproof keygen --vk`; without it, the unmodified halo2 makes
    /// the key, and takes no container of parameters.
    #[arg(long, value_name = "FILE")]
    pub vk: Option<PathBuf>,
    /// The proving key of a program's own circuit: its verifying key is taken.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["vk", "seed", "k", "circuit", "system"])]
    pub key: Option<PathBuf>,
    /// The public inputs of a program's own circuit, from `prove --public`.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub public: Option<PathBuf>,
    /// The witness of a program's own circuit: its public inputs are taken.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "public")]
    pub witness: Option<PathBuf>,
    /// The proof.
    pub proof: PathBuf,
}

impl Verify {
    /// What was proved, if its system has these options.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn verified(&self) -> Result<Verified, Failure> {
        let Some(key) = &self.key else {
            return self.statement.statement().map(Verified::BuiltIn);
        };
        let inputs = match (&self.public, &self.witness) {
            (Some(path), _) => PublicInputs::Json(path.clone()),
            (None, Some(path)) => PublicInputs::Witness(path.clone()),
            (None, None) => {
                return Err(Failure::Usage(
                    "--public is missing: the public inputs of the proof (or --witness, which has them, too)"
                        .into(),
                ));
            }
        };
        Ok(Verified::OfProgram(self.statement.of_program(key)?, inputs))
    }
}
