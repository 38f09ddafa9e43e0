//! Polynomials, domains and proving keys in a session against the same in memory, method by method.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;

use halo2_axiom::halo2curves::bn256::{Fr, G1Affine};
use halo2_axiom::halo2curves::ff::Field;
use halo2_axiom::plonk::ProvingKey;
use halo2_axiom::poly::commitment::{Blind, Params, ParamsProver};
use halo2_axiom::poly::{Coeff, EvaluationDomain, LagrangeCoeff, Polynomial, Rotation};
use halo2_axiom::SerdeFormat;

use crate::drop_in::erased::{Any, Listed};
use crate::{drop_in, in_session, stock, turn, Scheme, SESSION_BYTES};

/// One polynomial in three places: a caller's vector, leased memory, and a column.
fn places(domain: &EvaluationDomain<Fr>, seed: u64) -> [Polynomial<Fr, Coeff>; 3] {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let values: Vec<Fr> = (0..domain.get_n()).map(|_| Fr::random(&mut rng)).collect();
    let memory = domain.coeff_from_vec(values.clone());
    let mut leased = domain.empty_coeff();
    leased.copy_from_slice(&values);
    let (parts, mut lagrange) = (domain.coeff_to_extended(&memory), domain.empty_lagrange());
    assert_eq!(parts.len(), domain.extended_len());
    lagrange.copy_from_slice(&values_on_domain(domain, &values));
    let disk = domain.lagrange_to_coeff(lagrange);
    assert!(disk.values() == values, "a transform in a session differs");
    [memory, leased, disk]
}

/// Horner's rule, row by row.
fn values_on_domain(domain: &EvaluationDomain<Fr>, coefficients: &[Fr]) -> Vec<Fr> {
    let mut point = Fr::one();
    let mut values = Vec::new();
    for _ in 0..domain.get_n() {
        values.push(
            coefficients
                .iter()
                .rev()
                .fold(Fr::zero(), |sum, c| sum * point + c),
        );
        point *= domain.get_omega();
    }
    values
}

/// What every public method of these polynomials gives, as vectors.
fn everything(
    domain: &EvaluationDomain<Fr>,
    p: &Polynomial<Fr, Coeff>,
    q: &Polynomial<Fr, Coeff>,
) -> Vec<Vec<Fr>> {
    let mut all = Vec::new();
    let n = p.len();
    let two = Fr::from(2);
    assert_eq!(
        (n, p.num_coeffs(), p.is_empty()),
        (domain.get_n() as usize, n, false)
    );
    assert!(format!("{p:?}").contains(&n.to_string()));
    all.push(p.to_vec());
    all.push(vec![p[0], p[n - 1]]);
    all.push([&p[1..n / 2 + 1], &p[n - 1..], &p[..], p.values()].concat());
    all.push(p.iter().rev_copied());
    all.push((p.clone() + q).into_values());
    all.push((p.clone() - q).into_values());
    all.push((p.clone() * two).into_values());
    all.push((p.clone() * Fr::zero()).into_values());
    all.push((p.clone() * Fr::one()).into_values());
    all.push((p - two).into_values());

    let mut changed = p.clone();
    let other = changed.clone();
    changed[0] += two;
    changed[1..].reverse();
    changed.iter_mut().for_each(|value| *value = value.double());
    changed.values_mut()[n - 1] = two;
    changed.backing_mut().swap(0, n - 1);
    all.push(changed.to_vec());
    all.push(other.into_values());
    let mut short = p.clone().into_backing();
    short.truncate(n / 2);
    all.push(short.to_vec());
    all.push(Polynomial::<Fr, Coeff>::from_backing(short).into_values());
    all.push(p.clone().into_backing().into());
    all.push(p.backing().to_vec());

    all.push(domain.coeff_to_extended(p).into_values());
    let parts = domain.coeff_to_extended_parts(p);
    all.extend(parts.iter().map(|part| part.to_vec()));
    for part in domain
        .batched_coeff_to_extended_parts(&[p.clone(), q.clone()])
        .concat()
    {
        all.push(part.into_values());
    }
    let extended = domain.lagrange_vec_to_extended(parts.clone());
    all.push(extended.to_vec());
    all.push(domain.extended_from_lagrange_vec(parts.clone()).into_values());
    all.push(domain.rotate_extended(&extended, Rotation(-3)).into_values());
    all.push(domain.rotate_extended(&extended, Rotation(2)).into_values());
    all.push(domain.extended_to_coeff(extended.clone()));
    all.push(domain.divide_by_vanishing_poly(extended).into_values());
    for rotation in [0, 1, -1, 3] {
        all.push(parts[0].rotate(Rotation(rotation)).into_values());
    }
    all.push(domain.lagrange_to_coeff(parts[0].clone()).into_values());
    all
}

trait Reversed<'a>: Iterator<Item = &'a Fr> + Sized {
    /// `iter()` promises no more than an iterator.
    fn rev_copied(self) -> Vec<Fr> {
        let mut all: Vec<Fr> = self.copied().collect();
        all.reverse();
        all
    }
}

impl<'a, I: Iterator<Item = &'a Fr>> Reversed<'a> for I {}

#[test]
fn every_method_gives_the_same_wherever_the_values_are() {
    let _turn = turn(false);
    for k in [3, 10] {
        let domain = EvaluationDomain::<Fr>::new(4, k);
        let [p, ..] = places(&domain, 1);
        let [q, ..] = places(&domain, 2);
        let expected = everything(&domain, &p, &q);
        in_session(SESSION_BYTES, || {
            let domain = EvaluationDomain::<Fr>::new(4, k);
            for p in places(&domain, 1) {
                for q in places(&domain, 2) {
                    let found = everything(&domain, &p, &q);
                    assert_eq!(found.len(), expected.len());
                    for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        assert!(found == expected, "k = {k}, step {step}");
                    }
                }
            }
        });
    }
}

#[test]
fn empty_polynomials_take_no_memory() {
    let _turn = turn(false);
    // Each of these columns would be more than the whole budget.
    in_session(8 << 20, || {
        let domain = EvaluationDomain::<Fr>::new(3, 24);
        let empty = domain.empty_lagrange();
        let many = vec![empty.clone(); 1000];
        let one = domain.constant_lagrange(Fr::one());
        let zero = domain.lagrange_to_coeff(empty);
        assert_eq!(
            (many[999].len(), one.len(), zero.len()),
            (1 << 24, 1 << 24, 1 << 24)
        );
        assert!(format!("{:?} {:?}", domain.empty_coeff(), domain.empty_extended()).len() < 200);
        let slice = std::panic::catch_unwind(|| one[0]);
        assert!(slice.is_err(), "half a gibibyte fitted into 8 MiB");
    });
    in_session(SESSION_BYTES, || {
        let domain = EvaluationDomain::<Fr>::new(3, 8);
        let mut one = domain.constant_lagrange(Fr::one());
        let clone = one.clone();
        one[3] = Fr::zero();
        assert!(clone.iter().all(|value| *value == Fr::one()));
        assert_eq!(one.iter().filter(|value| **value == Fr::one()).count(), 255);
        let mut coefficients = vec![Fr::zero(); 256];
        coefficients[0] = Fr::one();
        assert_eq!(domain.lagrange_to_coeff(clone).into_values(), coefficients);
    });
}

#[test]
fn commitments_to_columns_are_stocks() {
    let _turn = turn(false);
    let k = 10;
    let memory = drop_in::prove::params(k);
    let domain = EvaluationDomain::<Fr>::new(1, k);
    let [p, ..] = places(&domain, 3);
    let expected = memory.commit(&p, Blind::default());
    in_session(SESSION_BYTES, || {
        let session = drop_in::prove::params(k);
        // Points in memory or on disk, values anywhere.
        for params in [&memory, &session] {
            for p in places(&domain, 3) {
                assert_eq!(params.commit(&p, Blind::default()), expected);
            }
            let zero: Polynomial<Fr, LagrangeCoeff> = domain.empty_lagrange();
            assert_eq!(
                G1Affine::from(params.commit_lagrange(&zero, Blind::default())),
                G1Affine::default()
            );
        }
    });
}

const FORMATS: [SerdeFormat; 3] = [
    SerdeFormat::Processed,
    SerdeFormat::RawBytes,
    SerdeFormat::RawBytesUnchecked,
];

#[test]
fn proving_keys_are_read_and_written_as_stock_does() {
    let _turn = turn(true);
    type Circuit = drop_in::lookups::Lookups;
    let k = 9;
    let params = drop_in::prove::params(k);
    let pk = drop_in::prove::keys::<Circuit>(&params, k);
    let proof = drop_in::prove::prove(
        &params,
        &pk,
        &[drop_in::prove::circuit::<Circuit>(k)],
        Scheme::Shplonk,
    );
    let theirs = stock::prove::keys::<stock::lookups::Lookups>(&stock::prove::params(k), k);
    assert!(theirs.to_bytes(stock_halo2_axiom::SerdeFormat::RawBytes) == pk.to_bytes(SerdeFormat::RawBytes));
    for format in FORMATS {
        let bytes = pk.to_bytes(format);
        in_session(SESSION_BYTES, || {
            let read =
                |bytes: &[u8]| ProvingKey::<G1Affine>::from_bytes::<Any>(bytes, format, Circuit::WHICH);
            let session = read(&bytes).unwrap();
            assert!(session.to_bytes(format) == bytes, "{format:?}");
            assert!(session.clone().to_bytes(format) == bytes, "{format:?}: a clone");
            let params = drop_in::prove::params(k);
            let circuit = drop_in::prove::circuit::<Circuit>(k);
            let found = drop_in::prove::prove(&params, &session, &[circuit], Scheme::Shplonk);
            assert!(found == proof, "{format:?}: the proof differs");
            let cut = std::panic::catch_unwind(|| read(&bytes[..bytes.len() - 1]).map(drop));
            assert!(cut.is_err(), "stock panics where a key ends too early");
        });
    }
    in_session(SESSION_BYTES, || {
        let format = SerdeFormat::RawBytesUnchecked;
        let mut bytes = pk.to_bytes(format);
        let first_len = pk.get_vk().to_bytes(format).len();
        // What stands there in a key of another format is as good as random.
        bytes[first_len..][..4].copy_from_slice(&0xd7_5e_22_01u32.to_be_bytes());
        let read = || ProvingKey::<G1Affine>::from_bytes::<Any>(&bytes, format, Circuit::WHICH).map(drop);
        let panicked = std::panic::catch_unwind(read).unwrap_err();
        let said = panicked.downcast_ref::<String>().unwrap();
        assert!(said.contains("3613270529 values, which no domain has"), "{said}");
    });
    let mut bad = pk.to_bytes(SerdeFormat::RawBytes);
    let end = bad.len();
    bad[end - 32..].fill(0xff);
    in_session(SESSION_BYTES, || {
        let read = |format| ProvingKey::<G1Affine>::from_bytes::<Any>(&bad, format, Circuit::WHICH);
        let checked = std::panic::catch_unwind(|| read(SerdeFormat::RawBytes).map(drop));
        assert!(checked.is_err(), "no field element");
        assert!(
            read(SerdeFormat::RawBytesUnchecked).is_ok(),
            "nobody asked for a check"
        );
    });
}

#[test]
fn a_key_larger_than_the_budget_is_read_and_written() {
    let _turn = turn(true);
    type Circuit = drop_in::lookups::Lookups;
    let k = 14;
    let pk = drop_in::prove::keys::<Circuit>(&drop_in::prove::params(k), k);
    for format in [SerdeFormat::Processed, SerdeFormat::RawBytes] {
        let bytes = pk.to_bytes(format);
        let budget_bytes = 2 << 20;
        assert!(bytes.len() > 4 * budget_bytes);
        in_session(budget_bytes as u64, || {
            let read = ProvingKey::<G1Affine>::from_bytes::<Any>(&bytes, format, Circuit::WHICH).unwrap();
            assert!(read.to_bytes(format) == bytes, "{format:?}");
        });
    }
}
