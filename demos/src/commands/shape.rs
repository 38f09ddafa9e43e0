//! The built-in circuits as the planner takes them.

use halo2_axiom::spillproof::OpeningScheme;
use spillproof_circuits::{Scheme, dropin};

use crate::args::Shape;
/// The shape of a built-in circuit's proofs.
pub fn halo2_shape(shape: Shape) -> halo2_axiom::spillproof::Shape {
    let Shape { k, circuit, scheme } = shape;
    let scheme = match scheme {
        Scheme::Shplonk => OpeningScheme::Shplonk,
        Scheme::Gwc => OpeningScheme::Gwc,
    };
    halo2_axiom::spillproof::shape(&dropin::proof::constraint_system(circuit), k, 1, scheme)
}
