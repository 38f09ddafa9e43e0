//! `VerifyingKey`'s selectors: `Vec<Vec<bool>>` as stock, a byte a row and selector, or in a session a column
//! of bits.

use std::io;
use std::ops::Range;

use ff::Field;
use spillproof_engine::column::Workspace;
use spillproof_plonk::selectors::{self, activations, SelectorWriter};

use super::engine::session;
use super::or_panic;
use crate::helpers::pack;
use crate::plonk::ConstraintSystem;

/// Where each selector of a circuit is on; and, since it is the one field of a verifying key that is ours,
/// how many jobs of the making of the key were an accelerator's.
#[derive(Clone, Debug)]
pub struct SelectorBits {
    bits: Inner,
    accelerator_jobs: u64,
}

#[derive(Clone, Debug)]
enum Inner {
    Memory(Vec<Vec<bool>>),
    Disk(selectors::SelectorBits),
}

impl SelectorBits {
    fn of(bits: Inner) -> Self {
        Self {
            bits,
            accelerator_jobs: 0,
        }
    }

    pub(crate) fn on_disk(bits: selectors::SelectorBits) -> Self {
        Self::of(Inner::Disk(bits))
    }

    /// How many jobs of the key's making were an accelerator's. It does not survive a file.
    pub(crate) fn accelerator_jobs(&self) -> u64 {
        self.accelerator_jobs
    }

    /// More of the key was made.
    pub(crate) fn add_accelerator_jobs(&mut self, jobs: u64) {
        self.accelerator_jobs += jobs;
    }

    /// How many selectors there are.
    pub fn len(&self) -> usize {
        match &self.bits {
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
        match &self.bits {
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
        match &self.bits {
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
        Self::of(Inner::Memory(Vec::new()))
    }
}

impl From<Vec<Vec<bool>>> for SelectorBits {
    /// In a session they go to disk.
    ///
    /// Panics where its disk or budget has no room.
    fn from(selectors: Vec<Vec<bool>>) -> Self {
        let (false, Some(session)) = (selectors.is_empty(), or_panic(session())) else {
            return Self::of(Inner::Memory(selectors));
        };
        Self::on_disk(or_panic(
            spilled(session.workspace(), &selectors).map_err(io::Error::other),
        ))
    }
}

/// Selectors in memory as bits on disk.
fn spilled(
    workspace: &Workspace,
    selectors: &[Vec<bool>],
) -> spillproof_engine::Result<selectors::SelectorBits> {
    workspace.run(|| {
        let rows = selectors.first().map_or(0, Vec::len);
        let mut writer = SelectorWriter::new(workspace, selectors.len(), rows)?;
        selectors
            .iter()
            .try_for_each(|selector| writer.push(&packed(selector)))?;
        writer.finish()
    })
}

/// The constraint system of a key: `cs` with its selectors replaced, as those of the key are. `None` if their
/// numbers differ.
///
/// # Errors
/// Where the disk or the budget has no room.
pub(crate) fn replaced<F: Field>(
    workspace: &Workspace,
    of_key: &SelectorBits,
    compressed: bool,
    cs: ConstraintSystem<F>,
) -> spillproof_engine::Result<Option<ConstraintSystem<F>>> {
    let count = cs.num_selectors;
    if !compressed {
        return Ok(Some(
            cs.directly_convert_selectors_to_fixed(vec![vec![false]; count]).0,
        ));
    }
    if of_key.len() != count {
        return Ok(None);
    }
    let conflicts = match &of_key.bits {
        Inner::Memory(selectors) => spilled(workspace, selectors)?.conflicts()?,
        Inner::Disk(bits) => bits.conflicts()?,
    };
    Ok(Some(cs.compress_selectors(activations(count, &conflicts)).0))
}

/// In a session, reads the selectors of a key with compressed ones, and compresses those of its constraint
/// system; `None`, with nothing read, where that is for stock to do.
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
