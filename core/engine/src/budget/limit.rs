//! A limit on the whole process, and the budget that it leaves.
//!
//! ```text
//! limit = budget + program + threads * THREAD_BYTES + HEAP_BYTES + limit / MARGIN_SHARE
//! ```
//!
//! The constants, and what was measured: `beside.rs`.

use super::beside::{self, MARGIN_SHARE, margin_bytes};
use super::process;
use super::size::ByteSize;
use crate::error::{Invalid, Result};

/// A limit on the resident memory of the process, page tables and the like included: in a control group with
/// this hard limit it is not killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Limit {
    /// The limit.
    pub limit_bytes: u64,
    /// What is left to leases.
    pub budget_bytes: u64,
    /// What is taken off for the program's pages, threads and heap.
    pub beside_bytes: u64,
}

impl Limit {
    /// The limit for a session of `threads` threads: the smaller one of `size` and the hard limit of the
    /// process's control group, which alone is [`ByteSize::Auto`].
    ///
    /// # Errors
    /// [`Invalid::LittleLimit`] if nothing is left for a budget, [`Invalid::NoHardLimit`] for `auto` without
    /// a group's limit.
    pub fn new(size: ByteSize, threads: usize) -> Result<Self> {
        let hard_bytes = process::cgroup_limit_bytes();
        let limit_bytes = match (size, hard_bytes) {
            (ByteSize::Bytes(bytes), None) => bytes,
            (ByteSize::Bytes(bytes), Some(hard_bytes)) => bytes.min(hard_bytes),
            (ByteSize::Auto, Some(hard_bytes)) => hard_bytes,
            (ByteSize::Auto, None) => return Err(Invalid::NoHardLimit.into()),
        };
        Self::leaving(limit_bytes, beside::of_process(threads))
    }

    /// `fixed_bytes` are taken off whatever the limit is.
    fn leaving(limit_bytes: u64, fixed_bytes: u64) -> Result<Self> {
        let beside_bytes = fixed_bytes + margin_bytes(limit_bytes);
        match limit_bytes.checked_sub(beside_bytes) {
            Some(budget_bytes) if budget_bytes > 0 => Ok(Self {
                limit_bytes,
                budget_bytes,
                beside_bytes,
            }),
            _ => Err(Invalid::LittleLimit {
                limit_bytes,
                beside_bytes,
            }
            .into()),
        }
    }

    /// The limit that leaves `budget_bytes`.
    pub fn for_budget(&self, budget_bytes: u64) -> u64 {
        let fixed_bytes = self.beside_bytes - margin_bytes(self.limit_bytes);
        let needed = u128::from(fixed_bytes.saturating_add(budget_bytes));
        let share = u128::from(MARGIN_SHARE);
        u64::try_from((needed * share).div_ceil(share - 1)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::beside::resident_bytes;
    use super::*;
    use crate::Error;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_limit_leaves_what_nothing_else_takes() {
        let fixed_bytes = resident_bytes(Some(32 * MIB), 4);
        assert_eq!(fixed_bytes, 20 * MIB + MIB + 7 * MIB);
        let limit = Limit::leaving(64 * MIB, fixed_bytes).unwrap();
        assert_eq!(limit.beside_bytes, 30 * MIB);
        assert_eq!(limit.budget_bytes, 34 * MIB);
        assert_eq!(resident_bytes(None, 0), 31 * MIB);
        let refused = Limit::leaving(28 * MIB, fixed_bytes).unwrap_err();
        assert!(
            matches!(refused, Error::Invalid(Invalid::LittleLimit { limit_bytes, beside_bytes })
                if (limit_bytes, beside_bytes) == (28 * MIB, 28 * MIB + 28 * MIB / 32)),
            "{refused}"
        );
    }

    #[test]
    fn the_limit_for_a_budget_leaves_it() {
        for fixed_bytes in [0, 1, 29 * MIB + 4096] {
            let limit = Limit::leaving(1 << 30, fixed_bytes).unwrap();
            for budget_bytes in [1, 4096, 5 * MIB + 1, 64 * MIB, 1 << 40] {
                let larger = limit.for_budget(budget_bytes);
                let left = |bytes| Limit::leaving(bytes, fixed_bytes).map_or(0, |limit| limit.budget_bytes);
                assert!(left(larger) >= budget_bytes, "{fixed_bytes} {budget_bytes}");
                assert!(left(larger - 2) < budget_bytes, "{fixed_bytes} {budget_bytes}");
            }
        }
    }

    #[test]
    fn this_process_has_a_program() {
        let program_bytes = process::program_bytes().unwrap();
        assert!(program_bytes > MIB, "{program_bytes}");
        let limit = Limit::new(ByteSize::Bytes(1 << 40), 2).unwrap();
        assert!(limit.budget_bytes < limit.limit_bytes);
        assert_eq!(limit.beside_bytes + limit.budget_bytes, limit.limit_bytes);
    }
}
