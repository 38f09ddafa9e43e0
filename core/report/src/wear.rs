//! What a run writes, beside what flash drives are rated for.

/// The bytes that a drive of 1 TB is commonly rated for: 600 TBW.
pub const RATED_BYTES: u64 = 600_000_000_000_000;
/// The years of its warranty.
pub const RATED_YEARS: u64 = 5;

/// How often in a day a drive takes what a run writes, for [`RATED_YEARS`]; `None` for a run that writes nothing.
pub fn runs_a_day(bytes_written: u64) -> Option<u64> {
    RATED_BYTES.checked_div(bytes_written.saturating_mul(365 * RATED_YEARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_takes_so_many_runs_a_day() {
        assert_eq!(runs_a_day(0), None);
        assert_eq!(runs_a_day(3 << 29), Some(204));
        assert_eq!(runs_a_day(RATED_BYTES), Some(0));
        assert_eq!(runs_a_day(u64::MAX), Some(0));
    }
}
