//! `spillproof-bench saved`: proofs with a key and a witness that a program over the drop-in saved, ours
//! within a budget, beside the unmodified crate's in memory.
//!
//! Each proof is a process of its own. The unmodified crate reads the key in its own bytes; opening, reading
//! and parameters are not part of the time of either.

use std::fs::File;

use serde::Serialize;
use spillproof_circuits::System;
use spillproof_circuits::axiom::dropin::saved::{SavedKey, SavedWitness};
use spillproof_circuits::axiom::stock::any::Any;
use spillproof_circuits::axiom::stock::described::OfProgram as Circuit;
use spillproof_circuits::axiom::stock::proof::verify_columns;
use spillproof_circuits::axiom::stock::prover::{prove_circuit, read_proving_key};
use spillproof_cli::args::{Global, Parameters};
use spillproof_cli::failure::Failure;
use spillproof_cli::report::progress::Progress;
use spillproof_cli::report::table::{bytes, grid};
use spillproof_cli::run::{Result, Run};
use spillproof_cli::systems::{self, axiom, kzg::stock_params_for};
use spillproof_engine::budget::ByteSize;

use crate::args::{OfProgram, Saved, StockSaved};
use crate::child::{Prover, Statement, Subject, Taken};
use crate::prover::Folder;
use crate::stock;

const MEMORY: ByteSize = ByteSize::Bytes(32 << 20);
/// While the key is converted for the unmodified crate, which then holds all of it.
const CONVERSION_MEMORY: ByteSize = ByteSize::Auto;
/// Of the prover's random values.
const SEED: u64 = 1;

#[derive(Serialize)]
struct Outcome {
    runs: usize,
    k: u32,
    threads: usize,
    budget_bytes: u64,
    ours: Taken,
    stock: Taken,
    prove_ratio: f64,
}

/// Measures.
///
/// # Errors
/// Of files that are no key and no witness of it; [`Failure::Demonstration`] for a process that fails.
pub fn run(global: &Global, args: &Saved) -> Result<()> {
    if args.runs == 0 {
        return Err(Failure::Usage("--runs must be at least 1".into()));
    }
    let mut run = Run::start(global);
    let session = run.session(MEMORY)?;
    let (budget_bytes, threads) = (session.budget().limit_bytes(), session.threads());
    let folder = Folder::new(session.dir())?;
    let k = {
        let _current = session.install();
        open(&args.of)?.0.k()
    };
    drop(session);
    let statement = Statement {
        global,
        dir: &folder.path,
        params: args.of.srs.clone(),
        subject: Subject::Saved(&args.of),
        threads,
    };
    let prover = Prover::Ours(Some(budget_bytes));
    {
        let _line = Progress::start("a proof, verified by the unmodified crate");
        statement.check(prover)?;
    }
    let (mut ours, mut stock) = (Vec::new(), Vec::new());
    for turn in 1..=args.runs {
        let _line = Progress::start(&format!("ours and stock, {turn} of {}", args.runs));
        ours.push(statement.prove(prover)?);
        stock.push(statement.prove(Prover::Stock)?);
    }
    let (ours, stock) = (Taken::median(&ours), Taken::median(&stock));
    let outcome = Outcome {
        runs: args.runs,
        k,
        threads,
        budget_bytes,
        ours,
        stock,
        prove_ratio: ours.prove_seconds / stock.prove_seconds,
    };
    run.say(format_args!("medians of {} runs, in turns\n", args.runs));
    run.say(render(&outcome, &args.of).trim_end());
    run.finish("bench saved", &outcome)?;
    Ok(())
}

fn render(outcome: &Outcome, of: &OfProgram) -> String {
    let row = |name: String, taken: &Taken, ratio: String| {
        [
            name,
            format!("{:.2}", taken.prove_seconds),
            bytes(taken.peak_bytes),
            bytes(taken.bytes_read),
            bytes(taken.bytes_written),
            ratio,
        ]
    };
    let rows = [
        row(
            format!("budget {}", bytes(outcome.budget_bytes)),
            &outcome.ours,
            format!("{:.2}", outcome.prove_ratio),
        ),
        row(
            format!("unmodified {}", systems::stock_name(System::Axiom)),
            &outcome.stock,
            String::new(),
        ),
    ];
    format!(
        "the circuit of {}, 2^{} rows, {} threads\n{}",
        of.key.display(),
        outcome.k,
        outcome.threads,
        grid(
            &["", "prove, s", "peak", "read", "written", "prove by stock"],
            &rows,
            2
        )
    )
}

/// Key and witness, opened in the current session.
fn open(of: &OfProgram) -> Result<(SavedKey, SavedWitness)> {
    let key = SavedKey::open(&of.key).map_err(|error| Failure::of_file(&of.key, error))?;
    let witness = SavedWitness::open(&of.witness).map_err(|error| Failure::of_file(&of.witness, error))?;
    witness.belongs_to(key.key.get_vk())?;
    Ok((key, witness))
}

/// Proves with the unmodified crate.
///
/// # Errors
/// Of the files; halo2's.
pub fn prove_by_stock(global: &Global, args: &StockSaved) -> Result<()> {
    let of = &args.of;
    let mut run = Run::start(global);
    let session = run.session(CONVERSION_MEMORY)?;
    let folder = Folder::new(session.dir())?;
    let file = folder.path.join("key");
    let current = session.install();
    let (description, circuit, instances, k) = run.recorder.phase("files", |_| {
        let of_witness = |error| Failure::of_file(&of.witness, error);
        let (key, witness) = open(of)?;
        let write = || {
            let mut raw = File::create(&file)?;
            key.write(&mut raw)?;
            raw.sync_all()
        };
        write().map_err(Failure::file(&file))?;
        let blinded = key.key.get_vk().cs().blinding_factors() + 1;
        let usable = |values: std::io::Result<Vec<_>>| {
            let mut values = values.map_err(of_witness)?;
            values.truncate(values.len().saturating_sub(blinded));
            Ok::<_, Failure>(values)
        };
        let advice = witness.advice().map(usable).collect::<Result<_>>()?;
        let instances: Vec<_> = witness.instances().iter().map(|values| values.to_vec()).collect();
        let description = key.description.clone();
        let circuit = Circuit::new(description.clone(), advice);
        Ok::<_, Failure>((description, circuit, instances, key.k()))
    })?;
    drop(current);
    drop(session);
    let (params, key) = run.recorder.phase("stock: parameters and key", |_| {
        let parameters = Parameters {
            file: Some(of.srs.clone()),
            seed: None,
        };
        let mut reader = File::open(&file).map_err(Failure::file(&file))?;
        let key = read_proving_key(&mut reader, &description).map_err(Failure::file(&file))?;
        Ok::<_, Failure>((stock_params_for::<axiom::Stock>(&parameters, k)?, key))
    })?;
    let instances: Vec<&[_]> = instances.iter().map(Vec::as_slice).collect();
    let proof = run.recorder.phase("stock: prove", |_| {
        let circuit = (Any::OfProgram(circuit), &*instances);
        prove_circuit(&params, &key, circuit, SEED, of.scheme).map_err(Failure::halo2("the proof"))
    })?;
    run.recorder.phase("stock: verify", |_| {
        verify_columns(&params, key.get_vk(), &instances, &proof, of.scheme)
            .map_err(Failure::halo2("the unmodified crate's own proof"))
    })?;
    stock::finish(run, "stock-saved", (&args.out, &proof), System::Axiom)
}
