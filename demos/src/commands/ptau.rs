//! `spillproof ptau`: the first phase of a ceremony.

use std::path::Path;

use serde::Serialize;
use spillproof_circom::json::curve_name;
use spillproof_circom::prove::{prepare_ptau, truncate_ptau, verify_ptau};
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Container;
use spillproof_groth16::iden3::import_ptau;

use super::groth16::{self, ContributionLine};
use super::groth16_key::follow;
use super::srs;
use crate::args::{AllowInsecure, Global, Ptau as Command};
use crate::report::steps;
use crate::run::{Result, Run};

/// Runs the command.
///
/// # Errors
/// The engine's.
pub fn run(global: &Global, command: &Command) -> Result<()> {
    match command {
        Command::Prepare { file, out } => prepare(global, [file, out]),
        Command::Truncate { file, out, power } => truncate(global, [file, out], *power),
        Command::Verify { file, allow } => verify(global, file, *allow),
        Command::Import { file, out, k } => import(global, [file, out], *k),
    }
}

#[derive(Serialize)]
struct Powers {
    file: String,
    curve: &'static str,
    power: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceremony_power: Option<u32>,
    is_prepared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    contributions: Option<Vec<ContributionLine>>,
    /// Whether there is no contribution, where they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure: Option<bool>,
}

/// What is said of a file without a contribution.
const WITHOUT_CONTRIBUTION: &str =
    "INSECURE: without a contribution, the maker of the file may know tau, and forge proofs";

fn prepare(global: &Global, files: [&Path; 2]) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let (power, curve) = run.recorder.phase("Lagrange points", |progress| {
        prepare_ptau(&session, files, &mut |now| follow(progress, now))
    })?;
    steps::forget();
    let outcome = Powers {
        file: files[1].display().to_string(),
        curve: curve_name(curve),
        power,
        ceremony_power: None,
        is_prepared: true,
        contributions: None,
        insecure: None,
    };
    run.say(format_args!(
        "{}: powers of tau over {} for up to 2^{power} rows, with Lagrange bases",
        outcome.file, outcome.curve
    ));
    run.finish("ptau prepare", &outcome)?;
    Ok(())
}

fn truncate(global: &Global, files: [&Path; 2], power: u32) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let made = run.recorder.phase("truncate", |progress| {
        truncate_ptau(&session, files, power, &mut |now| follow(progress, now))
    })?;
    let outcome = Powers {
        file: files[1].display().to_string(),
        curve: curve_name(made.curve),
        power: made.power,
        ceremony_power: Some(made.ceremony_power),
        is_prepared: made.is_prepared,
        contributions: None,
        insecure: None,
    };
    run.say(format_args!(
        "{}: powers of tau over {} for up to 2^{power} rows, of a ceremony of 2^{} rows",
        outcome.file, outcome.curve, made.ceremony_power
    ));
    run.finish("ptau truncate", &outcome)?;
    Ok(())
}

fn verify(global: &Global, file: &Path, allow: AllowInsecure) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    let verified = run.recorder.phase("verify", |progress| {
        verify_ptau(&session, file, &mut |now| follow(progress, now))
    })?;
    steps::forget();
    let insecure = verified.contributors.is_empty();
    if insecure {
        groth16::refuse_insecure(file, allow, WITHOUT_CONTRIBUTION)?;
    }
    let bases = match verified.is_prepared {
        true => "with the right Lagrange bases",
        false => "without Lagrange bases",
    };
    run.say(format_args!(
        "{}: powers of one tau over {} for up to 2^{} rows, {bases}",
        file.display(),
        curve_name(verified.curve),
        verified.power
    ));
    let contributions = ContributionLine::tell_all(&run, &verified.contributors);
    if verified.power < verified.ceremony_power {
        run.say(format_args!(
            "cut from the file of a ceremony of 2^{} rows: the first powers are compared with the last contribution, not the hash of all",
            verified.ceremony_power
        ));
    }
    if insecure {
        run.say(WITHOUT_CONTRIBUTION);
    }
    let outcome = Powers {
        file: file.display().to_string(),
        curve: curve_name(verified.curve),
        power: verified.power,
        ceremony_power: Some(verified.ceremony_power),
        is_prepared: verified.is_prepared,
        contributions: Some(contributions),
        insecure: Some(insecure),
    };
    run.finish("ptau verify", &outcome)?;
    Ok(())
}

fn import(global: &Global, files: [&Path; 2], k: Option<u32>) -> Result<()> {
    let mut run = Run::start(global);
    let session = run.session(ByteSize::Auto)?;
    run.recorder.phase("Lagrange points and check", |progress| {
        session.run(|| {
            import_ptau(session.workspace(), files, k, &mut |now| {
                srs::follow(progress, now)
            })
        })
    })?;
    let contents = srs::Contents::of(&Container::open(session.workspace(), files[1])?);
    contents.tell(&run);
    run.finish("ptau import", &contents)?;
    Ok(())
}
