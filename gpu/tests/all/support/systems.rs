//! Rank-1 constraint systems with a witness, and their quotients by arkworks.

use ark_bn254::Fr;
use ark_ff::{Field, UniformRand, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand::Rng;
use rand_chacha::ChaCha20Rng;

/// Coefficients of two matrices, as a key has them, and what they are multiplied with.
#[derive(Clone)]
pub struct System {
    pub log_n: u32,
    pub values: Vec<Fr>,
    pub witness: Vec<Fr>,
    /// Row, signal, place of the value, matrix.
    pub coefficients: Vec<[u32; 4]>,
}

impl System {
    /// A row has as many coefficients as `of_row` says. Values are zeros, ones, minus ones, and others; some
    /// coefficients name the signal of the one before.
    pub fn random(
        rng: &mut ChaCha20Rng,
        (log_n, signals): (u32, usize),
        of_row: impl Fn(&mut ChaCha20Rng, u32) -> usize,
    ) -> Self {
        let mut values = vec![Fr::zero(), Fr::ONE, -Fr::ONE];
        values.extend((0..4).map(|_| Fr::rand(rng)));
        let witness = (0..signals).map(|at| match at % 3 {
            0 => Fr::from(rng.gen_range(0..2u64)),
            _ => Fr::rand(rng),
        });
        let witness: Vec<Fr> = witness.collect();
        let (mut coefficients, mut signal) = (Vec::new(), 0);
        for row in 0..1 << log_n {
            for _ in 0..of_row(rng, row) {
                if rng.gen_range(0..3) > 0 {
                    signal = rng.gen_range(0..signals as u32);
                }
                let value = rng.gen_range(0..values.len() as u32);
                coefficients.push([row, signal, value, rng.gen_range(0..2)]);
            }
        }
        Self {
            log_n,
            values,
            witness,
            coefficients,
        }
    }

    /// The values of each matrix in each row.
    pub fn rows(&self) -> [Vec<Fr>; 2] {
        let mut rows = [0; 2].map(|_| vec![Fr::zero(); 1 << self.log_n]);
        for coefficient in &self.coefficients {
            let [row, signal, value, matrix] = coefficient.map(|word| word as usize);
            rows[matrix][row] += self.values[value] * self.witness[signal];
        }
        rows
    }

    /// `a b - c` on a coset.
    pub fn quotient(&self, shift: Fr) -> Vec<Fr> {
        let domain = Radix2EvaluationDomain::<Fr>::new(1 << self.log_n).unwrap();
        let coset = domain.get_coset(shift).unwrap();
        let [a, b] = self.rows();
        let c = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
        let [a, b, c] = [a, b, c].map(|values| coset.fft(&domain.ifft(&values)));
        a.iter().zip(&b).zip(&c).map(|((a, b), c)| *a * b - c).collect()
    }
}
