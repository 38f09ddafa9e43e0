//! Kernels over columns: what is larger than memory, computed through fixed buffers.
//!
//! Each function joins readers and writers of [`crate::column`] with a kernel of [`spillproof_kernels`]: it
//! leases its tiles, keeps the next read on its way while the kernel works, and gives what an in-memory
//! library would have given, bit for bit. In: columns, a budget. Out: columns, points, scalars.
//!
//! Architecture invariant: no arithmetic stands in here that a kernel could do, and no system call.

mod combinations;
mod deal;
mod group_ntt;
mod many;
mod msm;
mod ntt;
mod offload;
mod points;
mod poly;
mod redeal;
mod scalars;
mod terms;
mod transform;

pub use deal::{Deal, bounds};
pub use group_ntt::block_points;
pub use group_ntt::{group_ntt, group_ntt_in_tiles};
pub use many::evaluate_all;
pub use msm::{LeasedMsm, leased_kernel};
pub use msm::{MsmPlan, msm, msm_of};
pub use ntt::{Combine, DealtTransforms, NttPlan, combine_columns, ntt, ntt_in_tiles, transform_twice};
pub use points::add_multiples;
pub use poly::{evaluate, linear_combination, linear_combinations};
pub use poly::{linear_combinations_bytes, linear_combinations_in_chunks};
pub use redeal::{Redeal, all_gather};
pub use scalars::{ForeignScalars, Scalars};
pub use terms::Terms;
pub use transform::Transform;
pub use transform::invert;

pub use combinations::{Combinations, distinct};
pub use many::merged;
pub use offload::{System, beyond, declined, descending_sum, elements_of, sums_of_terms, sums_over};
pub use offload::{system_quotient, wrong_answer};
