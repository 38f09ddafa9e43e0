//! Pictures as SVG: a [`Picture`] to draw on, the memory curve of a run ([`render`]) and its disk rates ([`render_rates`]). Plain
//! text in, plain text out. [`document`] is the frame of every SVG of the project.

use std::fmt::{Arguments, Write};

use super::Report;
use super::table::bytes;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
/// Where the plot begins, from the left.
pub const LEFT: f64 = 90.0;
/// Where the plot begins, from the top.
pub const TOP: f64 = 40.0;
/// The plot.
pub const PLOT_WIDTH: f64 = WIDTH - LEFT - 20.0;
/// The plot.
pub const PLOT_HEIGHT: f64 = HEIGHT - TOP - 70.0;
const RIGHT: f64 = LEFT + PLOT_WIDTH;
const POINTS_MAX: usize = 800;
const RATES_MAX: usize = 200;

/// A picture that is being drawn.
pub struct Picture {
    text: String,
    height: f64,
}

impl Picture {
    /// With a title, and room for one plot.
    pub fn new(title: &str) -> Self {
        Self::with_height(title, HEIGHT)
    }

    /// With a title, `height` units high.
    pub fn with_height(title: &str, height: f64) -> Self {
        let mut picture = Self {
            text: String::new(),
            height,
        };
        picture.put(format_args!(
            "<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
            escaped(title)
        ));
        picture
    }

    /// Draws an element.
    pub fn put(&mut self, element: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(element);
    }

    /// A line across the plot, with a label to the left of it.
    pub fn level(&mut self, y: f64, label: &str) {
        self.put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#999\" stroke-width=\"0.5\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 6.0,
            y + 4.0,
            escaped(label)
        ));
    }

    /// A stretch of the plot, the `index`th; its name is below the plot, in one of `lines` lines, so that short ones stay legible.
    pub fn band(&mut self, index: usize, [from, to]: [f64; 2], name: &str, lines: usize) {
        let fill = if index.is_multiple_of(2) {
            "#f2f2f2"
        } else {
            "#e6e6e6"
        };
        let label_y = TOP + PLOT_HEIGHT + 34.0 + 14.0 * (index % lines) as f64;
        self.put(format_args!(
            "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\" fill=\"{fill}\"/>\n\
             <text x=\"{from:.1}\" y=\"{label_y:.1}\" font-size=\"11\">{}</text>\n",
            to - from,
            escaped(name)
        ));
    }

    /// Busy cores, up to `top`, in equal spans of `seconds`.
    pub fn cores(&mut self, busy: &[f64], top: f64, seconds: f64) {
        let bottom = TOP + PLOT_HEIGHT;
        let points = busy.iter().enumerate().map(|(span, cores)| {
            let x = LEFT + (span as f64 + 0.5) / busy.len() as f64 * PLOT_WIDTH;
            // A little more than there are, between two samples.
            (x, bottom - (cores / top).min(1.05) * PLOT_HEIGHT)
        });
        self.area("#aa3377", bottom, points);
        for quarter in 0..=4 {
            let share = f64::from(quarter) / 4.0;
            self.level(bottom - share * PLOT_HEIGHT, &format!("{:.1}", top * share));
        }
        self.end(seconds);
    }

    /// The area between `base` and points.
    fn area(&mut self, colour: &str, base: f64, points: impl Iterator<Item = (f64, f64)>) {
        self.put(format_args!(
            "<polygon fill=\"{colour}\" fill-opacity=\"0.75\" points=\"{LEFT:.1},{base:.1}"
        ));
        for (x, y) in points {
            self.put(format_args!(" {x:.1},{y:.1}"));
        }
        self.put(format_args!(" {RIGHT:.1},{base:.1}\"/>\n"));
    }

    /// Seconds at the lower right.
    fn end(&mut self, seconds: f64) {
        self.put(format_args!(
            "<text x=\"{RIGHT:.1}\" y=\"{:.1}\" text-anchor=\"end\">{seconds:.1} s</text>\n",
            TOP + PLOT_HEIGHT + 18.0
        ));
    }

    /// Pictures one below the other, as one SVG.
    pub fn stack(pictures: &[Self]) -> String {
        let height: f64 = pictures.iter().map(|picture| picture.height).sum();
        let mut all = format!(
            "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <g font-family=\"sans-serif\" font-size=\"12\">\n"
        );
        let mut y = 0.0;
        for picture in pictures {
            let _ = write!(all, "<g transform=\"translate(0 {y})\">\n{}</g>\n", picture.text);
            y += picture.height;
        }
        all.push_str("</g>\n");
        document(WIDTH, height, &all)
    }
}

/// One SVG of `width` times `height` units around elements.
pub fn document(width: f64, height: f64, elements: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         {elements}</svg>\n"
    )
}

/// The memory of a run: resident memory as an area, leased memory and the budget as lines, the phases as bands.
pub fn render(report: &Report, title: &str) -> String {
    let curve = &report.curve;
    let end = curve.end_seconds();
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

    let mut picture = Picture::new(title);
    for (index, mark) in curve.marks.iter().enumerate() {
        let to = curve.marks.get(index + 1).map_or(RIGHT, |next| x(next.seconds));
        picture.band(index, [x(mark.seconds), to], &mark.name, 2);
    }
    let columns = curve.columns(POINTS_MAX);
    let middle = |column: usize| x((column as f64 + 0.5) / POINTS_MAX as f64 * end);
    let points = columns.iter().enumerate();
    picture.area(
        "#4477aa",
        bottom,
        points.map(|(column, value)| (middle(column), y(*value as f64))),
    );
    let leased = curve.leased(POINTS_MAX);
    if leased.iter().any(|bytes| *bytes > 0) {
        let points: Vec<String> = (leased.iter().enumerate())
            .map(|(column, value)| format!("{:.1},{:.1}", middle(column), y(*value as f64)))
            .collect();
        picture.put(format_args!(
            "<polyline fill=\"none\" stroke=\"#e07b00\" stroke-width=\"1.2\" points=\"{}\"/>\n\
             <text x=\"{RIGHT:.1}\" y=\"22\" text-anchor=\"end\"><tspan fill=\"#4477aa\">resident</tspan> \
             <tspan fill=\"#e07b00\">leased of the budget</tspan></text>\n",
            points.join(" ")
        ));
    }
    for quarter in 0..=4 {
        let value = top * f64::from(quarter) / 4.0;
        picture.level(y(value), &bytes(value as u64));
    }
    if let Some(budget) = budget {
        let at = y(budget as f64);
        picture.put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#c33\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n\
             <text x=\"{RIGHT:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#c33\">budget {}</text>\n",
            at - 4.0,
            bytes(budget),
        ));
    }
    picture.end(end);
    Picture::stack(&[picture])
}

/// Bytes a second over time: read above, written below the line in the middle.
pub fn render_rates(report: &Report, title: &str) -> String {
    let rates = report.curve.rates(RATES_MAX);
    let top = rates
        .iter()
        .flatten()
        .fold(1.0f64, |highest, rate| highest.max(*rate));
    let (half, middle) = (PLOT_HEIGHT / 2.0, TOP + PLOT_HEIGHT / 2.0);
    let mut picture = Picture::new(title);
    for (way, colour, sign) in [(0, "#228833", -1.0), (1, "#cc6677", 1.0)] {
        let points = rates.iter().enumerate().map(|(column, rate)| {
            let x = LEFT + (column as f64 + 0.5) / RATES_MAX as f64 * PLOT_WIDTH;
            (x, middle + sign * rate[way] / top * half)
        });
        picture.area(colour, middle, points);
    }
    let rate = format!("{}/s", bytes(top as u64));
    for (y, label) in [(TOP, &*rate), (middle, "0"), (TOP + PLOT_HEIGHT, &*rate)] {
        picture.level(y, label);
    }
    for (y, label) in [(TOP + 14.0, "read"), (TOP + PLOT_HEIGHT - 6.0, "written")] {
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{y:.1}\">{label}</text>\n",
            LEFT + 6.0
        ));
    }
    picture.end(report.curve.end_seconds());
    Picture::stack(&[picture])
}

/// Busy cores over time.
pub fn render_cores(report: &Report, title: &str) -> String {
    let cores = report.curve.cores(RATES_MAX);
    let top = cores.iter().fold(1.0f64, |most, cores| most.max(*cores)).ceil();
    let mut picture = Picture::new(title);
    picture.cores(&cores, top, report.curve.end_seconds());
    Picture::stack(&[picture])
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
    use crate::curve::{Curve, Mark, Sample};

    #[test]
    fn a_picture_is_well_formed() {
        let samples = (0..50)
            .map(|i| Sample {
                seconds: f64::from(i),
                resident_bytes: 1 << (i % 20),
                leased_bytes: 1 << (i % 19),
                bytes_read: 0,
                bytes_written: 0,
                processor_seconds: 0.0,
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
            svg.contains("a &lt; b &amp; c") && svg.contains("<polyline") && svg.contains("budget 512.0 KiB"),
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
