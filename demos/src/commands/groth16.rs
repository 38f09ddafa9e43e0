//! `spillproof groth16`: proofs over the files of circom and snarkjs.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ark_ff::UniformRand;
use rand::rngs::OsRng;
use serde::Serialize;
use spillproof::Session;
use spillproof::budget::ByteSize;
use spillproof::column::{Column, Container, Element, Placement, Workspace, Writer};
use spillproof::error::Invalid;
use spillproof::groth16::{PairingCurve, ProvingKey, Shape, VerifyingKey, plan as plan_of, prove_in, verify};
use spillproof::iden3::{self, curve_of, import_zkey, read_wtns, read_zkey, shape_of_zkey};
use spillproof::kernels::curve::Point;
use spillproof::plan::{Plan, Rates};
use spillproof_format::groth16::Groth16Key;
use spillproof_format::iden3::FileKind;
use spillproof_format::{Curve, FormatError};

use super::plan;
use crate::args::{Global, Groth16 as Command};
use crate::failure::Failure;
use crate::output::Output;
use crate::report::progress::Progress;
use crate::report::steps;
use crate::run::{Result, Run, hex};
use crate::snarkjs::{KeyFile, KeyPoints, ProofFile, curve_name, public_text, read_public};

/// Runs `$body` with `$engine` as the pairing of a curve.
macro_rules! over {
    ($curve:expr, $engine:ident => $body:expr) => {
        match $curve {
            Curve::Bls12381 => {
                type $engine = ark_bls12_381::Bls12_381;
                $body
            }
            _ => {
                type $engine = ark_bn254::Bn254;
                $body
            }
        }
    };
}

/// Runs the command.
///
/// # Errors
/// The engine's, and those of the user's files.
pub fn run(global: &Global, command: &Command) -> Result<()> {
    match command {
        Command::Prove {
            key,
            witness,
            proof,
            public,
        } => prove_files(global, key, witness, [proof, public]),
        Command::Verify { key, public, proof } => verify_files(global, key, public, proof),
        Command::Import { key, out } => import(global, key, out),
        Command::Vkey { key, out } => vkey(global, key, out),
        Command::Inspect { file } => inspect(global, file),
        Command::Plan { key } => plan_key(global, key),
    }
}

/// Where a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    /// A file of snarkjs.
    Zkey,
    /// A container of ours.
    Container,
}

impl KeyForm {
    /// By the file's first bytes.
    fn of(file: &Path) -> Result<Self> {
        let mut magic = [0; 4];
        let mut opened = File::open(file).map_err(Failure::file(file))?;
        // A file that is too short is no container either; opening it says so.
        let _too_short = opened.read_exact(&mut magic);
        Ok(match FileKind::detect(magic) {
            Some(_) => Self::Zkey,
            None => Self::Container,
        })
    }

    fn curve(self, workspace: &Workspace, file: &Path) -> Result<Curve> {
        match self {
            Self::Zkey => Ok(curve_of(workspace, file, FileKind::Zkey)?),
            Self::Container => Ok(Container::open(workspace, file)?.header().curve()),
        }
    }

    fn open<E: PairingCurve>(
        self,
        workspace: &Workspace,
        file: &Path,
        progress: &Progress,
    ) -> Result<ProvingKey<E>> {
        Ok(match self {
            Self::Zkey => read_zkey(workspace, file, &mut |now| follow(progress, now))?,
            Self::Container => ProvingKey::open_container(workspace, file)?,
        })
    }
}

/// Shows how far reading is.
fn follow(progress: &Progress, now: iden3::Progress) {
    progress.length(now.total);
    progress.at(now.done);
}

/// What is said of a key.
#[derive(Serialize)]
struct Key {
    file: String,
    curve: &'static str,
    signals: u64,
    public: u64,
    log_domain: u32,
    coefficients: u64,
    /// Distinct values of coefficients, where they were counted.
    values: u64,
}

impl Key {
    fn of(file: &Path, curve: Curve, shape: &Shape) -> Self {
        Self {
            file: file.display().to_string(),
            curve: curve_name(curve),
            signals: shape.signals,
            public: shape.public,
            log_domain: shape.log_domain,
            coefficients: shape.coefficients,
            values: shape.values,
        }
    }

    fn tell(&self, run: &Run) {
        run.say(format_args!(
            "{}: a Groth16 key over {}: {} signals, {} of them public, 2^{} rows, {} coefficients with {} values",
            self.file, self.curve, self.signals, self.public, self.log_domain, self.coefficients, self.values
        ));
    }
}

#[derive(Serialize)]
struct Proved {
    key: Key,
    proof: String,
    public: String,
    public_signals: usize,
}

fn prove_files(global: &Global, key: &Path, witness: &Path, [proof, public]: [&Path; 2]) -> Result<()> {
    let mut run = Run::start(global);
    let outputs = [Output::create(proof)?, Output::create(public)?];
    let session = run.session(ByteSize::Auto)?;
    let form = KeyForm::of(key)?;
    let curve = form.curve(session.workspace(), key)?;
    let (texts, key, public_signals) = over!(curve, E => {
        let (proof, public, shape) = prove_over::<E>(&mut run, &session, (form, key), witness)?;
        let texts = [ProofFile::text(&proof, curve)?, public_text(&public)?];
        (texts, Key::of(key, curve, &shape), public.len())
    });
    for (output, text) in outputs.into_iter().zip(texts) {
        output.write(text)?;
    }
    key.tell(&run);
    let outcome = Proved {
        key,
        proof: proof.display().to_string(),
        public: public.display().to_string(),
        public_signals,
    };
    run.say(format_args!(
        "{}: a proof that verifies; {}: {} public signals",
        outcome.proof, outcome.public, public_signals
    ));
    run.finish("groth16 prove", &outcome)?;
    Ok(())
}

type ProofOf<E> = (
    spillproof::groth16::Proof<E>,
    Vec<<E as PairingCurve>::Scalar>,
    Shape,
);

fn prove_over<E: PairingCurve>(
    run: &mut Run,
    session: &Arc<Session>,
    (form, file): (KeyForm, &Path),
    witness: &Path,
) -> Result<ProofOf<E>> {
    let workspace = session.workspace();
    let key = run
        .recorder
        .phase("key", |progress| form.open::<E>(workspace, file, progress))?;
    let witness = run.recorder.phase("witness", |progress| {
        Ok::<_, Failure>(read_wtns::<E>(workspace, witness, &mut |now| {
            follow(progress, now)
        })?)
    })?;
    let shape = key.shape()?;
    let random = [E::Scalar::rand(&mut OsRng), E::Scalar::rand(&mut OsRng)];
    let proof = run.recorder.phase("prove", |_| {
        prove_in(session, &key, &witness, random).map_err(Failure::from)
    })?;
    steps::forget();
    let mut public = witness.prefix(shape.public + 1)?.to_vec()?;
    public.remove(0);
    Ok((proof, public, shape))
}

#[derive(Serialize)]
struct Verified {
    key: String,
    proof: String,
    curve: &'static str,
    public_signals: usize,
    verifies: bool,
}

fn verify_files(global: &Global, key_file: &Path, public_file: &Path, proof_file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let (key, proof) = (KeyFile::read(key_file)?, ProofFile::read(proof_file)?);
    let curve = key.curve(key_file)?;
    if proof.curve(proof_file)? != curve {
        return Err(Failure::Content {
            file: proof_file.to_owned(),
            details: format!("it is over another curve than {}, the key's", curve_name(curve)),
        });
    }
    let (verifies, public_signals) = over!(curve, E => {
        let (points, proof) = (key.points::<E>(key_file)?, proof.proof::<E>(proof_file)?);
        let public = read_public::<<E as PairingCurve>::Scalar>(public_file)?;
        let verified = run.recorder.phase("verify", |_| {
            let key = in_memory(session.workspace(), &points)?;
            verify(&key, &public, &proof)
        });
        let verifies = match verified {
            Err(spillproof::Error::Invalid(Invalid::Length { given, expected, .. })) => {
                return Err(Failure::Content {
                    file: public_file.to_owned(),
                    details: format!("{given} public signals, and the key is for {expected}"),
                });
            }
            verified => verified?,
        };
        (verifies, public.len())
    });
    if !verifies {
        return Err(Failure::Content {
            file: proof_file.to_owned(),
            details: "the proof does not verify for this key and these public signals".into(),
        });
    }
    let outcome = Verified {
        key: key_file.display().to_string(),
        proof: proof_file.display().to_string(),
        curve: curve_name(curve),
        public_signals,
        verifies,
    };
    run.say(format_args!("{}: the proof verifies", outcome.proof));
    run.finish("groth16 verify", &outcome)?;
    Ok(())
}

/// A verification key whose points are in memory.
fn in_memory<E: PairingCurve>(
    workspace: &Workspace,
    points: &KeyPoints<E>,
) -> spillproof::Result<VerifyingKey<E>> {
    let ic: Vec<_> = points
        .ic
        .iter()
        .map(Point::<E::G1Config>::from_affine::<E::G1Config>)
        .collect();
    let [beta_g2, gamma_g2, delta_g2] = points.others;
    Ok(VerifyingKey {
        alpha_g1: points.alpha,
        beta_g2,
        gamma_g2,
        delta_g2,
        ic: column(workspace, &ic)?,
    })
}

fn column<T: Element>(workspace: &Workspace, values: &[T]) -> spillproof::Result<Column<T>> {
    let mut writer = Writer::scratch(workspace, "IC", values.len() as u64, Placement::Memory)?;
    writer.push(values)?;
    writer.finish()
}

#[derive(Serialize)]
struct Imported {
    key: Key,
    container: String,
    root: String,
    without_contribution: bool,
}

fn import(global: &Global, file: &Path, out: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let workspace = session.workspace();
    let curve = curve_of(workspace, file, FileKind::Zkey)?;
    let imported = over!(curve, E => run.recorder.phase("import", |progress| {
        import_zkey::<E>(workspace, file, out, &mut |now| follow(progress, now)).map_err(Failure::from)
    })?);
    let outcome = Imported {
        key: Key::of(file, curve, &imported.shape),
        container: out.display().to_string(),
        root: hex(&imported.root),
        without_contribution: imported.is_without_contribution,
    };
    outcome.key.tell(&run);
    warn_without_contribution(&run, imported.is_without_contribution);
    run.say(format_args!("{}: root {}", outcome.container, outcome.root));
    run.finish("groth16 import", &outcome)?;
    Ok(())
}

fn warn_without_contribution(run: &Run, is_without: bool) {
    if is_without {
        run.say("INSECURE: gamma and delta of this key are equal, as in one without a contribution: proofs can be forged with it");
    }
}

fn vkey(global: &Global, file: &Path, out: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let output = Output::create(out)?;
    let session = run.session(ByteSize::Auto)?;
    let workspace = session.workspace();
    let form = KeyForm::of(file)?;
    let curve = form.curve(workspace, file)?;
    let (text, key) = over!(curve, E => {
        let key = run.recorder.phase("key", |progress| form.open::<E>(workspace, file, progress))?;
        let shape = key.shape()?;
        let verifying = &key.verifying;
        let ic = verifying.ic.to_vec()?;
        let points = KeyPoints::<E> {
            alpha: verifying.alpha_g1,
            others: [verifying.beta_g2, verifying.gamma_g2, verifying.delta_g2],
            ic: ic.iter().map(|point| point.to_affine::<<E as PairingCurve>::G1Config>()).collect(),
        };
        (KeyFile::text(&points, curve)?, Key::of(file, curve, &shape))
    });
    output.write(text)?;
    key.tell(&run);
    run.finish("groth16 vkey", &key)?;
    Ok(())
}

fn inspect(global: &Global, file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let (shape, curve) = shape_of(session.workspace(), file)?;
    let key = Key::of(file, curve, &shape);
    key.tell(&run);
    run.finish("groth16 inspect", &key)?;
    Ok(())
}

/// The sizes of a key. For a container without reading its columns; for a `.zkey` file, all of its coefficients are read.
fn shape_of(workspace: &Workspace, file: &Path) -> Result<(Shape, Curve)> {
    let form = KeyForm::of(file)?;
    let curve = form.curve(workspace, file)?;
    if form == KeyForm::Container {
        let container = Container::open(workspace, file)?;
        let refuse = |source: FormatError| {
            Failure::from(spillproof::Error::Format {
                file: file.to_owned(),
                source,
            })
        };
        return Ok((Groth16Key::of(container.header()).map_err(refuse)?.shape, curve));
    }
    let shape = over!(curve, E => shape_of_zkey::<E>(workspace, file, &mut |_| ())?);
    Ok((shape, curve))
}

#[derive(Serialize)]
struct Planned {
    key: Key,
    peak_bytes: u64,
    bytes_read: u64,
    bytes_written: u64,
    seconds: f64,
    rates: Rates,
    plan: Plan,
}

fn plan_key(global: &Global, file: &Path) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let (shape, curve) = shape_of(session.workspace(), file)?;
    let rates = session.run(|| Rates::measure(session.workspace()))?;
    let budget_bytes = session.budget().limit_bytes();
    let plan = over!(curve, E => plan_of::<E>(&shape, budget_bytes, session.threads(), &rates)?);
    let key = Key::of(file, curve, &shape);
    key.tell(&run);
    run.say(plan::render(&plan));
    let total = plan.of(None);
    let outcome = Planned {
        key,
        peak_bytes: total.peak_bytes,
        bytes_read: total.bytes_read,
        bytes_written: total.bytes_written,
        seconds: total.seconds,
        rates,
        plan,
    };
    run.finish("groth16 plan", &outcome)?;
    Ok(())
}
