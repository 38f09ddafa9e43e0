use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::Kernel;
use super::*;

/// A test's loop, run as kernels are.
struct Run<F>(F);

impl<F: FnOnce(Ifma)> Kernel for Run<F> {
    #[inline(always)]
    fn run(self, ifma: Ifma) {
        (self.0)(ifma);
    }
}

fn in_lanes(test: impl FnOnce(Ifma)) {
    match Ifma::detect() {
        Some(ifma) => ifma.run(Run(test)),
        None => println!("SKIPPED: no AVX-512 IFMA"),
    }
}

/// Values at both ends of the field and of its limbs, and random ones: a multiple of eight.
fn values<F: KernelField>(seed: u64) -> Vec<F> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = vec![F::ZERO, F::ONE, -F::ONE, F::ONE.double()];
    // As limbs: 0, 1, 2, p - 1, p - 2, all ones in a limb, one bit above it.
    let limbs = |limbs: [u64; 4]| {
        let mut value = F::ZERO;
        *value.montgomery_limbs_mut() = limbs;
        value
    };
    values.extend([limbs([1, 0, 0, 0]), limbs([2, 0, 0, 0])]);
    values.extend([-limbs([1, 0, 0, 0]), -limbs([2, 0, 0, 0])]);
    for bit in [51, 52, 53, 63, 64, 103, 104, 155, 156, 191, 192, 207, 208, 252] {
        let mut power = [0; 4];
        power[bit / 64] = 1 << (bit % 64);
        values.extend([limbs(power), -limbs(power), limbs(power) - limbs([1, 0, 0, 0])]);
    }
    values.resize_with(80, || F::rand(&mut rng));
    values
}

fn load<F: KernelField>(lanes: Lanes<F>, values: &[F]) -> (Native, Eight) {
    let native = lanes.gather(std::array::from_fn(|lane| &values[lane]));
    (native, lanes.unpack(&native))
}

fn store<F: KernelField>(lanes: Lanes<F>, value: &Eight) -> [F; 8] {
    let mut to = [F::ZERO; 8];
    lanes.scatter(&lanes.pack(value), &mut to);
    to
}

/// The integers in the lanes, as field elements in native form, whatever multiple of p they hold.
fn integers<F: KernelField>(value: &Eight) -> [F; 8] {
    let mut limbs = [[0u64; 8]; LIMBS];
    for (limbs, vector) in limbs.iter_mut().zip(&value.0) {
        // SAFETY: both are 64 bytes without padding.
        *limbs = unsafe { std::mem::transmute::<__m512i, [u64; 8]>(*vector) };
    }
    let two_to_the_52 = F::from(1u64 << 52);
    // Horner over the limbs; then out of Montgomery form as native form would be read.
    let r = F::from(2u64).pow([256]);
    std::array::from_fn(|lane| {
        for limb in &limbs[..4] {
            assert!(limb[lane] <= LIMB_MASK, "not carried");
        }
        let horner = |sum: F, limb: &[u64; 8]| sum * two_to_the_52 + F::from(limb[lane]);
        limbs.iter().rev().fold(F::ZERO, horner) / r
    })
}

fn against_arkworks<F: KernelField>() {
    in_lanes(|ifma| {
        let lanes = Lanes::<F>::new(ifma).unwrap();
        let sixteen = F::from(16u64);
        let values = values::<F>(1);
        let rotated: Vec<Vec<F>> = (0..values.len())
            .map(|by| {
                values
                    .iter()
                    .cycle()
                    .skip(by)
                    .take(values.len())
                    .copied()
                    .collect()
            })
            .collect();
        for others in &rotated {
            for (a, b) in values.chunks(8).zip(others.chunks(8)) {
                let ((a_native, a_lanes), (b_native, b_lanes)) = (load(lanes, a), load(lanes, b));
                assert_eq!(store(lanes, &a_lanes), *a);
                let product = lanes.product(&a_lanes, &b_lanes);
                let square = lanes.square(&a_lanes);
                let difference = lanes.carried(lanes.difference(&a_lanes, &b_lanes, 1));
                let sum = lanes.carried(lanes.sum(&a_lanes, &b_lanes));
                // The largest operands that the bounds allow: 4 * 2p and 4p.
                let large = lanes.carried(lanes.quadruple(&difference));
                let large_product = lanes.product(&large, &lanes.carried(lanes.quadruple(&a_lanes)));
                let negated = lanes.carried(lanes.signed(&a_lanes, 0b1010_0101));
                let results = [product, square, difference, sum, large_product, negated];
                let results = results.map(|result| integers::<F>(&result));
                let native = lanes.product(&lanes.unpack_sixteenfold(&a_native), &b_lanes);
                let native = store(lanes, &lanes.settled(native));
                let twice = lanes.carried(lanes.sum(&a_lanes, &a_lanes));
                let less = lanes.below_two_p(&lanes.carried(lanes.sum(&twice, &b_lanes)));
                let less = integers::<F>(&less);
                assert!((0..8).all(|lane| less[lane] == a[lane].double() + b[lane]));
                assert!((0..8).all(|lane| native[lane] == a[lane] * b[lane]));
                for lane in 0..8 {
                    let (a, b) = (a[lane], b[lane]);
                    let sign = 0b1010_0101u8 >> lane & 1 == 1;
                    let want = [
                        a * b / sixteen,
                        a * a / sixteen,
                        a - b,
                        a + b,
                        (a - b) * a,
                        a.signed(sign),
                    ];
                    assert_eq!(results.map(|result| result[lane]), want);
                    let (zeros, equals) = (lanes.zeros(&a_native), lanes.equals(&a_native, &b_native));
                    assert_eq!(zeros >> lane & 1 == 1, a.is_zero());
                    assert_eq!(equals >> lane & 1 == 1, a == b);
                }
                // From p to 7p, loose: below p in the end.
                for multiple in 1..=6 {
                    let loose = lanes.settled(lanes.shifted(&a_lanes, multiple));
                    assert_eq!(store(lanes, &loose), *a);
                    let loose = lanes.settled(lanes.difference(&a_lanes, &b_lanes, multiple.max(2)));
                    let want: [F; 8] = std::array::from_fn(|lane| a[lane] - b[lane]);
                    assert_eq!(store(lanes, &loose), want);
                }
            }
        }
    });
}

#[test]
fn equal_to_arkworks_on_edges_and_random_values() {
    against_arkworks::<ark_bn254::Fq>();
    against_arkworks::<ark_bn254::Fr>();
    against_arkworks::<ark_pallas::Fq>();
    against_arkworks::<ark_pallas::Fr>();
}

#[test]
fn lanes_are_exchanged_and_replaced() {
    in_lanes(|ifma| {
        let lanes = Lanes::<ark_bn254::Fq>::new(ifma).unwrap();
        let values = values(2);
        let (_, mut value) = load(lanes, &values[72..]);
        for step in [1, 2, 4] {
            let exchanged = store(lanes, &lanes.exchanged(&value, step));
            for (lane, got) in exchanged.iter().enumerate() {
                assert_eq!(*got, values[72 + (lane ^ step as usize)]);
            }
        }
        lanes.replace(&mut value, 3, &values[0]);
        lanes.replace_by_unit(&mut value, 0b1000_0001);
        let got = store(lanes, &value);
        let unit = store(lanes, &lanes.unit())[0];
        assert_eq!(*unit.montgomery_limbs(), [1, 0, 0, 0]);
        let want = [
            unit, values[73], values[74], values[0], values[76], values[77], values[78], unit,
        ];
        assert_eq!(got, want);
    });
}
