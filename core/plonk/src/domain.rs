//! The evaluation domains of a circuit, as halo2's `EvaluationDomain` chooses them.

use crate::stages::CosetDomain;
use spillproof_engine::error::Invalid;
use spillproof_engine::stream::Transform;
use spillproof_kernels::field::KernelField;

use crate::curve;

/// Constants of the scalar field. Libraries differ in the root of unity that they take, so a drop-in brings
/// its own.
#[derive(Clone, Copy, Debug)]
pub struct FieldConstants<F = curve::Scalar> {
    /// A primitive root of unity of order `2^two_adicity`.
    pub root_of_unity: F,
    /// The largest power of two that divides the order of the multiplicative group.
    pub two_adicity: u32,
    /// The factor between the names of cells of neighbouring columns.
    pub delta: F,
    /// The shift of the coset on which quotients are evaluated.
    pub coset_shift: F,
}

/// The rows of a circuit, and the cosets of its quotient.
#[derive(Clone, Copy, Debug)]
pub struct Domain<F = curve::Scalar> {
    /// log2 of the rows.
    pub log_n: u32,
    /// The root of unity of the rows.
    pub omega: F,
    /// The factor between the names of cells of neighbouring columns.
    pub delta: F,
    /// What quotients are evaluated on.
    pub cosets: CosetDomain<F>,
}

impl<F: KernelField> Domain<F> {
    /// That of a circuit of `2^log_n` rows with constraints of this degree.
    pub fn new(constants: &FieldConstants<F>, log_n: u32, degree: usize) -> Self {
        let pieces = degree.saturating_sub(1).max(1);
        let log_cosets = pieces.next_power_of_two().ilog2();
        let squared = |root: F, times: u32| (0..times).fold(root, |root, _| root.square());
        let unused = constants.two_adicity.saturating_sub(log_n + log_cosets);
        let extended_omega = squared(constants.root_of_unity, unused);
        let omega = squared(extended_omega, log_cosets);
        Self {
            log_n,
            omega,
            delta: constants.delta,
            cosets: CosetDomain {
                log_n,
                omega,
                log_cosets,
                extended_omega,
                shift: constants.coset_shift,
                pieces,
            },
        }
    }

    /// Refuses a domain for which the field has no roots of unity.
    ///
    /// # Errors
    /// [`Invalid::TooManyRows`].
    pub fn check(&self) -> spillproof_engine::Result<()> {
        let log_extended = self.log_n + self.cosets.log_cosets;
        if log_extended <= F::TWO_ADICITY {
            return Ok(());
        }
        Err(Invalid::TooManyRows {
            log_rows: self.log_n,
            log_extended,
            two_adicity: F::TWO_ADICITY,
        }
        .into())
    }

    /// Values of a column to coefficients.
    ///
    /// # Errors
    /// [`Invalid::Zero`] for a root of unity that is zero.
    pub fn to_coefficients(&self) -> spillproof_engine::Result<Transform<F>> {
        Transform::inverse(self.log_n, self.omega)
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        1 << self.log_n
    }

    /// `point`, so many rows further on.
    pub fn rotate(&self, point: F, rotation: i32) -> F {
        // omega^-1 is omega^(n - 1).
        let rows = self.rows() as i64;
        point * self.omega.pow([i64::from(rotation).rem_euclid(rows) as u64])
    }
}
