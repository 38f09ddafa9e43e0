//! What is said at the end of a process in which the variables had no effect, since no drop-in was asked for
//! parameters, keys or proofs. The reason may be a second copy of halo2 in the program, which proved in
//! memory.
//!
//! The C library calls the functions of the section `.fini_array` when a process ends by itself (`exit`, a
//! return from `main`; no abort, no signal). So none of this crate's functions need have run before. The
//! crate has to be part of the program, which it is where the program or one of its libraries names a
//! drop-in: for a program that names none, nothing is said.

use std::sync::atomic::{AtomicBool, Ordering};

use spillproof_engine::session::{LIMIT_VARIABLE, MEMORY_VARIABLE, variable};

use super::{IS_LEFT_TO_PROGRAM, PROGRESS_VARIABLE, REPORT_VARIABLE, joined};

/// Whether a drop-in was asked.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// A drop-in was asked for parameters, keys or a proof, over a curve that the engine has.
pub fn asked() {
    IS_ASKED.store(true, Ordering::Relaxed);
}

// SAFETY: the section is an array of pointers to functions such as this one, which lives as long as the
// process and unwinds never.
#[allow(unsafe_code)]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    if IS_ASKED.load(Ordering::Relaxed) || IS_LEFT_TO_PROGRAM.load(Ordering::Relaxed) {
        return;
    }
    if let Some(line) = without_effect(|name| variable(name).is_some_and(|value| value != "0")) {
        // At this time the buffers of `std::io` may be gone: the bytes go to the system call.
        let _closed = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
}

/// Says which variables had no effect.
fn without_effect(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let set = joined(
        &[
            MEMORY_VARIABLE,
            LIMIT_VARIABLE,
            PROGRESS_VARIABLE,
            REPORT_VARIABLE,
        ],
        is_set,
    )?;
    Some(format!(
        "spillproof: {set} set, without effect: nothing was done within a budget. If this program proved, it did in memory: with another copy of \
         halo2 (`cargo tree -i halo2-axiom` or `-i halo2_proofs` names all copies), or over a curve that the engine does not have\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_without_effect_are_named() {
        assert_eq!(without_effect(|_| false), None);
        let line = without_effect(|name| [MEMORY_VARIABLE, REPORT_VARIABLE].contains(&name)).unwrap();
        let begins = "spillproof: SPILLPROOF_MEMORY and SPILLPROOF_REPORT are set, without effect";
        assert!(line.starts_with(begins) && line.ends_with('\n'), "{line}");
    }
}
