//! The names of all environment variables, and those that are set under a name that is none.

use std::io::Write;
use std::sync::Once;

/// What the names of all variables begin with.
const PREFIX: &str = "SPILLPROOF_";
/// The variables that programs read, less [`PREFIX`].
const NAMES: [&str; 22] = [
    "CHECKPOINT",
    "CHECKPOINT_KEY",
    "CHECKPOINT_KEY_FILE",
    "CORE_DUMPS",
    "CPU",
    "DIR",
    "GPU",
    "KERNELS_IMAGE",
    "LIMIT",
    "LOG",
    "MEMORY",
    "NVRTC_DIR",
    "OFFLOAD",
    "PINNED",
    "PROGRESS",
    "REPORT",
    "REPRODUCIBLE",
    "SCRATCH",
    "SEED",
    "SELF_VERIFICATION",
    "STRICT_SECRETS",
    "VRAM",
];
/// What the names of other variables begin with, those of builds, of tests and of the fake driver.
const OTHERS: [&str; 8] = [
    "DIST_",
    "FAKE_DRIVER_",
    "GRAFT_",
    "HALO2_",
    "HOST_KERNELS",
    "LANES",
    "TEST_",
    "TIDY_",
];
/// Letters that a name may differ in from the nearest one, if that is longer than twice as much.
const DIFFERENCES_MAX: usize = 3;

/// Says on standard error, once in a process, which variables are set that are none, with the nearest name of
/// one: a misspelt `SPILLPROOF_MEMORY` would be a proof in memory without a word.
pub fn name_unknown_variables() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        for (name, _) in std::env::vars_os() {
            if let Some(line) = unknown(&name.to_string_lossy()) {
                // A closed standard error is no reason not to go on.
                let _closed = writeln!(std::io::stderr(), "spillproof: warning: {line}");
            }
        }
    });
}

/// The line about a variable that is none.
fn unknown(name: &str) -> Option<String> {
    let letters = name.strip_prefix(PREFIX)?;
    if NAMES.contains(&letters) || OTHERS.iter().any(|other| letters.starts_with(other)) {
        return None;
    }
    let upper = letters.to_ascii_uppercase();
    let nearest = NAMES
        .into_iter()
        .map(|known| (distance(&upper, known), known))
        .min();
    let nearest =
        nearest.filter(|(distance, known)| *distance <= DIFFERENCES_MAX && 2 * distance < known.len());
    Some(match nearest {
        Some((_, known)) => {
            format!("the variable {name} is set, and has no effect: the nearest name is {PREFIX}{known}")
        }
        None => format!("the variable {name} is set, and has no effect: no variable has such a name"),
    })
}

/// How many letters are to be inserted, left out, changed, or exchanged with their neighbour, to get from one
/// name to the other (Damerau and Levenshtein's distance, each letter edited once).
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    // The distances between the first letters of both: of this row, and of the two before.
    let mut before_last = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1; to.len() + 1];
        for (j, b) in to.iter().enumerate() {
            let changed = last[j] + usize::from(a != b);
            row[j + 1] = changed.min(last[j + 1] + 1).min(row[j] + 1);
            let is_exchanged = i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b;
            if is_exchanged {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_named_with_the_nearest() {
        for (name, nearest) in [
            ("SPILLPROOF_MEMROY", "SPILLPROOF_MEMORY"),
            ("SPILLPROOF_memory", "SPILLPROOF_MEMORY"),
            ("SPILLPROOF_MEM0RY", "SPILLPROOF_MEMORY"),
            ("SPILLPROOF_DIRS", "SPILLPROOF_DIR"),
            ("SPILLPROOF_PROGRES", "SPILLPROOF_PROGRESS"),
            ("SPILLPROOF_STRICTSECRETS", "SPILLPROOF_STRICT_SECRETS"),
            ("SPILLPROOF_CHECKPOINT_KEYFILE", "SPILLPROOF_CHECKPOINT_KEY_FILE"),
        ] {
            let line = unknown(name).unwrap();
            assert!(line.contains(name) && line.ends_with(nearest), "{line}");
        }
        let far = unknown("SPILLPROOF_COLOUR").unwrap();
        assert!(far.ends_with("no variable has such a name"), "{far}");
        for known in [
            "SPILLPROOF_MEMORY",
            "SPILLPROOF_TEST_SEED",
            "PATH",
            "spillproof_memory",
        ] {
            assert_eq!(unknown(known), None);
        }
    }

    #[test]
    fn distances_are_those_of_edits() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("acb", "abc", 1),
            ("ab", "abc", 1),
            ("xbc", "abc", 1),
            ("abcd", "dcba", 3),
            ("MEMROY", "MEMORY", 1),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }
}
