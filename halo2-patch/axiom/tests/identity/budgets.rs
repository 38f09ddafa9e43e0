//! No proof fails after it has begun: circuits of random shapes make memory's proof in every budget from the
//! smallest on, and a smaller one is refused with its number before any work.

use proptest::prelude::*;

use halo2_axiom::plonk::{keygen_vk, Circuit, ConstraintSystem};
use halo2_axiom::spillproof::{shape as shape_of, OpeningScheme};
use halo2_axiom::SerdeFormat;
use spillproof_engine::plan::{Rates, GRAIN_BYTES};

use crate::drop_in::erased::Listed;
use crate::drop_in::options::Plan;
use crate::drop_in::prove;
use crate::drop_in::random::{set_shape, Random};
use crate::session::SHAPES;
use crate::{in_session_with, turn, SCHEMES};

/// Budgets, in 32nds of the smallest.
const BUDGETS: [u64; 10] = [32, 33, 34, 36, 40, 48, 64, 100, 200, 1000];
const THREADS: usize = 2;

fn works_in_every_budget(shape: u64, k: u32) {
    let _shape = SHAPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _turn = turn(true);
    set_shape(shape);
    let plan = Plan {
        k,
        compress_selectors: shape.is_multiple_of(2),
        keys_at_once: shape.is_multiple_of(3),
        circuits: 1 + usize::from(shape.is_multiple_of(5)),
    };
    let scheme = SCHEMES[(shape / 2 % 2) as usize];
    let circuits = || -> Vec<Random> { (0..plan.circuits).map(|_| prove::circuit(k)).collect() };
    let params = prove::params(k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    let expected = prove::prove(&params, &plan.keys::<Random>(&params), &circuits(), scheme);

    let mut cs = ConstraintSystem::default();
    Random::configure(&mut cs);
    let smallest = [OpeningScheme::Shplonk, OpeningScheme::Gwc].map(|scheme| {
        let planned = shape_of(&cs, k, plan.circuits, scheme).plan(1 << 40, THREADS, &Rates::default());
        planned.unwrap().smallest_budget_bytes
    });
    let smallest = smallest[0].max(smallest[1]);
    for share in BUDGETS {
        let budget_bytes = smallest * share / 32;
        let made = in_session_with(budget_bytes, THREADS, || {
            let params = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
            prove::prove(&params, &plan.keys::<Random>(&params), &circuits(), scheme)
        });
        assert!(
            made == expected,
            "shape {shape}, k = {k}, {budget_bytes} bytes: another proof"
        );
    }
    if plan.circuits == 1 {
        let refusal = in_session_with(smallest - GRAIN_BYTES, THREADS, || {
            keygen_vk(&params, &prove::circuit::<Random>(k).erased())
                .unwrap_err()
                .to_string()
        });
        assert!(
            refusal.contains(&smallest.to_string()),
            "shape {shape}, k = {k}: {refusal} does not name {smallest}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, ..ProptestConfig::default() })]
    #[test]
    fn two_shapes_work_in_every_budget(shape in any::<u64>(), k in 6..=8u32) {
        works_in_every_budget(shape, k);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "minutes: 200 proofs"]
    fn twenty_shapes_work_in_every_budget(shape in any::<u64>(), k in 6..=10u32) {
        works_in_every_budget(shape, k);
    }
}

/// Keys of one circuit are in memory as far as a proof of one allows. A proof of two needs the memory that
/// they hold.
#[test]
fn keys_leave_memory_for_a_proof_of_two_circuits() {
    works_in_every_budget(7748346940622270465, 6);
}

/// A budget above the smallest in which the cuts of some stages, made for all of it, leave too little for
/// others.
#[test]
fn a_budget_that_stages_would_cut_badly_is_used_in_part() {
    works_in_every_budget(6592629890283635899, 10);
}
