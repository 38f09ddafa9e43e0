//! `spillproof open verify`: checks an opening of a KZG commitment ([`kzg::check`]).

use std::fs;
use std::path::{Path, PathBuf};

use ark_bn254::{Fq, Fr, G1Affine};
use ark_ff::{BigInt, PrimeField};
use serde::{Deserialize, Serialize};
use spillproof_commit::kzg;
use spillproof_format::params_kzg::Dialect;

use super::commit::{digits, scalar_of};
use super::msm::describe;
use crate::args::{Global, OpenVerify};
use crate::failure::Failure;
use crate::run::{Result, Run};
use crate::systems::params::{VerifierPoints, insecurity_of_file};

/// As `commit` writes it; other fields are left alone.
#[derive(Deserialize)]
struct Written {
    commitment: String,
    opening: Option<Opened>,
}

#[derive(Deserialize)]
struct Opened {
    point: String,
    value: String,
    proof: String,
}

/// With `--json`, `commit` prints it as the result of a command.
#[derive(Deserialize)]
struct Printed {
    result: Written,
}

/// A claim on a committed polynomial.
struct Claim {
    commitment: G1Affine,
    point: Fr,
    opening: kzg::Opening,
}

#[derive(Serialize)]
struct Outcome {
    srs: String,
    commitment: String,
    point: String,
    value: String,
    verifies: bool,
    /// Whether the secret of the SRS is known.
    insecure: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Refused`] for an opening that does not hold; [`Failure::Usage`] and [`Failure::Content`] for
/// what is no opening; the engine's.
pub fn run(global: &Global, args: &OpenVerify) -> Result<()> {
    let (texts, file) = texts(args)?;
    let claim = Claim::read(&texts, file.as_deref())?;
    let mut run = Run::start(global);
    let verifies = run.recorder.phase("verify", |_| {
        let VerifierPoints { g, pair } = <VerifierPoints>::of(&args.srs, 0)?;
        Ok::<_, Failure>(kzg::holds(
            g,
            pair,
            &claim.commitment,
            claim.point,
            &claim.opening,
        ))
    })?;
    if !verifies {
        return Err(Failure::Refused {
            doing: "the opening",
            reason: "it does not hold for this commitment, point, value and SRS".into(),
        });
    }
    run.say("the opening holds");
    let insecurity = insecurity_of_file(&args.srs, 0, Dialect::Halo2)?;
    if let Some(words) = insecurity {
        run.say(words);
    }
    let outcome = Outcome {
        srs: args.srs.display().to_string(),
        commitment: describe(&claim.commitment),
        point: digits(claim.point),
        value: digits(claim.opening.value),
        verifies,
        insecure: insecurity.is_some(),
    };
    run.finish("open verify", &outcome)?;
    Ok(())
}

/// The claim as text, and the file that it is from.
fn texts(args: &OpenVerify) -> Result<(Written, Option<PathBuf>)> {
    if let Some(path) = &args.file {
        let text = fs::read_to_string(path).map_err(Failure::file(path))?;
        let printed = serde_json::from_str(&text).map(|Printed { result }| result);
        let written = printed.or_else(|_| serde_json::from_str(&text));
        let written = written.map_err(|error| Failure::Content {
            file: path.clone(),
            details: format!("not what `spillproof commit --out` writes: {error}"),
        })?;
        return Ok((written, Some(path.clone())));
    }
    // The command line has all of them, or none.
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let opening = Opened {
        point: text(&args.point),
        value: text(&args.value),
        proof: text(&args.proof),
    };
    let written = Written {
        commitment: text(&args.commitment),
        opening: Some(opening),
    };
    Ok((written, None))
}

impl Claim {
    fn read(written: &Written, file: Option<&Path>) -> Result<Self> {
        let refused = |name: &str, reason: String| match file {
            Some(file) => Failure::Content {
                file: file.to_owned(),
                details: format!("{name}: {reason}"),
            },
            None => Failure::Usage(format!("--{name}: {reason}")),
        };
        let opening = written.opening.as_ref().ok_or_else(|| {
            refused(
                "opening",
                "there is none: commit with --open-at POINT writes one".into(),
            )
        })?;
        let point = |name: &str, text: &str| {
            point_of(text).ok_or_else(|| {
                refused(
                    name,
                    format!("`{text}` is no point of BN254: expected x,y in hexadecimal, or infinity"),
                )
            })
        };
        let scalar =
            |name: &str, text: &str| scalar_of(text).map_err(|error| refused(name, error.to_string()));
        Ok(Self {
            commitment: point("commitment", &written.commitment)?,
            point: scalar("point", &opening.point)?,
            opening: kzg::Opening {
                value: scalar("value", &opening.value)?,
                proof: point("proof", &opening.proof)?,
            },
        })
    }
}

/// A point as [`describe`] writes it.
fn point_of(text: &str) -> Option<G1Affine> {
    if text == "infinity" {
        return Some(G1Affine::identity());
    }
    let (x, y) = text.split_once(',')?;
    let point = G1Affine::new_unchecked(coordinate_of(x)?, coordinate_of(y)?);
    point.is_on_curve().then_some(point)
}

fn coordinate_of(digits: &str) -> Option<Fq> {
    let mut bytes = [0; 32];
    ::hex::decode_to_slice(digits, &mut bytes).ok()?;
    bytes.reverse();
    let limbs = std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])));
    Fq::from_bigint(BigInt::new(limbs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::{AffineRepr, CurveGroup};

    #[test]
    fn points_are_read_as_they_are_written() {
        let point = (G1Affine::generator() * Fr::from(9u64)).into_affine();
        assert_eq!(point_of(&describe(&point)), Some(point));
        assert_eq!(point_of("infinity"), Some(G1Affine::identity()));
        let off = describe(&point).replace(',', "0,");
        for text in ["", ",", "1,2", &off, &describe(&point)[1..], &"f".repeat(129)] {
            assert_eq!(point_of(text), None, "{text}");
        }
        let (x, _) = point.xy().unwrap();
        let moved = G1Affine::new_unchecked(x, x);
        assert_eq!(point_of(&describe(&moved)), None, "off the curve");
    }
}
