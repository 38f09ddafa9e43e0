//! The factors for the kernels of a coset, and the program's code: one buffer, whose first part is elements.
//!
//! The coefficients of the first Lagrange polynomial are 1 / n, so row r before its row transform is a
//! geometric series:
//!
//! ```text
//! a[j] = (c w^r)^j / n * sum over i < n1 of q^i = (c w^r)^j * (c^n - 1) / (n (q - 1)),  q = c^n2 w^(n2 r)
//! ```
//!
//! The rows come from the powers of c, with factors w^(r j) before the transform and one factor a row after
//! it.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, batch_inversion};
use spillproof_engine::accelerator::RowSource;

use super::plan::CosetPlan;
use crate::error::{Result, Values};
use crate::ntt::{ELEMENT_BYTES, LOG_TILE, Powers, RowTables, Tables};

/// The numbers that define a coset and the scale of its quotient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CosetConstants {
    /// The root of unity w, of order n.
    pub omega: Fr,
    /// The shift c.
    pub shift: Fr,
    /// The factor of the quotient.
    pub scale: Fr,
}

/// TablePlaces of factors in the tables.
#[derive(Debug)]
pub(super) struct TablePlaces {
    /// The transforms of rows, forward and back.
    pub steps: [RowTables; 2],
    /// The transforms of columns to rows, and c^e, e < n, if the device gets coefficients.
    pub to_rows: Option<(RowTables, Powers)>,
    /// w^-e, e < n.
    pub twist: Powers,
    /// scale c^-j.
    pub shift_back: Powers,
    /// w^e, e < 2 n, if an input is computed or the device gets coefficients.
    pub points: Option<Powers>,
    /// The shift c.
    pub shift: u64,
    /// c^j.
    pub shift_row: u64,
    /// The factors of the rows of the first Lagrange polynomial.
    pub lagrange: u64,
}

/// The bytes of the tables, and the places in them.
pub(super) fn tables(plan: &CosetPlan, constants: CosetConstants) -> Result<(Vec<u8>, TablePlaces)> {
    let CosetConstants { omega, shift, scale } = constants;
    let (log_rows, log_columns) = (plan.shape().log_rows, plan.shape().log_columns);
    let (log_n, n1, n2) = (log_rows + log_columns, 1u64 << log_rows, 1u64 << log_columns);
    let inverted = |value: Fr| {
        value.inverse().ok_or(Values::Zero {
            what: "a root of unity, or the shift of a coset,",
        })
    };
    let (omega_inverse, shift_inverse) = (inverted(omega)?, inverted(shift)?);
    let mut tables = Tables::<Fr>::new();
    let steps = [omega, omega_inverse].map(|root| tables.step(root.pow([n1]), log_columns, LOG_TILE));
    let twist = tables.powers(omega_inverse, log_n, Fr::ONE);
    let shift_back = tables.powers(shift_inverse, log_columns, scale);
    let to_rows = plan.shape().of_coefficients.then(|| {
        let step = tables.step(omega.pow([n2]), log_rows, LOG_TILE);
        (step, tables.powers(shift, log_n, Fr::ONE))
    });
    let mut places = TablePlaces {
        steps,
        to_rows,
        twist,
        shift_back,
        points: plan
            .has_points()
            .then(|| tables.powers(omega, log_n + 1, Fr::ONE)),
        shift: 0,
        shift_row: 0,
        lagrange: 0,
    };
    if plan.has(RowSource::Identity) {
        places.shift = tables.list(vec![shift]);
    }
    if plan.has(RowSource::FirstLagrange) {
        places.shift_row = tables.list_powers(shift, n2, Fr::ONE);
        let n = Fr::from(1u64 << log_n);
        let factor = (shift.pow([1 << log_n]) - Fr::ONE) * inverted(n)?;
        let (mut q, step) = (shift.pow([n2]), omega.pow([n2]));
        let mut factors = Vec::with_capacity(n1 as usize);
        for _ in 0..n1 {
            factors.push(q - Fr::ONE);
            q *= step;
        }
        if factors.contains(&Fr::ZERO) {
            return Err(Values::Zero {
                what: "the vanishing polynomial on a coset",
            }
            .into());
        }
        batch_inversion(&mut factors);
        factors.iter_mut().for_each(|value| *value *= factor);
        places.lagrange = tables.list(factors);
    }
    let bytes = tables.bytes();
    debug_assert_eq!(bytes.len() as u64, plan.table_elements() * ELEMENT_BYTES);
    Ok((bytes, places))
}
