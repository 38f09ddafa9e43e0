//! A trace as a table.

use std::fmt::Write;

use super::{Busy, Span, SpanKind, Total};

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
    let covered = |wanted: fn(SpanKind) -> bool| {
        let mut covered = (0.0, f64::NEG_INFINITY);
        for span in spans.iter().filter(|span| wanted(span.kind)) {
            let end = span.start_seconds + span.seconds;
            covered.0 += (end - span.start_seconds.max(covered.1)).max(0.0);
            covered.1 = end.max(covered.1);
        }
        covered.0
    };
    let of_device: fn(SpanKind) -> bool = |kind| matches!(kind, SpanKind::Kernel | SpanKind::OnDevice);
    let of_both: fn(SpanKind) -> bool = |kind| {
        !matches!(
            kind,
            SpanKind::Fill | SpanKind::Drain | SpanKind::EventWait | SpanKind::HardSync
        )
    };
    let of_bus: fn(SpanKind) -> bool = |kind| {
        matches!(
            kind,
            SpanKind::ToDevicePinned
                | SpanKind::ToDevicePageable
                | SpanKind::FromDevicePinned
                | SpanKind::FromDevicePageable
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_nothing_has_its_heading_only() {
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
    fn what_runs_at_the_same_time_counts_once() {
        let span = |kind, start_seconds, seconds| Span {
            kind,
            kernel: None,
            start_seconds,
            seconds,
            bytes: 0,
        };
        let mut spans = vec![span(SpanKind::Fill, 0.0, 9.0)];
        assert_eq!(busy(&spans), None);
        spans.extend([
            span(SpanKind::ToDevicePinned, 1.0, 2.0),
            span(SpanKind::Kernel, 2.0, 2.0),
            span(SpanKind::OnDevice, 2.5, 0.5),
            span(SpanKind::FromDevicePinned, 5.0, 1.0),
            span(SpanKind::Kernel, 5.5, 1.5),
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
