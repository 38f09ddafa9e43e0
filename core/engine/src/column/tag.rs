//! Tags: the digest of a frame, in bits that its own elements leave free.
//!
//! An element of a field below 2^254 has two zero bits above it, in all of its 32 bytes. A frame of 4096
//! bytes has 128 such elements, and so 256 bits of room: a whole digest. There it goes when the frame is
//! written, and from there it comes when the frame is read, before the bits are cleared. So frames of scratch
//! columns hold no memory, move no bytes besides their own, and a panel of a matrix is checked as cheaply as
//! a span.
//!
//! Why this is as good as a digest in memory: the digest is keyed, the key is drawn at random for each file
//! and stays in memory, and a frame is written once, so there is no earlier frame with a tag that would fit.
//! A flipped bit of an element or of a tag, a torn or a lost write, a frame of another place or of another
//! file: each has a tag that differs. (The key is the root of all tags. A tree of digests on disk would need
//! as much in memory, one key or one root, and a read of digests for each row of each panel.)
//!
//! Places: words of `word_bytes`, little-endian, whose `spare` top bits are zero. The first words of a frame
//! take the digest's bits in order, `b` in each, b the largest power of two up to `spare` and 8. With w words
//! in a frame, the tag is the first `min(256, w b)` bits of the digest; at least [`TAG_BITS_MIN`], or the
//! frame has none. Bits that are free and not used are hashed as they are. Memory: none.
//!
//! | elements | spare bits | bits of a frame's tag |
//! |---|---|---|
//! | scalars and G1 points of BN254 | 2 of 256 | 256 |
//! | scalars of BLS12-381, Pallas, Vesta | 1 of 256 | 128 in 4096 bytes, else 256 |
//! | points of BLS12-381 | 3 of 384 | 256 |
//! | bytes | 0 | none: digests in memory |

use super::{Element, SpareBits};

/// Bytes of one digest.
pub(crate) const DIGEST_BYTES: usize = 32;
/// Bytes of an authentication tag.
pub(super) const TAG_BYTES: usize = 16;
/// Bits of the shortest tag: nothing but chance finds a frame that fits one, once in 2^128.
const TAG_BITS_MIN: usize = 128;

/// Where the tags of frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagPlaces {
    word_bytes: usize,
    /// Bits in a word.
    bits: u32,
    /// Words that hold a part of the tag.
    words: usize,
}

impl TagPlaces {
    /// The places in frames of `frame_bytes` with elements `E`; `None` where they leave too few bits.
    pub fn of<E: Element>(frame_bytes: u64) -> Option<Self> {
        Self::in_bits(E::SPARE, frame_bytes)
    }

    /// The places in frames of `frame_bytes` with elements that leave these bits.
    pub fn in_bits(spare: Option<SpareBits>, frame_bytes: u64) -> Option<Self> {
        let spare = spare?;
        let bits = 1 << spare.bits.min(8).checked_ilog2()?;
        let words = frame_bytes as usize / spare.word_bytes;
        let words = words.min(8 * DIGEST_BYTES / bits as usize);
        let places = Self {
            word_bytes: spare.word_bytes,
            bits,
            words,
        };
        (words * bits as usize >= TAG_BITS_MIN).then_some(places)
    }

    /// The places of [`TAG_BYTES`] bytes, if they end before the last as many bytes of a frame.
    pub fn beside_tail(self, frame_bytes: usize) -> Option<Self> {
        let words = 8 * TAG_BYTES / self.bits as usize;
        let fits = words <= self.words && words * self.word_bytes <= frame_bytes - TAG_BYTES;
        fits.then_some(Self { words, ..self })
    }

    /// Bits of a digest that are in the tag.
    fn tag_bits(&self) -> usize {
        self.words * self.bits as usize
    }

    /// The bits of a word's highest byte that a part of the tag takes.
    fn mask(&self) -> u8 {
        u8::MAX << (8 - self.bits)
    }

    /// Of each word, the place of its highest byte, and where its part of the tag stands in the digest: byte
    /// and bit.
    fn parts(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let (word_bytes, bits) = (self.word_bytes, self.bits as usize);
        (0..self.words).map(move |word| {
            let at = word * bits;
            (word * word_bytes + word_bytes - 1, at / 8, at % 8)
        })
    }

    /// Puts the first bits of `digest` to their places; `false` if they were not free.
    pub fn put(&self, digest: &[u8; DIGEST_BYTES], frame: &mut [u8]) -> bool {
        let (mask, down, mut used) = (self.mask(), 8 - self.bits, 0);
        for (top, byte, bit) in self.parts() {
            used |= frame[top];
            frame[top] |= (digest[byte] >> bit << down) & mask;
        }
        used & mask == 0
    }

    /// Takes a tag from its places, and leaves them free.
    pub fn take(&self, frame: &mut [u8]) -> [u8; DIGEST_BYTES] {
        let (mask, down) = (self.mask(), 8 - self.bits);
        let mut tag = [0; DIGEST_BYTES];
        for (top, byte, bit) in self.parts() {
            tag[byte] |= (frame[top] & mask) >> down << bit;
            frame[top] &= !mask;
        }
        tag
    }

    /// Whether `tag` is the one of `digest`.
    pub fn fits(&self, tag: &[u8; DIGEST_BYTES], digest: &[u8; DIGEST_BYTES]) -> bool {
        // 128 bits or 256 and all between are whole bytes, since words come by powers of two or by 256 bits.
        let bytes = self.tag_bits() / 8;
        tag[..bytes] == digest[..bytes] && bytes >= TAG_BITS_MIN / 8
    }
}

#[cfg(test)]
mod tests {
    use ark_ff::UniformRand;
    use rand_chacha::rand_core::{RngCore, SeedableRng};
    use spillproof_format::FrameKey;

    use super::*;
    use spillproof_kernels::curve::Point;

    /// A frame of elements, from their bytes.
    fn frame_of<E: Element>(frame_bytes: usize, mut next: impl FnMut() -> E) -> Vec<u8> {
        let mut frame = vec![0; frame_bytes];
        for bytes in frame.chunks_exact_mut(E::BYTES) {
            next().encode(bytes);
        }
        frame
    }

    fn bit(bytes: &[u8], at: usize) -> u8 {
        bytes[at / 8] >> (at % 8) & 1
    }

    /// What [`TagPlaces::put`] does, bit by bit.
    fn put_bit_by_bit(places: &TagPlaces, digest: &[u8; DIGEST_BYTES], frame: &mut [u8]) {
        let (word_bits, bits) = (8 * places.word_bytes, places.bits as usize);
        for at in 0..places.words * bits {
            let to = at / bits * word_bits + word_bits - bits + at % bits;
            frame[to / 8] |= bit(digest, at) << (to % 8);
        }
    }

    fn tags_come_and_go<E: Element>(
        name: &str,
        frame_bytes: usize,
        tag_bits: usize,
        mut next: impl FnMut(u64) -> E,
    ) {
        let places = TagPlaces::of::<E>(frame_bytes as u64).unwrap();
        assert_eq!(places.tag_bits(), tag_bits, "{name}");
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(frame_bytes as u64);
        let key = FrameKey::new([7; 16], rng.next_u64());
        for index in 0..4 {
            let elements = frame_of(frame_bytes, || next(rng.next_u64()));
            let digest = key.digest(index, &elements);
            let (mut tagged, mut want) = (elements.clone(), elements.clone());
            assert!(
                places.put(&digest, &mut tagged),
                "{name}: values fill their bytes"
            );
            put_bit_by_bit(&places, &digest, &mut want);
            assert!(tagged == want, "{name}: other places");
            assert!(!places.put(&digest, &mut want), "{name}: tagged twice");
            let tag = places.take(&mut tagged);
            assert!(tagged == elements, "{name}: other elements");
            assert!(places.fits(&tag, &digest), "{name}");
            for other in [
                key.digest(index + 1, &elements),
                FrameKey::new([8; 16], 1).digest(index, &elements),
            ] {
                assert!(
                    !places.fits(&tag, &other),
                    "{name}: a frame of another place or file"
                );
            }
        }
    }

    #[test]
    fn a_tag_has_its_places_and_leaves_the_elements() {
        fn value<T: UniformRand>(seed: u64) -> T {
            T::rand(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed))
        }
        let point = |seed| Point::<ark_bn254::g1::Config> {
            x: value(seed),
            y: value(seed + 1),
        };
        for frame_bytes in [4096, 16384, 65536] {
            let short = if frame_bytes == 4096 { 128 } else { 256 };
            tags_come_and_go("BN254", frame_bytes, 256, value::<ark_bn254::Fr>);
            tags_come_and_go("points of BN254", frame_bytes, 256, point);
            tags_come_and_go("BLS12-381", frame_bytes, short, value::<ark_bls12_381::Fr>);
            tags_come_and_go("Pallas", frame_bytes, short, value::<ark_pallas::Fq>);
            // The largest values.
            tags_come_and_go("BN254", frame_bytes, 256, |_| -ark_bn254::Fr::from(1u64));
            tags_come_and_go("Pallas", frame_bytes, short, |_| -ark_pallas::Fq::from(1u64));
        }
        let point = |seed| Point::<ark_bls12_381::g2::Config> {
            x: value(seed),
            y: value(seed + 1),
        };
        tags_come_and_go("points of BLS12-381", 3 * 4096, 256, point);
        assert_eq!(TagPlaces::of::<[u8; 32]>(4096), None);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let places = TagPlaces::of::<ark_bn254::Fr>(4096).unwrap();
        let key = FrameKey::new([1; 16], 2);
        let mut tagged = frame_of(4096, || ark_bn254::Fr::rand(&mut rng));
        assert!(places.put(&key.digest(3, &tagged), &mut tagged));
        for at in 0..8 * tagged.len() {
            let mut frame = tagged.clone();
            frame[at / 8] ^= 1 << (at % 8);
            let tag = places.take(&mut frame);
            assert!(!places.fits(&tag, &key.digest(3, &frame)), "bit {at}");
        }
    }

    #[test]
    fn elements_that_use_their_spare_bits_are_noticed() {
        let places = TagPlaces::of::<ark_bn254::Fr>(16384).unwrap();
        for top in [0x40, 0x80] {
            let mut frame = vec![0; 16384];
            frame[127 * 32 + 31] = top;
            assert!(!places.put(&[0; 32], &mut frame));
        }
    }
}
