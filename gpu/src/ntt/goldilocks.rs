//! Transforms over Goldilocks: small ones with Plonky3 on the processor, others with the same plans and
//! passes as BN254.
//!
//! Elements are `u64` below p = 2^64 - 2^32 + 1. Both give the same bits.

use p3_dft::{Radix2DitParallel, TwoAdicSubgroupDft};
use p3_field::{Field, PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_goldilocks::Goldilocks;

use super::ends::{Ends, ReadElements, WriteElements};
use super::field::NttField;
use super::one_device::Ntt;
use super::transform::Transform;
use crate::error::{BoxedError, Invalid, Result, Values};

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
    transform: Transform<Goldilocks>,
    device: Option<Ntt>,
}

impl GoldilocksTransform {
    /// A transform with `device`, which was made for it, or with the processor.
    pub fn new(transform: Transform<Goldilocks>, device: Option<Ntt>) -> Self {
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
    /// [`crate::Error::Invalid`] for a wrong number of values, or a device without `ends`; errors of [`Ntt::run`],
    /// after which `values` are unchanged.
    pub fn run(&mut self, ends: Option<Ends<'_>>, values: &mut Vec<u64>) -> Result<()> {
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
        let ends = ends.ok_or(Values::Empty {
            what: "slots of a transform on a device",
        })?;
        let room = || GoldilocksElements(vec![0; values.len()]);
        let (mut between, mut to) = (room(), room());
        let mut from = GoldilocksElements(std::mem::take(values));
        let done = device.run(ends, &mut from, &mut between, &mut to);
        *values = if done.is_ok() { to.0 } else { from.0 };
        done
    }
}

impl Transform<Goldilocks> {
    /// The transform with Plonky3, on the processor.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for another root than Plonky3's.
    pub fn by_processor(&self, values: &[u64]) -> Result<Vec<u64>> {
        if self.root != <Goldilocks as NttField>::root(self.log_n) {
            return Err(Invalid::NotPlonky3s {
                root: self.root.to_string(),
                log_n: self.log_n,
            }
            .into());
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

/// Elements of Goldilocks in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldilocksElements(pub Vec<u64>);

impl ReadElements for GoldilocksElements {
    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), BoxedError> {
        let from = self
            .0
            .get(first as usize..first as usize + into.len() / 8)
            .ok_or("too few elements")?;
        let mut pairs = into.chunks_exact_mut(8).zip(from);
        pairs.try_for_each(|(into, value)| {
            into.copy_from_slice(&value.to_le_bytes());
            Ok(())
        })
    }
}

impl WriteElements for GoldilocksElements {
    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<(), BoxedError> {
        let to = self
            .0
            .get_mut(first as usize..first as usize + bytes.len() / 8)
            .ok_or("too few elements")?;
        for (value, bytes) in to.iter_mut().zip(bytes.chunks_exact(8)) {
            *value = u64::from_le_bytes(bytes.try_into()?);
        }
        Ok(())
    }
}
