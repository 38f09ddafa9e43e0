//! The switches of a process: reproducible proofs, and proofs that verify themselves.
//!
//! Reproducible: a proof becomes a function of its inputs and the caller's rng. What stock leaves to chance
//! otherwise, each drop-in says in its `mod.rs`. Verifiers can't tell.
//!
//! Self-verification: a proof that a session made is verified before it is returned (`verify.rs`). On, unless
//! it is turned off.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

/// Environment variable that makes proofs reproducible (`1` or `true`) for programs that don't call
/// [`set_reproducible`].
pub const REPRODUCIBLE_VARIABLE: &str = "SPILLPROOF_REPRODUCIBLE";
/// Environment variable that turns self-verification off (`0` or `false`) for programs that don't call
/// [`set_self_verification`].
pub const SELF_VERIFICATION_VARIABLE: &str = "SPILLPROOF_SELF_VERIFICATION";

const UNSET: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

struct Switch {
    setting: AtomicU8,
    environment: OnceLock<bool>,
    variable: &'static str,
    default: bool,
}

static REPRODUCIBLE: Switch = Switch::new(REPRODUCIBLE_VARIABLE, false);
static SELF_VERIFICATION: Switch = Switch::new(SELF_VERIFICATION_VARIABLE, true);

impl Switch {
    const fn new(variable: &'static str, default: bool) -> Self {
        Self {
            setting: AtomicU8::new(UNSET),
            environment: OnceLock::new(),
            variable,
            default,
        }
    }

    fn set(&self, on: bool) {
        self.setting.store(if on { ON } else { OFF }, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        match self.setting.load(Ordering::SeqCst) {
            UNSET => *self
                .environment
                .get_or_init(|| match std::env::var(self.variable).as_deref() {
                    Ok("1" | "true") => true,
                    Ok("0" | "false") => false,
                    _ => self.default,
                }),
            setting => setting == ON,
        }
    }
}

/// Makes proofs of this process reproducible or not, whatever the environment says. Set it before proving: a
/// proof that is being made meanwhile may follow either.
pub fn set_reproducible(on: bool) {
    REPRODUCIBLE.set(on);
}

/// Are proofs reproducible?
pub fn reproducible() -> bool {
    REPRODUCIBLE.is_on()
}

/// Turns self-verification on or off for this process, whatever the environment says. A proof that a device
/// took part in is verified in any case.
pub fn set_self_verification(on: bool) {
    SELF_VERIFICATION.set(on);
}

/// Are proofs of a session verified before they are returned?
pub fn self_verification() -> bool {
    SELF_VERIFICATION.is_on()
}
