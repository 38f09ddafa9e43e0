//! `spillproof commit`: a KZG commitment to a polynomial in a file, and its opening.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use ark_bn254::Fr;
use ark_ff::{BigInt, BigInteger, PrimeField};
use serde::Serialize;
use spillproof_commit::kzg;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::{Column, Placement, Writer};
use spillproof_engine::stream::Scalars;
use spillproof_gpu::accelerator::Offload;

use super::msm::describe;
use super::on_gpu::{OnGpu, Used};
use crate::args::{Commit, Global};
use crate::failure::Failure;
use crate::output::Output;
use crate::run::{Result, Run, hex};
use crate::systems::params::{Bases, INSECURE, open_srs};

#[derive(Serialize)]
struct Outcome {
    commitment: String,
    opening: Option<Opening>,
    /// Which devices computed the sums; `None` if no GPU was asked for.
    gpu: Option<Used>,
    /// Whether the secret of the SRS is known.
    insecure: bool,
}

#[derive(Serialize)]
struct Opening {
    point: String,
    value: String,
    proof: String,
}

/// Runs the command.
///
/// # Errors
/// The engine's; [`Failure::Content`] for a file that holds no scalars, [`Failure::Usage`] for a point that
/// is not a scalar.
pub fn run(global: &Global, args: &Commit) -> Result<()> {
    let point = args.open_at.as_deref().map(scalar_of).transpose()?;
    let out = args.out.as_deref().map(Output::create).transpose()?;
    args.gpu.check()?;
    let mut run = Run::start(global);
    // As in `msm`: a GPU that was asked for computes the sums, however small.
    let gpu = OnGpu::open(&args.gpu, Offload::Always)?;
    let session = run.session_on(ByteSize::Auto, gpu.accelerator())?;
    let len = scalars_in(&args.polynomial)?;
    let bases = match args.lagrange {
        true => Bases::Both,
        false => Bases::Monomial,
    };
    let log_len = len.next_power_of_two().ilog2();
    let srs = open_srs(&session, &args.srs, log_len, bases)?;
    let polynomial = run
        .recorder
        .phase("polynomial to disk", |_| read(&session, &args.polynomial, len))?;
    let commitments = run.recorder.phase("commit", |_| {
        let scalars = [Scalars::Column(&polynomial)];
        session.run(|| {
            if args.lagrange {
                kzg::commit_lagrange(&srs, &scalars)
            } else {
                kzg::commit(&srs, &scalars)
            }
        })
    })?;
    let commitment = commitments.first().map(describe).unwrap_or_default();
    run.say(format_args!("commitment {commitment}"));
    let opening = match point {
        None => None,
        Some(point) => {
            let opening = run
                .recorder
                .phase("open", |_| session.run(|| kzg::open(&srs, &polynomial, point)))?;
            let opening = Opening {
                point: digits(point),
                value: digits(opening.value),
                proof: describe(&opening.proof),
            };
            run.say(format_args!("value at {} {}", opening.point, opening.value));
            run.say(format_args!("proof {}", opening.proof));
            Some(opening)
        }
    };
    let gpu = gpu.used();
    if let Some(used) = &gpu {
        run.say(used.said());
    }
    if srs.is_insecure() {
        run.say(INSECURE);
    }
    let outcome = Outcome {
        commitment,
        opening,
        gpu,
        insecure: srs.is_insecure(),
    };
    if let Some(out) = out {
        out.write(serde_json::to_string_pretty(&outcome)? + "\n")?;
    }
    run.finish("commit", &outcome)?;
    Ok(())
}

/// A scalar in 64 hexadecimal digits.
pub(super) fn digits(value: Fr) -> String {
    hex(&value.into_bigint().to_bytes_be())
}

/// How many scalars a file has.
fn scalars_in(path: &Path) -> Result<u64> {
    let content = |details: String| Failure::Content {
        file: path.to_owned(),
        details,
    };
    let file = File::open(path).map_err(Failure::file(path))?;
    let found = file.metadata().map_err(Failure::file(path))?;
    if found.is_dir() {
        return Err(Failure::file(path)(std::io::ErrorKind::IsADirectory.into()));
    }
    if !found.is_file() {
        return Err(content(
            "a pipe or a device, whose length is not known before its end: write the scalars to a file"
                .into(),
        ));
    }
    let bytes = found.len();
    if bytes == 0 {
        return Err(content(
            "no bytes: a polynomial has one coefficient at least".into(),
        ));
    }
    if bytes % 32 != 0 {
        return Err(content(format!(
            "{bytes} bytes are not a whole number of scalars of 32 bytes"
        )));
    }
    Ok(bytes / 32)
}

fn read(session: &Session, path: &Path, len: u64) -> Result<Column<Fr>> {
    let mut file = BufReader::new(File::open(path).map_err(Failure::file(path))?);
    let mut writer = Writer::<Fr>::scratch(session.workspace(), "polynomial", len, Placement::Auto)?;
    let mut scalar = [0; 32];
    for index in 0..len {
        file.read_exact(&mut scalar).map_err(Failure::file(path))?;
        let limbs = std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| scalar[8 * i + j])));
        let value = Fr::from_bigint(BigInt::new(limbs)).ok_or_else(|| Failure::Content {
            file: path.to_owned(),
            details: format!("scalar {index} at offset {} is not below the modulus", index * 32),
        })?;
        writer.push(&[value])?;
    }
    Ok(writer.finish()?)
}

/// A decimal number; a hexadecimal one behind `0x`, or of 64 digits.
pub(super) fn scalar_of(text: &str) -> Result<Fr> {
    const DIGITS: usize = 64;
    let usage = || {
        Failure::Usage(format!(
            "`{text}` is not a scalar: expected a decimal number below the modulus, or 0x and up to 64 hexadecimal digits"
        ))
    };
    let digits = match text.strip_prefix("0x") {
        Some(digits) => digits,
        None if text.len() == DIGITS => text,
        None => {
            let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
            let digits = shortest(text);
            let value = is_number.then(|| Fr::from_str(digits).ok()).flatten();
            // A larger number would be reduced.
            return value
                .filter(|value| value.to_string() == digits)
                .ok_or_else(usage);
        }
    };
    let is_number =
        (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_number {
        return Err(usage());
    }
    let padded = format!("{digits:0>DIGITS$}");
    let limb = |i: usize| u64::from_str_radix(&padded[16 * (3 - i)..16 * (4 - i)], 16).map_err(|_| usage());
    let limbs = [limb(0)?, limb(1)?, limb(2)?, limb(3)?];
    Fr::from_bigint(BigInt::new(limbs)).ok_or_else(usage)
}

/// A decimal number without zeros before it.
fn shortest(text: &str) -> &str {
    match text.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_from_the_most_significant_digit() {
        let digits = format!("{:0>64}", "1f");
        for text in [&*digits, "0x1f", "31", "0031"] {
            assert_eq!(scalar_of(text).unwrap(), Fr::from(31u64), "{text}");
        }
        assert_eq!(scalar_of("0").unwrap(), Fr::from(0u64));
        let modulus = Fr::MODULUS.to_string();
        let largest = (-Fr::from(1u64)).to_string();
        assert_eq!(scalar_of(&largest).unwrap(), -Fr::from(1u64));
        let (long, wide) = ("f".repeat(64), "0".repeat(65));
        for text in [
            "1f",
            "",
            "0x",
            "-1",
            "+1",
            " 1",
            &modulus,
            &long,
            &"g".repeat(64),
            &format!("0x{wide}"),
        ] {
            assert!(scalar_of(text).is_err(), "{text}");
        }
    }
}
