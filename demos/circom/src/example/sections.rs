//! Files of sections, whose lengths are known before they are written.

use std::io::{self, Write};

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use spillproof_format::iden3::{FileKind, write_prefix, write_section_prefix};
use spillproof_format::native::{NativeField, point_bytes, write_point};

/// Points that are in memory at a time.
const CHUNK_POINTS: usize = 1 << 16;

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

    /// A section of so many points: multiples of the generator, by these scalars.
    pub fn points<P: SWCurveConfig<BaseField: NativeField>>(
        &mut self,
        id: u32,
        count: usize,
        mut scalars: impl Iterator<Item = P::ScalarField>,
        multiply: impl Fn(&[P::ScalarField]) -> Vec<Affine<P>>,
    ) -> io::Result<()> {
        let each = point_bytes::<P>();
        self.section_prefix(id, each * count)?;
        let mut bytes = vec![0; each * CHUNK_POINTS.min(count)];
        loop {
            let some: Vec<_> = scalars.by_ref().take(CHUNK_POINTS).collect();
            if some.is_empty() {
                return Ok(());
            }
            let points = multiply(&some);
            for (point, out) in points.iter().zip(bytes.chunks_exact_mut(each)) {
                write_point(point, out);
            }
            self.out.write_all(&bytes[..each * points.len()])?;
        }
    }

    /// The same of scalars that are in memory.
    pub fn points_of<P: SWCurveConfig<BaseField: NativeField>>(
        &mut self,
        id: u32,
        scalars: &[P::ScalarField],
        multiply: impl Fn(&[P::ScalarField]) -> Vec<Affine<P>>,
    ) -> io::Result<()> {
        self.points::<P>(id, scalars.len(), scalars.iter().copied(), multiply)
    }
}
