//! Files of sections, whose lengths are known before they are written.

use std::io::{self, Write};
use std::ops::Range;

use ark_ec::PrimeGroup;
use ark_ec::short_weierstrass::Projective;
use spillproof_format::iden3::{FileKind, write_prefix, write_section_prefix};
use spillproof_format::native::{NativeField, point_bytes, write_point};
use spillproof_kernels::backend::Backend;
use spillproof_kernels::curve::{Curve, Point};
use spillproof_kernels::parallel::Parallel;
use spillproof_kernels::points::Multiples;

/// Points that are in memory at a time.
const CHUNK_POINTS: usize = 1 << 17;
/// Points that a thread makes at a time.
const BLOCK_POINTS: usize = 1 << 12;

/// A file that is being written.
pub(super) struct Sections<'a> {
    pub out: &'a mut dyn Write,
}

impl<'a> Sections<'a> {
    pub fn begin(out: &'a mut dyn Write, kind: FileKind, sections: u32) -> io::Result<Self> {
        let mut prefix = Vec::new();
        write_prefix(kind, sections, &mut prefix);
        out.write_all(&prefix)?;
        Ok(Self { out })
    }

    pub fn section_prefix(&mut self, id: u32, section_bytes: usize) -> io::Result<()> {
        let mut prefix = Vec::new();
        write_section_prefix(id, section_bytes as u64, &mut prefix);
        self.out.write_all(&prefix)
    }

    pub fn section(&mut self, id: u32, content: &[u8]) -> io::Result<()> {
        self.section_prefix(id, content.len())?;
        self.out.write_all(content)
    }

    /// A section of so many points: multiples of the generator, by the scalars of each range of them.
    pub fn points<P: Curve<BaseField: NativeField>>(
        &mut self,
        id: u32,
        count: usize,
        scalars: &(dyn Fn(Range<usize>) -> Vec<P::ScalarField> + Sync),
        multiples: &Multiples<P>,
    ) -> io::Result<()> {
        let each = point_bytes::<P>();
        self.section_prefix(id, each * count)?;
        let mut bytes = vec![0; each * CHUNK_POINTS.min(count)];
        for start in (0..count).step_by(CHUNK_POINTS) {
            let range = start..count.min(start + CHUNK_POINTS);
            let bytes = &mut bytes[..each * range.len()];
            let blocks = range.clone().step_by(BLOCK_POINTS);
            let blocks = blocks.zip(bytes.chunks_mut(BLOCK_POINTS * each)).parallel();
            blocks.for_each_init(
                || (multiples.worker(), vec![Point::<P>::INFINITY; BLOCK_POINTS]),
                |(worker, points), (start, bytes)| {
                    let scalars = scalars(start..range.end.min(start + BLOCK_POINTS));
                    let points = &mut points[..scalars.len()];
                    multiples.multiply(worker, &scalars, points);
                    for (point, bytes) in points.iter().zip(bytes.chunks_exact_mut(each)) {
                        write_point(&point.to_affine::<P>(), bytes);
                    }
                },
            );
            self.out.write_all(bytes)?;
        }
        Ok(())
    }
}

/// Of the generator, for `count` scalars.
pub(super) fn multiples<P: Curve>(count: usize) -> Multiples<P> {
    let digit_bits = Multiples::<P>::digit_bits(count as u64, u64::MAX);
    Multiples::new(Backend::detect(), &Projective::generator(), digit_bits)
}
