//! The fields whose transforms run on a device.

use std::fmt;
use std::ops::MulAssign;

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, FftField, Field};

/// A field with roots of unity of order 2^[`NttField::LOG_N_MAX`]. Tables are made with it.
///
/// Implemented for [`Fr`], and with the feature `goldilocks` for Plonky3's type; another field needs kernels
/// of its own.
pub trait NttField: Copy + PartialEq + fmt::Display + fmt::Debug + MulAssign + Send + Sync + 'static {
    /// Its name in the names of kernels.
    const NAME: &'static str;
    /// Bytes of an element in memory.
    const ELEMENT_BYTES: u64;
    /// log2 of the longest transform.
    const LOG_N_MAX: u32;
    /// 0.
    const NONE: Self;
    /// 1.
    const UNIT: Self;

    /// The root of order 2^`log_n` that the field's library uses, for `log_n` up to [`NttField::LOG_N_MAX`].
    fn root(log_n: u32) -> Self;

    /// 2^`log`.
    fn two_to(log: u32) -> Self;

    /// `self` to the power of `exponent`.
    fn to_the(self, exponent: u64) -> Self;

    /// The inverse; 1 for 0.
    fn inverted(self) -> Self;

    /// Whether its multiplicative order is 2^`log_n`.
    fn has_order(self, log_n: u32) -> bool {
        match log_n {
            0 => self == Self::UNIT,
            // A square root of 1 that is not 1 is -1.
            _ => {
                let half = self.to_the(1 << (log_n - 1));
                half != Self::UNIT && half.to_the(2) == Self::UNIT
            }
        }
    }

    /// Appends the element as it is in memory.
    fn append_to(&self, bytes: &mut Vec<u8>);
}

impl NttField for Fr {
    const NAME: &'static str = "bn254_fr";
    const ELEMENT_BYTES: u64 = 32;
    const LOG_N_MAX: u32 = 28;
    const NONE: Self = <Fr as AdditiveGroup>::ZERO;
    const UNIT: Self = <Fr as Field>::ONE;

    fn root(log_n: u32) -> Self {
        Fr::get_root_of_unity(1 << log_n).unwrap_or(Self::UNIT)
    }

    fn two_to(log: u32) -> Self {
        Fr::from(1u64 << log)
    }

    fn to_the(self, exponent: u64) -> Self {
        self.pow([exponent])
    }

    fn inverted(self) -> Self {
        self.inverse().unwrap_or(Self::UNIT)
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.0.into_iter().flat_map(u64::to_le_bytes));
    }
}
