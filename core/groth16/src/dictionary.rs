//! The distinct values of coefficients.

use std::collections::HashMap;

use spillproof_engine::Result;
use spillproof_engine::budget::{Budget, Lease};
use spillproof_kernels::field::KernelField;

/// Bytes of a value: as a scalar, and twice the place in a table that is half full.
const ENTRY_BYTES: u64 = 128;
/// Values that there is room for at first.
const ENTRIES_MIN: u64 = 256;

/// How bytes hold a value v. In Montgomery form, with the radix R, they are those of v R.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As v: a `.r1cs` file.
    Canonical,
    /// As v R^2: a `.zkey` file.
    TimesSquare,
    /// As v R: an element in memory.
    AsInMemory,
}

/// A value that is not in the dictionary yet.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The distinct values of coefficients, by their bytes.
pub(crate) struct Dictionary<F> {
    places: HashMap<[u8; 32], u32>,
    pub values: Vec<F>,
    /// Multiplies the bytes in Montgomery form.
    factor: F,
    budget: Budget,
    leases: Vec<Lease>,
    room: u64,
}

impl<F: KernelField> Dictionary<F> {
    /// For bytes of this form.
    pub fn new(budget: &Budget, form: Form) -> Result<Self> {
        let radix = F::from(2u64).pow([8 * F::BYTES as u64]);
        Ok(Self {
            places: HashMap::new(),
            values: Vec::new(),
            factor: match form {
                Form::Canonical => radix,
                // A power of two is not zero.
                Form::TimesSquare => radix.inverse().unwrap_or(F::ONE),
                Form::AsInMemory => F::ONE,
            },
            leases: vec![budget.lease(ENTRIES_MIN * ENTRY_BYTES, "values of coefficients")?],
            budget: budget.clone(),
            room: ENTRIES_MIN,
        })
    }

    /// What the leases of so many values add up to.
    pub fn bytes(values: u64) -> u64 {
        values.next_power_of_two().max(ENTRIES_MIN) * ENTRY_BYTES
    }

    /// How many values, a power of two, leases of so many bytes are for: [`ENTRIES_MIN`] at least.
    pub fn values_in(bytes: u64) -> u64 {
        1 << (bytes / ENTRY_BYTES).max(ENTRIES_MIN).ilog2()
    }

    /// The place of a value that is there, else [`UNKNOWN`].
    pub fn place(&self, bytes: &[u8; 32]) -> u32 {
        self.places.get(bytes).copied().unwrap_or(UNKNOWN)
    }

    /// The place of a value, which is entered if it is new.
    pub fn enter(&mut self, bytes: &[u8; 32]) -> Result<u32> {
        if let Some(place) = self.places.get(bytes) {
            return Ok(*place);
        }
        if self.values.len() as u64 == self.room {
            let lease = self
                .budget
                .lease(self.room * ENTRY_BYTES, "values of coefficients")?;
            self.leases.push(lease);
            self.room *= 2;
        }
        // Reduced: it was checked. There are fewer than 2^32 coefficients.
        let value = F::read_native(bytes).unwrap_or(F::ZERO) * self.factor;
        let place = self.values.len() as u32;
        self.places.insert(*bytes, place);
        self.values.push(value);
        Ok(place)
    }
}
