//! What a round draws, and in which order: apart from what is made of it.
//!
//! The columns of a round come in groups. For each group in turn, halo2 draws the last rows of each of its
//! columns, then, where commitments have blinds, the blind of each: all advice columns of a phase are a
//! group, so are the permuted input and table of a lookup, and each product is one of its own.
//!
//! Memory: the last rows and the blinds of the columns of a round.

use spillproof_engine::column::Column;
use spillproof_kernels::field::KernelField;

use crate::outside::{Blinded, Randomness};

/// Of all that was drawn, as a note of a kept round has it.
pub(crate) const DIGEST_BYTES: usize = 32;

/// Draws of one kind, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draw {
    /// Values for the last rows of a column.
    Tail { column: usize },
    /// The blind of its commitment.
    Blind { column: usize },
}

/// What ends a column that is committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// So many values that are drawn.
    Random(usize),
    /// So many zeros.
    Zeros(usize),
}

/// What a round draws for its columns.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    tails: Vec<Tail>,
    /// In order.
    list: Vec<Draw>,
    blinds: bool,
}

/// What a round has drawn.
#[derive(Clone, Debug)]
pub(crate) struct Drawn<F> {
    /// The values at the end of each column.
    pub tails: Vec<Vec<F>>,
    /// The blind of each commitment, or 1.
    blinds: Vec<F>,
    hides: bool,
    digest: [u8; DIGEST_BYTES],
}

impl Draws {
    /// Of columns with these ends, in groups of `group` columns.
    pub fn of(tails: Vec<Tail>, group: usize, blinds: bool) -> Self {
        let columns: Vec<usize> = (0..tails.len()).collect();
        let of_group = |columns: &[usize]| {
            let random = columns
                .iter()
                .filter(|&&column| matches!(tails[column], Tail::Random(_)));
            let ends = random.map(|&column| Draw::Tail { column });
            let hiding = columns.iter().map(|&column| Draw::Blind { column });
            let both: Vec<Draw> = ends.chain(hiding.take_while(|_| blinds)).collect();
            both
        };
        let list = columns.chunks(group.max(1)).flat_map(of_group).collect();
        Self { tails, list, blinds }
    }

    /// Draws all of it.
    pub fn taken<F: KernelField>(&self, randomness: &mut (impl Randomness<F> + ?Sized)) -> Drawn<F> {
        let zeros = |tail: &Tail| {
            let (Tail::Random(rows) | Tail::Zeros(rows)) = *tail;
            vec![F::ZERO; rows]
        };
        let mut tails: Vec<Vec<F>> = self.tails.iter().map(zeros).collect();
        let mut blinds = vec![F::ONE; tails.len()];
        for draw in &self.list {
            match *draw {
                Draw::Tail { column } => tails[column].fill_with(|| randomness.scalar()),
                Draw::Blind { column } => blinds[column] = randomness.scalar(),
            }
        }
        // Of the blinds, if there are any: the values before them come from the same generator.
        let mut digest = Digest::default();
        match self.blinds {
            true => digest.absorb(&blinds),
            false => tails.iter().for_each(|tail| digest.absorb(tail)),
        }
        Drawn {
            tails,
            blinds,
            hides: self.blinds,
            digest: digest.finish(),
        }
    }
}

impl<F> Drawn<F> {
    /// What the draws are recognised by: equal where the same values were drawn.
    pub fn digest(&self) -> [u8; DIGEST_BYTES] {
        self.digest
    }

    /// The draws of a round that has drawn something else, too. Blinds stand for all of it.
    pub fn beside(self, other: &Digest) -> Self {
        let digest = match self.hides {
            true => self.digest,
            false => other.finish(),
        };
        Self { digest, ..self }
    }

    /// Columns with their blinds.
    pub fn blinded(&self, columns: Vec<Column<F>>) -> Vec<Blinded<F>>
    where
        F: Copy,
    {
        let both = columns.into_iter().zip(&self.blinds);
        both.map(|(column, &blind)| Blinded { column, blind }).collect()
    }
}

/// A digest of values.
#[derive(Default)]
pub(crate) struct Digest {
    hasher: blake3::Hasher,
    bytes: Vec<u8>,
}

impl Digest {
    /// Goes on with these.
    pub fn absorb<F: KernelField>(&mut self, values: &[F]) {
        self.bytes.resize(F::BYTES, 0);
        for value in values {
            value.encode(&mut self.bytes);
            self.hasher.update(&self.bytes);
        }
    }

    /// Goes on with bytes.
    pub fn absorb_bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Of all values.
    pub fn finish(&self) -> [u8; DIGEST_BYTES] {
        *self.hasher.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Scalar;

    /// 1, 2, 3 ..
    struct Counted(u64);

    impl Randomness for Counted {
        fn scalar(&mut self) -> Scalar {
            self.0 += 1;
            Scalar::from(self.0)
        }
    }

    fn drawn(tails: &[Tail], group: usize, blinds: bool) -> (Vec<Vec<Scalar>>, Vec<Scalar>) {
        let drawn = Draws::of(tails.to_vec(), group, blinds).taken(&mut Counted(0));
        (drawn.tails, drawn.blinds)
    }

    fn scalars(values: &[u64]) -> Vec<Scalar> {
        values.iter().map(|value| Scalar::from(*value)).collect()
    }

    #[test]
    fn each_group_has_its_tails_and_then_its_blinds() {
        use Tail::{Random, Zeros};
        let columns = [Random(2), Random(1), Zeros(2), Random(1)];
        let (tails, blinds) = drawn(&columns, 2, true);
        assert_eq!(tails, [&[1, 2][..], &[3], &[0, 0], &[6]].map(scalars));
        assert_eq!(blinds, scalars(&[4, 5, 7, 8]));
        let (tails, blinds) = drawn(&columns, 2, false);
        assert_eq!(tails, [&[1, 2][..], &[3], &[0, 0], &[4]].map(scalars));
        assert_eq!(blinds, scalars(&[1; 4]));
    }

    #[test]
    fn draws_are_recognised_by_their_blinds_or_by_all_of_them() {
        let digest = |seed: u64, rows: usize, blinds: bool| {
            let draws = Draws::of(vec![Tail::Random(rows)], 1, blinds);
            draws.taken(&mut Counted(seed)).digest()
        };
        for blinds in [false, true] {
            assert_eq!(digest(5, 3, blinds), digest(5, 3, blinds));
            assert_ne!(digest(5, 3, blinds), digest(6, 3, blinds));
            assert_ne!(digest(5, 3, blinds), digest(5, 2, blinds));
        }
        let drawn = |blinds| Draws::of(vec![Tail::Random(0)], 1, blinds).taken(&mut Counted(0));
        let mut other = Digest::default();
        other.absorb_bytes(&[1]);
        let changes = |drawn: Drawn<Scalar>| drawn.digest() != drawn.beside(&other).digest();
        assert!(changes(drawn(false)) && !changes(drawn(true)));
    }
}
