//! The contributions to a first phase: section 7 of a `.ptau` file.
//!
//! ```text
//! [contributions: u32] then for each contribution
//! products:  [tau: G1][tau: G2][alpha: G1][beta: G1][beta: G2]
//! proofs:    [s: G1][s·x: G1] for x = tau, [s][s·x] for alpha, [s][s·x] for beta, [sp·x: G2] for tau, [sp·x] for alpha, [sp·x] for beta
//! [state of a hash: 216 bytes][next challenge: 64 bytes][kind: u32][parameters' bytes: u32][parameters]
//! ```
//!
//! The products are those of the secrets of all contributors so far. The proofs are of this contributor's
//! secrets x: s is a random point, sp one that follows from the challenge before. Kind and parameters are as
//! in [`super::contributions`].
//!
//! A response is the challenge before it, the powers that it leaves, compressed, and the proofs,
//! uncompressed. The state is that of BLAKE2b before the proofs: `[block: 128 bytes][words: 8 u64][bytes
//! hashed: u64][bytes in the block: u64][8 bytes]`. The next challenge is the hash of the response's hash and
//! of the powers, uncompressed.
//!
//! Points are in the native form ([`crate::native`]).

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::bytes::Fields;
use super::contributions::{Beacon, HASH_BYTES, Origin, push_origin, push_point, range_within};
use super::{ByteRange, FileKind, Sections, ptau};
use crate::error::FormatError;
use crate::native::NativeField;

/// Length of the number of contributions in bytes.
pub const PREFIX_BYTES: usize = 4;
/// Length of a block of BLAKE2b in bytes.
pub const BLOCK_BYTES: usize = 128;

/// tau, alpha and beta, times the generators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPoints<P1, P2> {
    /// tau in G1.
    pub tau_g1: P1,
    /// tau in G2.
    pub tau_g2: P2,
    /// alpha in G1.
    pub alpha_g1: P1,
    /// beta in G1.
    pub beta_g1: P1,
    /// beta in G2.
    pub beta_g2: P2,
}

/// The proof that a contributor knows a secret x.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeProof<P1, P2> {
    /// A random point.
    pub s: P1,
    /// The same, times the secret.
    pub sx: P1,
    /// The point that follows from the challenge before, times the secret.
    pub spx: P2,
}

/// A BLAKE2b hash of 64 bytes that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashState {
    /// The block that is being filled.
    pub block: [u8; BLOCK_BYTES],
    /// The words of the chain.
    pub words: [u64; 8],
    /// Bytes before the block.
    pub hashed_bytes: u64,
    /// Bytes in the block: 128 at most.
    pub block_bytes: u64,
}

/// One contribution, with points of G1 and of G2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution<P1, P2> {
    /// The contributor's name.
    pub name: Option<String>,
    /// The beacon that the secrets follow from, if they do.
    pub beacon: Option<Beacon>,
    /// The products of all secrets so far.
    pub after: FirstPoints<P1, P2>,
    /// Those of tau, alpha and beta.
    pub proofs: [KnowledgeProof<P1, P2>; 3],
    /// The hash of the response up to the proofs.
    pub response: HashState,
    /// What the next contribution is bound to.
    pub next_challenge: [u8; HASH_BYTES],
}

/// The section's content: the contributions, each with the offset of its first byte in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History<P1, P2>(pub Vec<(u64, Contribution<P1, P2>)>);

/// The bytes to read for [`History::parse`].
///
/// # Errors
/// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section without room for a number,
/// or of more than [`SECTION_BYTES_MAX`](super::contributions::SECTION_BYTES_MAX).
pub fn range(sections: &Sections) -> Result<ByteRange, FormatError> {
    range_within(sections, (FileKind::Ptau, ptau::CONTRIBUTIONS), PREFIX_BYTES)
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> History<Affine<G1>, Affine<G2>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    /// Reads the bytes of [`range`]. Every point is checked: on the curve, in the subgroup of prime order,
    /// not infinity. Whether the contributions follow from one another is not.
    ///
    /// # Errors
    /// [`FormatError::Length`], [`FormatError::Point`]; [`FormatError::Unknown`] for a kind or a parameter
    /// that is none; [`FormatError::Field`] for parameters that contradict the kind, or are in another order,
    /// and for a block of more bytes than it has room for.
    pub fn parse(range: ByteRange, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new("the section of contributions", range, bytes)?;
        let list = fields.counted(Contribution::parse)?;
        fields.finish()?;
        Ok(Self(list))
    }
}

impl<G1: SWCurveConfig, G2: SWCurveConfig> Contribution<Affine<G1>, Affine<G2>>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    fn parse(fields: &mut Fields<'_>, number: u64) -> Result<Self, FormatError> {
        let after = FirstPoints {
            tau_g1: fields.point("tau in G1 after a contribution", number)?,
            tau_g2: fields.point("tau in G2 after a contribution", number)?,
            alpha_g1: fields.point("alpha after a contribution", number)?,
            beta_g1: fields.point("beta in G1 after a contribution", number)?,
            beta_g2: fields.point("beta in G2 after a contribution", number)?,
        };
        let mut pair = || -> Result<_, FormatError> {
            let s = fields.point("s of a contribution", number)?;
            Ok((s, fields.point("s·x of a contribution", number)?))
        };
        let pairs = [pair()?, pair()?, pair()?];
        let mut proof = |(s, sx)| -> Result<_, FormatError> {
            let spx = fields.point("sp·x of a contribution", number)?;
            Ok(KnowledgeProof { s, sx, spx })
        };
        let [tau, alpha, beta] = pairs;
        let proofs = [proof(tau)?, proof(alpha)?, proof(beta)?];
        let response = HashState::parse(fields)?;
        let next_challenge = fields.array()?;
        let Origin { name, beacon } = Origin::parse(fields)?;
        Ok(Self {
            name,
            beacon,
            after,
            proofs,
            response,
            next_challenge,
        })
    }

    /// Appends its bytes. A name is cut to [`super::contributions::NAME_CHARACTERS_MAX`], a beacon to 255
    /// bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let after = &self.after;
        push_point(&after.tau_g1, out);
        push_point(&after.tau_g2, out);
        push_point(&after.alpha_g1, out);
        push_point(&after.beta_g1, out);
        push_point(&after.beta_g2, out);
        for proof in &self.proofs {
            push_point(&proof.s, out);
            push_point(&proof.sx, out);
        }
        for proof in &self.proofs {
            push_point(&proof.spx, out);
        }
        self.response.encode(out);
        out.extend(self.next_challenge);
        push_origin(self.name.as_deref(), self.beacon.as_ref(), out);
    }
}

impl HashState {
    fn parse(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        let block = fields.array()?;
        let mut words = [0; 8];
        for word in &mut words {
            *word = fields.u64()?;
        }
        let hashed_bytes = fields.u64()?;
        let offset = fields.offset();
        let block_bytes = fields.u64()?;
        if block_bytes > BLOCK_BYTES as u64 {
            return Err(FormatError::Field {
                what: "number of bytes in the block of a hash",
                offset,
                value: block_bytes.to_string(),
                remedy: "a block has 128 bytes: the file is damaged, get it again",
            });
        }
        // What snarkjs leaves behind them.
        let _: [u8; 8] = fields.array()?;
        Ok(Self {
            block,
            words,
            hashed_bytes,
            block_bytes,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.block);
        out.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        for number in [self.hashed_bytes, self.block_bytes, 0] {
            out.extend(number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{G1Affine, G2Affine};
    use ark_ec::{AffineRepr, CurveGroup};

    type OfBn254 = Contribution<G1Affine, G2Affine>;

    fn contribution(name: Option<&str>, beacon: Option<Beacon>) -> OfBn254 {
        let (one, two) = (G1Affine::generator(), G2Affine::generator());
        let times = |factor: u64| (one * ark_bn254::Fr::from(factor)).into_affine();
        let proof = |factor| KnowledgeProof {
            s: times(factor),
            sx: times(factor + 1),
            spx: (two * ark_bn254::Fr::from(factor)).into_affine(),
        };
        Contribution {
            name: name.map(str::to_owned),
            beacon,
            after: FirstPoints {
                tau_g1: times(2),
                tau_g2: two,
                alpha_g1: times(3),
                beta_g1: times(4),
                beta_g2: two,
            },
            proofs: [proof(5), proof(7), proof(9)],
            response: HashState {
                block: [3; BLOCK_BYTES],
                words: [1, 2, 3, 4, 5, 6, 7, 8],
                hashed_bytes: 1 << 40,
                block_bytes: 128,
            },
            next_challenge: [7; HASH_BYTES],
        }
    }

    fn section(contributions: &[OfBn254]) -> Vec<u8> {
        let mut bytes = (contributions.len() as u32).to_le_bytes().to_vec();
        for contribution in contributions {
            contribution.encode(&mut bytes);
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<History<G1Affine, G2Affine>, FormatError> {
        let range = ByteRange {
            offset: 100,
            bytes: bytes.len() as u64,
        };
        History::parse(range, bytes)
    }

    #[test]
    fn a_history_is_read_back() {
        let beacon = Beacon {
            iterations_log: 10,
            value: vec![1, 2, 3],
        };
        let all = [
            contribution(None, None),
            contribution(Some("first"), None),
            contribution(Some("last"), Some(beacon)),
        ];
        let bytes = section(&all);
        let read = parse(&bytes).expect("a history");
        let (offsets, list): (Vec<_>, Vec<_>) = read.0.into_iter().unzip();
        assert_eq!(list, all);
        let first_bytes = 9 * 64 + 5 * 128 + 216 + HASH_BYTES as u64 + 8;
        assert_eq!(offsets[..2], [104, 104 + first_bytes]);
    }

    #[test]
    fn damaged_histories_are_refused() {
        let bytes = section(&[contribution(Some("first"), None)]);
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        let state_at = PREFIX_BYTES + 9 * 64 + 5 * 128;
        let kind_at = state_at + 216 + HASH_BYTES;
        // A point that is none, a block that is too full, a kind without its beacon, an unknown parameter.
        for (at, value) in [
            (PREFIX_BYTES, 0xff),
            (state_at + 200, 129),
            (kind_at, 1),
            (kind_at + 8, 4),
        ] {
            let mut changed = bytes.clone();
            changed[at] = value;
            assert!(parse(&changed).is_err(), "{value} at {at}");
        }
        let mut more = bytes;
        more.push(0);
        assert!(parse(&more).is_err(), "a byte more");
    }
}
