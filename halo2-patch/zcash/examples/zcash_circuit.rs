//! A circuit of one's own over zcash's halo2_proofs, from its gate to a verified proof. A secret number x
//! becomes x² + 1, again and again, until 2^K rows are full; the last number is public. Arguments:
//! `K [MEMORY]`.
//!
//! Without a budget all is in memory, as with halo2_proofs itself. With one, keys and proof stream from disk
//! and are the same bytes. The budget comes from `SPILLPROOF_MEMORY`, or from the program, as it does here if
//! `MEMORY` (`64MiB`) is given.

use std::error::Error;
use std::sync::Arc;

use halo2_proofs::circuit::{Layouter, SimpleFloorPlanner, Value};
use halo2_proofs::pasta::group::ff::Field;
use halo2_proofs::pasta::{EqAffine, Fp};
use halo2_proofs::plonk::{
    create_proof, keygen_pk, keygen_vk, verify_proof, Advice, Circuit, Column, ConstraintSystem, Expression,
    Instance, Selector, SingleVerifier,
};
use halo2_proofs::poly::commitment::Params;
use halo2_proofs::poly::Rotation;
use halo2_proofs::spillproof::{active, Session};
use halo2_proofs::transcript::{Blake2bRead, Blake2bWrite, Challenge255};
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;

// Does not compile if the patch of Cargo.toml has no effect.
const _: () = halo2_proofs::spillproof::IS_HERE;

/// The last rows of a column belong to the prover.
const RESERVED_ROWS: usize = 16;

struct Squares {
    secret: Value<Fp>,
    steps: usize,
}

#[derive(Clone, Copy)]
struct Columns {
    x: Column<Advice>,
    step: Selector,
    last: Column<Instance>,
}

impl Circuit<Fp> for Squares {
    type Config = Columns;
    type FloorPlanner = SimpleFloorPlanner;

    fn without_witnesses(&self) -> Self {
        Self {
            secret: Value::unknown(),
            ..*self
        }
    }

    fn configure(meta: &mut ConstraintSystem<Fp>) -> Columns {
        let (x, step, last) = (meta.advice_column(), meta.selector(), meta.instance_column());
        meta.enable_equality(x);
        meta.enable_equality(last);
        meta.create_gate("the next row has x * x + 1", |cells| {
            let step = cells.query_selector(step);
            let [now, next] = [Rotation::cur(), Rotation::next()].map(|row| cells.query_advice(x, row));
            [step * (now.clone() * now + Expression::Constant(Fp::ONE) - next)]
        });
        Columns { x, step, last }
    }

    fn synthesize(
        &self,
        columns: Columns,
        mut layouter: impl Layouter<Fp>,
    ) -> Result<(), halo2_proofs::plonk::Error> {
        let last = layouter.assign_region(
            || "squares",
            |mut region| {
                let mut x = self.secret;
                let mut cell = region.assign_advice(|| "x", columns.x, 0, || x)?.cell();
                for row in 0..self.steps {
                    columns.step.enable(&mut region, row)?;
                    x = x.map(|x| x * x + Fp::ONE);
                    cell = region.assign_advice(|| "x", columns.x, row + 1, || x)?.cell();
                }
                Ok(cell)
            },
        )?;
        layouter.constrain_instance(last, columns.last, 0)
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

    let secret = Fp::random(&mut UnwrapErr(SysRng));
    let last = (0..steps).fold(secret, |x, _| x * x + Fp::ONE);
    let circuit = Squares {
        secret: Value::known(secret),
        steps,
    };

    let params = Params::<EqAffine>::new(k);
    let vk = keygen_vk(&params, &circuit.without_witnesses())?;
    let pk = keygen_pk(&params, vk, &circuit.without_witnesses())?;

    let mut transcript = Blake2bWrite::<_, _, Challenge255<_>>::init(Vec::new());
    create_proof(
        &params,
        &pk,
        &[circuit],
        &[&[&[last]]],
        UnwrapErr(SysRng),
        &mut transcript,
    )?;
    let proof = transcript.finalize();

    verify_proof(
        &params,
        pk.get_vk(),
        SingleVerifier::new(&params),
        &[&[&[last]]],
        &mut Blake2bRead::<_, _, Challenge255<_>>::init(&proof[..]),
    )?;
    println!(
        "proved {place} and verified: {steps} steps, a proof of {} bytes",
        proof.len()
    );
    Ok(())
}
