//! Whole transforms in memory: forward, inverse, coset.
//!
//! Up to 2^11 values: one table, one thread. Above: n = side * middle * side with middle 1 or 2, as the
//! module's page says. Memory: [`Domain::table_bytes`] for the tables: 32 bytes an entry, 112 with lanes, of
//! which each direction has side / 2, and side more with middle 2.

use crate::backend::Factor;
use crate::error::Result;
use crate::field::KernelField;
use crate::ntt::panel::{SIDE_BY_SIDE, reverse_digits};
use crate::ntt::twiddles::check_root;
use crate::ntt::{NttElement, Twiddles, Twist, columns, strips};
use crate::parallel::Parallel;
use crate::poly::{PIECE, scale_powers};

/// Up to this size a transform is not split, and runs on one thread.
const DIRECT_LOG_MAX: u32 = 11;
/// The same where there are wide lanes, which take several rows at a time.
const DIRECT_LOG_MAX_IN_LANES: u32 = 7;

/// Transforms of 2^k values for one root of unity and its inverse.
#[derive(Clone, Debug)]
pub struct Domain<F> {
    size_inverse: F,
    forward: Plan<F>,
    inverse: Plan<F>,
}

impl<F: KernelField> Domain<F> {
    /// The domain of 2^`log_n` values for the primitive root `omega`.
    ///
    /// Errors: [`crate::error::RootOfUnityError`] if `omega` is not a primitive root of that order.
    pub fn new(log_n: u32, omega: F) -> Result<Self> {
        check_root(log_n, &omega)?;
        // A root of unity is not zero.
        let omega_inverse = omega.inverse().unwrap_or(F::ONE);
        let size_inverse = F::from(2u64).inverse().unwrap_or(F::ONE).pow([u64::from(log_n)]);
        Ok(Self {
            size_inverse,
            forward: Plan::new(log_n, omega)?,
            inverse: Plan::new(log_n, omega_inverse)?,
        })
    }

    /// The number of values.
    pub fn size(&self) -> usize {
        1 << self.log_size()
    }

    /// log2 of [`size`](Self::size).
    pub fn log_size(&self) -> u32 {
        self.forward.log_n
    }

    /// The root of unity of the forward transform.
    pub fn omega(&self) -> F {
        self.forward.omega
    }

    /// Bytes that the tables hold.
    pub fn table_bytes(&self) -> u64 {
        self.forward.table_bytes() + self.inverse.table_bytes()
    }

    /// Coefficients to values, natural order, in place. Panics if the length is not [`size`](Self::size).
    pub fn forward<E: NttElement<F>>(&self, values: &mut [E]) {
        self.forward.transform(values, F::ONE);
    }

    /// [`Self::forward`], and everything times `scale`.
    pub fn forward_scaled<E: NttElement<F>>(&self, values: &mut [E], scale: F) {
        self.forward.transform(values, scale);
    }

    /// Values to coefficients, natural order, in place. Panics if the length is not [`size`](Self::size).
    pub fn inverse<E: NttElement<F>>(&self, values: &mut [E]) {
        self.inverse.transform(values, self.size_inverse);
    }

    /// Coefficients to values on the coset `shift * <omega>`, in place.
    pub fn coset_forward(&self, values: &mut [F], shift: &F) {
        scale_powers(values, 0, shift);
        self.forward(values);
    }

    /// Values on the coset `shift * <omega>` to coefficients, in place. `shift` must not be zero.
    pub fn coset_inverse(&self, values: &mut [F], shift: &F) {
        self.inverse(values);
        scale_powers(values, 0, &shift.inverse().unwrap_or(F::ZERO));
    }
}

/// One direction.
#[derive(Clone, Debug)]
struct Plan<F> {
    log_n: u32,
    omega: F,
    twiddles: Twiddles<F>,
    /// omega_(2 side)^c for c < side, where the middle digit has a bit; else empty.
    middle: Vec<F>,
    /// The same for lanes, if there are any.
    middle_factors: Vec<Factor>,
}

impl<F: KernelField> Plan<F> {
    fn new(log_n: u32, omega: F) -> Result<Self> {
        let direct_max = match strips::factors(&[F::ONE]).is_empty() {
            true => DIRECT_LOG_MAX,
            false => DIRECT_LOG_MAX_IN_LANES,
        };
        if log_n <= direct_max {
            return Ok(Self {
                log_n,
                omega,
                twiddles: Twiddles::new(log_n, omega)?,
                middle: Vec::new(),
                middle_factors: Vec::new(),
            });
        }
        let log_side = log_n / 2;
        let twiddles = Twiddles::new(log_side, omega.pow([1 << (log_n - log_side)]))?;
        let mut middle = Vec::new();
        if log_n % 2 == 1 {
            let root = omega.pow([1 << log_side]);
            middle.reserve_exact(1 << log_side);
            let mut power = F::ONE;
            for _ in 0..1 << log_side {
                middle.push(power);
                power = power.times(&root);
            }
        }
        Ok(Self {
            log_n,
            omega,
            twiddles,
            middle_factors: strips::factors(&middle),
            middle,
        })
    }

    fn table_bytes(&self) -> u64 {
        self.twiddles.table_bytes()
            + (self.middle.len() * size_of::<F>() + self.middle_factors.len() * size_of::<Factor>()) as u64
    }

    fn transform<E: NttElement<F>>(&self, values: &mut [E], scale: F) {
        assert_eq!(
            values.len(),
            1usize << self.log_n,
            "a transform's length is its domain's"
        );
        if self.twiddles.log_size() == self.log_n {
            self.twiddles.transform(values);
            if !scale.is_one() {
                values
                    .chunks_mut(PIECE)
                    .parallel()
                    .for_each(|values| values.iter_mut().for_each(|value| value.scale(&scale)));
            }
            return;
        }
        let side = self.twiddles.size();
        let row = values.len() / side;
        let twist = Twist {
            root: self.omega,
            first_row: 0,
            first_column: 0,
            scale,
            base: F::ONE,
            row: F::ONE,
        };
        columns(values, row, &self.twiddles, &F::ONE, Some(&twist));
        let mut rows: Vec<&mut [E]> = values.chunks_exact_mut(row).collect();
        rows.chunks_mut(SIDE_BY_SIDE).parallel().for_each(|rows| {
            if !E::rows_in_lanes(rows, &self.twiddles, &self.middle_factors) {
                rows.iter_mut().for_each(|row| self.row(row));
            }
        });
        reverse_digits(values, side, row / side);
    }

    /// Transforms a row, without lanes.
    fn row<E: NttElement<F>>(&self, row: &mut [E]) {
        let side = self.twiddles.size();
        if !self.middle.is_empty() {
            let (low, high) = row.split_at_mut(side);
            for ((low, high), factor) in low.iter_mut().zip(high).zip(&self.middle) {
                E::butterfly_one(low, high);
                low.reduce();
                high.scale(factor);
            }
        }
        row.chunks_exact_mut(side)
            .for_each(|part| self.twiddles.transform(part));
    }
}
