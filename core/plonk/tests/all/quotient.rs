//! Quotients in tiles against halo2's own extended domain, coefficient by coefficient.

use crate::common::{columns_on_disk, converted, place};
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use proptest::prelude::*;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_engine::column::{Column, Element, Placement, Workspace, Writer};
use spillproof_plonk::stages::{
    Builder, Constraints, CosetDomain, Program, QuotientPlan, QuotientShape, Source, Value, quotient,
    quotient_in_tiles, quotient_of_constraints,
};
use stock_halo2_axiom::halo2curves::bn256 as stock;
use stock_halo2_axiom::poly::{EvaluationDomain, LagrangeCoeff, Polynomial};

/// An expression, over earlier ones by index.
enum Step {
    Query(usize, i32),
    Constant(Fr),
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    Neg(usize),
    Double(usize),
    Square(usize),
    Scale(usize, Fr),
    Fold(Vec<usize>, Fr),
}

fn random_steps(rng: &mut ChaCha20Rng, columns: usize, len: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..len)
        .map(|i| {
            let kind = if i < 3 { 0 } else { rng.gen_range(0..14) };
            let mut pick = || rng.gen_range(0..i.max(1));
            let (a, b) = (pick(), pick());
            match kind {
                0..=2 => {
                    let rotation = match rng.gen_range(0..8) {
                        0 => -6,
                        1 => 9,
                        _ => rng.gen_range(-3..=3),
                    };
                    Step::Query(rng.gen_range(0..columns), rotation)
                }
                3 => Step::Constant(Fr::rand(rng)),
                4 => Step::Neg(a),
                5 => Step::Double(a),
                6 => Step::Square(a),
                7 => Step::Scale(a, Fr::rand(rng)),
                8 => Step::Fold(
                    (0..rng.gen_range(0..4)).map(|_| rng.gen_range(0..i)).collect(),
                    Fr::rand(rng),
                ),
                9 => Step::Add(a, b),
                10 => Step::Sub(a, b),
                _ => Step::Mul(a, b),
            }
        })
        .collect();
    // Something of everything, so that nothing is without a use.
    steps.push(Step::Fold((0..len).collect(), Fr::rand(rng)));
    steps
}

/// Constraints of two or three neighbouring columns each, some of them with a computed one.
fn narrow_steps(rng: &mut ChaCha20Rng, columns: usize, constraints: usize) -> Vec<Step> {
    let (mut steps, mut parts) = (Vec::new(), Vec::new());
    for _ in 0..constraints {
        let column = 2 + rng.gen_range(0..columns);
        let next = 2 + (column - 1) % columns;
        let at = steps.len();
        steps.extend([
            Step::Query(column, 0),
            Step::Query(next, [-9, -1, 0, 1, 2, 40][rng.gen_range(0..6)]),
            Step::Query(
                [0, 1, 1, column, next][rng.gen_range(0..5)],
                [-1, 0, 1, 3][rng.gen_range(0..4)],
            ),
            Step::Mul(at, at + 1),
            Step::Sub(at + 3, at + 2),
            Step::Mul(at + 4, at + 2),
        ]);
        parts.push(at + 5);
    }
    steps.push(Step::Fold(parts, Fr::rand(rng)));
    steps
}

/// What is folded in the end.
fn constraints(steps: &[Step]) -> Constraints<Fr> {
    let (mut builder, made) = values(&steps[..steps.len() - 1]);
    match &steps[steps.len() - 1] {
        Step::Fold(parts, factor) => {
            let parts = parts.iter().map(|part| made[*part]).collect();
            Constraints::new(std::mem::take(&mut builder), parts, *factor)
        }
        _ => unreachable!("the last step folds"),
    }
}

fn program(steps: &[Step]) -> Program<Fr> {
    let (builder, made) = values(steps);
    builder.finish(&made[made.len() - 1..])
}

fn values(steps: &[Step]) -> (Builder<Fr>, Vec<Value>) {
    let mut builder = Builder::new();
    let mut made: Vec<Value> = Vec::new();
    for step in steps {
        let value = match step {
            Step::Query(column, rotation) => builder.query(*column, *rotation),
            Step::Constant(value) => builder.constant(*value),
            Step::Add(a, b) => builder.add(made[*a], made[*b]),
            Step::Sub(a, b) => builder.sub(made[*a], made[*b]),
            Step::Mul(a, b) => builder.mul(made[*a], made[*b]),
            Step::Neg(a) => builder.neg(made[*a]),
            Step::Double(a) => builder.double(made[*a]),
            Step::Square(a) => builder.square(made[*a]),
            Step::Scale(a, factor) => builder.scale(made[*a], *factor),
            Step::Fold(parts, factor) => {
                let parts: Vec<Value> = parts.iter().map(|part| made[*part]).collect();
                builder.fold(&parts, *factor)
            }
        };
        made.push(value);
    }
    (builder, made)
}

fn naive(steps: &[Step], query: impl Fn(usize, i32) -> Fr) -> Fr {
    let mut made: Vec<Fr> = Vec::new();
    for step in steps {
        let value = match step {
            Step::Query(column, rotation) => query(*column, *rotation),
            Step::Constant(value) => *value,
            Step::Add(a, b) => made[*a] + made[*b],
            Step::Sub(a, b) => made[*a] - made[*b],
            Step::Mul(a, b) => made[*a] * made[*b],
            Step::Neg(a) => -made[*a],
            Step::Double(a) => made[*a].double(),
            Step::Square(a) => made[*a].square(),
            Step::Scale(a, factor) => made[*a] * factor,
            Step::Fold(parts, factor) => parts
                .iter()
                .fold(Fr::ZERO, |sum, part| sum * factor + made[*part]),
        };
        made.push(value);
    }
    made[made.len() - 1]
}

/// Random columns and a random numerator, with the quotient that stock gives. Columns 0 and 1 are computed
/// ones.
struct Case {
    columns: Vec<Vec<Fr>>,
    steps: Vec<Step>,
    domain: CosetDomain<Fr>,
    wanted: Vec<Fr>,
}

impl Case {
    fn new(seed: u64, log_n: u32, pieces: usize, columns: usize, steps: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let columns: Vec<Vec<Fr>> = (0..columns)
            .map(|_| (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect())
            .collect();
        let steps = random_steps(&mut rng, columns.len() + 2, steps);
        Self::of(columns, steps, log_n, pieces)
    }

    /// Many columns, and constraints that read few of them each.
    fn narrow(seed: u64, log_n: u32, pieces: usize, columns: usize, constraints: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let columns: Vec<Vec<Fr>> = (0..columns)
            .map(|_| (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect())
            .collect();
        let steps = narrow_steps(&mut rng, columns.len(), constraints);
        Self::of(columns, steps, log_n, pieces)
    }

    fn of(columns: Vec<Vec<Fr>>, steps: Vec<Step>, log_n: u32, pieces: usize) -> Self {
        let n = 1usize << log_n;
        let stock_domain = EvaluationDomain::<stock::Fr>::new(pieces as u32 + 1, log_n);
        let extended_omega = stock_domain.get_extended_omega();
        let domain = CosetDomain {
            log_n,
            omega: converted(&stock_domain.get_omega()),
            log_cosets: stock_domain.extended_k() - log_n,
            extended_omega: converted(&extended_omega),
            shift: converted(&<stock::Fr as stock_halo2_axiom::arithmetic::Field>::ONE),
            pieces,
        };
        let mut case = Self {
            columns,
            steps,
            domain,
            wanted: Vec::new(),
        };
        assert_eq!(case.columns[0].len(), n);
        case.solve(&stock_domain);
        case
    }

    fn solve(&mut self, stock_domain: &EvaluationDomain<stock::Fr>) {
        use stock_halo2_axiom::arithmetic::Field as _;
        let n = 1usize << self.domain.log_n;
        // X, then l_0, in front of the columns.
        let mut identity = vec![stock::Fr::ZERO; n];
        identity[1] = stock::Fr::ONE;
        let mut first = vec![stock::Fr::ZERO; n];
        first[0] = stock::Fr::ONE;
        let first = stock_domain.lagrange_to_coeff(stock_domain.lagrange_from_vec(first));
        let mut polynomials = vec![stock_domain.coeff_from_vec(identity), first];
        for column in &self.columns {
            let column = column.iter().map(converted).collect();
            polynomials.push(stock_domain.coeff_from_vec(column));
        }
        let mut factor = stock::Fr::ONE;
        let mut parts: Vec<Polynomial<stock::Fr, LagrangeCoeff>> = Vec::new();
        for t in 0..1usize << self.domain.log_cosets {
            let cosets: Vec<Vec<Fr>> = polynomials
                .iter()
                .map(|polynomial| stock_domain.coeff_to_extended_part(polynomial.clone(), factor))
                .map(|part| part.iter().map(converted).collect())
                .collect();
            if t == 0 {
                // Stock's shift is its own affair; X shows it.
                self.domain.shift = cosets[0][0];
            }
            let row = |i: usize| {
                let query = |column: usize, rotation: i32| {
                    cosets[column][(i as i64 + i64::from(rotation)).rem_euclid(n as i64) as usize]
                };
                converted(&naive(&self.steps, query))
            };
            parts.push(stock_domain.lagrange_from_vec((0..n).map(row).collect()));
            factor *= stock_domain.get_extended_omega();
        }
        let extended = stock_domain.extended_from_lagrange_vec(parts);
        let divided = stock_domain.divide_by_vanishing_poly(extended);
        let wanted = stock_domain.extended_to_coeff(divided);
        self.wanted = wanted.iter().map(converted).collect();
        assert_eq!(self.wanted.len(), n * self.domain.pieces);
    }

    fn on<T>(&self, workspace: &Workspace, work: impl FnOnce(&[Source<Fr>], &Program<Fr>) -> T) -> T {
        let columns = columns_on_disk(workspace, &self.columns);
        let mut sources = vec![Source::Identity, Source::FirstLagrange];
        sources.extend(columns.iter().map(Source::Coefficients));
        work(&sources, &program(&self.steps))
    }

    /// `tile_rows` 0: as the plan says.
    fn run(&self, workspace: &Workspace, tile_rows: u64) -> spillproof_engine::Result<Vec<Column<Fr>>> {
        self.on(workspace, |sources, program| match tile_rows {
            0 => quotient(workspace, sources, program, &self.domain),
            rows => quotient_in_tiles(workspace, sources, program, &self.domain, rows),
        })
    }

    fn run_constraints(&self, workspace: &Workspace) -> spillproof_engine::Result<Vec<Column<Fr>>> {
        self.on(workspace, |sources, program| {
            let numerator = (&constraints(&self.steps), program);
            quotient_of_constraints(workspace, sources, numerator, &self.domain)
        })
    }

    fn check(&self, workspace: &Workspace, tile_rows: u64, about: &str) {
        let pieces = self.run(workspace, tile_rows).expect(about);
        self.check_pieces(&pieces, about);
        if tile_rows == 0 {
            drop(pieces);
            self.check_pieces(&self.run_constraints(workspace).expect(about), about);
        }
    }

    fn check_pieces(&self, pieces: &[Column<Fr>], about: &str) {
        assert_eq!(pieces.len(), self.domain.pieces, "{about}");
        let n = 1 << self.domain.log_n;
        for (s, (piece, wanted)) in pieces.iter().zip(self.wanted.chunks(n)).enumerate() {
            assert!(
                piece.to_vec().expect("readable") == wanted,
                "piece {s} of {about}"
            );
        }
    }
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(work)
}

#[test]
fn every_size_and_number_of_cosets() {
    for log_n in 3..=12 {
        for pieces in [1usize, 2, 3, 4, 5, 8] {
            let case = Case::new(u64::from(log_n) * 100 + pieces as u64, log_n, pieces, 3, 20);
            for (tile_rows, budget) in [
                (1, 64 << 20),
                (7, 4 << 20),
                (u64::MAX, 4 << 20),
                (0, 4 << 20),
                (0, 64 << 20),
            ] {
                let place = place(budget);
                let about = format!("2^{log_n}, {pieces} pieces, tiles of {tile_rows}, budget {budget}");
                case.check(&place.workspace, tile_rows, &about);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_programs_give_the_quotients_of_the_extended_domain(
        seed in 0u64..1 << 60, log_n in 3u32..=11, pieces in 1usize..=8, columns in 1usize..6, steps in 4usize..50,
        tile_rows in prop::sample::select(vec![0u64, 1, 7, u64::MAX]), threads in prop::sample::select(vec![1usize, 2, 5]),
    ) {
        let case = Case::new(seed, log_n, pieces, columns, steps);
        let place = place(8 << 20);
        let about = format!("seed {seed}");
        with_threads(threads, || case.check(&place.workspace, tile_rows, &about));
        prop_assert_eq!(place.workspace.budget.held_bytes(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn groups_of_constraints_give_the_quotients_of_the_extended_domain(
        seed in 0u64..1 << 60, log_n in 3u32..=10, pieces in 1usize..=8, columns in 2usize..60, constraints in 1usize..90,
        log_budget in 18u32..=23, threads in prop::sample::select(vec![1usize, 2, 5]),
    ) {
        let case = Case::narrow(seed, log_n, pieces, columns, constraints);
        let place = place(1 << log_budget);
        let about = format!("seed {seed}");
        with_threads(threads, || match case.run_constraints(&place.workspace) {
            Ok(pieces) => case.check_pieces(&pieces, &about),
            Err(Error::BudgetTooSmall { .. } | Error::OverBudget { .. }) => assert!(log_budget < 22, "{about}"),
            Err(error) => panic!("{about}: {error}"),
        });
        prop_assert_eq!(place.workspace.budget.held_bytes(), 0);
    }
}

/// Of few rows and many columns, nothing is written but the pieces, and no column is read much more than once.
#[test]
fn groups_of_constraints_write_pieces_only() {
    let case = Case::narrow(5, 10, 4, 120, 300);
    let column_bytes = 32u64 << 10;
    for (budget, most_read) in [(1 << 20, 240), (2 << 20, 180), (64 << 20, 120)] {
        let place = place(budget);
        let moved = || place.workspace.storage.stats();
        case.on(&place.workspace, |sources, program| {
            let before = moved();
            let numerator = (&constraints(&case.steps), program);
            let pieces = quotient_of_constraints(&place.workspace, sources, numerator, &case.domain);
            let pieces = pieces.expect("a quotient");
            let after = moved();
            let (read, written) = (
                after.bytes_read - before.bytes_read,
                after.bytes_written - before.bytes_written,
            );
            assert!(written <= 4 * column_bytes, "{written} bytes written in {budget}");
            assert!(read <= most_read * column_bytes, "{read} bytes read in {budget}");
            case.check_pieces(&pieces, "groups");
        });
    }
}

/// What the plan says is what happens: bytes leased, read and written; and the smallest budget works.
#[test]
fn the_plan_is_what_happens() {
    for threads in [1, 2, 5] {
        with_threads(threads, what_happens);
    }
}

fn what_happens() {
    let (mut several_in_flight, mut several_walks) = (false, false);
    for (seed, log_n, pieces, columns) in [
        (1, 12, 3, 5),
        (2, 14, 3, 9),
        (3, 13, 1, 4),
        (4, 10, 4, 12),
        (5, 5, 3, 3),
    ] {
        let case = Case::new(seed, log_n, pieces, columns, 40);
        let refused = place(128 << 10);
        let Err(Error::BudgetTooSmall { needed_bytes, .. }) = case.run(&refused.workspace, 0) else {
            // Small enough for anything.
            assert!(log_n < 12, "2^{log_n} within 128 KiB");
            continue;
        };
        let below = place(needed_bytes - 4096);
        assert!(matches!(
            case.run(&below.workspace, 0),
            Err(Error::BudgetTooSmall { .. })
        ));
        for budget in [needed_bytes, 2 * needed_bytes, 8 * needed_bytes] {
            let place = place(budget);
            let workspace = &place.workspace;
            let pieces = case.on(workspace, |sources, program| {
                let shape = QuotientShape::new(sources, program, &case.domain);
                let held = workspace.budget.held_bytes();
                let plan = QuotientPlan::new(&shape, budget - held).expect("a plan");
                several_in_flight |= plan.in_flight() > 1;
                several_walks |= plan.walks() > 1;
                let before = workspace.storage.stats();
                let pieces = quotient(workspace, sources, program, &case.domain).expect("a quotient");
                let after = workspace.storage.stats();
                let (read, written) = (
                    after.bytes_read - before.bytes_read,
                    after.bytes_written - before.bytes_written,
                );
                assert_eq!(
                    (read, written),
                    (plan.bytes_read(), plan.bytes_written()),
                    "{plan:?}"
                );
                let peak = workspace.budget.peak_bytes() - held;
                let leased = plan.leased_bytes();
                assert!(
                    peak <= leased && 10 * peak >= 9 * leased,
                    "{peak} of {leased}: {plan:?}"
                );
                pieces
            });
            let wanted = case.wanted.chunks(1 << log_n);
            assert!(
                pieces
                    .iter()
                    .zip(wanted)
                    .all(|(piece, wanted)| piece.to_vec().unwrap() == wanted)
            );
            drop(pieces);
            assert_eq!(workspace.budget.held_bytes(), 0);
        }
    }
    let many_threads = rayon::current_num_threads() >= 4;
    assert_eq!((several_in_flight, several_walks), (many_threads, many_threads));
}

#[test]
fn lanes_and_walks_are_for_threads_and_memory_that_are_there() {
    let shape = |log_n| QuotientShape {
        log_n,
        log_cosets: 1,
        pieces: 2,
        read: vec![(0, 1); 17],
        read_on_disk: 17,
        computed: vec![(0, 0); 2],
        registers: 20,
        frame_elements: 2048,
        spare: Fr::SPARE,
    };
    let plan = |threads, log_n, bytes| with_threads(threads, move || QuotientPlan::new(&shape(log_n), bytes));
    for (threads, least, most) in [(1, 1, 1), (2, 1, 1), (4, 2, 2), (16, 4, 8)] {
        for (log_n, bytes) in [(18, 2 << 30), (20, 2 << 30), (22, 4 << 30)] {
            let plan = plan(threads, log_n, bytes).expect("a plan");
            assert!(
                (least..=most).contains(&plan.in_flight()) && (least..=most).contains(&plan.walks()),
                "{threads} threads: {plan:?}"
            );
        }
        let Err(Error::BudgetTooSmall { needed_bytes, .. }) = plan(threads, 20, 1 << 20) else {
            panic!("2^20 within a mebibyte");
        };
        let smallest = plan(threads, 20, needed_bytes).expect("a plan");
        assert_eq!((smallest.in_flight(), smallest.walks()), (1, 1), "{smallest:?}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let place = place(8 << 20);
    let case = Case::new(7, 6, 3, 2, 30);
    let refused = |sources: &[Source<Fr>], program: &Program<Fr>, domain: &CosetDomain<Fr>| {
        let result = quotient(&place.workspace, sources, program, domain);
        assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    };
    case.on(&place.workspace, |sources, program| {
        refused(&sources[..1], program, &case.domain);
        let longer = CosetDomain {
            log_n: 7,
            ..case.domain
        };
        refused(sources, program, &longer);
        let other_root = CosetDomain {
            extended_omega: case.domain.omega,
            ..case.domain
        };
        refused(sources, program, &other_root);
        let too_many = CosetDomain {
            pieces: 5,
            ..case.domain
        };
        refused(sources, program, &too_many);
        // The roots of the vanishing polynomial themselves.
        let on_the_roots = CosetDomain {
            shift: Fr::ONE,
            ..case.domain
        };
        refused(sources, program, &on_the_roots);
        let no_tiles = quotient_in_tiles(&place.workspace, sources, program, &case.domain, 0);
        assert!(matches!(no_tiles, Err(Error::Invalid(_))));
    });
    assert_eq!(place.workspace.budget.held_bytes(), 0);
}

/// Not a check but a figure: `cargo test --release -p spillproof --test engine -- --ignored --nocapture
/// quotient::full_size`.
#[test]
#[ignore = "takes a minute: a figure, not a check"]
fn full_size() {
    let log_n = std::env::var("LOG_N")
        .ok()
        .and_then(|k| k.parse().ok())
        .unwrap_or(20);
    let megabytes: u64 = std::env::var("MIB")
        .ok()
        .and_then(|m| m.parse().ok())
        .unwrap_or(96);
    let columns: usize = std::env::var("COLUMNS")
        .ok()
        .and_then(|m| m.parse().ok())
        .unwrap_or(14);
    let place = place(megabytes << 20);
    let workspace = &place.workspace;
    let stock_domain = EvaluationDomain::<stock::Fr>::new(4, log_n);
    let domain = CosetDomain {
        log_n,
        omega: converted(&stock_domain.get_omega()),
        log_cosets: 2,
        extended_omega: converted(&stock_domain.get_extended_omega()),
        shift: Fr::from(5u64),
        pieces: 3,
    };
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let inputs: Vec<Column<Fr>> = (0..columns)
        .map(|_| {
            let mut writer =
                Writer::scratch(workspace, "input", 1 << log_n, Placement::Disk).expect("a column");
            for _ in 0..1u64 << (log_n - 8) {
                let values: Vec<Fr> = (0..256).map(|_| Fr::rand(&mut rng)).collect();
                writer.push(&values).expect("room");
            }
            writer.finish().expect("written")
        })
        .collect();
    // About what four permuted columns and two gates come to.
    let mut builder = Builder::new();
    let mut constraints = Vec::new();
    for i in 0..columns {
        let (a, b) = (builder.query(i + 2, 0), builder.query((i + 1) % columns + 2, 0));
        let (x, next) = (
            builder.query(0, 0),
            builder.query(i + 2, if i == 0 { -6 } else { i32::from(i < 3) }),
        );
        let first = builder.query(1, 0);
        let product = builder.mul(a, b);
        let x = builder.scale(x, Fr::from(77u64));
        let sum = builder.add(product, x);
        let sum = builder.mul(sum, next);
        constraints.push(builder.mul(sum, first));
        constraints.push(builder.sub(product, next));
    }
    let output = builder.fold(&constraints, Fr::from(99u64));
    let program = builder.finish(&[output]);
    let mut sources = vec![Source::Identity, Source::FirstLagrange];
    sources.extend(inputs.iter().map(Source::Coefficients));
    let shape = QuotientShape::new(&sources, &program, &domain);
    let plan = QuotientPlan::new(&shape, workspace.budget.available_bytes()).expect("a plan");
    let before = workspace.storage.stats();
    let start = std::time::Instant::now();
    let pieces = quotient(workspace, &sources, &program, &domain).expect("a quotient");
    let after = workspace.storage.stats();
    println!(
        "{:.2} s, peak {} of {} KiB leased, read {} of {} MiB, written {} of {} MiB, waited {:.2} + {:.2} s, {} instructions\n{plan:?}",
        start.elapsed().as_secs_f64(),
        workspace.budget.peak_bytes() >> 10,
        plan.leased_bytes() >> 10,
        (after.bytes_read - before.bytes_read) >> 20,
        plan.bytes_read() >> 20,
        (after.bytes_written - before.bytes_written) >> 20,
        plan.bytes_written() >> 20,
        (after.read_wait - before.read_wait).as_secs_f64(),
        (after.write_wait - before.write_wait).as_secs_f64(),
        program.instructions(),
    );
    assert_eq!(pieces.len(), 3);
}
