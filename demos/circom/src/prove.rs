//! Keys, witnesses and proofs over files, on whichever curve these are.

mod plan;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::UniformRand;
use rand::rngs::OsRng;
use spillproof_engine::Session;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::Column;
use spillproof_engine::error::Invalid;
use spillproof_engine::plan::{Plan, Rates};
use spillproof_format::Curve;
use spillproof_groth16::iden3::{
    self, Contributed, DealtImport, ImportedKey, NewKey, Origin, Truncated, VerifiedKey, VerifiedPtau,
    read_verifying_key, read_wtns, read_wtns_bytes, read_wtns_from, read_wtns_stream, wtns_bytes,
};
use spillproof_groth16::{
    Cut, Kept, PairingCurve, PairingGroups, Place, Proof, ProvingKey, Shape, Shares, VerifyingKey, arkworks,
    over_curve, prove_in, prove_over_ranks, public_signals,
};
use spillproof_ranks::Ranks;

pub use crate::held::{AsRank, Follow};
use crate::held::{Form, Held};
use crate::json::{KeyFile, KeyPoints, ProofFile, curve_name, public_text, read_public};
use crate::{Error, Result, content};
pub use plan::{OverRanks, RanksPlan, plan, plan_over_ranks};
pub use spillproof_groth16::iden3::WitnessBytes;

/// What is known of a key without a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its curve.
    pub curve: Curve,
    /// Its sizes.
    pub shape: Shape,
    /// Whether the distinct values of all coefficients were counted, not those of one rank.
    pub are_values_counted: bool,
    /// Whether gamma and delta are equal, as in a key that no one has contributed to: proofs can be forged.
    pub is_without_contribution: bool,
}

/// A key's sizes and curve. Of a container only the points of the header's size are read; of a `.zkey` file
/// all coefficients are.
///
/// # Errors
/// The engine's.
pub fn summary_of(session: &Session, file: &Path) -> Result<Summary> {
    Ok(Key::open(session, file, &mut |_| ())?.summary())
}

/// The same of a `.zkey` file by its header alone: distinct values of coefficients are not counted.
///
/// # Errors
/// The engine's.
pub fn shape_of(session: &Session, file: &Path) -> Result<(Shape, Curve)> {
    let workspace = session.workspace();
    let (form, curve) = Form::of(workspace, file)?;
    if form != Form::Zkey {
        let summary = summary_of(session, file)?;
        return Ok((summary.shape, curve));
    }
    Ok(over_curve!(curve, E => (read_verifying_key::<E>(workspace, file)?.1, curve)))
}

/// The verification key of a key's file, in JSON, and what is known of the key. Of a `.zkey` file only the
/// header and the points of IC are read.
///
/// # Errors
/// The engine's.
pub fn verification_key_of(session: &Session, file: &Path, follow: Follow<'_>) -> Result<(Vec<u8>, Summary)> {
    let workspace = session.workspace();
    let (form, curve) = Form::of(workspace, file)?;
    if form != Form::Zkey {
        let key = Key::open(session, file, follow)?;
        return Ok((key.verification_key()?, key.summary()));
    }
    over_curve!(curve, E => {
        let (key, shape) = read_verifying_key::<E>(workspace, file)?;
        let summary = Summary {
            curve,
            shape,
            are_values_counted: false,
            is_without_contribution: key.is_without_contribution(),
        };
        Ok((KeyFile::text(&key, curve)?, summary))
    })
}

/// A key that is open.
pub struct Key {
    curve: Curve,
    shape: Shape,
    /// Those of a proof over ranks that it was opened for.
    shares: Option<Shares>,
    key: OfCurve,
}

enum OfCurve {
    Bn254(Held<Bn254>),
    Bls12381(Held<Bls12_381>),
}

/// Runs `$body` with `$key` as the key of its curve.
macro_rules! with_key {
    ($of_curve:expr, $key:ident => $body:expr) => {
        match $of_curve {
            OfCurve::Bn254($key) => $body,
            OfCurve::Bls12381($key) => $body,
        }
    };
}

impl Key {
    /// Opens a `.zkey` file, or a container that [`import`] made of one. A key that is dealt to ranks opens, and does
    /// not prove.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(session: &Session, file: &Path, follow: Follow<'_>) -> Result<Self> {
        let workspace = session.workspace();
        let (form, curve) = Form::of(workspace, file)?;
        let key = match curve {
            Curve::Bls12381 => OfCurve::Bls12381(Held::open(workspace, form, file, follow)?),
            _ => OfCurve::Bn254(Held::open(workspace, form, file, follow)?),
        };
        Ok(Self {
            curve,
            shape: with_key!(&key, key => key.shape()?),
            shares: None,
            key,
        })
    }

    /// The same for one rank of a proof: of a `.zkey` file only its coefficients are kept, of a dealt key only its
    /// share is read.
    ///
    /// # Errors
    /// The engine's.
    pub fn open_of_rank(session: &Session, file: &Path, of: &AsRank<'_>, follow: Follow<'_>) -> Result<Self> {
        let workspace = session.workspace();
        let (form, curve) = Form::of(workspace, file)?;
        let (key, shares) = match curve {
            Curve::Bls12381 => {
                let (key, shares) = Held::open_of_rank(workspace, form, file, of, follow)?;
                (OfCurve::Bls12381(key), shares)
            }
            _ => {
                let (key, shares) = Held::open_of_rank(workspace, form, file, of, follow)?;
                (OfCurve::Bn254(key), shares)
            }
        };
        Ok(Self {
            curve,
            shape: with_key!(&key, key => key.shape()?),
            shares: Some(shares),
            key,
        })
    }

    /// Its curve.
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// Its sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What is known of it without a proof.
    pub fn summary(&self) -> Summary {
        Summary {
            curve: self.curve,
            shape: self.shape,
            are_values_counted: with_key!(&self.key, key => key.has_counted_values()),
            is_without_contribution: with_key!(&self.key, key => key.verifying().is_without_contribution()),
        }
    }

    /// Reads a `.wtns` file.
    ///
    /// # Errors
    /// The engine's.
    pub fn witness(&self, session: &Session, file: &Path, follow: Follow<'_>) -> Result<Witness> {
        let workspace = session.workspace();
        Ok(Witness(match self.curve {
            Curve::Bls12381 => Values::Bls12381(read_wtns::<Bls12_381>(workspace, file, follow)?),
            _ => Values::Bn254(read_wtns::<Bn254>(workspace, file, follow)?),
        }))
    }

    /// Reads a `.wtns` file in memory, where it is. The name is for errors.
    ///
    /// # Errors
    /// The engine's.
    pub fn witness_of(&self, session: &Session, name: &Path, file: &[u8]) -> Result<Witness> {
        let workspace = session.workspace();
        Ok(Witness(match self.curve {
            Curve::Bls12381 => Values::Bls12381(read_wtns_bytes::<Bls12_381>(workspace, name, file)?),
            _ => Values::Bn254(read_wtns_bytes::<Bn254>(workspace, name, file)?),
        }))
    }

    /// Reads a `.wtns` file that is nowhere whole, a piece of it after the other. The name is for errors.
    ///
    /// # Errors
    /// The engine's, and those of `file`.
    pub fn witness_from(
        &self,
        session: &Session,
        name: &Path,
        file: &mut dyn WitnessBytes,
    ) -> Result<Witness> {
        let workspace = session.workspace();
        Ok(Witness(match self.curve {
            Curve::Bls12381 => Values::Bls12381(read_wtns_from::<Bls12_381>(workspace, name, file)?),
            _ => Values::Bn254(read_wtns_from::<Bn254>(workspace, name, file)?),
        }))
    }

    /// Reads a `.wtns` file of [`Self::witness_bytes`] bytes that comes from its start to its end, such as the body
    /// of a request. Other tasks compute while its bytes are waited for; so what is leased meanwhile, at most
    /// [`iden3::STREAM_BYTES`], is on a ledger of its own. The name is for errors.
    ///
    /// # Errors
    /// The engine's.
    pub fn witness_of_stream(
        &self,
        session: &Session,
        ledger: Budget,
        name: &Path,
        source: &mut (dyn Read + Send),
    ) -> Result<Witness> {
        let workspace = session.workspace().clone().with_budget(ledger);
        let len_bytes = self.witness_bytes();
        Ok(Witness(match self.curve {
            Curve::Bls12381 => Values::Bls12381(read_wtns_stream::<Bls12_381>(
                &workspace, name, len_bytes, source,
            )?),
            _ => Values::Bn254(read_wtns_stream::<Bn254>(&workspace, name, len_bytes, source)?),
        }))
    }

    /// Bytes of a `.wtns` file for this key, as circom's tools write it.
    pub fn witness_bytes(&self) -> u64 {
        wtns_bytes(self.shape.signals)
    }

    /// The smallest budget in which [`Self::prove`] works, with nothing else in it.
    ///
    /// # Errors
    /// The engine's; that of a dealt key.
    pub fn minimum_bytes(&self, session: &Session) -> Result<u64> {
        const NOTHING: u64 = 1;
        match self.plan(session, NOTHING) {
            Err(Error::Engine(spillproof_engine::Error::BudgetTooSmall { needed_bytes, .. })) => {
                Ok(needed_bytes)
            }
            Err(other) => Err(other),
            Ok(_) => Ok(NOTHING),
        }
    }

    /// What [`Self::prove`] takes in a budget, at the rates of a usual machine.
    ///
    /// # Errors
    /// The engine's: a budget that is too small, with the smallest that works; that of a dealt key.
    pub fn plan(&self, session: &Session, budget_bytes: u64) -> Result<Plan> {
        let (rates, threads) = (Rates::default(), session.threads());
        let planned = with_key!(&self.key, key => key.prover(1)?.plan(budget_bytes, threads, &rates));
        Ok(planned?)
    }

    /// A proof with random blinding, which is verified before it is returned. With
    /// [checkpoints](Session::checkpoints) it goes on where an earlier run ended.
    ///
    /// # Errors
    /// The engine's.
    pub fn prove(&self, session: &Arc<Session>, witness: &Witness) -> Result<Proved> {
        let (proved, kept) = self.prove_and_keep(session, witness)?;
        if let Some(kept) = kept {
            kept.finish()?;
        }
        Ok(proved)
    }

    /// The same, and what a checkpoint has of it, which the caller finishes when the proof is where it is wanted.
    ///
    /// # Errors
    /// The engine's.
    pub fn prove_and_keep(
        &self,
        session: &Arc<Session>,
        witness: &Witness,
    ) -> Result<(Proved, Option<Kept>)> {
        if session.checkpoints().is_some() {
            let shares = Shares::new(&self.shape, &[1], Cut::Layout)?;
            let (proved, kept) = self.prove_by(session, &Ranks::alone(), &shares, witness)?;
            return Ok((proved, Some(kept)));
        }
        let proved = match (&self.key, &witness.0) {
            (OfCurve::Bn254(key), Values::Bn254(witness)) => {
                prove_column(session, key.prover(1)?, self.curve, witness)
            }
            (OfCurve::Bls12381(key), Values::Bls12381(witness)) => {
                prove_column(session, key.prover(1)?, self.curve, witness)
            }
            _ => Err(other_curve()),
        };
        Ok((proved?, None))
    }

    /// The same by several ranks together: all of them call it, with the same key, opened for each of them, and
    /// the same witness, and return the same proof.
    ///
    /// # Errors
    /// The engine's; [`Invalid::OtherRanks`] for a key that was opened for one rank alone.
    pub fn prove_over_ranks(
        &self,
        session: &Arc<Session>,
        ranks: &Ranks,
        witness: &Witness,
    ) -> Result<(Proved, Kept)> {
        let Some(shares) = &self.shares else {
            let other = Invalid::OtherRanks {
                file: "the key".into(),
                dealt: 1,
                given: ranks.size(),
            };
            return Err(spillproof_engine::Error::from(other).into());
        };
        self.prove_by(session, ranks, shares, witness)
    }

    fn prove_by(
        &self,
        session: &Arc<Session>,
        ranks: &Ranks,
        shares: &Shares,
        witness: &Witness,
    ) -> Result<(Proved, Kept)> {
        let place = Place { ranks, shares };
        match (&self.key, &witness.0) {
            (OfCurve::Bn254(key), Values::Bn254(witness)) => {
                prove_column_over_ranks(session, &place, key.prover(ranks.size())?, self.curve, witness)
            }
            (OfCurve::Bls12381(key), Values::Bls12381(witness)) => {
                prove_column_over_ranks(session, &place, key.prover(ranks.size())?, self.curve, witness)
            }
            _ => Err(other_curve()),
        }
    }

    /// What ranks of one proof have in common, as a text: the verifying key, the sizes, the public signals.
    ///
    /// # Errors
    /// The engine's.
    pub fn statement(&self, witness: &Witness) -> Result<Vec<u8>> {
        let public = match &witness.0 {
            Values::Bn254(witness) => public_text(&public_signals::<Bn254>(witness, self.shape.public)?)?,
            Values::Bls12381(witness) => {
                public_text(&public_signals::<Bls12_381>(witness, self.shape.public)?)?
            }
        };
        let key = with_key!(&self.key, key => KeyFile::text(key.verifying(), self.curve)?);
        let shape = format!("{:?}, {:?}", self.shape, self.shares);
        Ok([&key[..], shape.as_bytes(), &public].concat())
    }

    /// The verification key, in JSON.
    ///
    /// # Errors
    /// The engine's.
    pub fn verification_key(&self) -> Result<Vec<u8>> {
        with_key!(&self.key, key => {
            key.check_points()?;
            KeyFile::text(key.verifying(), self.curve)
        })
    }
}

/// A witness, for keys of one curve.
pub struct Witness(Values);

enum Values {
    Bn254(Column<ark_bn254::Fr>),
    Bls12381(Column<ark_bls12_381::Fr>),
}

/// A proof, and the public signals that it is for.
#[derive(Clone, Debug)]
pub struct Proved {
    /// In JSON.
    pub proof: Vec<u8>,
    /// In JSON.
    pub public: Vec<u8>,
    /// How many signals these are.
    pub public_signals: usize,
}

/// Proves with a key's file and a `.wtns` file, as [`Key::prove`] does.
///
/// # Errors
/// The engine's, and those of the files; none is written.
pub fn prove(session: &Arc<Session>, key: &Path, witness: &Path, follow: Follow<'_>) -> Result<Proved> {
    let key = Key::open(session, key, follow)?;
    let witness = key.witness(session, witness, follow)?;
    key.prove(session, &witness)
}

fn prove_column<E: PairingCurve>(
    session: &Arc<Session>,
    key: &ProvingKey<E>,
    curve: Curve,
    witness: &Column<E::Scalar>,
) -> Result<Proved> {
    let proof = prove_in(session, key, witness, random::<E>())?;
    proved(&proof, key, curve, witness)
}

fn prove_column_over_ranks<E: PairingCurve>(
    session: &Arc<Session>,
    place: &Place<'_>,
    key: &ProvingKey<E>,
    curve: Curve,
    witness: &Column<E::Scalar>,
) -> Result<(Proved, Kept)> {
    let (proof, kept) = prove_over_ranks(session, place, key, witness, random::<E>())?;
    Ok((proved(&proof, key, curve, witness)?, kept))
}

fn random<E: PairingCurve>() -> [E::Scalar; 2] {
    [E::Scalar::rand(&mut OsRng), E::Scalar::rand(&mut OsRng)]
}

fn other_curve() -> Error {
    content(
        Path::new("the witness"),
        "it was read for a key over another curve",
    )
}

fn proved<E: PairingCurve>(
    proof: &Proof<E>,
    key: &ProvingKey<E>,
    curve: Curve,
    witness: &Column<E::Scalar>,
) -> Result<Proved> {
    let public = public_signals::<E>(witness, key.shape()?.public)?;
    Ok(Proved {
        proof: ProofFile::text(proof, curve)?,
        public: public_text(&public)?,
        public_signals: public.len(),
    })
}

/// Makes a container of a `.zkey` file; see [`iden3::import_zkey`].
///
/// # Errors
/// The engine's.
pub fn import(session: &Session, file: &Path, target: &Path, follow: Follow<'_>) -> Result<ImportedKey> {
    let workspace = session.workspace();
    Ok(match Form::of(workspace, file)?.0 {
        Form::Arkzkey => arkworks::import_zkey(workspace, file, target, follow)?,
        _ => iden3::import_zkey(workspace, file, target, follow)?,
    })
}

/// Makes a key of a `.zkey` file that is dealt to ranks, by all of them together; see [`iden3::deal_zkey`]. No weights
/// are equal shares.
///
/// # Errors
/// The engine's.
pub fn import_over_ranks(
    session: &Session,
    ranks: &Ranks,
    weights: &[u64],
    files: [&Path; 2],
    follow: Follow<'_>,
) -> Result<DealtImport> {
    let equal = vec![1; ranks.size()];
    let weights = if weights.is_empty() { &equal[..] } else { weights };
    Ok(iden3::deal_zkey(
        session.workspace(),
        ranks,
        weights,
        files,
        follow,
    )?)
}

/// Makes a `.zkey` file of a `.r1cs` and a `.ptau` file; see [`iden3::setup`].
///
/// # Errors
/// The engine's.
pub fn setup(session: &Session, files: [&Path; 2], target: &Path, follow: Follow<'_>) -> Result<NewKey> {
    Ok(iden3::setup(session.workspace(), files, target, follow)?)
}

/// Makes a new `.zkey` file with one contribution more; see [`iden3::contribute`].
///
/// # Errors
/// The engine's.
pub fn contribute(
    session: &Session,
    files: [&Path; 2],
    name: Option<&str>,
    origin: &Origin,
    follow: Follow<'_>,
) -> Result<Contributed> {
    Ok(iden3::contribute(
        session.workspace(),
        files,
        name,
        origin,
        follow,
    )?)
}

/// Verifies a `.zkey` file against a `.r1cs` and a `.ptau` file; see [`iden3::verify_zkey`].
///
/// # Errors
/// The engine's.
pub fn verify_key(session: &Session, files: [&Path; 3], follow: Follow<'_>) -> Result<VerifiedKey> {
    Ok(iden3::verify_zkey(session.workspace(), files, follow)?)
}

/// Adds Lagrange bases to a `.ptau` file, in a new one; see [`iden3::prepare_ptau`].
///
/// # Errors
/// The engine's.
pub fn prepare_ptau(session: &Session, files: [&Path; 2], follow: Follow<'_>) -> Result<(u32, Curve)> {
    Ok(iden3::prepare_ptau(session.workspace(), files, follow)?)
}

/// Cuts a `.ptau` file to fewer powers, in a new one; see [`iden3::truncate_ptau`].
///
/// # Errors
/// The engine's.
pub fn truncate_ptau(
    session: &Session,
    files: [&Path; 2],
    power: u32,
    follow: Follow<'_>,
) -> Result<Truncated> {
    Ok(iden3::truncate_ptau(session.workspace(), files, power, follow)?)
}

/// Verifies a `.ptau` file; see [`iden3::verify_ptau`].
///
/// # Errors
/// The engine's.
pub fn verify_ptau(session: &Session, file: &Path, follow: Follow<'_>) -> Result<VerifiedPtau> {
    Ok(iden3::verify_ptau(session.workspace(), file, follow)?)
}

/// How a verification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The curve of key and proof.
    pub curve: Curve,
    /// Public signals.
    pub public_signals: usize,
    /// Whether the proof verifies.
    pub verifies: bool,
    /// Whether gamma and delta of the key are equal, as in one that no one has contributed to: that a proof
    /// verifies says nothing then.
    pub is_without_contribution: bool,
}

/// What is said of a key without a contribution.
pub const WITHOUT_CONTRIBUTION: &str = "INSECURE: gamma and delta of this key are equal, as in one without a contribution: proofs can be forged with it";

/// Verifies. The names are for errors.
///
/// # Errors
/// [`Error::Content`] for a key, signals or a proof that are none, or do not belong together; the engine's.
pub fn verify(session: &Session, [key, public, proof]: [(&Path, &[u8]); 3]) -> Result<Verified> {
    let (key_name, proof_name) = (key.0, proof.0);
    let (key, proof) = (KeyFile::parse(key)?, ProofFile::parse(proof)?);
    let curve = match (key.curve(key_name)?, proof.curve(proof_name)?) {
        (Some(curve), Some(other)) if curve != other => {
            let name = curve_name(curve);
            return Err(content(
                proof_name,
                format!("it is over another curve than {name}, the key's"),
            ));
        }
        (Some(curve), _) | (None, Some(curve)) => curve,
        (None, None) => key.curve_of_points(key_name)?,
    };
    over_curve!(curve, E => {
        let (points, proof) = (key.points::<E>(key_name)?, proof.proof::<E>(proof_name)?);
        let signals = read_public::<<E as PairingGroups>::Scalar>(public)?;
        let KeyPoints { alpha, others, ic } = points;
        let key = VerifyingKey::<E>::in_memory(session.workspace(), alpha, others, &ic)?;
        let verifies = match spillproof_groth16::verify(&key, &signals, &proof) {
            Err(spillproof_engine::Error::Invalid(Invalid::Length { given, expected, .. })) => {
                let details = format!("{given} public signals, and the key is for {expected}");
                return Err(content(public.0, details));
            }
            verified => verified?,
        };
        Ok(Verified {
            curve,
            public_signals: signals.len(),
            verifies,
            is_without_contribution: key.is_without_contribution(),
        })
    })
}
