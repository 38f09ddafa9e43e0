//! The final table: one line a phase, numbers to the right, 80 columns wide at most.

use super::wear::{RATED_YEARS, runs_a_day};
use super::{FAILED, Phase, Report};

const COLUMNS: usize = 8;
const HEADINGS: [&str; COLUMNS] = [
    "phase", "seconds", "cores", "disk", "read", "written", "peak", "bound by",
];
/// The rest of 80 columns.
const NAME_LETTERS_MAX: usize = 22;

/// The table of a run, with a total where there is more than one phase.
pub fn render(report: &Report) -> String {
    let mut rows: Vec<[String; COLUMNS]> = Vec::new();
    for phase in &report.phases {
        rows.push(cells(phase));
        rows.extend(phase.steps.iter().map(|step| {
            let mut cells = cells(step);
            cells[0].insert_str(0, "  ");
            cells
        }));
    }
    for row in &mut rows {
        row[0] = shortened(&row[0]);
    }
    let phases = rows.len();
    let total = (report.phases.len() > 1).then(|| cells(&report.total()));
    rows.extend(total);
    let mut text = grid(&HEADINGS, &rows, phases);
    text.push_str("disk: seconds of waiting for it; peak: of resident memory; K, M, G: binary\n");
    // Only a session counts the bytes that are written.
    if let Some(budget_bytes) = report.budget_bytes {
        text.push_str(&format!("{}\n", wear(report.total().bytes_written)));
        let limit = report.limit_bytes.map_or_else(String::new, |limit_bytes| {
            format!("; limit on the process: {}", bytes(limit_bytes))
        });
        text.push_str(&format!("budget: {}{limit}\n", bytes(budget_bytes)));
    }
    text
}

/// A grid with a rule below the headings and, if `rule_before` is the index of a row, one before that row.
pub fn grid<const N: usize>(headings: &[&str; N], rows: &[[String; N]], rule_before: usize) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    });
    let line = |cells: [&str; N]| {
        let padded = (0..N).map(|column| {
            let (cell, width) = (cells[column], widths[column]);
            if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rule = format!("{}\n", "-".repeat(widths.iter().sum::<usize>() + 2 * (N - 1)));
    let mut text = line(*headings);
    text.push_str(&rule);
    for (index, row) in rows.iter().enumerate() {
        if index == rule_before {
            text.push_str(&rule);
        }
        text.push_str(&line(std::array::from_fn(|column| row[column].as_str())));
    }
    text
}

/// A name in as many letters as there is room for; that a phase failed stays.
fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_LETTERS_MAX {
        return name.to_owned();
    }
    let (name, end) = match name.strip_suffix(FAILED) {
        Some(name) => (name, FAILED),
        None => (name, ""),
    };
    let letters = NAME_LETTERS_MAX - end.len() - 1;
    name.chars()
        .take(letters)
        .chain(['…'])
        .chain(end.chars())
        .collect()
}

fn cells(phase: &Phase) -> [String; COLUMNS] {
    [
        phase.name.clone(),
        seconds(phase.seconds),
        // The processor clock is too coarse below.
        match phase.seconds >= 0.005 {
            true => format!("{:.1}", phase.processor_seconds / phase.seconds),
            false => "-".to_owned(),
        },
        seconds(phase.waited_seconds),
        narrow_bytes(phase.bytes_read),
        narrow_bytes(phase.bytes_written),
        narrow_bytes(phase.peak_bytes),
        phase.bound.word().to_owned(),
    ]
}

/// Seconds in seven letters at most.
fn seconds(seconds: f64) -> String {
    if seconds < 10_000.0 {
        format!("{seconds:.2}")
    } else {
        format!("{seconds:.0}")
    }
}

/// Bytes in five letters at most: three digits and a binary suffix, as sizes of options are written.
fn narrow_bytes(bytes: u64) -> String {
    if bytes == 0 {
        return "0".into();
    }
    let (mut value, mut suffix) = (bytes as f64 / 1024.0, "K");
    for next in ["M", "G", "T", "P"] {
        if value < 999.5 {
            break;
        }
        (value, suffix) = (value / 1024.0, next);
    }
    if value < 99.95 {
        format!("{value:.1}{suffix}")
    } else {
        format!("{value:.0}{suffix}")
    }
}

/// Bytes as text: one digit after the point, binary units.
pub fn bytes(bytes: u64) -> String {
    bytes_rounded(bytes, |value| value)
}

/// The same, rounded up: for room that has to be there.
pub fn bytes_up(bytes: u64) -> String {
    bytes_rounded(bytes, |value| (10.0 * value).ceil() / 10.0)
}

fn bytes_rounded(bytes: u64, round: impl Fn(f64) -> f64) -> String {
    if bytes < 1024 {
        return if bytes == 0 {
            "0".into()
        } else {
            format!("{bytes} B")
        };
    }
    let (mut value, mut unit) = (bytes as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    format!("{:.1} {unit}", round(value))
}

/// A time as people say it: `0.45 s`, `23 s`, `5 min 24 s`, `5 h 24 min`, `3 d 4 h`.
pub fn duration(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    if seconds < 10.0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    let two = |(large, large_unit): (u64, &str), (small, small_unit): (u64, &str)| match whole % large / small
    {
        0 => format!("{} {large_unit}", whole / large),
        rest => format!("{} {large_unit} {rest} {small_unit}", whole / large),
    };
    match whole {
        ..MINUTE => format!("{whole} s"),
        MINUTE..HOUR => two((MINUTE, "min"), (1, "s")),
        HOUR..DAY => two((HOUR, "h"), (MINUTE, "min")),
        _ => two((DAY, "d"), (HOUR, "h")),
    }
}

/// How often in a day a rated drive takes what a run writes, on a line of at most 80 columns.
pub fn wear(bytes_written: u64) -> String {
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
    use crate::Bound;
    use crate::curve::Curve;

    #[test]
    fn columns_line_up() {
        let rows = [
            ["a".to_owned(), "1".to_owned()],
            ["long".to_owned(), "200".to_owned()],
        ];
        assert_eq!(
            grid(&["x", "n"], &rows, 1),
            "x       n\n---------\na       1\n---------\nlong  200\n"
        );
    }

    /// The longest names and numbers that there may be.
    #[test]
    fn the_table_fits_80_columns() {
        let phase = |name: &str, bound| Phase {
            name: name.into(),
            started_seconds: 0.0,
            seconds: 9_999.99,
            bytes_read: 1023 << 30,
            bytes_written: (1 << 50) - 1,
            peak_bytes: 999 << 20,
            processor_seconds: 9_999.99 * 128.0,
            waited_seconds: 9_999.99,
            queued_seconds: 0.0,
            idle_seconds: 0.0,
            bound,
            device: None,
            steps: Vec::new(),
        };
        let mut outer = phase("verifying key of a long name (failed)", Bound::Others);
        outer.steps.push(phase("commit fixed columns", Bound::Compute));
        let report = Report {
            phases: vec![outer, phase("prove", Bound::Disk)],
            budget_bytes: Some(1 << 30),
            limit_bytes: Some(2 << 30),
            curve: Curve::default(),
        };
        let text = render(&report);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for words in [
            "verifying ke… (failed)",
            "  commit fixed columns ",
            "others",
            "999M",
            "1.0T",
            "takes no such runs",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn narrow_sizes_have_five_letters() {
        let texts = [0, 1, 1024, 99 << 20, 100 << 20, 1023 << 20, 1 << 40].map(narrow_bytes);
        assert_eq!(texts, ["0", "0.0K", "1.0K", "99.0M", "100M", "1.0G", "1.0T"]);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(0), "0");
        assert_eq!(bytes(1500), "1.5 KiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(
            (bytes(1100), bytes_up(1100)),
            ("1.1 KiB".into(), "1.1 KiB".into())
        );
        assert_eq!(
            (bytes(1075), bytes_up(1075)),
            ("1.0 KiB".into(), "1.1 KiB".into())
        );
        assert_eq!(
            (bytes_up(0), bytes_up(5), bytes_up(1 << 30)),
            ("0".into(), "5 B".into(), "1.0 GiB".into())
        );
    }

    #[test]
    fn times_are_said_as_people_do() {
        for (seconds, text) in [
            (0.0, "0.00 s"),
            (0.449, "0.45 s"),
            (9.99, "9.99 s"),
            (23.4, "23 s"),
            (59.6, "1 min"),
            (324.0, "5 min 24 s"),
            (3599.6, "1 h"),
            (19473.23, "5 h 24 min"),
            (86399.0, "23 h 59 min"),
            (86400.0, "1 d"),
            (273_600.0, "3 d 4 h"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn wear_is_a_line() {
        assert_eq!(wear(0), "written: nothing");
        assert_eq!(
            wear(3 << 29),
            "written: 1.5 GiB; a drive of 600 TBW takes 204 such runs a day for 5 years"
        );
        // A page is the least that is written.
        for bytes_written in [4096, 1023 << 10, 1 << 50] {
            assert!(wear(bytes_written).len() <= 80, "{}", wear(bytes_written));
        }
    }
}
