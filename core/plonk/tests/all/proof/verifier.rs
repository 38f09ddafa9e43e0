//! A verifier that is written from the protocol. It knows the secret of the SRS, so that it needs no pairing.

use ark_bn254::{Fr, G1Affine, G1Projective};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField, Zero};
use spillproof_kernels::curve::Point;
use spillproof_plonk::keygen::KeyCommitments;
use spillproof_plonk::{ColumnId, Expression, Kind};

use super::{BLINDING_FACTORS, CIRCUITS, Config, Event, KEPT, Setup, UNUSABLE, instances, lagrange};

/// A commitment, and its value at a point.
#[derive(Clone, Copy)]
struct Opened {
    commitment: G1Projective,
    point: Fr,
    value: Fr,
}

/// Takes what was said in its order.
struct Heard<'e>(&'e [Event]);

impl Heard<'_> {
    fn next(&mut self) -> Event {
        let (first, rest) = self.0.split_first().expect("more is said");
        self.0 = rest;
        first.clone()
    }

    fn point(&mut self) -> G1Projective {
        match self.next() {
            Event::Point(point) => point.into_group(),
            other => panic!("{other:?} instead of a point"),
        }
    }

    fn points(&mut self, count: usize) -> Vec<G1Projective> {
        (0..count).map(|_| self.point()).collect()
    }

    fn scalar(&mut self) -> Fr {
        match self.next() {
            Event::Scalar(scalar) => scalar,
            other => panic!("{other:?} instead of a scalar"),
        }
    }

    fn challenge(&mut self) -> Fr {
        match self.next() {
            Event::Challenge(challenge) => challenge,
            other => panic!("{other:?} instead of a challenge"),
        }
    }
}

fn half(value: Fr) -> Fr {
    Fr::from_le_bytes_mod_order(&value.into_bigint().to_bytes_le()[..16])
}

fn evaluate(of: &Expression, cell: &dyn Fn(ColumnId, i32) -> Fr, challenge: Fr) -> Fr {
    let part = |of: &Expression| evaluate(of, cell, challenge);
    match of {
        Expression::Constant(value) => *value,
        Expression::Query(column, rotation) => cell(*column, *rotation),
        Expression::Challenge(_) => challenge,
        Expression::Negated(a) => -part(a),
        Expression::Sum(a, b) => part(a) + part(b),
        Expression::Product(a, b) => part(a) * part(b),
        Expression::Scaled(a, factor) => part(a) * factor,
    }
}

/// What a circuit's part of a proof says.
struct OfProof {
    instance: Vec<G1Projective>,
    advice: Vec<G1Projective>,
    permuted: Vec<G1Projective>,
    products: Vec<G1Projective>,
    lookup: G1Projective,
    trash: G1Projective,
}

/// Whether a proof is right.
pub fn verify(setup: &Setup, key: &KeyCommitments, events: &[Event]) {
    let (cs, domain) = (&setup.cs, &setup.domain);
    let n = domain.rows();
    let mut heard = Heard(events);
    let instance: Vec<Vec<G1Projective>> = (0..CIRCUITS)
        .map(|circuit| {
            let Event::CommonPoint(committed) = heard.next() else {
                panic!("no commitment to the first instance column");
            };
            let plain = &instances(setup.rows(), circuit)[1];
            assert_eq!(heard.next(), Event::CommonScalar(Fr::from(plain.len() as u64)));
            for value in plain {
                assert_eq!(heard.next(), Event::CommonScalar(*value));
            }
            vec![committed.into_group()]
        })
        .collect();
    let first: Vec<_> = (0..CIRCUITS).map(|_| heard.points(3)).collect();
    let challenge = heard.challenge();
    let second: Vec<_> = (0..CIRCUITS).map(|_| heard.points(1)).collect();
    let theta = heard.challenge();
    let permuted: Vec<_> = (0..CIRCUITS).map(|_| heard.points(2)).collect();
    let (beta, gamma) = (heard.challenge(), heard.challenge());
    let sets = cs.permutation_products();
    assert_eq!(sets, 2);
    let products: Vec<_> = (0..CIRCUITS).map(|_| heard.points(sets)).collect();
    let lookups: Vec<_> = (0..CIRCUITS).map(|_| heard.point()).collect();
    let trash_challenge = heard.challenge();
    let trash: Vec<_> = (0..CIRCUITS).map(|_| heard.point()).collect();
    let random = heard.point();
    let y = heard.challenge();
    let pieces = heard.points(4);
    let x = heard.challenge();
    let proofs: Vec<OfProof> = (0..CIRCUITS)
        .map(|circuit| OfProof {
            instance: instance[circuit].clone(),
            advice: [first[circuit].clone(), second[circuit].clone()].concat(),
            permuted: permuted[circuit].clone(),
            products: products[circuit].clone(),
            lookup: lookups[circuit],
            trash: trash[circuit],
        })
        .collect();

    // Evaluations.
    let at = |rotation: i32| domain.rotate(x, rotation);
    let last_rotation = -(UNUSABLE as i32);
    let mut scalars = |count: usize| -> Vec<Fr> { (0..count).map(|_| heard.scalar()).collect() };
    let instance_values: Vec<_> = (0..CIRCUITS).map(|_| scalars(1)).collect();
    let advice_values: Vec<_> = (0..CIRCUITS).map(|_| scalars(5)).collect();
    let fixed_values = scalars(3);
    let random_value = scalars(1)[0];
    let sigma_values = scalars(4);
    // z, z(wx), and z(w^last x) of all but the last.
    let product_values: Vec<_> = (0..CIRCUITS).map(|_| scalars(2 * sets + sets - 1)).collect();
    let lookup_values: Vec<_> = (0..CIRCUITS).map(|_| scalars(5)).collect();
    let trash_values: Vec<_> = (0..CIRCUITS).map(|_| scalars(1)[0]).collect();

    // The identity.
    let row = |row: u64| lagrange(domain, row, x);
    let (l_first, l_last) = (row(0), row(n - UNUSABLE as u64));
    let active = Fr::ONE - l_last - (n - BLINDING_FACTORS as u64..n).map(row).sum::<Fr>();
    let mut numerator = Fr::ZERO;
    for circuit in 0..CIRCUITS {
        let plain: Fr = (0..)
            .zip(&instances(setup.rows(), circuit)[1])
            .map(|(at, value)| row(at) * value)
            .sum();
        let cell = |column: ColumnId, rotation: i32| match column.kind {
            Kind::Fixed => fixed_values[column.index],
            Kind::Instance if column.index == 0 => instance_values[circuit][0],
            Kind::Instance => plain,
            Kind::Advice => {
                let asked = (column.index, rotation);
                let place = cs
                    .advice_queries
                    .iter()
                    .position(|query| *query == asked)
                    .expect("opened");
                advice_values[circuit][place]
            }
        };
        let value = |of: &Expression| evaluate(of, &cell, challenge);
        let mut constraint = |value: Fr| numerator = numerator * y + value;
        cs.gates.iter().for_each(|gate| constraint(value(gate)));

        let of = &product_values[circuit];
        let (z0, z0_next, z0_last, z1, z1_next) = (of[0], of[1], of[2], of[3], of[4]);
        constraint(l_first * (Fr::ONE - z0));
        constraint(l_last * (z1 * z1 - z1));
        constraint(l_first * (z1 - z0_last));
        let mut delta = Fr::ONE;
        for (set, (z, z_next)) in [(z0, z0_next), (z1, z1_next)].into_iter().enumerate() {
            let (mut left, mut right) = (z_next, z);
            for at in (0..4).skip(3 * set).take(3) {
                let value = cell(cs.permuted[at], 0);
                left *= value + beta * sigma_values[at] + gamma;
                right *= value + beta * delta * x + gamma;
                delta *= domain.delta;
            }
            constraint(active * (left - right));
        }

        let of = &lookup_values[circuit];
        let (z, z_next, a, a_before, s) = (of[0], of[1], of[2], of[3], of[4]);
        let folded = |of: &[Expression], by: Fr| of.iter().fold(Fr::ZERO, |sum, next| sum * by + value(next));
        let (input, table) = (
            folded(&cs.lookups[0].input, theta),
            folded(&cs.lookups[0].table, theta),
        );
        constraint(l_first * (Fr::ONE - z));
        constraint(l_last * (z * z - z));
        constraint(active * (z_next * (a + beta) * (s + gamma) - z * (input + beta) * (table + gamma)));
        constraint(l_first * (a - s));
        constraint(active * (a - s) * (a - a_before));

        let thrown = (Fr::ONE - fixed_values[KEPT]) * trash_values[circuit];
        constraint(folded(&cs.trash[0].constraints, trash_challenge) - thrown);
    }
    let h = numerator * (x.pow([n]) - Fr::ONE).inverse().expect("x is no row");
    let stride = x.pow([n - 1]);
    let h_commitment = (pieces.iter().rev()).fold(G1Projective::zero(), |sum, piece| sum * stride + piece);

    // What is opened, in the order of queries.
    let mut opened: Vec<Opened> = Vec::new();
    let mut open = |commitment, point, value| {
        opened.push(Opened {
            commitment,
            point,
            value,
        });
    };
    for (circuit, proof) in proofs.iter().enumerate() {
        for ((column, rotation), value) in cs.advice_queries.iter().zip(&advice_values[circuit]) {
            open(proof.advice[*column], at(*rotation), *value);
        }
        open(proof.instance[0], x, instance_values[circuit][0]);
        let of = &product_values[circuit];
        open(proof.products[0], x, of[0]);
        open(proof.products[0], at(1), of[1]);
        open(proof.products[1], x, of[3]);
        open(proof.products[1], at(1), of[4]);
        open(proof.products[0], at(last_rotation), of[2]);
        let of = &lookup_values[circuit];
        let [input, table] = [proof.permuted[0], proof.permuted[1]];
        open(proof.lookup, x, of[0]);
        open(input, x, of[2]);
        open(table, x, of[4]);
        open(input, at(-1), of[3]);
        open(proof.lookup, at(1), of[1]);
        open(proof.trash, x, trash_values[circuit]);
    }
    let group = |point: &Point<Config>| point.to_affine::<Config>().into_group();
    key.fixed
        .iter()
        .zip(&fixed_values)
        .for_each(|(point, value)| open(group(point), x, *value));
    key.sigmas
        .iter()
        .zip(&sigma_values)
        .for_each(|(point, value)| open(group(point), x, *value));
    open(h_commitment, x, h);
    open(random, x, random_value);
    verify_opening(setup.secret, &opened, &mut heard);
    assert!(heard.0.is_empty(), "more was said: {:?}", heard.0);
}

/// The book's verifier, for sets in the order of their sizes, ascending powers and halves of them.
fn verify_opening(secret: Fr, opened: &[Opened], heard: &mut Heard<'_>) {
    let (x1, x2) = (heard.challenge(), heard.challenge());
    let mut numbers: Vec<Fr> = Vec::new();
    // Each commitment with its points' numbers and its values there.
    let mut polynomials: Vec<(G1Projective, Vec<(usize, Fr)>)> = Vec::new();
    for query in opened {
        let number = numbers
            .iter()
            .position(|point| *point == query.point)
            .unwrap_or_else(|| {
                numbers.push(query.point);
                numbers.len() - 1
            });
        let at = (number, query.value);
        match polynomials
            .iter_mut()
            .find(|(other, _)| *other == query.commitment)
        {
            Some((_, values)) => values.push(at),
            None => polynomials.push((query.commitment, vec![at])),
        }
    }
    let mut sets: Vec<(Vec<usize>, G1Projective, Vec<Fr>, Fr)> = Vec::new();
    for (commitment, mut values) in polynomials {
        values.sort_by_key(|(number, _)| *number);
        let (points, values): (Vec<usize>, Vec<Fr>) = values.into_iter().unzip();
        let place = sets
            .iter()
            .position(|(other, ..)| *other == points)
            .unwrap_or_else(|| {
                sets.push((
                    points.clone(),
                    G1Projective::zero(),
                    vec![Fr::ZERO; values.len()],
                    Fr::ONE,
                ));
                sets.len() - 1
            });
        let (_, sum, sums, power) = &mut sets[place];
        let factor = half(*power);
        *sum += commitment * factor;
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += factor * value);
        *power *= x1;
    }
    sets.sort_by_key(|(points, ..)| points.len());
    let f = heard.point();
    let x3 = half(heard.challenge());
    let at_x3: Vec<Fr> = sets.iter().map(|_| heard.scalar()).collect();
    let x4 = heard.challenge();
    let mut f_value = Fr::ZERO;
    for (set, ((points, _, values, _), value)) in sets.iter().zip(&at_x3).enumerate() {
        let points: Vec<Fr> = points.iter().map(|number| numbers[*number]).collect();
        // Lagrange's formula.
        let interpolated: Fr = (points.iter().zip(values))
            .map(|(point, value)| {
                let others = points.iter().filter(|other| *other != point);
                others.fold(*value, |product, other| {
                    product * (x3 - other) * (*point - other).inverse().expect("points differ")
                })
            })
            .sum();
        let vanishing: Fr = points.iter().map(|point| x3 - point).product();
        f_value += x2.pow([set as u64]) * (*value - interpolated) * vanishing.inverse().expect("not a point");
    }
    let (mut last, mut last_value, mut power) = (G1Projective::zero(), Fr::ZERO, Fr::ONE);
    let all = sets
        .iter()
        .map(|(_, sum, ..)| *sum)
        .zip(at_x3)
        .chain([(f, f_value)]);
    for (commitment, value) in all {
        last += commitment * half(power);
        last_value += half(power) * value;
        power *= x4;
    }
    let quotient = heard.point();
    let left = quotient * (secret - x3);
    assert_eq!(left, last - G1Affine::generator() * last_value, "the opening");
}
