//! Rank-1 constraint systems with witnesses, keys made from known secrets, and the prover of another library
//! over them.

use ark_ec::pairing::Pairing;
use ark_ec::scalar_mul::ScalarMul;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, One, Zero, batch_inversion};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use spillproof_groth16::{PairingCurve, Proof};
use taceo_groth16::{CircomReduction, ConstraintMatrices, Groth16};

/// Rows of (value, signal).
pub type Matrix<F> = Vec<Vec<(F, usize)>>;

/// Constraints, and a witness that satisfies them.
pub struct Circuit<F> {
    pub public: usize,
    pub a: Matrix<F>,
    pub b: Matrix<F>,
    pub c: Matrix<F>,
    pub witness: Vec<F>,
}

/// What the values of a random witness are like.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// Of full size.
    Full,
    /// Zeros and ones.
    Bits,
}

impl<F: Field> Circuit<F> {
    /// Random constraints, each of which gives a new signal: a product of two combinations of signals before
    /// it, or, with bits, a signal that is its own square.
    pub fn random(seed: u64, constraints: usize, public: usize, values: Values) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut witness = vec![F::ONE];
        let free = |rng: &mut ChaCha20Rng| match values {
            Values::Full => F::rand(rng),
            Values::Bits => F::from(rng.next_u32() % 2),
        };
        for _ in 0..public + 1 {
            witness.push(free(&mut rng));
        }
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..constraints {
            let new = witness.len();
            match values {
                Values::Bits => {
                    witness.push(free(&mut rng));
                    a.push(vec![(F::ONE, new)]);
                    b.push(vec![(F::ONE, new)]);
                }
                Values::Full => {
                    let (left, right) = (row(&mut rng, new), row(&mut rng, new));
                    let value = combination(&left, &witness) * combination(&right, &witness);
                    witness.push(value);
                    a.push(left);
                    b.push(right);
                }
            }
            c.push(vec![(F::ONE, new)]);
        }
        Self {
            public,
            a,
            b,
            c,
            witness,
        }
    }

    pub fn log_domain(&self) -> u32 {
        let rows = (self.a.len() + self.public + 1).next_power_of_two();
        rows.ilog2().max(1)
    }

    /// The left matrix with the rows that bind the public signals.
    pub fn bound_a(&self) -> Matrix<F> {
        let bound = (0..=self.public).map(|signal| vec![(F::ONE, signal)]);
        self.a.iter().cloned().chain(bound).collect()
    }
}

/// Up to six terms, some of which have the same signal, and some the value one or minus one.
fn row<F: Field>(rng: &mut ChaCha20Rng, signals: usize) -> Vec<(F, usize)> {
    let terms = rng.next_u32() % 7;
    let term = |rng: &mut ChaCha20Rng| {
        let value = match rng.next_u32() % 4 {
            0 => F::ONE,
            1 => -F::ONE,
            2 => F::from(rng.next_u32() % 5),
            _ => F::rand(rng),
        };
        (value, rng.next_u32() as usize % signals)
    };
    (0..terms).map(|_| term(rng)).collect()
}

fn combination<F: Field>(row: &[(F, usize)], witness: &[F]) -> F {
    row.iter().map(|(value, signal)| witness[*signal] * value).sum()
}

/// A key in memory, as the other library has it.
pub struct Key<E: Pairing> {
    pub key: taceo_groth16::ProvingKey<E>,
    pub domain: [E::ScalarField; 2],
}

/// Lagrange polynomials of the points `first * omega^i` at tau, of which `vanishing` is the vanishing
/// polynomial's value over their derivative's factor: `l_i = vanishing * x_i / (tau - x_i)`.
pub fn lagrange<F: Field>(n: usize, first: F, omega: F, tau: F, vanishing: F) -> Vec<F> {
    let mut points = Vec::with_capacity(n);
    let mut point = first;
    for _ in 0..n {
        points.push(point);
        point *= omega;
    }
    let mut inverses: Vec<F> = points.iter().map(|point| tau - point).collect();
    batch_inversion(&mut inverses);
    points
        .iter()
        .zip(inverses)
        .map(|(point, inverse)| vanishing * point * inverse)
        .collect()
}

/// What makes a key.
#[derive(Clone, Copy)]
pub struct Secrets<F> {
    pub tau: F,
    pub alpha: F,
    pub beta: F,
    pub gamma: F,
    pub delta: F,
}

impl<F: Field> Secrets<F> {
    pub fn random(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut secret = || F::rand(&mut rng);
        let [tau, alpha, beta, gamma, delta] = [secret(), secret(), secret(), secret(), secret()];
        Self {
            tau,
            alpha,
            beta,
            gamma,
            delta,
        }
    }
}

impl<E: Pairing> Key<E> {
    pub fn new(circuit: &Circuit<E::ScalarField>, seed: u64) -> Self {
        Self::of(circuit, Secrets::random(seed))
    }

    pub fn of(circuit: &Circuit<E::ScalarField>, secrets: Secrets<E::ScalarField>) -> Self {
        let Secrets {
            tau,
            alpha,
            beta,
            gamma,
            delta,
        } = secrets;
        let (omega, shift) =
            taceo_groth16::groth16_roots_of_unity::<E::ScalarField>(circuit.log_domain() as usize);
        let n = 1usize << circuit.log_domain();
        let one = E::ScalarField::one();
        let inverse = |value: E::ScalarField| value.inverse().expect("not zero");
        let power = tau.pow([n as u64]);
        let rows = lagrange(n, one, omega, tau, (power - one) * inverse((n as u64).into()));
        // Of 2n points, the odd ones.
        let on_coset = (power.square() - one) * inverse((2 * n as u64).into());
        let h = lagrange(n, shift, omega, tau, on_coset * inverse(delta));
        let columns = |matrix: &Matrix<E::ScalarField>| {
            let mut sums = vec![E::ScalarField::zero(); circuit.witness.len()];
            for (row, lagrange) in matrix.iter().zip(&rows) {
                for (value, signal) in row {
                    sums[*signal] += *lagrange * value;
                }
            }
            sums
        };
        let (a, b, c) = (
            columns(&circuit.bound_a()),
            columns(&circuit.b),
            columns(&circuit.c),
        );
        let combined = |over: E::ScalarField| -> Vec<E::ScalarField> {
            (0..a.len())
                .map(|j| (beta * a[j] + alpha * b[j] + c[j]) * inverse(over))
                .collect()
        };
        let g1 = |scalars: &[E::ScalarField]| E::G1::generator().batch_mul(scalars);
        let g2 = |scalars: &[E::ScalarField]| E::G2::generator().batch_mul(scalars);
        let one_g1 = |scalar: E::ScalarField| (E::G1::generator() * scalar).into_affine();
        let one_g2 = |scalar: E::ScalarField| (E::G2::generator() * scalar).into_affine();
        let (inputs, private) = (combined(gamma), combined(delta));
        Self {
            key: taceo_groth16::ProvingKey {
                vk: taceo_groth16::VerifyingKey {
                    alpha_g1: one_g1(alpha),
                    beta_g2: one_g2(beta),
                    gamma_g2: one_g2(gamma),
                    delta_g2: one_g2(delta),
                    gamma_abc_g1: g1(&inputs[..=circuit.public]),
                },
                beta_g1: one_g1(beta),
                delta_g1: one_g1(delta),
                a_query: g1(&a),
                b_g1_query: g1(&b),
                b_g2_query: g2(&b),
                h_query: g1(&h),
                l_query: g1(&private[circuit.public + 1..]),
            },
            domain: [omega, shift],
        }
    }

    /// The other library's proof.
    pub fn prove(&self, circuit: &Circuit<E::ScalarField>, [r, s]: [E::ScalarField; 2]) -> [Vec<u8>; 3]
    where
        E: PairingCurve,
    {
        let count = |matrix: &Matrix<E::ScalarField>| matrix.iter().map(Vec::len).sum();
        let matrices = ConstraintMatrices {
            num_instance_variables: circuit.public + 1,
            num_witness_variables: circuit.witness.len() - circuit.public - 1,
            num_constraints: circuit.a.len(),
            a_num_non_zero: count(&circuit.a),
            b_num_non_zero: count(&circuit.b),
            c_num_non_zero: count(&circuit.c),
            a: circuit.a.clone(),
            b: circuit.b.clone(),
            c: circuit.c.clone(),
        };
        let proof = Groth16::<E>::prove::<CircomReduction>(&self.key, r, s, &matrices, &circuit.witness)
            .expect("a proof");
        Groth16::<E>::verify(&self.key.vk, &proof, &circuit.witness[1..=circuit.public])
            .expect("it verifies");
        let text = |point: &dyn std::fmt::Debug| format!("{point:?}").into_bytes();
        [text(&proof.a), text(&proof.b), text(&proof.c)]
    }
}

/// A proof in the form of [`Key::prove`].
pub fn text<E: PairingCurve>(proof: &Proof<E>) -> [Vec<u8>; 3] {
    let text = |point: &dyn std::fmt::Debug| format!("{point:?}").into_bytes();
    [text(&proof.a), text(&proof.b), text(&proof.c)]
}
