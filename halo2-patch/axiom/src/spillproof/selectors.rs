//! `VerifyingKey`'s selectors: `Vec<Vec<bool>>` as stock, a byte a row and selector, or in a session a column of bits.

use std::io;
use std::ops::Range;

use ff::Field;
use spillproof_halo2::selectors::{self, activations, SelectorWriter};

use super::bases::or_panic;
use super::engine::session;
use crate::helpers::pack;
use crate::plonk::ConstraintSystem;

/// Where each selector of a circuit is on.
#[derive(Clone, Debug)]
pub struct SelectorBits(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Memory(Vec<Vec<bool>>),
    Disk(selectors::SelectorBits),
}

impl SelectorBits {
    pub(crate) fn on_disk(bits: selectors::SelectorBits) -> Self {
        Self(Inner::Disk(bits))
    }

    /// How many selectors there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Memory(selectors) => selectors.len(),
            Inner::Disk(bits) => bits.count(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of a selector.
    pub(crate) fn get(&self, selector: usize) -> Option<Range<usize>> {
        match &self.0 {
            Inner::Memory(selectors) => selectors.get(selector).map(|rows| 0..rows.len()),
            Inner::Disk(bits) => (selector < bits.count()).then_some(0..bits.rows()),
        }
    }

    /// For the loop in stock's `write`, which [`Self::write`] is called after: nothing.
    pub(crate) fn written_after() -> [Vec<bool>; 0] {
        []
    }

    /// Writes each selector in turn, `n / 8` bytes.
    ///
    /// # Errors
    /// Those of the writer, and of reading the column.
    pub(crate) fn write<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        match &self.0 {
            Inner::Memory(selectors) => selectors
                .iter()
                .try_for_each(|rows| writer.write_all(&packed(rows))),
            Inner::Disk(bits) => bits.write(writer),
        }
    }
}

/// None, for a key whose selectors are not compressed.
impl Default for SelectorBits {
    fn default() -> Self {
        Self(Inner::Memory(Vec::new()))
    }
}

impl From<Vec<Vec<bool>>> for SelectorBits {
    /// In a session they go to disk.
    ///
    /// Panics where its disk or budget has no room.
    fn from(selectors: Vec<Vec<bool>>) -> Self {
        let (false, Some(session)) = (selectors.is_empty(), or_panic(session())) else {
            return Self(Inner::Memory(selectors));
        };
        let rows = selectors.first().map_or(0, Vec::len);
        let write = || {
            let mut writer = SelectorWriter::new(session.workspace(), selectors.len(), rows)?;
            selectors
                .iter()
                .try_for_each(|selector| writer.push(&packed(selector)))?;
            writer.finish()
        };
        Self::on_disk(or_panic(write().map_err(io::Error::other)))
    }
}

/// In a session, reads the selectors of a key with compressed ones, and compresses those of its constraint system; `None`,
/// with nothing read, where that is for stock to do.
///
/// # Errors
/// Those of the reader; where the session's disk or budget has no room.
pub(crate) fn read<F: Field, R: io::Read>(
    reader: &mut R,
    k: u32,
    compressed: bool,
    cs: &ConstraintSystem<F>,
) -> io::Result<Option<(ConstraintSystem<F>, SelectorBits)>> {
    let (true, Some(session)) = (compressed, session()?) else {
        return Ok(None);
    };
    let count = cs.num_selectors;
    let bits = selectors::SelectorBits::read(session.workspace(), count, 1 << k, reader)?;
    let conflicts = bits.conflicts().map_err(io::Error::other)?;
    let (cs, _) = cs.clone().compress_selectors(activations(count, &conflicts));
    Ok(Some((cs, SelectorBits::on_disk(bits))))
}

fn packed(rows: &[bool]) -> Vec<u8> {
    rows.chunks(8).map(pack).collect()
}
