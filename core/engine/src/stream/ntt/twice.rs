//! Columns that are transformed twice, one transform after the other, and combined element by element: as the
//! values of three polynomials on a domain become those of one on a coset.
//!
//! Over the disk these are three passes for each column, not four: the second pass of the first transform
//! leaves whole rows, which are what the first pass of the second one takes, if that has the lengths n2 and
//! n1. The last pass has a tile of each column in memory, and writes the combination only. In memory, all
//! columns at once where the budget has room for them, else one after the other. Where the budget has no room
//! for tiles of three passes, and where an accelerator would make them, the transforms are made one by one,
//! and a pass combines the columns.

use super::combine::{Combine, combine_columns};
use super::four_step::FourStep;
use super::plan::{InputShape, NttPlan, Slices, log_band, log_run_min};
use super::whole::whole;
use super::{ScalarTiles, ntt_in_turn};
use crate::Result;
use crate::column::{Column, Element, Placement};
use crate::error::Invalid;
use crate::stream::Transform;
use crate::stream::offload::takes_transforms;
use spillproof_kernels::field::KernelField;
use spillproof_kernels::ntt::{NttElement, forget_buffers};

/// How columns are transformed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All of them in memory.
    AllWhole,
    /// One after the other in memory; then a pass combines them.
    EachWhole,
    /// In three passes over the disk.
    ThreePasses {
        /// log2 of the elements of a tile: of one column in the first two passes, of each in the last.
        log_tiles: [u32; 2],
        /// log2 of n1 and n2.
        log_lengths: [u32; 2],
    },
    /// One transform after the other; then a pass combines the columns.
    OneByOne,
}

impl Way {
    /// The one with the fewest bytes read and written, for so many inputs, that fits `available_bytes`, and
    /// `freed_bytes` of inputs that are read before the last.
    fn within(
        shape: &InputShape,
        inputs: u64,
        log_n: u32,
        [available_bytes, freed_bytes]: [u64; 2],
    ) -> Result<Self> {
        if shape.whole_bytes(log_n, inputs) <= available_bytes + freed_bytes {
            return Ok(Self::AllWhole);
        }
        if shape.whole_bytes(log_n, 1) <= available_bytes {
            return Ok(Self::EachWhole);
        }
        let log_tile_min = NttPlan::log_tile_min(log_n, shape.element_bytes);
        for log_tile in (log_tile_min..log_n).rev() {
            let plan = NttPlan::new(log_n, log_tile, shape.element_bytes, shape.frame_elements)?;
            let NttPlan::FourStep { log_n1, log_n2, .. } = plan else {
                continue;
            };
            if let Some(way) = Self::three_passes(shape, inputs, log_tile, [log_n1, log_n2], available_bytes)
            {
                return Ok(way);
            }
        }
        Ok(Self::OneByOne)
    }

    /// Three passes, of which the first two have tiles of `2^log_tile` elements.
    fn three_passes(
        shape: &InputShape,
        inputs: u64,
        log_tile: u32,
        log_lengths: [u32; 2],
        available_bytes: u64,
    ) -> Option<Self> {
        let [log_n1, log_n2] = log_lengths;
        let fits = |columns, log_tile, slices| shape.pass_bytes(columns, log_tile, slices) <= available_bytes;
        let [first, _] = Slices::of([log_tile; 2], log_lengths, shape.element_bytes);
        if !fits(1, log_tile, first) {
            return None;
        }
        // A block of the middle pass leaves by bands, and a run of the last pass is one of the smallest
        // frames at least.
        let log_widths = log_run_min(shape.element_bytes)..=log_band(log_tile, shape.element_bytes);
        (log_n1..=log_tile)
            .rev()
            .filter(|log_last| log_widths.contains(&(log_last - log_n1)))
            .find_map(|log_last| {
                let log_tiles = [log_tile, log_last];
                let [middle, last] = Slices::of(log_tiles, [log_n2, log_n1], shape.element_bytes);
                let all_fit = fits(1, log_tile, middle) && fits(inputs, log_last, last);
                all_fit.then_some(Self::ThreePasses {
                    log_tiles,
                    log_lengths,
                })
            })
    }
}

/// Transforms columns, and what comes of each once more, and combines what comes of that: `combine` leaves in
/// its first slice what is made of all. What comes out is placed as `placement` says, and so is what single
/// transforms leave on the way.
///
/// # Errors
/// As [`super::ntt`]; [`Invalid::Length`] for transforms of different lengths.
pub fn transform_twice<F, const N: usize>(
    inputs: [Column<F>; N],
    transforms: [&Transform<F>; 2],
    combine: &Combine<F>,
    placement: Placement,
) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    const { assert!(N > 0, "a column at least") };
    let workspace = inputs[0].workspace().clone();
    workspace.run(|| {
        let [first, second] = transforms;
        let n = 1u64 << first.log_n;
        if first.log_n != second.log_n {
            return Err(Invalid::Length {
                what: "elements of the second of two transforms".into(),
                given: 1 << second.log_n,
                expected: n,
            }
            .into());
        }
        for input in &inputs {
            Invalid::unless_at_most("elements of a transform", input.len(), n)?;
        }
        let shape = InputShape::of(&inputs);
        let way = match takes_transforms::<F>(&workspace, first.log_n) {
            // A device takes single transforms.
            true => Way::OneByOne,
            false => {
                let in_memory = inputs[..N - 1].iter().filter(|input| !input.on_disk());
                let freed_bytes = in_memory.map(|input| input.len() * F::BYTES as u64).sum();
                let bytes = [workspace.budget.available_bytes(), freed_bytes];
                Way::within(&shape, N as u64, first.log_n, bytes)?
            }
        };
        tracing::debug!(log_n = first.log_n, ?way, "two transforms");
        let output = transform_by(way, inputs, transforms, combine, placement);
        if !workspace.is_dry() {
            forget_buffers();
        }
        output
    })
}

fn transform_by<F, const N: usize>(
    way: Way,
    inputs: [Column<F>; N],
    transforms: [&Transform<F>; 2],
    combine: &Combine<F>,
    placement: Placement,
) -> Result<Column<F>>
where
    F: KernelField + NttElement<F> + Element,
{
    let alone = |_: &mut [F], _: &[&[F]]| ();
    let [first, second] = transforms;
    match way {
        Way::AllWhole => whole(&ScalarTiles, inputs, &transforms, combine, placement),
        Way::EachWhole => {
            let values = each(inputs, |input| {
                whole(&ScalarTiles, [input], &transforms, &alone, placement)
            })?;
            combine_columns(&values, combine, placement)
        }
        Way::ThreePasses {
            log_tiles,
            log_lengths: [log_n1, log_n2],
        } => {
            let before = FourStep {
                tiles: &ScalarTiles,
                transform: first,
                log_tiles: [log_tiles[0]; 2],
                log_lengths: [log_n1, log_n2],
            };
            let after = FourStep {
                tiles: &ScalarTiles,
                transform: second,
                log_tiles,
                log_lengths: [log_n2, log_n1],
            };
            let betweens = each(inputs, |input| {
                let between = before.first_pass(&input)?;
                drop(input);
                before.middle_pass(&after, &between)
            })?;
            after.second_pass(&betweens, combine, placement)
        }
        Way::OneByOne => {
            let values = each(inputs, |input| {
                let between = ntt_in_turn(&input, first, placement)?;
                drop(input);
                ntt_in_turn(&between, second, placement)
            })?;
            combine_columns(&values, combine, placement)
        }
    }
}

/// What `one` makes of each column, which it drops as soon as it has read it.
fn each<F: Element>(
    columns: impl IntoIterator<Item = Column<F>>,
    one: impl FnMut(Column<F>) -> Result<Column<F>>,
) -> Result<Vec<Column<F>>> {
    columns.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_takes_more_passes() {
        let shape = InputShape {
            value_bytes: 32,
            element_bytes: 32,
            frame_elements: 512,
            chunk_bytes: 1 << 20,
        };
        let way = |mib: u64| Way::within(&shape, 3, 20, [mib << 20, 0]).unwrap();
        assert_eq!(way(128), Way::AllWhole);
        assert_eq!(way(64), Way::EachWhole);
        for mib in [16, 32] {
            let Way::ThreePasses {
                log_tiles,
                log_lengths,
            } = way(mib)
            else {
                panic!("{:?} in {mib} MiB", way(mib));
            };
            assert_eq!(log_lengths[0] + log_lengths[1], 20);
            // Runs of the last pass have a block of the disk at least.
            assert!(log_tiles[1] >= log_lengths[0] + 7, "{log_tiles:?}");
        }
        assert_eq!(way(8), Way::OneByOne);
        let beside_inputs_in_memory = Way::within(&shape, 3, 20, [64 << 20, 64 << 20]).unwrap();
        assert_eq!(beside_inputs_in_memory, Way::AllWhole);
    }
}
