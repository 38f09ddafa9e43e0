//! Against arkworks, over lengths around those of lanes.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_kernels::backend::Backend;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::vector::*;

fn against_arkworks<F: KernelField>() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let edges = [F::ZERO, F::ONE, -F::ONE, -F::ONE.double()];
    for len in [0usize, 1, 7, 8, 9, 64, 133] {
        let mut random = |shift: usize| -> Vec<F> {
            (0..len)
                .map(|i| *edges.get((i + shift) % 11).unwrap_or(&F::rand(&mut rng)))
                .collect()
        };
        let (a, b) = (random(0), random(3));
        let mut to = vec![F::ONE; len];
        let mut check = |name: &str, run: &dyn Fn(&mut [F]), wanted: &dyn Fn(F, F) -> F| {
            run(&mut to);
            for i in 0..len {
                assert_eq!(to[i], wanted(a[i], b[i]), "{name} of {len}, element {i}");
            }
        };
        check("sum", &|to| sum(to, &a, &b), &|a, b| a + b);
        check("difference", &|to| difference(to, &a, &b), &|a, b| a - b);
        check("product", &|to| product(to, &a, &b), &|a, b| a * b);
        check("square", &|to| squared(to, &a), &|a, _| a * a);
        check("double", &|to| doubled(to, &a), &|a, _| a + a);
        check("negated", &|to| negated(to, &a), &|a, _| -a);
        for factor in [F::ZERO, F::ONE, -F::ONE, F::from(12345u64).inverse().unwrap()] {
            check("scaled", &|to| scaled(to, &a, &factor), &|a, _| a * factor);
            check("shifted", &|to| shifted(to, &a, &factor), &|a, _| a + factor);
            check("reflected", &|to| reflected(to, &a, &factor), &|a, _| factor - a);
            let run = |to: &mut [F]| scaled_sum(to, &a, &factor, &b);
            check("scaled sum", &run, &|a, b| a * factor + b);
        }
    }
}

/// An operation, and what it means.
type Case<'a, F> = (Operation<F>, &'a dyn Fn(F, F) -> F);

/// Every operation, over inputs and over what others left in registers, on every backend that the machine
/// has.
fn programs_against_arkworks<F: KernelField>() {
    use Operand::{Input, Register};
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let edges = [F::ZERO, F::ONE, -F::ONE, -F::ONE.double(), F::ONE.double()];
    let column = |shift: usize, rng: &mut ChaCha8Rng| -> Vec<F> {
        (0..101)
            .map(|i| *edges.get((i / (1 + shift)) % 7).unwrap_or(&F::rand(rng)))
            .collect()
    };
    let (x, y) = (column(0, &mut rng), column(4, &mut rng));
    let inputs = [&x[..], &y[..]];
    let backends = [Backend::Portable, Backend::Words, Backend::Avx2, Backend::Avx512];
    for backend in backends.into_iter().filter(|backend| backend.is_supported()) {
        for constant in [F::ZERO, F::ONE, -F::ONE, F::rand(&mut rng)] {
            for (a, b) in [
                (Input(0), Input(1)),
                (Register(0), Register(1)),
                (Input(1), Register(0)),
                (Register(1), Input(0)),
            ] {
                let operations: [Case<F>; 12] = [
                    (Operation::Sum(a, b), &|a, b| a + b),
                    (Operation::Difference(a, b), &|a, b| a - b),
                    (Operation::Product(a, b), &|a, b| a * b),
                    (Operation::ScaledSum(a, constant, b), &|a, b| a * constant + b),
                    (Operation::Square(a), &|a, _| a * a),
                    (Operation::Double(a), &|a, _| a + a),
                    (Operation::Negated(a), &|a, _| -a),
                    (Operation::Scaled(a, constant), &|a, _| a * constant),
                    (Operation::Shifted(a, constant), &|a, _| a + constant),
                    (Operation::Reflected(a, constant), &|a, _| constant - a),
                    (Operation::Copy(a), &|a, _| a),
                    (Operation::Constant(constant), &|_, _| constant),
                ];
                for (operation, wanted) in operations {
                    // Registers hold sums and differences, which are as large as values become; then a
                    // chain of the same.
                    let step = |operation, to| Instruction { operation, to };
                    let program = [
                        step(Operation::Sum(Input(0), Input(1)), Target::Register(0)),
                        step(Operation::Difference(Input(0), Input(1)), Target::Register(1)),
                        step(operation, Target::Register(2)),
                        step(Operation::Sum(Register(2), Register(0)), Target::Output(0)),
                    ];
                    let mut out = vec![F::ONE; x.len()];
                    let mut registers = vec![F::ZERO; 3 * 2 * SCALARS_PER_EIGHT];
                    let evaluation = Evaluation {
                        instructions: &program,
                        inputs: &inputs,
                        outputs: &mut [&mut out],
                        registers: &mut registers,
                        register_count: 3,
                    };
                    evaluation.run(backend);
                    for i in 0..x.len() {
                        let value = |operand| match operand {
                            Input(0) => x[i],
                            Input(_) => y[i],
                            Register(0) => x[i] + y[i],
                            Register(_) => x[i] - y[i],
                        };
                        let wanted = wanted(value(a), value(b)) + x[i] + y[i];
                        assert_eq!(out[i], wanted, "{backend:?}, row {i}: {operation:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn programs_of_every_operation_on_every_backend() {
    programs_against_arkworks::<ark_bn254::Fr>();
    programs_against_arkworks::<ark_pallas::Fr>();
}

#[test]
fn equal_to_arkworks_on_edges_and_random_values() {
    against_arkworks::<ark_bn254::Fr>();
    against_arkworks::<ark_bls12_381::Fr>();
    against_arkworks::<ark_pallas::Fr>();
    against_arkworks::<ark_vesta::Fr>();
}
