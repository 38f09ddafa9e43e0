//! The reproducible switch: a proof becomes a function of its inputs and the caller's rng.
//!
//! Stock leaves two things to chance. The random polynomial of the vanishing argument is drawn from `thread_rng` by as many
//! threads as there are; and values of a lookup are permuted in the iteration order of a `HashMap`. With the switch on, the
//! polynomial's coefficients are drawn from the caller's rng, in order, where stock draws that polynomial's blinding factor
//! right after; and lookup values are in ascending order. Verifiers can't tell.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

/// Environment variable that turns the switch on (`1` or `true`) for programs that don't call [`set_reproducible`].
pub const REPRODUCIBLE_VARIABLE: &str = "SPILLPROOF_REPRODUCIBLE";

const UNSET: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static SWITCH: AtomicU8 = AtomicU8::new(UNSET);

/// Turns the switch on or off for this process, whatever the environment says. Set it before proving: a proof that is
/// being made meanwhile may follow either.
pub fn set_reproducible(on: bool) {
    SWITCH.store(if on { ON } else { OFF }, Ordering::SeqCst);
}

/// Is the switch on?
pub fn reproducible() -> bool {
    static ENVIRONMENT: OnceLock<bool> = OnceLock::new();
    match SWITCH.load(Ordering::SeqCst) {
        UNSET => *ENVIRONMENT.get_or_init(|| {
            std::env::var(REPRODUCIBLE_VARIABLE).is_ok_and(|value| value == "1" || value == "true")
        }),
        setting => setting == ON,
    }
}
