//! Transforms over Goldilocks: small ones with Plonky3 on the processor, others with the same plans and
//! passes as BN254.
//!
//! Elements are `u64` below p = 2^64 - 2^32 + 1. Both give the same bits.

use p3_dft::{Radix2DitParallel, TwoAdicSubgroupDft};
use p3_field::{Field, PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_goldilocks::Goldilocks;

use super::field::NttField;
use super::one_device::Ntt;
use super::slots::{MemoryElements, NttSlots};
use super::transform::NttSpec;
use crate::error::{Invalid, Result, Values};

/// The processor transforms up to 2^11 elements: 16 KiB, which fit its first cache, and less work than the
/// launches on a device. Estimated, not measured.
pub const HOST_LOG_N_MAX: u32 = 11;

impl NttField for Goldilocks {
    const NAME: &'static str = "goldilocks";
    const ELEMENT_BYTES: u64 = 8;
    // The field has roots up to order 2^32; a grid has at most 2^16 - 1 rows of a matrix.
    const LOG_N_MAX: u32 = 30;
    const NONE: Self = <Goldilocks as PrimeCharacteristicRing>::ZERO;
    const UNIT: Self = <Goldilocks as PrimeCharacteristicRing>::ONE;

    fn root(log_n: u32) -> Self {
        Goldilocks::two_adic_generator(log_n as usize)
    }

    fn two_to(log: u32) -> Self {
        Goldilocks::TWO.exp_u64(log.into())
    }

    fn to_the(self, exponent: u64) -> Self {
        self.exp_u64(exponent)
    }

    fn inverted(self) -> Self {
        self.try_inverse().unwrap_or(Self::UNIT)
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.as_canonical_u64().to_le_bytes());
    }
}

/// A transform of `u64`s, on a device if it is large and a device is given.
#[derive(Debug)]
pub struct GoldilocksTransform {
    transform: NttSpec<Goldilocks>,
    device: Option<Ntt>,
}

impl GoldilocksTransform {
    /// A transform with `device`, which was made for it, or with the processor.
    pub fn new(transform: NttSpec<Goldilocks>, device: Option<Ntt>) -> Self {
        let device = device.filter(|_| transform.log_n() > HOST_LOG_N_MAX);
        Self { transform, device }
    }

    /// Whether it runs on a device.
    pub fn is_on_device(&self) -> bool {
        self.device.is_some()
    }

    /// Transforms `values` in place.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a wrong number of values, or a device without `slots`; errors of
    /// [`Ntt::transform`], after which `values` are unchanged.
    pub fn transform(&mut self, slots: Option<NttSlots<'_>>, values: &mut Vec<u64>) -> Result<()> {
        if values.len() as u64 != 1 << self.transform.log_n() {
            return Err(Values::Length {
                what: "values of a transform".into(),
                given: values.len() as u64,
                expected: 1 << self.transform.log_n(),
            }
            .into());
        }
        let Some(device) = &mut self.device else {
            *values = self.transform.by_processor(values)?;
            return Ok(());
        };
        let slots = slots.ok_or(Values::Empty {
            what: "slots of a transform on a device",
        })?;
        let elements = |bytes| MemoryElements::new(bytes, Goldilocks::ELEMENT_BYTES);
        let room = || elements(vec![0; 8 * values.len()]);
        let mut from = elements(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let (mut between, mut to) = (room(), room());
        device.transform(slots, &mut from, &mut between, &mut to)?;
        for (value, bytes) in values.iter_mut().zip(to.bytes().chunks_exact(8)) {
            *value = bytes
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte));
        }
        Ok(())
    }
}

impl NttSpec<Goldilocks> {
    /// The transform with Plonky3, on the processor.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for another root than Plonky3's.
    pub fn by_processor(&self, values: &[u64]) -> Result<Vec<u64>> {
        if self.root != <Goldilocks as NttField>::root(self.log_n) {
            let reason = format!(
                "the processor uses Plonky3's root of order 2^{}, not {}",
                self.log_n, self.root
            );
            return Err(Invalid::call(reason).into());
        }
        let values = values.iter().map(|&value| Goldilocks::from_u64(value)).collect();
        let dft = Radix2DitParallel::default();
        let done: Vec<Goldilocks> = match (self.inverse, self.shift) {
            (false, None) => dft.dft(values),
            (true, None) => dft.idft(values),
            (false, Some(shift)) => dft.coset_dft(values, shift),
            (true, Some(shift)) => dft.coset_idft(values, shift),
        };
        Ok(done.iter().map(PrimeField64::as_canonical_u64).collect())
    }
}
