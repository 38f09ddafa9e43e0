//! `EvaluationDomain` in a session: transforms of polynomials that are on disk, and twiddles that are made
//! when they are asked for.
//!
//! Stock makes the twiddles of every transform up to the extended domain when a domain is made,
//! `2 * 32 * 2^k` bytes and more for each size. Here they are made when they are first asked for; without a
//! session at once, as stock.

use std::collections::HashMap;
use std::sync::OnceLock;

use ff::{Field, WithSmallOrderMulGroup};
use spillproof_engine::stream::Transform;
use spillproof_plonk::{once, ProverField, Scalar};

use super::convert::scalar;
use super::or_panic;
use super::values::{column, constant, from_column};
use crate::fft::recursive::FFTData;
use crate::poly::{Coeff, EvaluationDomain, LagrangeCoeff, Polynomial};

/// Values on the domain to coefficients, by the engine; or the values back if they are a caller's vector.
///
/// Panics for another number of values than the domain has rows, and where disk or budget have no room.
pub(crate) fn lagrange_to_coeff<F: WithSmallOrderMulGroup<3>>(
    domain: &EvaluationDomain<F>,
    values: Polynomial<F, LagrangeCoeff>,
) -> Result<Polynomial<F, Coeff>, Polynomial<F, LagrangeCoeff>> {
    assert_eq!(values.len() as u64, domain.n, "values on a domain");
    if !values.backing().is_shared() {
        return Err(values);
    }
    if is_zero(&values) {
        return Ok(constant(F::ZERO, values.len()));
    }
    let transform =
        or_panic(Transform::inverse(domain.k, scalar(&domain.omega)).map_err(std::io::Error::other));
    Ok(transformed(&values, &transform))
}

/// Coefficients to values on one coset of the domain, by the engine; or the coefficients back if they are a
/// caller's vector.
///
/// Panics as [`lagrange_to_coeff`].
pub(crate) fn coeff_to_extended_part<F: WithSmallOrderMulGroup<3>>(
    domain: &EvaluationDomain<F>,
    coefficients: Polynomial<F, Coeff>,
    factor: F,
) -> Result<Polynomial<F, LagrangeCoeff>, Polynomial<F, Coeff>> {
    assert_eq!(coefficients.len() as u64, domain.n, "coefficients on a domain");
    if !coefficients.backing().is_shared() {
        return Err(coefficients);
    }
    if is_zero(&coefficients) {
        return Ok(constant(F::ZERO, coefficients.len()));
    }
    let shift = scalar(&(domain.g_coset * factor));
    let transform = Transform::coset_forward(domain.k, scalar(&domain.omega), shift);
    Ok(transformed(&coefficients, &transform))
}

fn transformed<F: Field, A, B>(poly: &Polynomial<F, A>, transform: &Transform<Scalar>) -> Polynomial<F, B> {
    let input = or_panic(column(poly));
    let output = Scalar::transform(&input, transform);
    from_column(or_panic(output.map_err(std::io::Error::other)))
}

fn is_zero<F: Field, B>(poly: &Polynomial<F, B>) -> bool {
    poly.backing().constant().is_some_and(|value| *value == F::ZERO)
}

/// Twiddles by the length of the transform.
#[derive(Clone, Debug)]
pub struct FftDataMap<F: Field>(HashMap<usize, FftDataEntry<F>>);

/// Twiddles of one length, or what they are to be made of.
#[derive(Clone, Debug)]
pub(crate) struct FftDataEntry<F: Field> {
    len: usize,
    omega: F,
    omega_inv: F,
    data: OnceLock<FFTData<F>>,
}

impl<F: Field> FftDataMap<F> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(crate) fn insert(&mut self, len: usize, entry: FftDataEntry<F>) {
        self.0.insert(len, entry);
    }

    /// The twiddles of transforms of `len` elements, if the domain has any; in a session the first call makes
    /// them.
    pub fn get(&self, len: &usize) -> Option<&FFTData<F>> {
        self.0.get(len).map(FftDataEntry::get)
    }
}

impl<F: Field> FftDataEntry<F> {
    /// Made at once if there is no session.
    pub(crate) fn new(len: usize, omega: F, omega_inv: F) -> Self {
        let data = OnceLock::new();
        let entry = Self {
            len,
            omega,
            omega_inv,
            data,
        };
        if !super::active() {
            entry.get();
        }
        entry
    }

    fn get(&self) -> &FFTData<F> {
        or_panic(once(&self.data, || {
            Ok(FFTData::new(self.len, self.omega, self.omega_inv))
        }))
    }
}
