//! The hashes of circuits and contributions, and the random values that follow from hashes, as snarkjs has
//! them.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::PrimeField;
use blake2::{Blake2b512, Digest};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use spillproof_format::Element;
use spillproof_format::iden3::contributions::HASH_BYTES;
use spillproof_format::native::NativeField;
use zeroize::Zeroize;

use super::new_file::{each_tile, encode_all};
use spillproof_engine::Result;
use spillproof_engine::column::Column;
use spillproof_kernels::curve::{Coordinates, Curve, Point};
use spillproof_kernels::field::CoordinateField;

/// Points that are hashed at a time where all are the same one: a few hundred KiB.
const REPEATED_POINTS: usize = 1 << 11;

/// A hash (BLAKE2b) of points and numbers.
#[derive(Clone)]
pub(super) struct Transcript(Blake2b512);

impl Transcript {
    pub fn new() -> Self {
        Self(Blake2b512::new())
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// A number of elements: below 2^32, as arrays of a key are.
    pub fn count(&mut self, count: u64) {
        self.0.update((count as u32).to_be_bytes());
    }

    pub fn point<P: Curve>(&mut self, point: &Affine<P>) {
        self.0.update(encoded(point));
    }

    /// One point, `count` times. `each` gets the number of points that were added since its last call.
    pub fn repeated_point<P: Curve>(&mut self, point: &Affine<P>, count: u64, each: &mut dyn FnMut(u64)) {
        let block = encoded(point).repeat(REPEATED_POINTS);
        let mut left = count;
        while left > 0 {
            let here = left.min(REPEATED_POINTS as u64);
            self.0.update(&block[..here as usize * Point::<P>::BYTES]);
            left -= here;
            each(here);
        }
    }

    /// `len` points of a column, from `start` on, behind their number.
    pub fn counted_points<P: Curve>(&mut self, column: &Column<Point<P>>, span: (u64, u64)) -> Result<()> {
        self.count(span.1);
        self.points::<P>(column, span)
    }

    /// `len` points of a column, from `start` on.
    pub fn points<P: Curve>(&mut self, column: &Column<Point<P>>, (start, len): (u64, u64)) -> Result<()> {
        each_tile(column, (start, len), |points, bytes| {
            encode_all(points, bytes, encode);
            self.0.update(&*bytes);
            Ok(())
        })
    }

    pub fn finish(self) -> [u8; HASH_BYTES] {
        self.0.finalize().into()
    }
}

/// The bytes of a point in a transcript.
pub(super) fn encoded<P: Curve>(point: &Affine<P>) -> Vec<u8> {
    let mut bytes = vec![0; Point::<P>::BYTES];
    encode(&Point::<P>::from_affine::<P>(point), &mut bytes);
    bytes
}

/// Coordinates as integers, big-endian; of an extension c1 before c0; infinity is all zero.
fn encode<F: CoordinateField>(point: &Coordinates<F>, out: &mut [u8]) {
    let (x, y) = out.split_at_mut(F::BYTES);
    for (coordinate, out) in [(&point.x, x), (&point.y, y)] {
        coordinate.write_standard(out);
        out.reverse();
    }
}

/// Random values that follow from the first 32 bytes of a hash: ChaCha20, whose key is these bytes as words
/// of four, big-endian.
pub(super) fn generator(hash: &[u8]) -> ChaCha20Rng {
    let mut key = [0; 32];
    for (word, bytes) in key.as_chunks_mut::<4>().0.iter_mut().zip(hash.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes).to_le_bytes();
    }
    let random = ChaCha20Rng::from_seed(key);
    key.zeroize();
    random
}

/// A generator of secrets: its state, from which they follow, is wiped when it is dropped.
pub(super) struct SecretGenerator(pub ChaCha20Rng);

impl SecretGenerator {
    fn wipe(&mut self) {
        self.0 = ChaCha20Rng::from_seed([0; 32]);
        // Or the compiler would leave out a value that is not read again.
        std::hint::black_box(&mut self.0);
    }
}

impl Drop for SecretGenerator {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// A random element: limbs in Montgomery form, lowest first and each with its high word first, until they are
/// below the modulus.
pub(super) fn random_element<F: CoordinateField>(random: &mut ChaCha20Rng) -> F {
    let mut bytes = vec![0; F::BYTES];
    for part in bytes.chunks_exact_mut(F::Prime::BYTES) {
        let excess_bits = 8 * F::Prime::BYTES as u32 - F::Prime::MODULUS_BIT_SIZE;
        loop {
            for limb in part.as_chunks_mut::<8>().0 {
                let [high, low] = [random.next_u32(), random.next_u32()].map(u64::from);
                *limb = (high << 32 | low).to_le_bytes();
            }
            if let Some(last) = part.last_mut() {
                *last &= 0xff >> excess_bits;
            }
            if F::Prime::read_native(part).is_some() {
                break;
            }
        }
    }
    let element = F::decode(&bytes);
    bytes.zeroize();
    element
}

/// A random point of the subgroup: a random x until there are points with it, a bit that chooses the larger
/// of the two y, and the multiple by the cofactor.
pub(super) fn random_point<P: Curve>(random: &mut ChaCha20Rng) -> Affine<P> {
    loop {
        let x = random_element::<P::BaseField>(random);
        let is_larger = random.next_u32() & 1 == 1;
        if let Some((smaller, larger)) = Affine::<P>::get_ys_from_x_unchecked(x) {
            let y = if is_larger { larger } else { smaller };
            return Affine::<P>::new_unchecked(x, y).mul_by_cofactor();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_of_secrets_is_wiped() {
        let mut random = SecretGenerator(generator(&[7; HASH_BYTES]));
        random.0.next_u32();
        random.wipe();
        assert_eq!(random.0, ChaCha20Rng::from_seed([0; 32]));
    }
}
