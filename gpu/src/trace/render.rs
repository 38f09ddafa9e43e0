//! A trace as a table, as a timeline in text, and as an SVG.

use std::fmt::Write;

use super::{Busy, Kind, Span, Total};

pub(super) fn table<'a>(totals: impl Iterator<Item = (&'a str, Total)>) -> String {
    let mut text = format!(
        "{:<28} {:>8} {:>16} {:>11} {:>9}\n",
        "what", "count", "bytes", "seconds", "GB/s"
    );
    for (name, total) in totals.filter(|(_, total)| total.count > 0) {
        let seconds = match total.timed {
            0 => "-".to_owned(),
            _ => format!("{:.6}", total.seconds),
        };
        let rate = if total.timed_bytes > 0 && total.seconds > 0.0 {
            format!("{:.2}", total.timed_bytes as f64 / total.seconds / 1e9)
        } else {
            "-".to_owned()
        };
        let _ = writeln!(
            text,
            "{:<28} {:>8} {:>16} {:>11} {:>9}",
            name, total.count, total.bytes, seconds, rate
        );
    }
    text
}

/// The busy seconds; the spans are sorted by start.
pub(super) fn busy(spans: &[Span]) -> Option<Busy> {
    let covered = |wanted: fn(Kind) -> bool| {
        let mut covered = (0.0, f64::NEG_INFINITY);
        for span in spans.iter().filter(|span| wanted(span.kind)) {
            let end = span.start_seconds + span.seconds;
            covered.0 += (end - span.start_seconds.max(covered.1)).max(0.0);
            covered.1 = end.max(covered.1);
        }
        covered.0
    };
    let of_device: fn(Kind) -> bool = |kind| matches!(kind, Kind::Kernel | Kind::OnDevice);
    let of_both: fn(Kind) -> bool =
        |kind| !matches!(kind, Kind::Fill | Kind::Drain | Kind::EventWait | Kind::HardSync);
    let of_bus: fn(Kind) -> bool = |kind| {
        matches!(
            kind,
            Kind::ToDevicePinned
                | Kind::ToDevicePageable
                | Kind::Peer
                | Kind::FromDevicePinned
                | Kind::FromDevicePageable
        )
    };
    spans.iter().any(|span| of_both(span.kind)).then(|| Busy {
        device_seconds: covered(of_device),
        transfer_seconds: covered(of_bus),
        with_transfer_seconds: covered(of_both),
    })
}

/// The busy seconds as lines of the table.
pub(super) fn busy_lines(busy: Busy) -> String {
    let line =
        |name: &str, seconds: f64| format!("{name:<28} {:>8} {:>16} {seconds:>11.6} {:>9}\n", "-", "-", "-");
    line("device", busy.device_seconds) + &line("device and transfer", busy.with_transfer_seconds)
}

/// First start and last end, in seconds; `None` without spans.
fn extent(spans: &[Span]) -> Option<(f64, f64)> {
    let start = spans
        .iter()
        .map(|span| span.start_seconds)
        .min_by(f64::total_cmp)?;
    let end = spans
        .iter()
        .map(|span| span.start_seconds + span.seconds)
        .max_by(f64::total_cmp)?;
    Some((start, end.max(start + 1e-9)))
}

fn lanes(spans: &[Span]) -> impl Iterator<Item = (Kind, Vec<&Span>)> {
    Kind::ALL.into_iter().filter_map(|kind| {
        let lane: Vec<&Span> = spans.iter().filter(|span| span.kind == kind).collect();
        (!lane.is_empty()).then_some((kind, lane))
    })
}

pub(super) fn text(spans: &[Span], columns: usize) -> String {
    let columns = columns.max(1);
    let Some((start, end)) = extent(spans) else {
        return "no spans\n".to_owned();
    };
    let per_second = columns as f64 / (end - start);
    let mut text = String::new();
    for (kind, lane) in lanes(spans) {
        let mut line = vec![b'.'; columns];
        for span in lane {
            let from = ((span.start_seconds - start) * per_second).max(0.0) as usize;
            let to = ((span.start_seconds + span.seconds - start) * per_second).ceil() as usize;
            let from = from.min(columns - 1);
            line[from..to.clamp(from + 1, columns)].fill(b'#');
        }
        let _ = writeln!(text, "{:<22} {}", kind.name(), String::from_utf8_lossy(&line));
    }
    let _ = writeln!(text, "{:<22} {:.6} seconds", "", end - start);
    text
}

pub(super) fn svg(spans: &[Span]) -> String {
    const LABEL: f64 = 170.0;
    const WIDTH: f64 = 1000.0;
    const LANE: f64 = 22.0;
    let lanes: Vec<_> = lanes(spans).collect();
    let height = LANE * (lanes.len() as f64 + 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"monospace\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        LABEL + WIDTH
    );
    let (start, end) = extent(spans).unwrap_or((0.0, 1.0));
    let scale = WIDTH / (end - start);
    for (row, (kind, lane)) in lanes.iter().enumerate() {
        let y = LANE * row as f64 + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{:.0}\" fill=\"#222\">{}</text>",
            y + 12.0,
            kind.name()
        );
        for span in lane {
            let _ = writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{y:.0}\" width=\"{:.2}\" height=\"15\" fill=\"{}\"><title>{}{} bytes, {:.6} s</title></rect>",
                LABEL + (span.start_seconds - start) * scale,
                (span.seconds * scale).max(0.5),
                colour(*kind),
                span.kernel
                    .as_ref()
                    .map_or_else(String::new, |name| format!("{}: ", escaped(name))),
                span.bytes,
                span.seconds
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LABEL}\" y=\"{:.0}\" fill=\"#222\">{:.6} seconds</text>\n</svg>",
        height - 6.0,
        end - start
    );
    svg
}

/// Escapes the name of a kernel for the SVG.
fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;")
}

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Fill | Kind::Drain => "#4477aa",
        Kind::ToDevicePinned | Kind::FromDevicePinned => "#228833",
        Kind::ToDevicePageable | Kind::FromDevicePageable => "#aa3377",
        Kind::Kernel => "#ccbb44",
        Kind::OnDevice | Kind::Peer => "#66ccee",
        Kind::EventWait => "#bbbbbb",
        Kind::HardSync => "#ee6677",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans() -> Vec<Span> {
        let span = |kind, start_seconds, seconds| Span {
            kind,
            kernel: None,
            start_seconds,
            seconds,
            bytes: 1000,
        };
        vec![
            span(Kind::Fill, 0.0, 1.0),
            span(Kind::ToDevicePinned, 1.0, 1.0),
            span(Kind::Kernel, 2.0, 2.0),
        ]
    }

    #[test]
    fn lanes_are_busy_where_their_spans_are() {
        let text = text(&spans(), 8);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("fill (host)") && lines[0].ends_with("##......"));
        assert!(lines[1].ends_with("..##...."));
        assert!(lines[2].ends_with("....####"));
        assert!(lines[3].ends_with("4.000000 seconds"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(text(&[], 10), "no spans\n");
        assert!(svg(&[]).ends_with("</svg>\n"));
        assert_eq!(table(std::iter::empty()).lines().count(), 1);
    }

    #[test]
    fn a_rate_is_of_what_was_timed() {
        let total = Total {
            count: 2,
            bytes: 4_000_000_000,
            seconds: 0.5,
            timed: 1,
            timed_bytes: 2_000_000_000,
        };
        let table = table([("to device, pinned", total)].into_iter());
        assert!(table.lines().nth(1).unwrap().ends_with("4.00"), "{table}");
    }

    #[test]
    fn the_picture_has_one_bar_for_each_span() {
        let svg = svg(&spans());
        assert_eq!(svg.matches("<title>1000 bytes").count(), 3);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn what_runs_at_the_same_time_counts_once() {
        let span = |kind, start_seconds, seconds| Span {
            kind,
            kernel: None,
            start_seconds,
            seconds,
            bytes: 0,
        };
        let mut spans = vec![span(Kind::Fill, 0.0, 9.0)];
        assert_eq!(busy(&spans), None);
        spans.extend([
            span(Kind::ToDevicePinned, 1.0, 2.0),
            span(Kind::Kernel, 2.0, 2.0),
            span(Kind::OnDevice, 2.5, 0.5),
            span(Kind::FromDevicePinned, 5.0, 1.0),
            span(Kind::Kernel, 5.5, 1.5),
        ]);
        let busy = busy(&spans).unwrap();
        assert_eq!((busy.device_seconds, busy.with_transfer_seconds), (3.5, 5.0));
        // From 2 to 3, and from 5.5 to 6.
        assert_eq!((busy.transfer_seconds, busy.overlap_seconds()), (3.0, 1.5));
        spans.reverse();
        assert_eq!(Busy::of(spans), Some(busy));
        assert!(busy_lines(busy).contains("device and transfer"));
    }
}
