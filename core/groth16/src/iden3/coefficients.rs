//! The coefficients of a `.zkey` file, or those of a rank's share: copied to scratch columns, or their distinct
//! values counted.
//!
//! Coefficients have 44 bytes in a file, and most have one of few values: a column of them has 16 bytes each,
//! and the values stand once ([`Dictionary`]). How many values there are, a file does not say: they are
//! counted before a key is planned.
//!
//! Memory of the copy: the dictionary, two runs of the file, a tile of coefficients, two buffers of a writer.
//! Memory of the count: a small dictionary of frequent values, hashes of the others ([`DistinctHashes`]), two
//! runs and a tile.

use std::hash::{BuildHasher, RandomState};

use spillproof_format::iden3::zkey;
use spillproof_format::{Element as _, FormatError};

use super::key::Zkey;
use crate::constraints::Share;
use crate::dictionary::{Dictionary, Form, UNKNOWN};
use crate::distinct::DistinctHashes;
use crate::{Coefficient, Constraints, PairingCurve, Shape, placement_of_copies};
use spillproof_engine::Result;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::runs::{Array, Progress};
use spillproof_engine::column::{Column, Placement, Workspace, Writer};
use spillproof_engine::step;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::parallel::Parallel;

/// Coefficients that one thread decodes at a time.
const JOB_COEFFICIENTS: usize = 256;
/// Values that have a place while values are counted.
const FREQUENT_MAX: u64 = 1 << 12;
/// Their dictionary takes at most this part of what the budget has left.
const FREQUENT_SHARE: u64 = 8;
/// The matrix of a coefficient that another rank has.
const NOT_KEPT: u32 = u32::MAX;
/// Names of leases and columns.
const COEFFICIENTS: &str = "coefficients";
const VALUES: &str = "values of coefficients";

/// What becomes of the values of coefficients.
trait Values: Sync {
    /// The place of a value that has one, else [`UNKNOWN`].
    fn place(&self, value: &[u8; 32]) -> u32;

    /// A value without a place; the place that it gets, if it gets one.
    fn enter(&mut self, value: &[u8; 32]) -> Result<u32>;
}

impl<F: KernelField> Values for Dictionary<F> {
    fn place(&self, value: &[u8; 32]) -> u32 {
        Dictionary::place(self, value)
    }

    fn enter(&mut self, value: &[u8; 32]) -> Result<u32> {
        Dictionary::enter(self, value)
    }
}

/// Counts values.
struct Counter<F> {
    frequent: Dictionary<F>,
    frequent_max: u64,
    others: DistinctHashes,
    hasher: RandomState,
}

impl<F: KernelField> Counter<F> {
    fn new(budget: &Budget) -> Result<Self> {
        let share_bytes = budget.available_bytes() / FREQUENT_SHARE;
        Ok(Self {
            frequent_max: Dictionary::<F>::values_in(share_bytes).min(FREQUENT_MAX),
            frequent: Dictionary::new(budget, Form::TimesSquare)?,
            others: DistinctHashes::new(budget)?,
            hasher: RandomState::new(),
        })
    }
}

impl<F: KernelField> Values for Counter<F> {
    fn place(&self, value: &[u8; 32]) -> u32 {
        self.frequent.place(value)
    }

    fn enter(&mut self, value: &[u8; 32]) -> Result<u32> {
        match self.frequent.place(value) {
            UNKNOWN if (self.frequent.values.len() as u64) < self.frequent_max => self.frequent.enter(value),
            UNKNOWN => {
                self.others.push(self.hasher.hash_one(value));
                Ok(UNKNOWN)
            }
            place => Ok(place),
        }
    }
}

/// So many coefficients from an offset on.
fn array(count: u64, offset: u64) -> Array {
    Array {
        what: COEFFICIENTS,
        offset,
        count,
        element_bytes: zkey::COEFFICIENT_BYTES as u64,
    }
}

/// A dry run of [`Zkey::constraints`], for a key of this shape, of which as many coefficients and values are kept as
/// another one has.
pub(crate) fn rehearse<F: KernelField>(
    workspace: &Workspace,
    shape: &Shape,
    kept: &Shape,
) -> Result<Constraints<F>> {
    let _step = step!(workspace, "copy of coefficients");
    let array = array(shape.coefficients, 0);
    let first_bytes = Dictionary::<F>::bytes(0);
    let _dictionary = workspace.hold(first_bytes, VALUES)?;
    let placement = placement_of_copies(workspace);
    let writer = Writer::<Coefficient>::scratch(workspace, COEFFICIENTS, array.count, placement)?;
    let tile = array.run_elements(&workspace.budget);
    let _tile = workspace.hold(tile * size_of::<Coefficient>() as u64, COEFFICIENTS)?;
    let runs = array.rehearse(workspace)?;
    let _grown = workspace.hold(Dictionary::<F>::bytes(kept.values) - first_bytes, VALUES)?;
    let coefficients = writer.finish_at(kept.coefficients)?;
    drop(runs);
    let values = Writer::scratch(workspace, VALUES, kept.values, placement)?.finish()?;
    Ok(Constraints::new(values, coefficients))
}

impl<E: PairingCurve> Zkey<E> {
    /// The coefficients of a share, in scratch columns, with the numbers of their rows in the domain.
    pub fn constraints(
        &self,
        share: Share,
        placement: Placement,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Constraints<E::Scalar>> {
        let workspace = &self.source.workspace;
        let _step = step!(workspace, "copy of coefficients");
        let mut dictionary = Dictionary::<E::Scalar>::new(&workspace.budget, Form::TimesSquare)?;
        let count = self.layout.coefficients.count;
        let mut writer = Writer::<Coefficient>::scratch(workspace, COEFFICIENTS, count, placement)?;
        let mut kept = 0;
        self.each_tile(&mut dictionary, share, progress, |tile| {
            kept += tile.len() as u64;
            writer.push(tile)
        })?;
        let coefficients = writer.finish_at(kept)?;
        let len = dictionary.values.len() as u64;
        let mut values = Writer::scratch(workspace, VALUES, len, placement)?;
        values.push(&dictionary.values)?;
        let values: Column<E::Scalar> = values.finish()?;
        Ok(Constraints::new(values, coefficients))
    }

    /// The sizes of a key with the coefficients of a share. All coefficients are read and checked.
    pub fn counted_shape(&self, share: Share, progress: &mut dyn FnMut(Progress)) -> Result<Shape> {
        let mut counter = Counter::<E::Scalar>::new(&self.source.workspace.budget)?;
        let coefficients = loop {
            let mut kept = 0;
            self.each_tile(&mut counter, share, progress, |tile| {
                kept += tile.len() as u64;
                Ok(())
            })?;
            if counter.others.end_pass() {
                break kept;
            }
        };
        Ok(Shape {
            coefficients,
            values: counter.frequent.values.len() as u64 + counter.others.counted(),
            ..self.shape()
        })
    }

    /// Checks all coefficients, and hands those of a share to `each` with the places of their values.
    fn each_tile(
        &self,
        values: &mut impl Values,
        share: Share,
        progress: &mut dyn FnMut(Progress),
        mut each: impl FnMut(&[Coefficient]) -> Result<()>,
    ) -> Result<()> {
        let (workspace, range) = (&self.source.workspace, self.layout.coefficients);
        let array = array(range.count, range.offset);
        let run_elements = array.run_elements(&workspace.budget) as usize;
        let mut tile = (workspace.budget).vec(run_elements, Coefficient::default(), COEFFICIENTS)?;
        let mut row_before = 0;
        self.source.file.each_run(&array, progress, |first, bytes| {
            let tile = &mut tile[..bytes.len() / zkey::COEFFICIENT_BYTES];
            let refuse = |error| self.source.refuse(error);
            self.decode((first, bytes), tile, values, share).map_err(refuse)?;
            let mut kept = 0;
            let coded = bytes.chunks_exact(zkey::COEFFICIENT_BYTES);
            for (at, bytes) in coded.enumerate() {
                let mut coefficient = tile[at];
                if coefficient.row < row_before {
                    return Err(refuse(FormatError::Field {
                        what: "the row of a coefficient",
                        offset: range.coefficient_offset(first + at as u64) + 4,
                        value: coefficient.row.to_string(),
                        remedy: "it is below the row before it: keys whose coefficients are not in the order of rows are not read",
                    }));
                }
                row_before = coefficient.row;
                if coefficient.matrix == NOT_KEPT {
                    continue;
                }
                if coefficient.value == UNKNOWN {
                    coefficient.value = values.enter(&zkey::Coefficient::decode(bytes).value)?;
                }
                tile[kept] = coefficient;
                kept += 1;
            }
            each(&tile[..kept])
        })
    }

    /// Checks a run of coefficients, and finds the values of those of a share, as far as these have places.
    fn decode(
        &self,
        (first, bytes): (u64, &[u8]),
        out: &mut [Coefficient],
        values: &impl Values,
        share: Share,
    ) -> Result<(), FormatError> {
        let bad = (out.chunks_mut(JOB_COEFFICIENTS))
            .zip(bytes.chunks(JOB_COEFFICIENTS * zkey::COEFFICIENT_BYTES))
            .enumerate()
            .parallel()
            .find_map_first(|(job, (out, bytes))| {
                let first = first + (job * JOB_COEFFICIENTS) as u64;
                let places = out.iter_mut().zip(bytes.chunks_exact(zkey::COEFFICIENT_BYTES));
                for (index, (out, bytes)) in (first..).zip(places) {
                    let found = zkey::Coefficient::decode(bytes);
                    let offset = self.layout.coefficients.coefficient_offset(index);
                    if let Err(error) = found.check(index, offset, &self.header) {
                        return Some(error);
                    }
                    let is_kept = share.row_of(found.constraint, found.signal).is_some();
                    *out = Coefficient {
                        row: found.constraint,
                        signal: found.signal,
                        value: if is_kept {
                            values.place(&found.value)
                        } else {
                            UNKNOWN
                        },
                        matrix: if is_kept { found.matrix } else { NOT_KEPT },
                    };
                }
                None
            });
        bad.map_or(Ok(()), Err)
    }
}
