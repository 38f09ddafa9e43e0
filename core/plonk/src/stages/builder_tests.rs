//! Programs against the plain meaning of their expressions.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use proptest::prelude::*;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

/// Random operations over `columns` columns, and in the same breath their values in every row.
struct Twin<'a> {
    builder: Builder<Fr>,
    columns: &'a [Vec<Fr>],
    values: Vec<(Value, Vec<Fr>)>,
}

impl Twin<'_> {
    fn step(&mut self, rng: &mut ChaCha20Rng) {
        let rows = self.columns[0].len();
        let some = |rng: &mut ChaCha20Rng, few: bool| match rng.gen_range(0..if few { 4 } else { 8 }) {
            0 => Fr::ZERO,
            1 => Fr::ONE,
            2 => -Fr::ONE,
            3 => Fr::from(2u64),
            _ => Fr::rand(rng),
        };
        let pick = |rng: &mut ChaCha20Rng, values: &[(Value, Vec<Fr>)]| {
            values[rng.gen_range(0..values.len())].clone()
        };
        let kind = if self.values.is_empty() {
            0
        } else {
            rng.gen_range(0..12)
        };
        let builder = &mut self.builder;
        let made = match kind {
            0 | 1 => {
                let (column, rotation) = (rng.gen_range(0..self.columns.len()), rng.gen_range(-7..=7));
                let values = (0..rows as i32)
                    .map(|i| self.columns[column][(i + rotation).rem_euclid(rows as i32) as usize]);
                (builder.query(column, rotation), values.collect())
            }
            2 => {
                let value = some(rng, true);
                (builder.constant(value), vec![value; rows])
            }
            3 => {
                let ((a, left), factor) = (pick(rng, &self.values), some(rng, false));
                (
                    builder.scale(a, factor),
                    left.iter().map(|a| *a * factor).collect(),
                )
            }
            4 => {
                let (a, left) = pick(rng, &self.values);
                (builder.neg(a), left.iter().map(|a| -*a).collect())
            }
            5 => {
                let (a, left) = pick(rng, &self.values);
                (builder.double(a), left.iter().map(|a| a.double()).collect())
            }
            6 => {
                let (a, left) = pick(rng, &self.values);
                (builder.square(a), left.iter().map(|a| a.square()).collect())
            }
            7 => {
                let parts: Vec<_> = (0..rng.gen_range(0..5))
                    .map(|_| pick(rng, &self.values))
                    .collect();
                let factor = some(rng, false);
                let folded = (0..rows).map(|row| {
                    parts
                        .iter()
                        .fold(Fr::ZERO, |sum, part| sum * factor + part.1[row])
                });
                let values: Vec<Value> = parts.iter().map(|part| part.0).collect();
                (builder.fold(&values, factor), folded.collect())
            }
            _ => {
                let ((a, left), (b, right)) = (pick(rng, &self.values), pick(rng, &self.values));
                let pairs = left.iter().zip(&right);
                match kind {
                    8 => (builder.add(a, b), pairs.map(|(a, b)| *a + b).collect()),
                    9 => (builder.sub(a, b), pairs.map(|(a, b)| *a - b).collect()),
                    _ => (builder.mul(a, b), pairs.map(|(a, b)| *a * b).collect()),
                }
            }
        };
        self.values.push(made);
    }
}

fn check(seed: u64, rows: usize, steps: usize, outputs: usize, block: usize) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let columns: Vec<Vec<Fr>> = (0..3)
        .map(|_| (0..rows).map(|_| Fr::rand(&mut rng)).collect())
        .collect();
    let mut twin = Twin {
        builder: Builder::new(),
        columns: &columns,
        values: Vec::new(),
    };
    for _ in 0..steps {
        twin.step(&mut rng);
    }
    let wanted: Vec<(Value, Vec<Fr>)> = (0..outputs)
        .map(|_| twin.values[rng.gen_range(0..steps)].clone())
        .collect();
    let values: Vec<Value> = wanted.iter().map(|value| value.0).collect();
    let program = twin.builder.finish(&values);
    let inputs: Vec<Vec<Fr>> = program
        .queries()
        .iter()
        .map(|&(column, rotation)| {
            let row = |i: i32| columns[column][(i + rotation).rem_euclid(rows as i32) as usize];
            (0..rows as i32).map(row).collect()
        })
        .collect();
    let inputs: Vec<&[Fr]> = inputs.iter().map(Vec::as_slice).collect();
    let mut got = vec![vec![Fr::ZERO; rows]; outputs];
    let mut got_parallel = got.clone();
    let mut slices: Vec<&mut [Fr]> = got.iter_mut().map(Vec::as_mut_slice).collect();
    let part = program.registers() * block;
    program.evaluate(&inputs, &mut slices, &mut vec![Fr::ZERO; part]);
    let mut slices: Vec<&mut [Fr]> = got_parallel.iter_mut().map(Vec::as_mut_slice).collect();
    program.evaluate_parallel(&inputs, &mut slices, &mut vec![Fr::ZERO; 3 * part], part);
    for (index, (_, wanted)) in wanted.iter().enumerate() {
        assert_eq!(&got[index], wanted, "output {index}");
        assert_eq!(&got_parallel[index], wanted, "output {index}, on all threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_program_means_what_its_expressions_mean(
        seed in 0u64..1 << 60, rows in 1usize..90, steps in 1usize..60, outputs in 1usize..4, block in 1usize..40,
    ) {
        check(seed, rows, steps, outputs, block);
    }
}

#[test]
fn equal_expressions_are_one_and_constants_fold() {
    let mut builder = Builder::<Fr>::new();
    let (a, b) = (builder.query(0, 0), builder.query(1, -1));
    let zero = builder.constant(Fr::ZERO);
    let one = builder.constant(Fr::ONE);
    assert_eq!(builder.query(0, 0), a);
    assert_eq!(builder.mul(a, b), builder.mul(b, a));
    assert_eq!(builder.mul(a, one), a);
    assert_eq!(builder.mul(zero, a), zero);
    assert_eq!(builder.add(a, zero), a);
    assert_eq!(builder.sub(b, b), zero);
    assert_eq!(builder.fold(&[], Fr::ONE), zero);
    let negated = builder.neg(b);
    assert_eq!(builder.neg(negated), b);
    assert_eq!(builder.add(a, negated), builder.sub(a, b));
    let unused = builder.query(7, 3);
    builder.square(unused);
    let product = builder.mul(a, b);
    let program = builder.finish(&[product, zero]);
    assert_eq!(program.queries().len(), 2);
    assert_eq!((program.columns(), program.outputs()), (2, 2));
    assert_eq!(program.rotations(1), Some((-1, -1)));
    assert_eq!(program.rotations(7), None);
    assert!(program.registers() <= 1 && program.instructions() == 2);
}

/// The order decides how many values are kept: a long sum over constraints that were all made first keeps a
/// few.
#[test]
fn a_long_sum_of_constraints_keeps_few_registers() {
    let mut builder = Builder::<Fr>::new();
    let constraints: Vec<Value> = (0..500)
        .map(|i| {
            let (a, b, c) = (builder.query(i, 0), builder.query(i + 1, 0), builder.query(i, 1));
            let product = builder.mul(a, b);
            let square = builder.square(c);
            let sum = builder.add(product, square);
            builder.mul(sum, c)
        })
        .collect();
    let sum = builder.fold(&constraints, Fr::from(77u64));
    let program = builder.finish(&[sum]);
    assert!(program.registers() <= 5, "{}", program.registers());
    // Four for each constraint, and one for its place in the sum.
    assert_eq!(program.instructions(), 500 * 5 - 1);
}
