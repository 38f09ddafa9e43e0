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

/// What a round draws for its columns.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    /// How many values end each column.
    rows: Vec<usize>,
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
    digest: [u8; DIGEST_BYTES],
}

impl Draws {
    /// Of columns that end in so many values each, in groups of `group` columns.
    pub fn of(rows: Vec<usize>, group: usize, blinds: bool) -> Self {
        let columns: Vec<usize> = (0..rows.len()).collect();
        let of_group = |columns: &[usize]| {
            let tails = columns.iter().map(|&column| Draw::Tail { column });
            let hiding = columns.iter().map(|&column| Draw::Blind { column });
            let both: Vec<Draw> = tails.chain(hiding.take_while(|_| blinds)).collect();
            both
        };
        let list = columns.chunks(group.max(1)).flat_map(of_group).collect();
        Self { rows, list, blinds }
    }

    /// Draws all of it.
    pub fn taken<F: KernelField>(&self, randomness: &mut (impl Randomness<F> + ?Sized)) -> Drawn<F> {
        let zeros = |rows: &usize| vec![F::ZERO; *rows];
        let mut tails: Vec<Vec<F>> = self.rows.iter().map(zeros).collect();
        let mut blinds = vec![F::ONE; tails.len()];
        for draw in &self.list {
            match *draw {
                Draw::Tail { column } => tails[column].fill_with(|| randomness.scalar()),
                Draw::Blind { column } => blinds[column] = randomness.scalar(),
            }
        }
        // Equal where the same values were drawn: of the blinds, if there are any.
        let mut digest = Digest::default();
        match self.blinds {
            true => digest.absorb(&blinds),
            false => tails.iter().for_each(|tail| digest.absorb(tail)),
        }
        let digest = digest.finish();
        Drawn { tails, blinds, digest }
    }
}

impl<F> Drawn<F> {
    /// What the draws are recognised by.
    pub fn digest(&self) -> [u8; DIGEST_BYTES] {
        self.digest
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

    fn drawn(rows: &[usize], group: usize, blinds: bool) -> (Vec<Vec<Scalar>>, Vec<Scalar>) {
        let drawn = Draws::of(rows.to_vec(), group, blinds).taken(&mut Counted(0));
        (drawn.tails, drawn.blinds)
    }

    fn scalars(values: &[u64]) -> Vec<Scalar> {
        values.iter().map(|value| Scalar::from(*value)).collect()
    }

    #[test]
    fn each_group_has_its_tails_and_then_its_blinds() {
        let (tails, blinds) = drawn(&[2, 1, 1], 2, true);
        assert_eq!(tails, [&[1, 2][..], &[3], &[6]].map(scalars));
        assert_eq!(blinds, scalars(&[4, 5, 7]));
        let (tails, blinds) = drawn(&[2, 1, 1], 2, false);
        assert_eq!(tails, [&[1, 2][..], &[3], &[4]].map(scalars));
        assert_eq!(blinds, scalars(&[1, 1, 1]));
    }
}
