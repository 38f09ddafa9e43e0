//! A circuit of one's own over halo2-axiom, from its gate to a verified proof. A secret number x becomes x² +
//! 1, again and again, until 2^K rows are full; the last number is public. Arguments: `K [MEMORY [NAME]]`.
//!
//! Without a budget all is in memory, as with halo2-axiom itself. With one, keys and proof stream from disk
//! and are the same bytes. The budget comes from `SPILLPROOF_MEMORY`, or from the program, as it does here if
//! `MEMORY` (`64MiB`) is given. With `NAME`, parameters, key and witness are saved in files, from which the
//! binary `spillproof` makes the proof, too.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use halo2_axiom::circuit::{Layouter, SimpleFloorPlanner, Value};
use halo2_axiom::halo2curves::bn256::{Bn256, Fr};
use halo2_axiom::halo2curves::ff::Field;
use halo2_axiom::plonk::{
    create_proof, keygen_pk, keygen_vk, verify_proof, Advice, Circuit, Column, ConstraintSystem, Expression,
    Instance, Selector,
};
use halo2_axiom::poly::commitment::ParamsProver;
use halo2_axiom::poly::kzg::commitment::{KZGCommitmentScheme, ParamsKZG};
use halo2_axiom::poly::kzg::multiopen::{ProverSHPLONK, VerifierSHPLONK};
use halo2_axiom::poly::kzg::strategy::SingleStrategy;
use halo2_axiom::poly::Rotation;
use halo2_axiom::spillproof::{active, save_described_key, save_witness, Session};
use halo2_axiom::transcript::{
    Blake2bRead, Blake2bWrite, Challenge255, TranscriptReadBuffer, TranscriptWriterBuffer,
};
use halo2_axiom::SerdeFormat;
use rand::rngs::OsRng;

// Does not compile if the patch of Cargo.toml has no effect.
const _: () = halo2_axiom::spillproof::IS_HERE;

/// The last rows of a column belong to the prover.
const RESERVED_ROWS: usize = 16;

struct Squares {
    secret: Value<Fr>,
    steps: usize,
}

#[derive(Clone, Copy)]
struct Columns {
    x: Column<Advice>,
    step: Selector,
    last: Column<Instance>,
}

impl Circuit<Fr> for Squares {
    type Config = Columns;
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        Self {
            secret: Value::unknown(),
            ..*self
        }
    }

    fn configure(meta: &mut ConstraintSystem<Fr>) -> Columns {
        let (x, step, last) = (meta.advice_column(), meta.selector(), meta.instance_column());
        meta.enable_equality(x);
        meta.enable_equality(last);
        meta.create_gate("the next row has x * x + 1", |cells| {
            let step = cells.query_selector(step);
            let [now, next] = [Rotation::cur(), Rotation::next()].map(|row| cells.query_advice(x, row));
            [step * (now.clone() * now + Expression::Constant(Fr::ONE) - next)]
        });
        Columns { x, step, last }
    }

    fn synthesize(
        &self,
        columns: Columns,
        mut layouter: impl Layouter<Fr>,
    ) -> Result<(), halo2_axiom::plonk::Error> {
        let last = layouter.assign_region(
            || "squares",
            |mut region| {
                let mut x = self.secret;
                let mut cell = region.assign_advice(columns.x, 0, x).cell();
                for row in 0..self.steps {
                    columns.step.enable(&mut region, row)?;
                    x = x.map(|x| x * x + Fr::ONE);
                    cell = region.assign_advice(columns.x, row + 1, x).cell();
                }
                Ok(cell)
            },
        )?;
        layouter.constrain_instance(last, columns.last, 0);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let k: u32 = arguments.next().as_deref().unwrap_or("12").parse()?;
    let steps = 1usize.checked_shl(k).unwrap_or(0).saturating_sub(RESERVED_ROWS);
    // Holds until `_session` is dropped. Leave these lines out if SPILLPROOF_MEMORY says the budget.
    let _session = match arguments.next() {
        Some(memory) => Some(Arc::new(Session::builder().memory(&*memory).build()?).install()),
        None => None,
    };
    let place = if active() { "within a budget" } else { "in memory" };

    let secret = Fr::random(OsRng);
    let last = (0..steps).fold(secret, |x, _| x * x + Fr::ONE);
    let circuit = Squares {
        secret: Value::known(secret),
        steps,
    };

    // For trials: real parameters are the result of a ceremony, not of one program's random number.
    let params = ParamsKZG::<Bn256>::setup(k, OsRng);
    let vk = keygen_vk(&params, &circuit.without_witnesses())?;
    let pk = keygen_pk(&params, vk, &circuit.without_witnesses())?;

    if let Some(name) = arguments.next() {
        let mut file = BufWriter::new(File::create(format!("{name}.params"))?);
        params.write_custom(&mut file, SerdeFormat::RawBytes)?;
        file.flush()?;
        save_described_key(&pk, &circuit.without_witnesses(), format!("{name}.key"))?;
        save_witness(pk.get_vk(), &circuit, &[&[last]], format!("{name}.witness"))?;
        println!("saved {name}.params, {name}.key and {name}.witness");
    }

    let mut transcript = Blake2bWrite::<_, _, Challenge255<_>>::init(Vec::new());
    create_proof::<KZGCommitmentScheme<Bn256>, ProverSHPLONK<'_, Bn256>, _, _, _, _>(
        &params,
        &pk,
        &[circuit],
        &[&[&[last]]],
        OsRng,
        &mut transcript,
    )?;
    let proof = transcript.finalize();

    verify_proof::<KZGCommitmentScheme<Bn256>, VerifierSHPLONK<'_, Bn256>, _, _, _>(
        params.verifier_params(),
        pk.get_vk(),
        SingleStrategy::new(params.verifier_params()),
        &[&[&[last]]],
        &mut Blake2bRead::<_, _, Challenge255<_>>::init(&proof[..]),
    )?;
    println!(
        "proved {place} and verified: {steps} steps, a proof of {} bytes",
        proof.len()
    );
    Ok(())
}
