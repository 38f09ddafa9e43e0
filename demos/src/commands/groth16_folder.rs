//! `spillproof groth16 prove` of a folder of witnesses: the key is opened once, and its points stay on a GPU from proof to
//! proof.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use spillproof_circom::prove::{Key as Opened, Proved};
use spillproof_engine::budget::ByteSize;
use spillproof_gpu::accelerator::Offload;

use super::groth16_key::{Key, follow};
use super::on_gpu::{OnGpu, Used};
use crate::args::{Global, ProofOn};
use crate::failure::Failure;
use crate::output::{Output, write_together};
use crate::report::steps;
use crate::run::{Result, Run};

/// The most phases of a report: later proofs take the place of earlier ones.
const PHASES_MAX: usize = 100;

/// Witnesses in a folder, and the folders of their proofs and public signals.
pub struct Folder {
    /// In the order of their names.
    witnesses: Vec<PathBuf>,
    of_proofs: PathBuf,
    of_signals: PathBuf,
}

/// A proof that was made.
#[derive(Serialize)]
struct Made {
    witness: String,
    proof: String,
    public: String,
    public_signals: usize,
    seconds: f64,
}

/// A witness that has no proof.
#[derive(Serialize)]
struct Unproved {
    witness: String,
    reason: String,
}

#[derive(Serialize)]
struct ProvedFolder {
    key: Key,
    proofs: Vec<Made>,
    unproved: Vec<Unproved>,
    /// The jobs of GPUs, if any were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<Used>,
}

impl Folder {
    /// Refuses what is of one proof, if it is asked for.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn check(&self, of_one_proof: Option<&str>) -> Result<()> {
        match of_one_proof {
            None => Ok(()),
            Some(what) => Err(Failure::Usage(format!(
                "{what} one proof, and WITNESS is a folder: name one of its files"
            ))),
        }
    }

    /// The witnesses of a folder; `None` where the witness is a file.
    ///
    /// # Errors
    /// [`Failure::Usage`] for results that are no folders, or no witnesses; [`Failure::File`].
    pub fn of(witness: &Path, outputs: [&Path; 2]) -> Result<Option<Self>> {
        if !witness.is_dir() {
            return Ok(None);
        }
        for (name, output) in ["PROOF", "PUBLIC"].into_iter().zip(outputs) {
            if !output.is_dir() {
                return Err(Failure::Usage(format!(
                    "WITNESS is a folder, and {name}, {}, is none: name a folder for the results",
                    output.display()
                )));
            }
        }
        let mut witnesses = Vec::new();
        for entry in fs::read_dir(witness).map_err(Failure::file(witness))? {
            let path = entry.map_err(Failure::file(witness))?.path();
            if path.extension() == Some(OsStr::new("wtns")) && !path.is_dir() {
                witnesses.push(path);
            }
        }
        if witnesses.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: no .wtns file in this folder",
                witness.display()
            )));
        }
        witnesses.sort();
        let [of_proofs, of_signals] = outputs.map(Path::to_owned);
        Ok(Some(Self {
            witnesses,
            of_proofs,
            of_signals,
        }))
    }

    /// The files of a witness's proof and public signals.
    fn outputs(&self, witness: &Path) -> [PathBuf; 2] {
        let named = |folder: &Path, kind| {
            let mut name = witness.file_stem().unwrap_or_default().to_owned();
            name.push(kind);
            folder.join(name)
        };
        [
            named(&self.of_proofs, ".proof.json"),
            named(&self.of_signals, ".public.json"),
        ]
    }

    /// Proves them one after the other. What is wrong with one witness leaves the others to be proved; any other error
    /// ends the command, and the proofs until then stay.
    ///
    /// # Errors
    /// [`Failure::Unproved`] for witnesses that have no proof; the engine's, and those of the files.
    pub fn prove(&self, global: &Global, key: &Path, on: &ProofOn) -> Result<()> {
        let mut run = Run::start(global);
        let gpu = OnGpu::open(&on.gpu, Offload::from(on.offload))?;
        let session = run.session_with(ByteSize::Auto, gpu.accelerator(), None)?;
        let opened = run.recorder.phase("key", |progress| {
            Opened::open(&session, key, &mut |now| follow(progress, now))
        })?;
        let key = Key::of(key, &opened.summary());
        key.tell(&run);
        let (mut proofs, mut unproved) = (Vec::new(), Vec::new());
        for witness in &self.witnesses {
            let name = witness.file_stem().unwrap_or_default().to_string_lossy();
            let proved = run.recorder.phase(&format!("prove {name}"), |progress| {
                let witness = opened.witness(&session, witness, &mut |now| follow(progress, now))?;
                opened.prove(&session, &witness)
            });
            let seconds = run.recorder.last_seconds();
            run.recorder.keep(PHASES_MAX);
            steps::forget();
            match proved {
                Ok(proved) => proofs.push(self.write(&run, witness, proved, seconds)?),
                Err(error) if is_of_the_witness(&error) => {
                    let reason = Failure::from(error).to_string();
                    let witness = witness.display().to_string();
                    run.say(format_args!("{witness}: no proof: {reason}"));
                    unproved.push(Unproved { witness, reason });
                }
                Err(error) => return Err(error.into()),
            }
        }
        let used = gpu.used();
        if let Some(used) = &used {
            run.say(used.said());
        }
        let outcome = ProvedFolder {
            key,
            proofs,
            unproved,
            gpu: used,
        };
        run.finish("groth16 prove", &outcome)?;
        match &outcome.unproved[..] {
            [] => Ok(()),
            unproved => Err(Failure::Unproved {
                made: outcome.proofs.len(),
                reasons: unproved
                    .iter()
                    .map(|of| format!("{}: {}", of.witness, of.reason))
                    .collect(),
            }),
        }
    }

    /// Writes a proof and its public signals.
    fn write(&self, run: &Run, witness: &Path, proved: Proved, seconds: f64) -> Result<Made> {
        let outputs = self.outputs(witness);
        let [proof, public] = &outputs;
        write_together(vec![
            (Output::create(proof)?, proved.proof),
            (Output::create(public)?, proved.public),
        ])?;
        let [proof, public] = outputs.map(|path| path.display().to_string());
        run.say(format_args!(
            "{proof}: a proof that verifies; {public}: {} public signals",
            proved.public_signals
        ));
        Ok(Made {
            witness: witness.display().to_string(),
            proof,
            public,
            public_signals: proved.public_signals,
            seconds,
        })
    }
}

/// Whether the witness is wrong, and the next one may be right.
fn is_of_the_witness(error: &spillproof_circom::Error) -> bool {
    use spillproof_circom::Error::{Content, Engine};
    use spillproof_engine::Error::{Format, Invalid};
    matches!(error, Engine(Format { .. } | Invalid(_)) | Content { .. })
}
