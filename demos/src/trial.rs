//! A trial: proofs with a small circuit beside their plan.
//!
//! A plan's seconds are those of additions, butterflies and bytes, at the rates of kernels and of the disk
//! alone. A step also decodes points, checks digests, and copies between frames and tiles; and an addition on a
//! larger curve is one addition too. In: a session. Out: for each step, its seconds in a plan and in a proof,
//! by which the same step of a larger circuit is corrected.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spillproof_circom::example::{Circuit, Values};
use spillproof_circom::prove::{Key, plan};
use spillproof_engine::Session;
use spillproof_engine::plan::Rates;
use spillproof_format::Curve;

use crate::failure::Failure;
use crate::run::{Result, Run};

/// How often the circuit is proved. The median counts.
const TURNS: usize = 3;
/// A step is corrected by this factor at least and at most: short ones depend on chance.
const FACTORS: [f64; 2] = [1.0 / 16.0, 16.0];

/// A circuit that is to be tried, in files.
pub struct Example<'a> {
    curve: Curve,
    files: [&'a Path; 2],
}

/// What steps took beside their plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trial(Vec<TriedStep>);

/// A step of the trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TriedStep {
    /// Its name.
    pub step: String,
    /// By the plan.
    pub planned_seconds: f64,
    /// In a proof.
    pub seconds: f64,
}

impl<'a> Example<'a> {
    /// Writes the key and the witness of a circuit of `2^k` rows.
    ///
    /// # Errors
    /// [`Failure::File`].
    pub fn write((curve, k): (Curve, u32), files: [&'a Path; 2]) -> Result<Self> {
        let circuit = Circuit {
            k,
            values: Values::Full,
            seed: 1,
        };
        write(files[0], |out| circuit.write_key(curve, out))?;
        write(files[1], |out| circuit.write_witness(curve, out))?;
        Ok(Self { curve, files })
    }

    /// Proves, and compares with the plan.
    ///
    /// # Errors
    /// The engine's.
    pub fn prove(&self, run: &mut Run, session: &Arc<Session>, rates: &Rates) -> Result<Trial> {
        let Self { curve, files } = *self;
        let mut turns: Vec<Vec<(String, f64)>> = Vec::new();
        let shape = *Key::open(session, files[0], &mut |_| ())?.shape();
        for _ in 0..TURNS {
            run.recorder.phase("trial", |_| -> Result<()> {
                let key = Key::open(session, files[0], &mut |_| ())?;
                let witness = key.witness(session, files[1], &mut |_| ())?;
                key.prove(session, &witness)?;
                Ok(())
            })?;
            let report = run.recorder.report();
            let steps = report
                .phases
                .last()
                .map(|phase| &phase.steps[..])
                .unwrap_or_default();
            turns.push(
                steps
                    .iter()
                    .map(|step| (step.name.clone(), step.seconds))
                    .collect(),
            );
        }
        let planned = plan(session, files[0], (&shape, curve), session.budget().limit_bytes())?.at(rates);
        let tried = |name: &'static str, planned_seconds: f64| {
            let of_turn = |turn: &Vec<(String, f64)>| {
                let steps = turn.iter().filter(|(step, _)| step == name);
                steps.map(|(_, seconds)| seconds).sum::<f64>()
            };
            let mut seconds: Vec<f64> = turns.iter().map(of_turn).collect();
            seconds.sort_by(f64::total_cmp);
            TriedStep {
                step: name.into(),
                planned_seconds,
                seconds: seconds[TURNS / 2],
            }
        };
        let steps = planned.steps.iter();
        Ok(Trial(steps.map(|step| tried(step.name, step.seconds)).collect()))
    }
}

impl Trial {
    /// What is usual: figures of docs/measurements/two-cores-ranks-model.txt.
    pub fn usual(curve: Curve) -> Self {
        // Coordinates of 381 bits.
        let addition = match curve {
            Curve::Bls12381 => 2.0,
            _ => 1.0,
        };
        let steps = [
            ("copy of coefficients", 2.0),
            ("copy of the witness", 2.0),
            ("constraints", 2.0),
            ("quotient", 1.6),
            ("sum over A", 1.2 * addition),
            ("sum over B1", 1.2 * addition),
            ("sum over B2", 2.4 * addition),
            ("sum over C", 1.2 * addition),
            ("sum over H", 1.2 * addition),
        ];
        let step = |(step, seconds): (&str, f64)| TriedStep {
            step: step.into(),
            planned_seconds: 1.0,
            seconds,
        };
        Self(steps.map(step).into())
    }

    /// What a step takes, of the time in its plan.
    pub fn factor(&self, step: &str) -> f64 {
        // Passes of a dealt transform, and what an exchange reads and writes.
        let like = match step {
            step if step.starts_with("quotient") => "quotient",
            "first exchange" | "second exchange" => "copy of the witness",
            step => step,
        };
        let tried = self.0.iter().find(|tried| tried.step == like);
        let factor = tried.map_or(1.0, |tried| {
            tried.seconds / tried.planned_seconds.max(f64::MIN_POSITIVE)
        });
        factor.clamp(FACTORS[0], FACTORS[1])
    }
}

fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(Failure::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_corrected_by_its_like() {
        let step = |step: &str, planned_seconds, seconds| TriedStep {
            step: step.into(),
            planned_seconds,
            seconds,
        };
        let trial = Trial(vec![
            step("quotient", 1.0, 1.5),
            step("copy of the witness", 1.0, 2.0),
            step("sum over A", 1.0, 100.0),
            step("sum over H", 0.0, 0.0),
        ]);
        assert_eq!(trial.factor("quotient: middle pass"), 1.5);
        assert_eq!(trial.factor("second exchange"), 2.0);
        assert_eq!(trial.factor("sum over A"), 16.0);
        assert_eq!(trial.factor("sum over H"), 1.0 / 16.0);
        assert_eq!(trial.factor("verification"), 1.0);
        let [g1, g2] = ["sum over A", "sum over B2"].map(|step| Trial::usual(Curve::Bn254).factor(step));
        assert_eq!(g2, 2.0 * g1);
    }
}
