//! A session against memory, byte for byte: keys and proofs, with the switch on; the unmodified crate
//! verifies each proof.
//!
//! By default small circuits with every option, in 16 MiB, on one thread and on two. `--ignored` has k = 6 to
//! 14, in every way.

use proptest::prelude::*;
use proptest::sample::select;

use crate::drop_in::options::{prove_from_advice, Plan};
use crate::drop_in::phases::Phases;
use crate::drop_in::prove::Run;
use crate::drop_in::{erased::Listed, prove};
use crate::{drop_in, in_session_of, in_session_with, stock, turn, Bytes, Scheme, SCHEMES};
use halo2_axiom::spillproof::{ByteSize, Session};
use halo2_axiom::SerdeFormat;

const MIB: u64 = 1 << 20;

/// What a session of these tests is like.
#[derive(Clone, Copy, Debug)]
struct Kind {
    memory_bytes: u64,
    threads: usize,
    /// Rows of the quotient's tiles; the planner's choice, if it is not said.
    tile_rows: Option<u64>,
}

impl Kind {
    fn new(memory_bytes: u64, threads: usize, tile_rows: Option<u64>) -> Self {
        Self {
            memory_bytes,
            threads,
            tile_rows,
        }
    }

    fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut builder = Session::builder()
            .memory(ByteSize::Bytes(self.memory_bytes))
            .threads(self.threads);
        if let Some(rows) = self.tile_rows {
            builder = builder.quotient_tile_rows(rows);
        }
        in_session_of(builder, work)
    }
}

/// Rows of tiles: the least, a number that divides no height, all of them, and what the planner takes.
const TILE_ROWS: [Option<u64>; 4] = [Some(1), Some(7), Some(u64::MAX), None];

/// Keys and proofs from memory, then from sessions with these numbers of threads.
fn compare<D: Listed, S: stock::erased::Listed>(
    plan: Plan,
    schemes: &[Scheme],
    memory_bytes: u64,
    threads: &[usize],
) {
    let kinds: Vec<_> = threads
        .iter()
        .map(|threads| Kind::new(memory_bytes, *threads, None))
        .collect();
    compare_in::<D, S>(plan, schemes, &kinds);
}

/// Keys and proofs from memory, then from sessions of these kinds.
fn compare_in<D: Listed, S: stock::erased::Listed>(plan: Plan, schemes: &[Scheme], kinds: &[Kind]) {
    let _turn = turn(true);
    let params = prove::params(plan.k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    let expected = plan.run::<D>(&params, schemes);
    for kind in kinds {
        let made = kind.run(|| {
            let params = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
            plan.run::<D>(&params, schemes)
        });
        for ((made, expected), scheme) in made.iter().zip(&expected).zip(schemes) {
            let context = format!("{}, {kind:?}, {scheme:?}, {plan:?}", D::NAME);
            assert!(made.vk == expected.vk, "{context}: verifying keys differ");
            assert!(made.pk == expected.pk, "{context}: proving keys differ");
            assert!(made.proof == expected.proof, "{context}: proofs differ");
            // Stock's prover absorbs each circuit's instances before that circuit's advice, and its verifier
            // all instances before all advice: it rejects its own proofs of several circuits with instances,
            // and so these.
            let valid = plan.circuits == 1 || made.instances.iter().all(Vec::is_empty);
            assert_eq!(
                accepts::<S>(&bytes, made, *scheme),
                valid,
                "{context}: is accepted by stock"
            );
        }
    }
}

fn accepts<S: stock::erased::Listed>(params: &[u8], run: &Run, scheme: Scheme) -> bool {
    let Run {
        vk, proof, instances, ..
    } = run;
    stock::prove::accepts::<S>(
        &Bytes {
            params,
            vk,
            proof,
            instances,
        },
        scheme,
    )
}

/// Every k from 6 to 10, in turn on one thread and on two, with the options and heights of tiles in turn.
fn at_every_size<D: Listed, S: stock::erased::Listed>(circuits: usize) {
    for k in 6..=10 {
        let even = k % 2 == 0;
        let plan = Plan {
            k,
            compress_selectors: even,
            keys_at_once: k % 3 == 0,
            circuits,
        };
        let threads = if even { 1 } else { 2 };
        let kind = Kind::new(16 * MIB, threads, TILE_ROWS[k as usize % 4]);
        compare_in::<D, S>(plan, &SCHEMES, &[kind]);
    }
}

#[test]
fn chains() {
    at_every_size::<drop_in::chain::Chain, stock::chain::Chain>(1);
}

#[test]
fn several_circuits_in_a_proof() {
    let _shape = SHAPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for circuits in 2..=3 {
        let plan = Plan {
            circuits,
            ..Plan::plain(6 + circuits as u32)
        };
        compare::<drop_in::lookups::Lookups, stock::lookups::Lookups>(plan, &SCHEMES, 16 * MIB, &[1, 2]);
    }
    at_every_size::<drop_in::chain::Chain, stock::chain::Chain>(2);
    // Without instances, so that stock's verifier can follow.
    let mut verified = 0;
    for shape in (0..).map(|i| 5 * i) {
        drop_in::random::set_shape(shape);
        if !drop_in::random::is_public() {
            random_shape(shape, 6 + verified, 2, TILE_ROWS[verified as usize]);
            verified += 1;
        }
        if verified == 3 {
            break;
        }
    }
}

#[test]
fn wide_gates() {
    for k in 6..=8 {
        compare::<drop_in::wide::Wide, stock::wide::Wide>(Plan::plain(k), &SCHEMES, 16 * MIB, &[2]);
    }
}

#[test]
fn lookups() {
    at_every_size::<drop_in::lookups::Lookups, stock::lookups::Lookups>(1);
}

#[test]
fn selectors() {
    for k in 6..=9 {
        for compress_selectors in [false, true] {
            let plan = Plan {
                compress_selectors,
                keys_at_once: k % 2 == 0,
                ..Plan::plain(k)
            };
            compare::<drop_in::selected::Selected, stock::selected::Selected>(
                plan,
                &SCHEMES,
                16 * MIB,
                &[1, 2],
            );
        }
    }
}

#[test]
fn instances() {
    at_every_size::<drop_in::publics::Publics, stock::publics::Publics>(1);
    instances_are_opened(Plan::plain(7));
    instances_are_opened(Plan {
        circuits: 2,
        ..Plan::plain(6)
    });
}

/// With a scheme that commits to instances and opens them, as well as hashing them.
fn instances_are_opened(plan: Plan) {
    let _turn = turn(true);
    let params = prove::params(plan.k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    let expected = plan.run_querying::<drop_in::publics::Publics>(&params);
    let made = in_session_with(16 * MIB, 0, || {
        let params = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
        plan.run_querying::<drop_in::publics::Publics>(&params)
    });
    assert!(made == expected, "{plan:?}");
    let run = Bytes {
        params: &bytes,
        vk: &made.vk,
        proof: &made.proof,
        instances: &made.instances,
    };
    let accepted = stock::options::accepts_querying::<stock::publics::Publics>(&run);
    assert_eq!(accepted, plan.circuits == 1, "{plan:?}: is accepted by stock");
}

#[test]
fn challenges_of_two_phases() {
    at_every_size::<Phases<2, false>, stock::phases::Phases<2, false>>(1);
    at_every_size::<Phases<2, true>, stock::phases::Phases<2, true>>(1);
}

/// Cells that have left memory come back for a circuit that reads them after the end of its only phase.
#[test]
fn a_phase_that_its_circuit_ends() {
    at_every_size::<Phases<1, true>, stock::phases::Phases<1, true>>(1);
    compare::<Phases<1, true>, stock::phases::Phases<1, true>>(
        Plan::plain(14),
        &[Scheme::Shplonk],
        2 * MIB,
        &[2],
    );
}

/// Stock's prover stops at the end of a third phase, so there is nothing to compare with; its verifier knows
/// three.
#[test]
fn challenges_of_three_phases() {
    let _turn = turn(true);
    for k in [6, 8] {
        let made = in_session_with(16 * MIB, 0, || {
            let params = prove::params(k);
            let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
            let apart = Plan::plain(k).run::<Phases<3, false>>(&params, &SCHEMES);
            let at_once = Plan::plain(k).run::<Phases<3, true>>(&params, &SCHEMES);
            assert!(apart == at_once, "k = {k}: phases that the circuit ends differ");
            (bytes, apart)
        });
        for (run, scheme) in made.1.iter().zip(SCHEMES) {
            assert!(
                accepts::<stock::phases::Phases<3, false>>(&made.0, run, scheme),
                "k = {k}, {scheme:?}"
            );
        }
    }
}

#[test]
fn advice_from_elsewhere() {
    fn check<D: Listed>(k: u32) {
        let _turn = turn(true);
        let params = prove::params(k);
        let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
        let run = |params: &_| {
            let pk = prove::keys::<D>(params, k);
            let (advice, proof) = prove_from_advice(params, &pk, prove::circuit::<D>(k));
            let usual = prove::prove(params, &pk, &[prove::circuit::<D>(k)], Scheme::Shplonk);
            assert!(proof == usual, "{}: synthesis makes another proof", D::NAME);
            (advice, proof)
        };
        let expected = run(&params);
        let made = in_session_with(16 * MIB, 0, || {
            run(&prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap())
        });
        assert!(made.0 == expected.0, "{}: the witness differs", D::NAME);
        assert!(made.1 == expected.1, "{}: the proof differs", D::NAME);
    }
    check::<drop_in::chain::Chain>(8);
    check::<drop_in::lookups::Lookups>(9);
    check::<drop_in::publics::Publics>(7);
}

/// A key that was made without a session serves in one, and the reverse.
#[test]
fn keys_cross_over() {
    type Ours = drop_in::lookups::Lookups;
    let _turn = turn(true);
    let (k, circuit) = (8, || [prove::circuit::<Ours>(8)]);
    let params = prove::params(k);
    let bytes = prove::params_bytes(&params, SerdeFormat::RawBytes);
    let pk = Plan::plain(k).keys::<Ours>(&params);
    for scheme in SCHEMES {
        let expected = prove::prove(&params, &pk, &circuit(), scheme);
        let made = in_session_with(16 * MIB, 0, || {
            let read = prove::read_params(&bytes, SerdeFormat::RawBytes).unwrap();
            [
                prove::prove(&read, &pk, &circuit(), scheme),
                prove::prove(&params, &pk, &circuit(), scheme),
            ]
        });
        assert!(made.iter().all(|made| *made == expected), "{scheme:?}");
    }
}

fn random_shape(shape: u64, k: u32, threads: usize, tile_rows: Option<u64>) {
    drop_in::random::set_shape(shape);
    stock::random::set_shape(shape);
    let plan = Plan {
        k,
        compress_selectors: shape.is_multiple_of(2),
        keys_at_once: shape.is_multiple_of(3),
        circuits: 1 + usize::from(shape.is_multiple_of(5)),
    };
    let scheme = SCHEMES[(shape / 2 % 2) as usize];
    let kind = Kind::new(16 * MIB, threads, tile_rows);
    compare_in::<drop_in::random::Random, stock::random::Random>(plan, &[scheme], &[kind]);
}

/// Shapes belong to the process, as the switch does.
pub static SHAPES: std::sync::Mutex<()> = std::sync::Mutex::new(());

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: cases(8), ..ProptestConfig::default() })]
    #[test]
    fn random_circuits(shape in any::<u64>(), k in 6..=8u32, threads in 1..=2usize, tile_rows in select(&TILE_ROWS)) {
        let _shape = SHAPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        random_shape(shape, k, threads, tile_rows);
    }
}

fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(default)
}

/// From 2^12 rows on, every matrix of a quotient has 8 rows at least: tiles of 7 leave a rest, and none is
/// whole but the last.
#[test]
fn tiles_of_any_height() {
    let kinds = TILE_ROWS[..3].iter().zip([1, 2, 2]);
    let kinds: Vec<_> = kinds
        .map(|(rows, threads)| Kind::new(32 * MIB, threads, *rows))
        .collect();
    compare_in::<drop_in::chain::Chain, stock::chain::Chain>(Plan::plain(12), &[Scheme::Shplonk], &kinds);
}

/// k from 6 to 14, tiles of 1, 7 and all rows and as planned, one thread and two, both schemes: the whole
/// product, with the options in turn.
fn in_every_way<D: Listed, S: stock::erased::Listed>(circuits: usize) {
    for k in 6.max(D::K_MIN)..=14 {
        let plan = Plan {
            k,
            compress_selectors: k % 2 == 0,
            keys_at_once: k % 3 == 0,
            circuits,
        };
        let mut kinds = Vec::new();
        for threads in [1, 2] {
            kinds.extend(TILE_ROWS.map(|rows| {
                // Tiles of all rows are whole cosets in memory.
                let memory_bytes = if rows == Some(u64::MAX) { 512 } else { 32 } * MIB;
                Kind::new(memory_bytes, threads, rows)
            }));
        }
        compare_in::<D, S>(plan, &SCHEMES, &kinds);
        eprintln!("{}: k = {k}", D::NAME);
    }
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn chains_in_every_way() {
    in_every_way::<drop_in::chain::Chain, stock::chain::Chain>(1);
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn two_chains_in_every_way() {
    in_every_way::<drop_in::chain::Chain, stock::chain::Chain>(2);
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn lookups_in_every_way() {
    in_every_way::<drop_in::lookups::Lookups, stock::lookups::Lookups>(1);
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn selectors_in_every_way() {
    in_every_way::<drop_in::selected::Selected, stock::selected::Selected>(1);
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn instances_in_every_way() {
    in_every_way::<drop_in::publics::Publics, stock::publics::Publics>(1);
}

#[test]
#[ignore = "minutes: k up to 14 in every way"]
fn challenges_in_every_way() {
    in_every_way::<Phases<2, false>, stock::phases::Phases<2, false>>(1);
    in_every_way::<Phases<2, true>, stock::phases::Phases<2, true>>(1);
}

#[test]
#[ignore = "many minutes: 96 columns, k up to 14 in every way"]
fn wide_gates_in_every_way() {
    in_every_way::<drop_in::wide::Wide, stock::wide::Wide>(1);
}
