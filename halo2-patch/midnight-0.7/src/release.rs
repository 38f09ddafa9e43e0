//! What is this release's own, and not that of `../midnight`.

use spillproof_plonk::description::MidnightRelease;
use spillproof_plonk::{Part, Sets};

/// Its number.
pub(crate) const VERSION: &str = "0.7.3";
/// Its name in saved keys.
pub(crate) const RELEASE: MidnightRelease = MidnightRelease::V07;
/// The order in which a circuit's polynomials are opened.
pub(crate) const QUERIES: &[Part] = &Part::INSTANCES_FIRST;
/// The order of the sets of points of an opening.
pub(crate) const SETS: Sets = Sets::AsNamed;
