//! Quotients of a session with `GpuAccelerator` under the fake driver: on the device or, with the same
//! result, on the processor.
//!
//! The oracle is the processor's quotient, which core's tests compare with halo2's extended domain, and,
//! where the numerator vanishes on the domain, arkworks' product of polynomials.

use std::sync::Arc;

use ark_bn254::Fr;
use ark_ff::{FftField, Field, UniformRand};
use ark_poly::univariate::DensePolynomial;
use ark_poly::{DenseUVPolynomial, EvaluationDomain, Radix2EvaluationDomain};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use spillproof_engine::Error;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::column::Column;
use spillproof_engine::column::Placement;
use spillproof_engine::stream::{Transform, ntt};
use spillproof_fake_driver::{Code, FakeDriver, Order};
use spillproof_gpu::accelerator::{GpuAccelerator, Offload};
use spillproof_gpu::trace::SpanKind;
use spillproof_plonk::stages::{
    Builder, CosetDomain, Program, QuotientPlan, QuotientShape, Source, Value, quotient, quotient_in_tiles,
};

use crate::sessions::{TestJob, accelerator, all_is_given_back, column, name_the_image, session};
use crate::support::with_kernels;

/// Random columns, behind X and l_0, and a random numerator over all of them.
struct Case {
    columns: Vec<Vec<Fr>>,
    program: Program<Fr>,
    domain: CosetDomain<Fr>,
    rotations: i32,
}

fn random_program(rng: &mut ChaCha8Rng, columns: usize, length: usize, rotations: i32) -> Program<Fr> {
    let mut builder = Builder::new();
    // Every column is read, at the point itself and far away.
    let mut made: Vec<Value> = Vec::new();
    for column in 0..columns {
        made.push(builder.query(column, 0));
        made.push(builder.query(column, rng.gen_range(-rotations..=rotations)));
    }
    for _ in 0..length {
        let (a, b) = (
            made[rng.gen_range(0..made.len())],
            made[rng.gen_range(0..made.len())],
        );
        let constant = Fr::rand(rng);
        made.push(match rng.gen_range(0..10) {
            0 => builder.add(a, b),
            1 => builder.sub(a, b),
            2 => builder.neg(a),
            3 => builder.double(a),
            4 => builder.square(a),
            5 => builder.scale(a, constant),
            6 => {
                let constant = builder.constant(constant);
                builder.sub(constant, a)
            }
            7 => {
                let scaled = builder.scale(a, constant);
                builder.add(scaled, b)
            }
            _ => builder.mul(a, b),
        });
    }
    let output = builder.fold(&made, Fr::rand(rng));
    builder.finish(&[output])
}

fn domain(log_n: u32, log_cosets: u32) -> CosetDomain<Fr> {
    let extended_omega = Fr::get_root_of_unity(1 << (log_n + log_cosets)).unwrap();
    CosetDomain {
        log_n,
        omega: extended_omega.pow([1 << log_cosets]),
        log_cosets,
        extended_omega,
        shift: Fr::GENERATOR,
        pieces: 1 << log_cosets,
    }
}

impl Case {
    fn new(log_n: u32, log_cosets: u32, columns: usize, rotations: i32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(log_n) + columns as u64);
        Self {
            columns: (0..columns)
                .map(|_| (0..1 << log_n).map(|_| Fr::rand(&mut rng)).collect())
                .collect(),
            program: random_program(&mut rng, columns + 2, 12 * columns, rotations),
            domain: domain(log_n, log_cosets),
            rotations,
        }
    }

    /// `tile_rows` 0 means the tile of the engine's plan.
    fn run(&self, session: &Session, tile_rows: u64) -> spillproof_engine::Result<Vec<Vec<Fr>>> {
        let columns: Vec<Column<Fr>> = self
            .columns
            .iter()
            .map(|values| column(session, values))
            .collect();
        let mut sources = vec![Source::Identity, Source::FirstLagrange];
        sources.extend(columns.iter().map(Source::Coefficients));
        let (workspace, held) = (session.workspace(), session.budget().held_bytes());
        let pieces = session.run(|| match tile_rows {
            0 => quotient(workspace, &sources, &self.program, &self.domain),
            rows => quotient_in_tiles(workspace, &sources, &self.program, &self.domain, rows),
        })?;
        let values = pieces.iter().map(Column::to_vec).collect();
        drop(pieces);
        assert_eq!(session.budget().held_bytes(), held);
        values
    }

    fn by_the_processor(&self, memory_bytes: u64, tile_rows: u64) -> Vec<Vec<Fr>> {
        self.run(&session(None, memory_bytes), tile_rows).unwrap()
    }

    fn cosets(&self) -> u64 {
        1 << self.domain.log_cosets
    }
}

/// Runs the case through an accelerator; returns the number of cosets on the device, and the bytes used of
/// the budget.
fn through(
    driver: &FakeDriver,
    case: &Case,
    (vram, memory_bytes, tile_rows): (ByteSize, u64, u64),
    expected: &[Vec<Fr>],
    what: &str,
) -> (u64, String) {
    driver.reset(1, 64 << 20);
    let accelerator = accelerator(vram, Offload::Always);
    let session = session(Some(&accelerator), memory_bytes);
    let found = case
        .run(&session, tile_rows)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(found == expected, "{what}");
    let report = accelerator.report();
    assert_eq!(
        report.quotients() + report.by_the_processor(),
        case.cosets(),
        "{what}: {report}"
    );
    if let ByteSize::Bytes(vram_bytes) = vram {
        assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
    }
    all_is_given_back(session, accelerator, driver, what);
    (report.quotients(), report.to_string())
}

#[test]
fn quotients_are_the_processors_in_every_budget() {
    const TEST: &str = "quotients_are_the_processors_in_every_budget";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.guard(true);
        for (log_n, log_cosets, columns, rotations) in [
            (0, 1, 1, 0),
            (2, 1, 2, 3),
            (6, 2, 3, 9),
            (9, 1, 4, 2),
            (10, 2, 2, 12),
            (12, 1, 3, 1),
        ] {
            let case = Case::new(log_n, log_cosets, columns, rotations);
            let expected = case.by_the_processor(8 << 20, 0);
            for (memory_bytes, tile_rows) in [(3 << 20, 1), (8 << 20, 0), (8 << 20, 3)] {
                let through = |vram, about: &str| {
                    let budgets = (vram, memory_bytes, tile_rows);
                    let what = format!("2^{log_n}, rotations to {}, {budgets:?}, {about}", case.rotations);
                    through(driver, &case, budgets, &expected, &what)
                };
                // Too little memory: the processor does it, and the report has the reason.
                let (done, said) = through(ByteSize::Bytes(1 << 10), "too little");
                assert_eq!(done, 0, "{said}");
                assert!(said.contains("bytes of device memory"), "{said}");
                let smallest = smallest_bytes(&said);
                let (done, said) = through(ByteSize::Bytes(smallest - 1), "a byte too little");
                assert_eq!(done, 0, "{said}");
                let budgets = [smallest, smallest * 5 / 4, smallest * 2, smallest * 7].map(ByteSize::Bytes);
                for (at, vram) in budgets.into_iter().chain([ByteSize::Auto]).enumerate() {
                    driver.order([Order::Late, Order::Random(at as u64), Order::Eager][at % 3]);
                    let (done, said) = through(vram, "enough");
                    assert_eq!(done, case.cosets(), "{vram:?}: {said}");
                }
            }
        }
    });
}

/// The bytes that a reason says a job needs.
fn smallest_bytes(said: &str) -> u64 {
    let (_, number) = said.split_once("it needs ").unwrap();
    number.split_once(' ').unwrap().0.parse().unwrap()
}

/// Rows of more than 2^10 elements take two passes.
#[test]
fn long_rows_take_two_passes() {
    with_kernels(module_path!(), "long_rows_take_two_passes", |driver, image| {
        let _file = name_the_image(image);
        let case = Case::new(17, 0, 1, 1);
        let memory_bytes = 16 << 20;
        let session = session(None, memory_bytes);
        let inputs = column(&session, &case.columns[0]);
        let sources = [
            Source::Identity,
            Source::FirstLagrange,
            Source::Coefficients(&inputs),
        ];
        let shape = QuotientShape::new(&sources, &case.program, &case.domain);
        let plan = session.run(|| QuotientPlan::new(&shape, session.budget().available_bytes()));
        assert!(plan.unwrap().row_len() > 1 << 10);
        drop((inputs, session));
        let expected = case.by_the_processor(memory_bytes, 0);
        let little = (ByteSize::Bytes(1 << 10), memory_bytes, 0);
        let (_, said) = through(driver, &case, little, &expected, "too little");
        for vram_bytes in [smallest_bytes(&said), 8 << 20] {
            let budgets = (ByteSize::Bytes(vram_bytes), memory_bytes, 0);
            let (done, said) = through(driver, &case, budgets, &expected, "2^17");
            assert_eq!(done, 1, "{said}");
        }
    });
}

/// Bytes that crossed the bus to the device, and back.
fn crossed(accelerator: &GpuAccelerator) -> [u64; 2] {
    let trace = accelerator.gpus()[0].trace();
    [SpanKind::ToDevicePinned, SpanKind::FromDevicePinned].map(|kind| trace.total(kind).bytes)
}

/// Where there is no room for all rows of the columns, the rows of each cross once a coset, those around the ends
/// twice; one column comes back.
#[test]
fn every_row_crosses_once() {
    with_kernels(module_path!(), "every_row_crosses_once", |driver, image| {
        let _file = name_the_image(image);
        let case = Case::new(11, 1, 3, 2);
        let expected = case.by_the_processor(8 << 20, 0);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(192 << 10), Offload::Always);
        let session = session(Some(&accelerator), 8 << 20);
        assert!(case.run(&session, 0).unwrap() == expected);
        let [up, back] = crossed(&accelerator);
        assert_eq!(back, 2 * (32 << 11));
        let halos: u64 = (2..5)
            .filter_map(|column| case.program.rotations(column))
            .map(|(first, last)| (last - first) as u64)
            .sum();
        let rows = up - 2 * 3 * (32 << 11);
        assert_eq!(rows % (2 * halos.max(1)), 0);
        // In tiles, no halo crosses with each of them.
        let longest_row = 32 << 9;
        assert!(rows <= 2 * halos * longest_row, "{rows}");
    });
}

/// Coefficients cross once for all cosets where they stay. Where all rows have room, but not all columns beside them, those
/// that do not stay cross once a coset. Hard synchronisations are as many.
#[test]
fn coefficients_cross_once() {
    with_kernels(module_path!(), "coefficients_cross_once", |driver, image| {
        let _file = name_the_image(image);
        driver.guard(true);
        let case = Case::new(10, 2, 3, 2);
        let column_bytes = 32u64 << 10;
        let expected = case.by_the_processor(8 << 20, 0);
        let run = |vram_bytes: u64, order: Order| {
            let what = format!("{vram_bytes} {order:?}");
            driver.reset(1, 64 << 20);
            driver.order(order);
            let accelerator = accelerator(ByteSize::Bytes(vram_bytes), Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            assert!(case.run(&session, 0).unwrap() == expected, "{what}");
            let [up, back] = crossed(&accelerator);
            assert_eq!(back, 4 * column_bytes, "{what}");
            assert!(driver.peak_bytes(0) <= vram_bytes, "{what}");
            // The columns are gone, and so are their copies.
            assert_eq!(driver.live().device_memory, 0, "{what}");
            let wiped = driver.calls(Some("cuMemsetD8Async"));
            let synchronisations = accelerator.gpus()[0].trace().hard_syncs();
            assert_eq!(accelerator.report().quotients(), 4, "{what}");
            all_is_given_back(session, accelerator, driver, &what);
            (up, wiped, synchronisations)
        };
        let mut synchronisations = Vec::new();
        for order in [Order::Late, Order::Random(3), Order::Eager] {
            let (up, wiped, hard) = run(640 << 10, order);
            assert_eq!((up, wiped), (3 * column_bytes, 3), "{order:?}");
            synchronisations.push(hard);
        }
        // From no room for all rows, where rows around the ends cross twice, to room for all.
        let mut ups = Vec::new();
        for vram_bytes in (168..=336).step_by(8).map(|kib| kib << 10) {
            let (up, wiped, hard) = run(vram_bytes, Order::Late);
            if up % column_bytes == 0 {
                assert_eq!(up, (12 - 3 * wiped) * column_bytes, "{vram_bytes}");
                synchronisations.push(hard);
            }
            ups.push(up);
        }
        assert!(
            ups[0] > 12 * column_bytes && ups.contains(&(12 * column_bytes)),
            "{ups:?}"
        );
        assert_eq!(ups.last(), Some(&(3 * column_bytes)), "{ups:?}");
        assert!(
            synchronisations.iter().all(|count| *count == synchronisations[0]),
            "{synchronisations:?}"
        );
    });
}

/// Scalars of sums stay for the transforms that follow; a shorter column does not stand for one with zeros behind it.
#[test]
fn scalars_of_sums_stay_for_transforms() {
    const TEST: &str = "scalars_of_sums_stay_for_transforms";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.guard(true);
        let n = 1usize << 10;
        for (sums_first, crossings) in [(false, 5), (true, 1)] {
            driver.reset(1, 64 << 20);
            let accelerator = accelerator(ByteSize::Auto, Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            let job = TestJob::new(&session, n);
            if sums_first {
                job.check_sums(&session, TEST);
            }
            let [before, _] = crossed(&accelerator);
            job.check_transforms(&session, TEST);
            assert_eq!(crossed(&accelerator)[0] - before, crossings * 32 * n as u64);
            drop(job);
            all_is_given_back(session, accelerator, driver, TEST);
        }
    });
}

/// What a transform gives stays on the device: the quotient reads nothing. Other columns in its place are read.
#[test]
fn outputs_of_transforms_stay_for_the_quotient() {
    const TEST: &str = "outputs_of_transforms_stay_for_the_quotient";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.guard(true);
        let case = Case::new(10, 1, 2, 2);
        let column_bytes = 32u64 << 10;
        let ark = Radix2EvaluationDomain::<Fr>::new(1 << 10).unwrap();
        let expected = case.by_the_processor(8 << 20, 0);
        for order in [Order::Late, Order::Random(5)] {
            driver.reset(1, 64 << 20);
            driver.order(order);
            let accelerator = accelerator(ByteSize::Auto, Offload::Always);
            let session = session(Some(&accelerator), 8 << 20);
            let inverse = Transform::inverse(10, ark.group_gen).unwrap();
            // The second time the columns are other ones, under the names of the first.
            for round in 1..=2 {
                let transformed: Vec<Column<Fr>> = case
                    .columns
                    .iter()
                    .map(|coefficients| {
                        let values = column(&session, &ark.fft(coefficients));
                        session.run(|| ntt(&values, &inverse, Placement::Auto)).unwrap()
                    })
                    .collect();
                assert_eq!(crossed(&accelerator)[0], (2 * round) * column_bytes);
                let mut sources = vec![Source::Identity, Source::FirstLagrange];
                sources.extend(transformed.iter().map(Source::Coefficients));
                let workspace = session.workspace();
                let pieces = session.run(|| quotient(workspace, &sources, &case.program, &case.domain));
                let pieces: Vec<Vec<Fr>> = pieces
                    .unwrap()
                    .iter()
                    .map(|piece| piece.to_vec().unwrap())
                    .collect();
                assert!(pieces == expected);
                assert_eq!(
                    crossed(&accelerator)[0],
                    (2 * round) * column_bytes,
                    "nothing more"
                );
            }
            let report = accelerator.report();
            assert_eq!((report.transforms(), report.quotients()), (4, 4), "{report}");
            all_is_given_back(session, accelerator, driver, TEST);
        }
    });
}

/// A constraint that holds on the domain: its quotient times the vanishing polynomial is the numerator, by
/// arkworks.
#[test]
fn a_quotient_times_the_vanishing_polynomial_is_the_numerator() {
    const TEST: &str = "a_quotient_times_the_vanishing_polynomial_is_the_numerator";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let (log_n, n) = (8, 1usize << 8);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let ark = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
        // a(x) b(x) = c(omega x).
        let random = |rng: &mut ChaCha8Rng| -> Vec<Fr> { (0..n).map(|_| Fr::rand(rng)).collect() };
        let (a, b) = (random(&mut rng), random(&mut rng));
        let mut c: Vec<Fr> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
        c.rotate_right(1);
        let mut builder = Builder::new();
        let (a_at, b_at, c_at) = (builder.query(2, 0), builder.query(3, 0), builder.query(4, 1));
        let product = builder.mul(a_at, b_at);
        let output = builder.sub(product, c_at);
        let coefficients = [a, b, c].map(|values| ark.ifft(&values));
        let case = Case {
            program: builder.finish(&[output]),
            columns: coefficients.to_vec(),
            domain: domain(log_n, 1),
            rotations: 1,
        };
        let polynomial = |coefficients: Vec<Fr>| DensePolynomial::from_coefficients_vec(coefficients);
        let [a, b, mut c] = coefficients;
        let mut power = Fr::ONE;
        for value in &mut c {
            *value *= power;
            power *= ark.group_gen;
        }
        let numerator = &(&polynomial(a) * &polynomial(b)) - &polynomial(c);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(256 << 10), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        let pieces = case.run(&session, 0).unwrap();
        assert_eq!(accelerator.report().quotients(), 2);
        let found = polynomial(pieces.concat());
        assert_eq!(found.mul_by_vanishing_poly(ark), numerator);
    });
}

/// A device that fails or is lost at the `nth` call of any kind.
fn failing(driver: &FakeDriver, code: Code, lost: bool) {
    let case = Case::new(9, 1, 2, 2);
    let expected = case.by_the_processor(4 << 20, 1);
    let run = |failing: Option<u64>, what: &str| {
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Bytes(128 << 10), Offload::Always);
        let session = session(Some(&accelerator), 4 << 20);
        if let Some(nth) = failing {
            driver.fail(None, nth, code, lost);
        }
        let before = driver.calls(None);
        let found = case.run(&session, 1).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found == expected, "{what}");
        let (calls, report) = (driver.calls(None) - before, accelerator.report());
        assert_eq!(
            report.quotients() + report.by_the_processor(),
            2,
            "{what}: {report}"
        );
        drop(session);
        drop(Arc::into_inner(accelerator).unwrap());
        if !lost {
            driver.assert_clean(what);
        }
        (calls, report)
    };
    let (calls, report) = run(None, "counting");
    assert!(calls > 100 && report.quotients() == 2, "{calls} calls: {report}");
    let mut told = 0;
    for nth in (1..=calls).step_by((calls / 40).max(1) as usize) {
        let what = format!("call {nth} of {calls}, {code:?}, lost: {lost}");
        let (_, report) = run(Some(nth), &what);
        if report.by_the_processor() > 0 {
            assert!(report.to_string().contains("driver "), "{what}: {report}");
        }
        // A coset of coefficients that fails is offered again, in rows.
        told += u64::from(report.to_string().contains("driver "));
    }
    assert!(told > 15, "{told}");
}

#[test]
fn a_failure_half_way_changes_nothing() {
    const TEST: &str = "a_failure_half_way_changes_nothing";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        for code in [Code::OutOfMemory, Code::InvalidValue] {
            failing(driver, code, false);
        }
    });
}

#[test]
fn a_lost_device_is_left_alone() {
    with_kernels(module_path!(), "a_lost_device_is_left_alone", |driver, image| {
        let _file = name_the_image(image);
        failing(driver, Code::LaunchFailed, true);
    });
}

/// Where the memory of the host is just enough for the processor, the device has slots, too, and uses no more
/// than is leased.
#[test]
fn little_of_the_hosts_memory_is_enough() {
    const TEST: &str = "little_of_the_hosts_memory_is_enough";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        let case = Case::new(11, 1, 3, 2);
        let expected = case.by_the_processor(8 << 20, 0);
        let Err(Error::BudgetTooSmall { needed_bytes, .. }) = case.run(&session(None, 200 << 10), 0) else {
            panic!("2^11 within 200 KiB");
        };
        for memory_bytes in [needed_bytes, needed_bytes + (100 << 10), needed_bytes * 2] {
            let what = format!("{memory_bytes} bytes of the host");
            let budgets = (ByteSize::Bytes(1 << 20), memory_bytes, 0);
            let (done, said) = through(driver, &case, budgets, &expected, &what);
            assert_eq!(done, 2, "{what}: {said}");
        }
    });
}

#[test]
fn small_quotients_stay_with_the_processor_and_larger_ones_are_measured() {
    const TEST: &str = "small_quotients_stay_with_the_processor_and_larger_ones_are_measured";
    with_kernels(module_path!(), TEST, |driver, image| {
        let _file = name_the_image(image);
        driver.reset(1, 64 << 20);
        let accelerator = accelerator(ByteSize::Auto, Offload::Measured);
        let session = session(Some(&accelerator), 32 << 20);
        let small = Case::new(9, 1, 2, 2);
        assert!(small.run(&session, 0).unwrap() == small.by_the_processor(32 << 20, 0));
        assert!(
            accelerator
                .report()
                .to_string()
                .contains("too small for a device"),
            "{}",
            accelerator.report()
        );
        assert_eq!(driver.calls(Some("cuLaunchKernel")), 0);
        let larger = Case::new(12, 1, 2, 2);
        let expected = larger.by_the_processor(32 << 20, 0);
        assert!(larger.run(&session, 0).unwrap() == expected);
        let launches = driver.calls(Some("cuLaunchKernel"));
        assert!(launches > 0);
        // No processor is slower than a fake device. Nothing is measured twice.
        assert!(larger.run(&session, 0).unwrap() == expected);
        assert_eq!(driver.calls(Some("cuLaunchKernel")), launches);
        let report = accelerator.report();
        assert!(report.to_string().contains("the processor is faster"), "{report}");
        assert_eq!(
            (report.quotients(), report.by_the_processor()),
            (0, 6),
            "{report}"
        );
    });
}
