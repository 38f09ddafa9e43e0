//! The vanishing argument's random polynomial, of which a tile is in memory.

use std::io;

use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_kernels::field::KernelField;

use crate::draws::Digest;
use crate::error::Result;
use crate::outside::{Chunk, RandomPolynomial, Randomness, Seed};

/// Coefficients that are drawn at a time.
const DRAWN: u64 = 1 << 13;
/// Those of them that one thread draws.
const DRAWN_BY_A_THREAD: usize = 1 << 9;

/// Draws a polynomial of `coefficients` coefficients; none if it was kept: then only what later draws depend
/// on is drawn. What the caller's generator gives goes to `digest`, if there is one.
///
/// # Errors
/// For chunks without a seed; the engine's.
pub(crate) fn polynomial<F: KernelField>(
    workspace: &Workspace,
    coefficients: u64,
    is_kept: bool,
    randomness: &mut (impl Randomness<F> + ?Sized),
    mut digest: Option<&mut Digest>,
) -> Result<Option<Column<F>>> {
    let mut source = match randomness.random_polynomial(coefficients) {
        RandomPolynomial::Scalars => Source::Scalars,
        RandomPolynomial::OnAnyThread(draw) => Source::OnAnyThread(draw),
        RandomPolynomial::Chunks { seeds, generator } => {
            if let Some(digest) = &mut digest {
                seeds.iter().for_each(|seed| digest.absorb_bytes(seed));
            }
            Source::Chunks(Chunks::new(seeds, generator, coefficients)?)
        }
    };
    let made = workspace.run_here(|| {
        let mut writer = match is_kept {
            false => Some(Writer::scratch(
                workspace,
                "random polynomial",
                coefficients,
                Placement::Auto,
            )?),
            true => None,
        };
        let mut tile = vec![F::ZERO; coefficients.min(DRAWN) as usize];
        let mut left = match (&source, is_kept) {
            _ if workspace.is_dry() => 0,
            (Source::Scalars, _) | (_, false) => coefficients,
            (Source::OnAnyThread(_) | Source::Chunks(_), true) => 0,
        };
        while left > 0 {
            let tile = &mut tile[..left.min(DRAWN) as usize];
            match &mut source {
                Source::OnAnyThread(draw) => workspace.in_pieces(tile, DRAWN_BY_A_THREAD, *draw)?,
                Source::Chunks(chunks) => chunks.fill(tile),
                Source::Scalars => {
                    tile.fill_with(|| randomness.scalar());
                    if let Some(digest) = &mut digest {
                        digest.absorb(tile);
                    }
                }
            }
            if let Some(writer) = &mut writer {
                writer.push(tile)?;
            }
            left -= tile.len() as u64;
        }
        writer.map(Writer::finish).transpose()
    })?;
    Ok(made)
}

/// Where coefficients come from.
enum Source<F> {
    Scalars,
    OnAnyThread(fn(&mut [F])),
    Chunks(Chunks<F>),
}

/// Coefficients in chunks, one after the other.
struct Chunks<F> {
    seeds: std::vec::IntoIter<Seed>,
    generator: fn(&Seed) -> Box<Chunk<F>>,
    /// Of each chunk, but of those that are longer.
    coefficients: u64,
    /// Chunks that are longer and have not begun.
    longer: u64,
    current: Option<Box<Chunk<F>>>,
    /// Coefficients of the current chunk that are still to come.
    left: u64,
}

impl<F: KernelField> Chunks<F> {
    fn new(seeds: Vec<Seed>, generator: fn(&Seed) -> Box<Chunk<F>>, coefficients: u64) -> Result<Self> {
        if seeds.is_empty() {
            let message = "a random polynomial of chunks has no seed: draw one for each thread";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message).into());
        }
        let chunks = seeds.len() as u64;
        Ok(Self {
            seeds: seeds.into_iter(),
            generator,
            coefficients: coefficients / chunks,
            longer: coefficients % chunks,
            current: None,
            left: 0,
        })
    }

    /// The next coefficients, up to the last chunk's end.
    fn fill(&mut self, mut tile: &mut [F]) {
        while !tile.is_empty() {
            while self.left == 0 {
                let Some(seed) = self.seeds.next() else {
                    return;
                };
                self.left = self.coefficients + u64::from(self.longer > 0);
                self.longer = self.longer.saturating_sub(1);
                self.current = Some((self.generator)(&seed));
            }
            let now = self.left.min(tile.len() as u64);
            let (drawn, later) = tile.split_at_mut(now as usize);
            if let Some(current) = &mut self.current {
                current(drawn);
            }
            self.left -= now;
            tile = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Scalar;

    /// Counts on from the first byte of its seed.
    fn counted(seed: &Seed) -> Box<Chunk<Scalar>> {
        let mut next = 1000 * u64::from(seed[0]);
        Box::new(move |out| {
            out.fill_with(|| {
                next += 1;
                Scalar::from(next)
            });
        })
    }

    #[test]
    fn chunks_are_cut_as_threads_cut_a_vector() {
        for (coefficients, threads, lens) in [
            (8u64, 1u8, &[8][..]),
            (8, 3, &[3, 3, 2]),
            (8, 7, &[2, 1, 1, 1, 1, 1, 1]),
            (4, 4, &[1, 1, 1, 1]),
        ] {
            let expected: Vec<Scalar> = (1..=threads)
                .zip(lens)
                .flat_map(|(chunk, len)| (1..=*len).map(move |at| Scalar::from(1000 * u64::from(chunk) + at)))
                .collect();
            for tile in 1..=coefficients as usize {
                let seeds = (1..=threads).map(|chunk| [chunk; 32]).collect();
                let mut chunks = Chunks::new(seeds, counted, coefficients).unwrap();
                let mut filled = vec![Scalar::from(0u64); coefficients as usize];
                filled.chunks_mut(tile).for_each(|tile| chunks.fill(tile));
                assert_eq!(
                    filled, expected,
                    "{coefficients} in {threads} chunks, {tile} at a time"
                );
            }
        }
        assert!(Chunks::new(Vec::new(), counted, 8).is_err());
    }
}
