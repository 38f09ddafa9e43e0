//! The final table: one line a phase, numbers to the right.

use super::{Bound, Phase, Report};

const COLUMNS: usize = 8;
const HEADINGS: [&str; COLUMNS] = [
    "phase",
    "seconds",
    "cores",
    "disk wait",
    "read",
    "written",
    "peak memory",
    "bound by",
];

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
    let phases = rows.len();
    let total = (report.phases.len() > 1).then(|| cells(&report.total()));
    rows.extend(total);
    let mut text = grid(&HEADINGS, &rows, phases);
    if let Some(budget_bytes) = report.budget_bytes {
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

fn cells(phase: &Phase) -> [String; COLUMNS] {
    let bound = match phase.bound {
        Bound::Disk => "disk",
        Bound::Compute => "compute",
    };
    [
        phase.name.clone(),
        format!("{:.2}", phase.seconds),
        // The processor clock is too coarse below.
        match phase.seconds >= 0.005 {
            true => format!("{:.1}", phase.processor_seconds / phase.seconds),
            false => "-".to_owned(),
        },
        format!("{:.2}", phase.waited_seconds),
        bytes(phase.bytes_read),
        bytes(phase.bytes_written),
        bytes(phase.peak_bytes),
        bound.to_owned(),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
