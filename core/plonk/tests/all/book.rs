//! The book's opening with a quotient at its end, against arithmetic in memory: the secret of the SRS is known,
//! so that a commitment is a value.

use std::io;

use ark_ec::short_weierstrass::Affine;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, Field, PrimeField, UniformRand};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_engine::column::Placement;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_plonk::{Book, Opening, Powers, ProverCurve, Query, Sets, Transcript, Width};
use spillproof_testing::seeded;

use crate::common::{column_in, columns_on_disk, place};

/// What is said.
struct Said<C: Curve> {
    points: Vec<Affine<C>>,
    scalars: Vec<C::ScalarField>,
}

/// Challenges from a generator.
struct Recorded<C: Curve> {
    said: Said<C>,
    challenges: Vec<C::ScalarField>,
    rng: ChaCha20Rng,
}

impl<C: Curve> Transcript<C> for Recorded<C> {
    fn write_point(&mut self, point: &Point<C>) -> io::Result<()> {
        self.said.points.push(point.to_affine::<C>());
        Ok(())
    }

    fn write_scalar(&mut self, scalar: C::ScalarField) -> io::Result<()> {
        self.said.scalars.push(scalar);
        Ok(())
    }

    fn common_point(&mut self, _: &Point<C>) -> io::Result<()> {
        Ok(())
    }

    fn common_scalar(&mut self, _: C::ScalarField) -> io::Result<()> {
        Ok(())
    }

    fn challenge(&mut self) -> C::ScalarField {
        let challenge = C::ScalarField::rand(&mut self.rng);
        self.challenges.push(challenge);
        challenge
    }
}

fn value<F: PrimeField>(coefficients: &[F], at: F) -> F {
    coefficients
        .iter()
        .rev()
        .fold(F::ZERO, |sum, next| sum * at + next)
}

/// Without remainder.
fn divided<F: PrimeField>(coefficients: &[F], root: F) -> Vec<F> {
    let mut quotient = vec![F::ZERO; coefficients.len()];
    let mut carry = F::ZERO;
    for at in (0..coefficients.len()).rev() {
        quotient[at] = carry;
        carry = carry * root + coefficients[at];
    }
    quotient
}

fn add<F: PrimeField>(sum: &mut Vec<F>, factor: F, other: &[F]) {
    sum.resize(sum.len().max(other.len()), F::ZERO);
    sum.iter_mut()
        .zip(other)
        .for_each(|(sum, other)| *sum += factor * other);
}

fn half<F: PrimeField>(value: F) -> F {
    F::from_le_bytes_mod_order(&value.into_bigint().to_bytes_le()[..16])
}

/// The opening as the book has it, step by step.
fn in_memory<C: Curve>(
    polynomials: &[Vec<C::ScalarField>],
    queries: &[(usize, C::ScalarField)],
    book: Book,
    secret: C::ScalarField,
    mut challenge: impl FnMut() -> C::ScalarField,
) -> Said<C> {
    let width = |value: C::ScalarField| match book.width {
        Width::Whole => value,
        Width::Half => half(value),
    };
    let power = |challenge: C::ScalarField, index: usize, count: usize| {
        challenge.pow([match book.powers {
            Powers::Ascending => index,
            Powers::Descending => count - 1 - index,
        } as u64])
    };
    let (x1, x2) = (challenge(), challenge());
    // Each polynomial with the points that it is opened at, sorted by the order in which points come.
    let mut points: Vec<C::ScalarField> = Vec::new();
    let mut opened: Vec<(usize, Vec<usize>)> = Vec::new();
    for (polynomial, point) in queries {
        let number = points.iter().position(|other| other == point).unwrap_or_else(|| {
            points.push(*point);
            points.len() - 1
        });
        match opened.iter_mut().find(|(other, _)| other == polynomial) {
            Some((_, numbers)) => numbers.push(number),
            None => opened.push((*polynomial, vec![number])),
        }
    }
    let mut sets: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for (polynomial, mut numbers) in opened {
        numbers.sort();
        match sets.iter_mut().find(|(of, _)| *of == numbers) {
            Some((_, members)) => members.push(polynomial),
            None => sets.push((numbers, vec![polynomial])),
        }
    }
    if book.sets == Sets::BySize {
        sets.sort_by_key(|(numbers, _)| numbers.len());
    }
    let mut folded = Vec::new();
    let mut f = Vec::new();
    for (set, (numbers, members)) in sets.iter().enumerate() {
        let mut q = Vec::new();
        for (at, polynomial) in members.iter().enumerate() {
            add(
                &mut q,
                width(power(x1, at, members.len())),
                &polynomials[*polynomial],
            );
        }
        let quotient = numbers
            .iter()
            .fold(q.clone(), |q, number| divided(&q, points[*number]));
        add(&mut f, power(x2, set, sets.len()), &quotient);
        folded.push(q);
    }
    let commitment =
        |coefficients: &[_]| (Affine::<C>::generator() * value(coefficients, secret)).into_affine();
    let x3 = width(challenge());
    let scalars = folded.iter().map(|q| value(q, x3)).collect();
    let x4 = challenge();
    let mut last = Vec::new();
    for (set, q) in folded.iter().enumerate() {
        let exponent = match book.powers {
            Powers::Ascending => set,
            Powers::Descending => folded.len() - 1 - set,
        };
        add(&mut last, width(x4.pow([exponent as u64])), q);
    }
    add(&mut last, width(x4.pow([folded.len() as u64])), &f);
    Said {
        points: vec![commitment(&f), commitment(&divided(&last, x3))],
        scalars,
    }
}

fn openings_are_those_in_memory<C: ProverCurve>() {
    let (seed, mut rng) = seeded();
    let one = C::ScalarField::ONE;
    for (n, polynomials) in [(16usize, 1usize), (64, 5), (256, 40)] {
        let secret = C::ScalarField::rand(&mut rng);
        let powers = std::iter::successors(Some(one), |power| Some(*power * secret));
        let bases: Vec<Point<C>> = powers
            .take(n)
            .map(|power| Point::<C>::from_affine::<C>(&(Affine::<C>::generator() * power).into_affine()))
            .collect();
        let coefficients: Vec<Vec<C::ScalarField>> = (0..polynomials)
            .map(|_| (0..n).map(|_| C::ScalarField::rand(&mut rng)).collect())
            .collect();
        let points: Vec<C::ScalarField> = (0..4).map(|_| C::ScalarField::rand(&mut rng)).collect();
        let mut queries: Vec<(usize, C::ScalarField)> = Vec::new();
        for polynomial in 0..polynomials {
            let at = 1 + rng.next_u32() as usize % 15;
            let at = (0..4).filter(|point| at >> point & 1 == 1);
            queries.extend(at.map(|point| (polynomial, points[point])));
        }
        for index in (1..queries.len()).rev() {
            queries.swap(index, rng.next_u32() as usize % (index + 1));
        }
        let place = place(16 << 20);
        let bases = column_in(&place.workspace, &bases, Placement::Disk);
        let columns = columns_on_disk(&place.workspace, &coefficients);
        // The first one is opened as a sum of two columns.
        let halves = columns_on_disk(&place.workspace, &[coefficients[0].clone()]);
        let two = C::ScalarField::from(2u64).inverse().unwrap();
        let mut sums: Vec<_> = columns.iter().map(|column| vec![(one, column)]).collect();
        sums[0] = vec![(two, &columns[0]), (two, &halves[0])];
        let opening = Opening {
            polynomials: sums,
            queries: queries
                .iter()
                .map(|(polynomial, point)| Query {
                    polynomial: *polynomial,
                    point: *point,
                    evaluation: value(&coefficients[*polynomial], *point),
                    blind: one,
                })
                .collect(),
        };
        for powers in [Powers::Ascending, Powers::Descending] {
            for sets in [Sets::AsNamed, Sets::BySize] {
                for width in [Width::Whole, Width::Half] {
                    let book = Book { powers, sets, width };
                    let mut recorded = Recorded {
                        said: Said {
                            points: Vec::new(),
                            scalars: Vec::new(),
                        },
                        challenges: Vec::new(),
                        rng: ChaCha20Rng::seed_from_u64(seed),
                    };
                    C::open_book(&place.workspace, &bases, book, &opening, &mut recorded).unwrap();
                    let mut challenges = recorded.challenges.into_iter();
                    let challenge = || challenges.next().expect("as many challenges");
                    let expected = in_memory::<C>(&coefficients, &queries, book, secret, challenge);
                    assert!(challenges.next().is_none());
                    let said = (recorded.said.points, recorded.said.scalars);
                    assert_eq!(said, (expected.points, expected.scalars), "seed {seed}, {book:?}");
                }
            }
        }
    }
}

#[test]
fn openings_by_the_book_are_those_in_memory() {
    openings_are_those_in_memory::<ark_bn254::g1::Config>();
    openings_are_those_in_memory::<ark_bls12_381::g1::Config>();
}
