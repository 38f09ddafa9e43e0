//! Where and when a run was: lines of its page.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version, processor and date, each with its name.
pub fn facts() -> Vec<(&'static str, String)> {
    let mut facts = vec![("version", format!("spillproof {}", env!("CARGO_PKG_VERSION")))];
    facts.extend(processor().map(|name| ("processor", name)));
    facts.push(("date", now()));
    facts
}

/// The processor's name, where the kernel tells it, and how many of its threads the process may use.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let name = name_of(&text)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    Some(format!("{name}, {cores} of its threads"))
}

fn name_of(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// The time now, in UTC.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs())
}

/// `YYYY-MM-DD hh:mm UTC` of seconds since 1970 (Hinnant, *chrono-compatible low-level date algorithms*:
/// years begin in March).
fn date(seconds: u64) -> String {
    const DAYS_OF_ERA: u64 = 146_097;
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn the_processor_has_a_name() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nflags: x\n";
        assert_eq!(name_of(text), Some("A CPU @ 2 GHz"));
        assert_eq!(name_of("CPU part\t: 0xd0c\n"), None);
        assert!(facts().len() >= 2);
    }
}
