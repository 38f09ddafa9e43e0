//! Pictures as SVG: a [`Picture`] to draw on, the memory curve of a run ([`render`]) and its disk rates
//! ([`render_rates`]). Plain text in, plain text out. [`document`] is the frame of every SVG of the project.

use std::fmt::{Arguments, Write};

use super::Report;
use super::axis::{Ticks, bytes_label, number_label};
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
const BOTTOM: f64 = TOP + PLOT_HEIGHT;
/// Where the names of bands begin, from the top.
const NAMES: f64 = BOTTOM + 36.0;
const NAME_LINE: f64 = 14.0;
/// Lines of names; those for which there is none are in tooltips alone.
const NAME_LINES_MAX: usize = 8;
/// Width of a letter of a name, at most.
const LETTER: f64 = 6.2;
const POINTS_MAX: usize = 400;
const RATES_MAX: usize = 200;
/// Spans of time with a tooltip each.
const TIPS: usize = 100;
/// Colours of paper, ink and bands, by what the reader's system asks for.
const STYLE: &str = "<style>.pic{fill:#222}.paper{fill:#fff}.band0{fill:#f4f4f4}.band1{fill:#e8e8e8}\
                     @media(prefers-color-scheme:dark){.pic{fill:#d8d8d8}.paper{fill:#16191d}.band0{fill:#1e2227}.band1{fill:#282d33}}\
                     .tip{fill-opacity:0}.tip:hover{fill-opacity:.15}</style>\n";

/// A picture that is being drawn.
pub struct Picture {
    text: String,
    height: f64,
    /// The bands' left ends and names.
    names: Vec<(f64, String)>,
}

impl Picture {
    /// With a title, and room for one plot.
    pub fn new(title: &str) -> Self {
        Self::with_height(title, HEIGHT)
    }

    /// With a title, `height` units high; names of bands may make it higher.
    pub fn with_height(title: &str, height: f64) -> Self {
        let mut picture = Self {
            text: String::new(),
            height,
            names: Vec::new(),
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

    /// A stretch of the plot, the `index`th, with a name.
    pub fn band(&mut self, index: usize, [from, to]: [f64; 2], name: &str) {
        let name = escaped(name);
        self.put(format_args!(
            "<rect class=\"band{}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{PLOT_HEIGHT}\"><title>{name}</title></rect>\n",
            index % 2,
            to - from,
        ));
        self.names.push((from, name));
    }

    /// Busy cores, up to `top`, in equal spans of `seconds`.
    pub fn cores(&mut self, busy: &[f64], top: f64, seconds: f64) {
        let points = busy.iter().enumerate().map(|(span, cores)| {
            let x = LEFT + (span as f64 + 0.5) / busy.len() as f64 * PLOT_WIDTH;
            // A little more than there are, between two samples.
            (x, BOTTOM - (cores / top).min(1.05) * PLOT_HEIGHT)
        });
        self.area("#aa3377", BOTTOM, points);
        let ticks = Ticks::within(top).values;
        for value in ticks {
            self.level(BOTTOM - value / top * PLOT_HEIGHT, &number_label(value));
        }
        self.times(seconds);
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

    /// The axis of time, which ends after `seconds`.
    fn times(&mut self, seconds: f64) {
        const ROOM: f64 = 64.0;
        let end = format!("{} s", number_label((seconds * 100.0).round() / 100.0));
        self.time(RIGHT, "end", &end);
        for value in Ticks::within(seconds).values {
            let x = LEFT + value / seconds.max(1e-9) * PLOT_WIDTH;
            if x < RIGHT - ROOM {
                self.time(x, "middle", &format!("{} s", number_label(value)));
            }
        }
    }

    fn time(&mut self, x: f64, anchor: &str, label: &str) {
        self.put(format_args!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{BOTTOM}\" y2=\"{:.1}\" stroke=\"#999\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>\n",
            BOTTOM + 4.0,
            BOTTOM + 18.0
        ));
    }

    /// Spans of time that say what was at that time, for a reader who points at them.
    fn tips(&mut self, seconds: f64, text: impl Fn(usize, f64) -> String) {
        let width = PLOT_WIDTH / TIPS as f64;
        for tip in 0..TIPS {
            let x = LEFT + tip as f64 * width;
            let middle = (tip as f64 + 0.5) / TIPS as f64 * seconds;
            self.put(format_args!(
                "<rect class=\"tip\" x=\"{x:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{PLOT_HEIGHT}\"><title>{}</title></rect>\n",
                escaped(&text(tip, middle))
            ));
        }
    }

    /// Names below the plot: each in the first line where it meets no other one, with a line from its band.
    /// Gives the room that they take.
    fn place_names(&mut self) -> f64 {
        let mut ends: Vec<f64> = Vec::new();
        for (from, name) in std::mem::take(&mut self.names) {
            let width = name.chars().count() as f64 * LETTER;
            let x = from.min(RIGHT - width).max(LEFT);
            let line = ends.iter().position(|end| x > end + LETTER).unwrap_or(ends.len());
            if line >= NAME_LINES_MAX {
                continue;
            }
            ends.resize(ends.len().max(line + 1), 0.0);
            ends[line] = x + width;
            let y = NAMES + NAME_LINE * line as f64;
            self.put(format_args!(
                "<line x1=\"{from:.1}\" x2=\"{from:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#999\" stroke-width=\"0.5\"/>\n\
                 <text class=\"name\" x=\"{:.1}\" y=\"{y:.1}\" font-size=\"11\">{name}</text>\n",
                BOTTOM + 22.0,
                y,
                x + 2.0
            ));
        }
        NAMES + NAME_LINE * ends.len() as f64
    }

    /// Pictures one below the other, as one SVG.
    pub fn stack(pictures: Vec<Self>) -> String {
        let (mut placed, mut y) = (String::new(), 0.0);
        for mut picture in pictures {
            let height = match picture.names.is_empty() {
                true => picture.height,
                false => picture.height.max(picture.place_names()),
            };
            let _ = write!(
                placed,
                "<g transform=\"translate(0 {y})\">\n{}</g>\n",
                picture.text
            );
            y += height;
        }
        let all = format!(
            "{STYLE}<g class=\"pic\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{y}\"/>\n{placed}</g>\n"
        );
        document(WIDTH, y, &all)
    }
}

/// One SVG of `width` times `height` units around elements.
pub fn document(width: f64, height: f64, elements: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         {elements}</svg>\n"
    )
}

/// The memory of a run: resident memory as an area, leased memory, the budget and the limit as lines, the
/// phases as bands.
pub fn render(report: &Report, title: &str) -> String {
    let curve = report.curve_of_phases();
    let end = curve.end_seconds();
    let columns = curve.columns(POINTS_MAX);
    let highest = columns.iter().copied().max().unwrap_or(0);
    // A line far above the curve would make it flat.
    let shown = |bytes: &u64| *bytes < highest.saturating_mul(4);
    let lines = [
        ("budget", report.budget_bytes.filter(shown), "#d33"),
        ("limit", report.limit_bytes.filter(shown), "#a4c"),
    ];
    let most = lines
        .iter()
        .filter_map(|line| line.1)
        .fold(highest, u64::max)
        .max(1);
    let ticks = Ticks::of_bytes(most as f64 * 1.02);
    let x = |seconds: f64| LEFT + seconds / end * PLOT_WIDTH;
    let y = |value: f64| BOTTOM - value / ticks.top * PLOT_HEIGHT;

    let mut picture = Picture::new(title);
    for (index, mark) in curve.marks.iter().enumerate() {
        let to = curve.marks.get(index + 1).map_or(RIGHT, |next| x(next.seconds));
        picture.band(index, [x(mark.seconds), to], &mark.name);
    }
    let middle = |column: usize| x((column as f64 + 0.5) / POINTS_MAX as f64 * end);
    let points = columns.iter().enumerate();
    picture.area(
        "#4477aa",
        BOTTOM,
        points.map(|(column, value)| (middle(column), y(*value as f64))),
    );
    let leased = curve.leased(POINTS_MAX);
    if leased.iter().any(|bytes| *bytes > 0) {
        let points: Vec<String> = (leased.iter().enumerate())
            .map(|(column, value)| format!("{:.1},{:.1}", middle(column), y(*value as f64)))
            .collect();
        picture.put(format_args!(
            "<polyline fill=\"none\" stroke=\"#e07b00\" stroke-width=\"1.2\" points=\"{}\"/>\n\
             <text x=\"{RIGHT:.1}\" y=\"22\" text-anchor=\"end\"><tspan fill=\"#4488cc\">resident</tspan> \
             <tspan fill=\"#e07b00\">leased of the budget</tspan></text>\n",
            points.join(" ")
        ));
    }
    for value in &ticks.values {
        picture.level(y(*value), &bytes_label(*value));
    }
    for (name, value, colour) in lines {
        let Some(value) = value else { continue };
        let at = y(value as f64);
        picture.put(format_args!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name} {}</text>\n",
            LEFT + 6.0,
            at - 4.0,
            bytes(value),
        ));
    }
    picture.times(end);
    let (resident, leased) = (curve.columns(TIPS), curve.leased(TIPS));
    picture.tips(end, |tip, seconds| {
        format!(
            "{seconds:.2} s {}\n{} resident, {} leased",
            report.at(seconds),
            bytes(resident[tip]),
            bytes(leased[tip])
        )
    });
    Picture::stack(vec![picture])
}

/// Bytes a second over time: read above, written below the line in the middle.
pub fn render_rates(report: &Report, title: &str) -> String {
    let curve = report.curve_of_phases();
    let rates = curve.rates(RATES_MAX);
    let most = rates
        .iter()
        .flatten()
        .fold(1.0f64, |highest, rate| highest.max(*rate));
    let ticks = Ticks::of_bytes_each_way(most);
    let (half, middle) = (PLOT_HEIGHT / 2.0, TOP + PLOT_HEIGHT / 2.0);
    let mut picture = Picture::new(title);
    for (way, colour, sign) in [(0, "#228833", -1.0), (1, "#cc6677", 1.0)] {
        let points = rates.iter().enumerate().map(|(column, rate)| {
            let x = LEFT + (column as f64 + 0.5) / RATES_MAX as f64 * PLOT_WIDTH;
            (x, middle + sign * rate[way] / ticks.top * half)
        });
        picture.area(colour, middle, points);
    }
    for value in &ticks.values {
        let label = match *value > 0.0 {
            false => "0".to_owned(),
            true => format!("{}/s", bytes_label(*value)),
        };
        let away = value / ticks.top * half;
        picture.level(middle - away, &label);
        if away > 0.0 {
            picture.level(middle + away, &label);
        }
    }
    for (y, label) in [(TOP + 14.0, "read"), (BOTTOM - 6.0, "written")] {
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{y:.1}\">{label}</text>\n",
            LEFT + 6.0
        ));
    }
    picture.times(curve.end_seconds());
    let of_tips = curve.rates(TIPS);
    picture.tips(curve.end_seconds(), |tip, seconds| {
        let [read, written] = of_tips[tip].map(|rate| bytes(rate as u64));
        format!(
            "{seconds:.2} s {}\n{read}/s read, {written}/s written",
            report.at(seconds)
        )
    });
    Picture::stack(vec![picture])
}

/// Busy cores over time.
pub fn render_cores(report: &Report, title: &str) -> String {
    let curve = report.curve_of_phases();
    let cores = curve.cores(RATES_MAX);
    let top = cores.iter().fold(1.0f64, |most, cores| most.max(*cores)).ceil();
    let mut picture = Picture::new(title);
    picture.cores(&cores, top, curve.end_seconds());
    let of_tips = curve.cores(TIPS);
    picture.tips(curve.end_seconds(), |tip, seconds| {
        format!(
            "{seconds:.2} s {}\n{:.1} busy cores",
            report.at(seconds),
            of_tips[tip]
        )
    });
    Picture::stack(vec![picture])
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
            limit_bytes: None,
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
    fn names_of_bands_do_not_meet() {
        let mut picture = Picture::new("title");
        let names = [
            "parameters, no session",
            "verifying key",
            "a",
            "stock: verify",
            "halo2-axiom: inputs",
        ];
        for (index, name) in names.iter().enumerate() {
            picture.band(index, [RIGHT - 60.0 + 10.0 * index as f64, RIGHT], name);
        }
        picture.place_names();
        let mut placed: Vec<(String, f64, f64)> = Vec::new();
        for line in picture
            .text
            .lines()
            .filter(|line| line.contains("font-size=\"11\""))
        {
            let value = |name: &str| -> f64 {
                let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
                rest.split_once('"').unwrap().0.parse().unwrap()
            };
            let text = line.split_once('>').unwrap().1.split_once('<').unwrap().0;
            let to = value("x") + text.len() as f64 * 6.0;
            assert!(to <= RIGHT + LETTER, "{text}");
            let meets = placed
                .iter()
                .any(|(_, end, y)| *y == value("y") && value("x") < *end);
            assert!(!meets, "{text}: {placed:?}");
            placed.push((text.to_owned(), to, value("y")));
        }
        assert_eq!(placed.len(), names.len());
    }

    #[test]
    fn an_empty_run_has_a_picture_too() {
        let report = Report {
            phases: vec![],
            budget_bytes: None,
            limit_bytes: None,
            curve: Curve::default(),
        };
        assert!(!render(&report, "nothing").contains("NaN"));
    }
}
