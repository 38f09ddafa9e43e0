//! What a run writes, beside what flash drives are rated for.

use crate::table::bytes;

/// The bytes that a drive of 1 TB is commonly rated for: 600 TBW.
pub const RATED_BYTES: u64 = 600_000_000_000_000;
/// The years of its warranty.
pub const RATED_YEARS: u64 = 5;

/// How often in a day a drive takes what a run writes, for [`RATED_YEARS`]; `None` for a run that writes nothing.
pub fn runs_a_day(bytes_written: u64) -> Option<u64> {
    RATED_BYTES.checked_div(bytes_written.saturating_mul(365 * RATED_YEARS))
}

/// The same in words, on a line of at most 80 columns.
pub fn words(bytes_written: u64) -> String {
    match runs_a_day(bytes_written) {
        None => "written: nothing".into(),
        Some(runs) => format!(
            "written: {}; a drive of 600 TBW takes {} such runs a day for {RATED_YEARS} years",
            bytes(bytes_written),
            if runs == 0 { "no".into() } else { runs.to_string() }
        ),
    }
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
        assert_eq!(words(0), "written: nothing");
        assert_eq!(
            words(3 << 29),
            "written: 1.5 GiB; a drive of 600 TBW takes 204 such runs a day for 5 years"
        );
        // A page is the least that is written.
        for bytes_written in [4096, 1023 << 10, 1 << 50] {
            assert!(words(bytes_written).len() <= 80, "{}", words(bytes_written));
        }
    }
}
