//! The memory curve as an SVG: an area, the budget as a line, the phases as bands. Plain text in, plain text out.

use std::fmt::Write;

use super::Report;
use super::table::bytes;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 40.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - 20.0;
const PLOT_HEIGHT: f64 = HEIGHT - TOP - 70.0;
const POINTS_MAX: usize = 800;
const RATES_MAX: usize = 200;

/// The picture of a run.
pub fn render(report: &Report, title: &str) -> String {
    let curve = &report.curve;
    let end = curve
        .samples
        .last()
        .map_or(0.0, |sample| sample.seconds)
        .max(1e-9);
    let highest = curve
        .samples
        .iter()
        .map(|sample| sample.resident_bytes)
        .max()
        .unwrap_or(0);
    let budget = report
        .budget_bytes
        .filter(|budget| *budget < highest.saturating_mul(8));
    let top = highest.max(budget.unwrap_or(0)).max(1) as f64 * 1.1;
    let x = |seconds: f64| LEFT + seconds / end * PLOT_WIDTH;
    let y = |value: f64| TOP + PLOT_HEIGHT - value / top * PLOT_HEIGHT;
    let bottom = y(0.0);

    let mut svg = String::new();
    // Writing to a string cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = svg.write_fmt(text);
    };
    put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escaped(title)
    ));
    for (index, mark) in curve.marks.iter().enumerate() {
        let from = x(mark.seconds);
        let to = curve
            .marks
            .get(index + 1)
            .map_or(LEFT + PLOT_WIDTH, |next| x(next.seconds));
        let fill = if index % 2 == 0 { "#f2f2f2" } else { "#e6e6e6" };
        put(format_args!(
            "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\" fill=\"{fill}\"/>\n",
            to - from
        ));
        // Every second name a line lower, so that short phases stay legible.
        let label_y = bottom + 34.0 + 14.0 * (index % 2) as f64;
        put(format_args!(
            "<text x=\"{from:.1}\" y=\"{label_y:.1}\" font-size=\"11\">{}</text>\n",
            escaped(&mark.name)
        ));
    }
    put(format_args!(
        "<polygon fill=\"#4477aa\" fill-opacity=\"0.75\" points=\"{LEFT:.1},{bottom:.1}"
    ));
    let highest_in_columns = curve.columns(POINTS_MAX);
    for (column, value) in highest_in_columns.iter().enumerate() {
        let seconds = (column as f64 + 0.5) / POINTS_MAX as f64 * end;
        put(format_args!(" {:.1},{:.1}", x(seconds), y(*value as f64)));
    }
    put(format_args!(" {:.1},{bottom:.1}\"/>\n", LEFT + PLOT_WIDTH));
    for quarter in 0..=4 {
        let value = top * f64::from(quarter) / 4.0;
        put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#999\" stroke-width=\"0.5\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            LEFT + PLOT_WIDTH,
            LEFT - 6.0,
            y(value) + 4.0,
            bytes(value as u64),
            y = y(value),
        ));
    }
    if let Some(budget) = budget {
        let at = y(budget as f64);
        put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#c33\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n\
             <text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#c33\">budget {}</text>\n",
            at - 4.0,
            bytes(budget),
            right = LEFT + PLOT_WIDTH,
        ));
    }
    put(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{end:.1} s</text>\n</svg>\n",
        LEFT + PLOT_WIDTH,
        bottom + 18.0
    ));
    svg
}

/// Bytes a second over time: read above, written below the line in the middle.
pub fn render_rates(report: &Report, title: &str) -> String {
    let rates = report.curve.rates(RATES_MAX);
    let top = rates
        .iter()
        .flatten()
        .fold(1.0f64, |highest, rate| highest.max(*rate));
    let (half, middle) = (PLOT_HEIGHT / 2.0, TOP + PLOT_HEIGHT / 2.0);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = svg.write_fmt(text);
    };
    put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escaped(title)
    ));
    for (way, colour, sign) in [(0, "#228833", -1.0), (1, "#cc6677", 1.0)] {
        put(format_args!(
            "<polygon fill=\"{colour}\" fill-opacity=\"0.75\" points=\"{LEFT:.1},{middle:.1}"
        ));
        for (column, rate) in rates.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) / RATES_MAX as f64 * PLOT_WIDTH;
            put(format_args!(
                " {x:.1},{:.1}",
                middle + sign * rate[way] / top * half
            ));
        }
        put(format_args!(" {:.1},{middle:.1}\"/>\n", LEFT + PLOT_WIDTH));
    }
    for (y, label) in [(TOP, "read"), (middle, ""), (TOP + PLOT_HEIGHT, "written")] {
        let label = if label.is_empty() {
            "0".into()
        } else {
            format!("{label} {}/s", bytes(top as u64))
        };
        put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#999\" stroke-width=\"0.5\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"10\">{label}</text>\n",
            LEFT + PLOT_WIDTH,
            LEFT - 4.0,
            y + 4.0
        ));
    }
    put(format_args!("</svg>\n"));
    svg
}

/// As text of a page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::curve::{Curve, Mark, Sample};

    #[test]
    fn a_picture_is_well_formed() {
        let samples = (0..50)
            .map(|i| Sample {
                seconds: f64::from(i),
                resident_bytes: 1 << (i % 20),
                bytes_read: 0,
                bytes_written: 0,
            })
            .collect();
        let marks = vec![
            Mark {
                name: "a < b & c".into(),
                seconds: 0.0,
            },
            Mark {
                name: "d".into(),
                seconds: 20.0,
            },
        ];
        let report = Report {
            phases: vec![],
            budget_bytes: Some(1 << 19),
            curve: Curve { samples, marks },
        };
        let svg = render(&report, "title");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(
            svg.contains("a &lt; b &amp; c") && svg.contains("budget 512.0 KiB"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn an_empty_run_has_a_picture_too() {
        let report = Report {
            phases: vec![],
            budget_bytes: None,
            curve: Curve::default(),
        };
        assert!(!render(&report, "nothing").contains("NaN"));
    }
}
