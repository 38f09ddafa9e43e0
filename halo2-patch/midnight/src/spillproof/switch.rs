//! The switch that makes proofs reproducible.
//!
//! Stock leaves one thing to chance: the values of a lookup's table that are left over are placed in the
//! iteration order of a `HashMap`. With the switch on, and in a session always, it is ascending order.
//! Verifiers can't tell. A proof then is a function of its inputs, of the caller's generator, and of the
//! number of threads of the rayon pool that the prover is called in, which stock divides the random
//! polynomial's coefficients by.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

/// Environment variable that makes proofs reproducible (`1` or `true`) for programs that don't call
/// [`set_reproducible`].
pub const REPRODUCIBLE_VARIABLE: &str = "SPILLPROOF_REPRODUCIBLE";

const UNSET: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static SETTING: AtomicU8 = AtomicU8::new(UNSET);

/// Makes proofs of this process reproducible or not, whatever the environment says. Set it before proving: a
/// proof that is being made meanwhile may follow either.
pub fn set_reproducible(on: bool) {
    SETTING.store(if on { ON } else { OFF }, Ordering::SeqCst);
}

/// Are proofs reproducible?
pub fn reproducible() -> bool {
    static ENVIRONMENT: OnceLock<bool> = OnceLock::new();
    let asked = || matches!(std::env::var(REPRODUCIBLE_VARIABLE).as_deref(), Ok("1" | "true"));
    match SETTING.load(Ordering::SeqCst) {
        UNSET => *ENVIRONMENT.get_or_init(asked),
        setting => setting == ON,
    }
}
