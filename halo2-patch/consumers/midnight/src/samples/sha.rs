//! A child of the library's example.

use super::{Digest, ShaPreImageCircuit};
use crate::{Sample, Sampled};

impl Sample for ShaPreImageCircuit {
    fn sample() -> Sampled<Self> {
        let witness = [7; 24];
        let instance = sha2::Sha256::digest(witness).into();
        Sampled { instance, witness }
    }
}
