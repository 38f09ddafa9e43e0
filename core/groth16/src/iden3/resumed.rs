//! BLAKE2b from a state that is in a file: `.ptau` files have that of a response's hash, without the bytes
//! before it.
//!
//! RFC 7693, section 3, without a key, with a digest of 64 bytes. Libraries for BLAKE2b have no way in for a
//! state.

use spillproof_format::iden3::contributions::HASH_BYTES;
use spillproof_format::iden3::history::{BLOCK_BYTES, HashState};

/// Section 2.6.
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// Section 2.7: the order of a block's words in each round, which repeats after the tenth.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const ROUNDS: usize = 12;
/// Words of the working vector that are mixed together: columns, then diagonals.
const MIXED: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// The digest of what `state` has hashed, followed by `bytes`.
pub(super) fn digest_behind(state: &HashState, bytes: &[u8]) -> [u8; HASH_BYTES] {
    let mut words = state.words;
    let mut hashed_bytes = u128::from(state.hashed_bytes);
    let filled = (state.block_bytes as usize).min(BLOCK_BYTES);
    let rest = [&state.block[..filled], bytes].concat();
    // The last block is never empty, unless the message is.
    let last_start = rest.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES;
    let (whole, last) = rest.split_at(last_start);
    for block in whole.as_chunks::<BLOCK_BYTES>().0 {
        hashed_bytes += BLOCK_BYTES as u128;
        compress(&mut words, block, hashed_bytes, false);
    }
    let mut block = [0; BLOCK_BYTES];
    block[..last.len()].copy_from_slice(last);
    hashed_bytes += last.len() as u128;
    compress(&mut words, &block, hashed_bytes, true);
    let mut digest = [0; HASH_BYTES];
    for (word, out) in words.iter().zip(digest.as_chunks_mut::<8>().0) {
        *out = word.to_le_bytes();
    }
    digest
}

/// Section 3.2.
fn compress(words: &mut [u64; 8], block: &[u8; BLOCK_BYTES], hashed_bytes: u128, is_last: bool) {
    let mut message = [0; 16];
    for (word, bytes) in message.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut v = [0; 16];
    v[..8].copy_from_slice(words);
    v[8..].copy_from_slice(&IV);
    v[12] ^= hashed_bytes as u64;
    v[13] ^= (hashed_bytes >> 64) as u64;
    if is_last {
        v[14] = !v[14];
    }
    for order in SIGMA.iter().cycle().take(ROUNDS) {
        for (places, pair) in MIXED.iter().zip(order.as_chunks::<2>().0) {
            mix(&mut v, *places, pair.map(|place| message[place]));
        }
    }
    for (i, word) in words.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i + 8];
    }
}

/// Section 3.1.
fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], [x, y]: [u64; 2]) {
    for (word, rotations) in [(x, [32, 24]), (y, [16, 63])] {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(word);
        v[d] = (v[d] ^ v[a]).rotate_right(rotations[0]);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(rotations[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blake2::{Blake2b512, Digest};

    /// The state behind `bytes`, whose last block may be full.
    fn state_behind(bytes: &[u8], is_last_block_full: bool) -> HashState {
        let mut words = IV;
        // Parameters: a digest of 64 bytes, no key, no tree.
        words[0] ^= 0x0101_0040;
        let mut block_bytes = bytes.len() % BLOCK_BYTES;
        if is_last_block_full && block_bytes == 0 && !bytes.is_empty() {
            block_bytes = BLOCK_BYTES;
        }
        let (before, in_block) = bytes.split_at(bytes.len() - block_bytes);
        for (number, block) in (1..).zip(before.as_chunks::<BLOCK_BYTES>().0) {
            compress(&mut words, block, number * BLOCK_BYTES as u128, false);
        }
        let mut block = [0; BLOCK_BYTES];
        block[..block_bytes].copy_from_slice(in_block);
        HashState {
            block,
            words,
            hashed_bytes: before.len() as u64,
            block_bytes: block_bytes as u64,
        }
    }

    #[test]
    fn a_hash_goes_on_wherever_it_stopped() {
        let message: Vec<u8> = (0..700u32).map(|i| (i * i % 251) as u8).collect();
        for len in [0, 1, 127, 128, 129, 255, 256, 257, 640, 700] {
            let expected: [u8; HASH_BYTES] = Blake2b512::digest(&message[..len]).into();
            for stop in (0..=len).filter(|stop| stop % 64 < 2 || *stop == len) {
                for is_last_block_full in [false, true] {
                    // A hash stops before its last block is hashed.
                    if !is_last_block_full && stop == len && stop % BLOCK_BYTES == 0 && len > 0 {
                        continue;
                    }
                    let state = state_behind(&message[..stop], is_last_block_full);
                    let found = digest_behind(&state, &message[stop..len]);
                    assert_eq!(found, expected, "{stop} of {len} bytes, {is_last_block_full}");
                }
            }
        }
    }
}
