//! A child of the library's bench: a coin, its commitment, and the commitment to its value.

use ff::PrimeField as _;

use super::*;
use crate::{Sample, Sampled};

/// What the circuit hashes points of Jubjub with.
type Hash = HashToCurveGadget<F, Jubjub, AssignedNative<F>, PoseidonChip<F>, EccChip<Jubjub>>;

impl Sample for ZSwapOutputCircuit {
    fn sample() -> Sampled<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let (owner, blind) = ([9; 32], JubjubScalar::random(&mut rng));
        let coin = CoinInfo {
            color: F::from(42),
            nonce: F::random(&mut rng),
            value: 1000,
        };
        let mut hasher = sha2::Sha256::new();
        hasher.update(coin.color.to_repr());
        hasher.update(coin.nonce.to_repr());
        hasher.update(coin.value.to_le_bytes());
        // No contract's.
        hasher.update([0]);
        hasher.update(owner);
        hasher.update(b"mdn:cc");
        let base = <Hash as HashToCurveCPU<Jubjub, F>>::hash_to_curve(&[coin.color]);
        let value = base * JubjubScalar::from(coin.value) + JubjubSubgroup::generator() * blind;
        Sampled {
            instance: (hasher.finalize().into(), value),
            witness: (PK::ZSwapCoinPublicKey(owner), coin, blind),
        }
    }
}
