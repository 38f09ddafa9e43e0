//! What a rank has made of a proof, and whether it was right.

use super::super::PairingCurve;
use super::super::proof::{Proof, Sums};
use super::exchanges::{EXCHANGES, Exchanged};

/// What a rank knows when all sums have been added up.
pub struct Made<E: PairingCurve> {
    /// Its own.
    pub sums: Sums<E>,
    /// In the order of exchanges.
    pub exchanged: [Exchanged; EXCHANGES.len()],
    pub random: [E::Scalar; 2],
    pub told: Told<E>,
}

impl<E: PairingCurve> Made<E> {
    /// Whether this rank has computed something else than processors have `again`, of the same input.
    pub fn is_wrong(&self, again: &Self) -> bool {
        if !self.sums.equal_over_witness(&again.sums) {
            return true;
        }
        for (first, again) in self.exchanged.iter().zip(&again.exchanged) {
            let ([sent, received], [sent_again, received_again]) = (first, again);
            if sent != sent_again {
                return true;
            }
            if received != received_again {
                return false;
            }
        }
        self.sums.h != again.sums.h
    }
}

/// What rank 0 tells all ranks of the proof.
pub enum Told<E: PairingCurve> {
    /// It verifies.
    Proof(Proof<E>),
    /// The witness is of no such proof.
    NotSatisfied,
    /// It does not verify, and an accelerator has taken part.
    Again,
}

impl<E: PairingCurve> Told<E> {
    pub const NOT_SATISFIED: u8 = 0;
    pub const PROOF: u8 = 1;
    pub const AGAIN: u8 = 2;
}
