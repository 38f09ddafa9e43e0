//! The quotient in the basis of the key's `h` points: the second stage of a proof.
//!
//! Where a witness satisfies the constraints, `a * b - c` vanishes on the domain, and its quotient by the
//! domain's vanishing polynomial `X^n - 1` has fewer than n coefficients. On the coset of `shift * omega^i`,
//! where `shift^2 = omega`, that polynomial is the constant -2: so the values of `a * b - c` on the coset
//! determine the quotient, and the `h` points of circom's keys contain the constant. For other keys a
//! transform gives the quotient's coefficients.
//!
//! Algorithm: each of the three columns is taken to its coefficients and from there to the coset, where they
//! become one ([`transform_twice`]): in memory, or in three passes over the disk. For a key that has the
//! monomial basis, another transform goes back. Memory: that of the transforms. An accelerator with room for all three makes
//! the values, too.

use super::{Constraints, Domain, QuotientBasis};
use spillproof_engine::Result;
use spillproof_engine::column::{Column, Placement};
use spillproof_engine::step;
use spillproof_engine::stream::{System, Transform, invert, ntt, system_quotient, transform_twice};
use spillproof_kernels::field::KernelField;
use spillproof_kernels::vector;

/// The scalars that the key's `h` points take, for columns of values on the domain, placed as `placement` says.
///
/// # Errors
/// Those of [`transform_twice`] and [`ntt`], and of reading and writing columns.
pub(super) fn quotient<F: KernelField>(
    values: [Column<F>; 3],
    (log_n, domain): (u32, &Domain<F>),
    basis: QuotientBasis,
    placement: Placement,
) -> Result<Column<F>> {
    let transforms = transforms(log_n, domain)?;
    let on_coset = transform_twice(values, transforms.each_ref(), &product_less, placement)?;
    in_basis(on_coset, (log_n, domain), basis, placement)
}

/// The same by an accelerator, from the coefficients and a witness; `None` if the processor has to make the values.
///
/// # Errors
/// Those of [`system_quotient`], and of [`ntt`].
pub(super) fn offered<F: KernelField>(
    constraints: &Constraints<F>,
    witness: &Column<F>,
    (log_n, domain): (u32, &Domain<F>),
    basis: QuotientBasis,
    placement: Placement,
) -> Result<Option<Column<F>>> {
    let workspace = witness.workspace();
    let has_accelerator = workspace.accelerator.is_some();
    let _step = has_accelerator.then(|| step!(workspace, "constraints and quotient"));
    let system = System {
        log_n,
        omega: domain.omega,
        shift: domain.shift,
        values: constraints.values(),
        witness,
        coefficients: &constraints.coefficients().cast()?,
    };
    let on_coset = system_quotient(&system, placement)?;
    on_coset
        .map(|on_coset| in_basis(on_coset, (log_n, domain), basis, placement))
        .transpose()
}

/// The scalars of values of `a * b - c` on the coset.
fn in_basis<F: KernelField>(
    on_coset: Column<F>,
    (log_n, domain): (u32, &Domain<F>),
    basis: QuotientBasis,
    placement: Placement,
) -> Result<Column<F>> {
    match basis {
        QuotientBasis::Coset => Ok(on_coset),
        QuotientBasis::Monomial => {
            let vanishing = domain.shift.pow([1u64 << log_n]) - F::ONE;
            let back = Transform::coset_inverse(log_n, domain.omega, domain.shift)?;
            let to_coefficients = Transform {
                scale: back.scale * invert("the vanishing polynomial on a coset", vanishing)?,
                ..back
            };
            ntt(&on_coset, &to_coefficients, placement)
        }
    }
}

/// From values on the domain to coefficients, shifted, and from there to values on the coset.
pub(super) fn transforms<F: KernelField>(log_n: u32, domain: &Domain<F>) -> Result<[Transform<F>; 2]> {
    let to_coefficients = Transform {
        after: domain.shift,
        ..Transform::inverse(log_n, domain.omega)?
    };
    Ok([to_coefficients, Transform::forward(log_n, domain.omega)])
}

/// `a * b - c`, element by element, in the place of a.
pub(super) fn product_less<F: KernelField>(a: &mut [F], others: &[&[F]]) {
    let [b, c] = others else {
        unreachable!("three columns");
    };
    let mut product = [F::ZERO; 64];
    for ((a, b), c) in a.chunks_mut(64).zip(b.chunks(64)).zip(c.chunks(64)) {
        let product = &mut product[..a.len()];
        vector::product(product, a, b);
        vector::difference(a, product, c);
    }
}
