//! Kernels over columns: what is larger than memory, computed through fixed buffers.
//!
//! Each function joins readers and writers of [`crate::column`] with a kernel of [`crate::kernels`]: it leases its tiles,
//! keeps the next read on its way while the kernel works, and gives what an in-memory library would have given, bit for
//! bit. In: columns, a budget. Out: columns, points, scalars.
//!
//! Architecture invariant: no arithmetic stands in here that a kernel could do, and no system call.

mod group_ntt;
mod many;
mod msm;
mod ntt;
mod ntt_plan;
mod offload;
mod poly;
mod sums;

pub use group_ntt::{group_ntt, group_ntt_in_tiles};
pub use many::evaluate_all;
pub use msm::{ForeignScalars, MsmPlan, Scalars, msm};
pub(crate) use msm::{LeasedMsm, leased_kernel};
pub use ntt::{Transform, ntt, ntt_in_tiles};
pub use ntt_plan::NttPlan;
pub use poly::{
    batch_invert, divide_by_linear, evaluate, evaluate_many, linear_combination, linear_combinations,
    prefix_product,
};
pub(crate) use poly::{linear_combinations_bytes, linear_combinations_in_chunks};

pub(crate) use many::{merged, workers_within};
pub(crate) use ntt::{BANDS_BEHIND, InputShape, Slices, between_frame_bytes, largest_tile, log_band};
pub(crate) use offload::{WALK_BUFFERS, beyond, declined, descending_sum, wrong_answer};
pub(crate) use sums::{COLUMNS_OF_DEPTH_1, Sums, TILES_PER_THREAD, distinct};

use crate::column::Element;
use crate::kernels::curve::Coordinates;
use crate::kernels::field::KernelField;

/// Affine points as they lie on disk: x, then y; infinity is all zero bytes.
impl<F: KernelField + Element> Element for Coordinates<F> {
    const BYTES: usize = 2 * F::BYTES;

    #[inline]
    fn decode(bytes: &[u8]) -> Self {
        let (x, y) = bytes.split_at(F::BYTES);
        Self {
            x: F::decode(x),
            y: F::decode(y),
        }
    }

    #[inline]
    fn encode(&self, out: &mut [u8]) {
        let (x, y) = out.split_at_mut(F::BYTES);
        self.x.encode(x);
        self.y.encode(y);
    }
}
