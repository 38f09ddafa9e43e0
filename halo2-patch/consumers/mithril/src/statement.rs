//! The statement that the library's environment proves, which it does not give away: the root of a Merkle tree
//! over its signers' keys, and a message.

use midnight_circuits::hash::poseidon::PoseidonChip;
use midnight_circuits::instructions::hash::HashCPU;
use midnight_curves::Fq as Scalar;
use mithril_stm::{SchnorrSigningKey, SchnorrVerificationKey};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// The environment's signers, keys drawn one after another from a generator whose seed is zero.
const SIGNERS: usize = 3000;

/// The environment's message.
const MESSAGE: u64 = 42;

/// "SMLF_DST", hashed before a leaf.
const LEAF_TAG: u64 = 0x534D_4C46_5F44_5354;

/// Root and message, in the order of the circuit's public inputs.
pub fn public_inputs() -> Result<Vec<Scalar>, String> {
    let mut rng = ChaCha20Rng::from_seed([0; 32]);
    let mut level = Vec::with_capacity(SIGNERS.next_power_of_two());
    for _ in 0..SIGNERS {
        let key = SchnorrVerificationKey::new_from_signing_key(SchnorrSigningKey::generate(&mut rng));
        let coordinates = key.to_canonical_bytes();
        let coordinate = |bytes: &[u8]| {
            let bytes = bytes.try_into().map_err(|_| "a coordinate has 32 bytes")?;
            Option::from(Scalar::from_bytes_le(bytes)).ok_or("a coordinate is below the modulus")
        };
        let (x, y) = (coordinate(&coordinates[..32])?, coordinate(&coordinates[32..])?);
        // Every signer wins every lottery: the largest target.
        level.push(hash(&[Scalar::from(LEAF_TAG), x, y, -Scalar::from(1)]));
    }
    level.resize(SIGNERS.next_power_of_two(), hash(&[Scalar::from(0)]));
    while level.len() > 1 {
        level = level.chunks_exact(2).map(hash).collect();
    }
    Ok(vec![level[0], Scalar::from(MESSAGE)])
}

fn hash(values: &[Scalar]) -> Scalar {
    <PoseidonChip<Scalar> as HashCPU<Scalar, Scalar>>::hash(values)
}
