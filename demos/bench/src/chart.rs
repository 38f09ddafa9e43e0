//! Charts of figures: lines over an axis of powers of two, and bars.

use spillproof_cli::report::axis::{Ticks, number_label};
use spillproof_cli::report::svg::{LEFT, PLOT_HEIGHT, PLOT_WIDTH, Picture, TOP, escaped};

/// Height of a bar with its gap.
const BAR_HEIGHT: f64 = 22.0;
/// Width of a letter of a point's label, and the height of one.
const LABEL_LETTER: f64 = 6.2;
const LABEL_HEIGHT: f64 = 12.0;
const COLOURS: [&str; 6] = ["#4477aa", "#cc6677", "#228833", "#aa3377", "#66ccee", "#ccbb44"];

/// One line of a chart.
pub struct Series {
    /// Its name.
    pub name: String,
    /// x, y, and the label of the point.
    pub points: Vec<(f64, f64, String)>,
}

/// The vertical axis.
#[derive(Clone, Copy, PartialEq)]
pub enum Vertical {
    /// From zero.
    Linear,
    /// Powers of two.
    Logarithmic,
}

/// The label of a point, around the middle of its foot.
#[derive(Clone, Copy)]
struct Label<'a> {
    x: f64,
    y: f64,
    text: &'a str,
}

impl Label<'_> {
    /// Whether two labels are on one another.
    fn meets(&self, other: &Self) -> bool {
        let letters = (self.text.chars().count() + other.text.chars().count()) as f64;
        (self.x - other.x).abs() < letters * LABEL_LETTER / 2.0 && (self.y - other.y).abs() < LABEL_HEIGHT
    }
}

/// Lines. `label` is the text of a power of two on the horizontal axis; the vertical axis is in seconds.
pub fn lines(title: &str, label: impl Fn(f64) -> String, vertical: Vertical, series: &[Series]) -> Picture {
    let mut picture = Picture::new(title);
    let all = || series.iter().flat_map(|series| &series.points);
    let [mut left, mut right, mut low, mut high] = [f64::MAX, f64::MIN, f64::MAX, f64::MIN];
    for (x, y, _) in all().filter(|(x, y, _)| *x > 0.0 && *y > 0.0) {
        (left, right) = (left.min(x.log2()), right.max(x.log2()));
        (low, high) = (low.min(*y), high.max(*y));
    }
    if left > right {
        return picture;
    }
    (left, right) = ((left - 0.25).floor(), (right + 0.25).ceil());
    let x = |value: f64| LEFT + (value.log2() - left) / (right - left) * PLOT_WIDTH;
    // Room for the labels of the highest points.
    let ticks = Ticks::decimal(high * 1.1);
    let (from, to) = match vertical {
        Vertical::Linear => (0.0, ticks.top),
        Vertical::Logarithmic => ((low.log2() - 0.25).floor(), (high.log2() + 0.25).ceil()),
    };
    let scaled = |value: f64| match vertical {
        Vertical::Linear => value,
        Vertical::Logarithmic => value.log2(),
    };
    let y = |value: f64| TOP + PLOT_HEIGHT - (scaled(value) - from) / (to - from) * PLOT_HEIGHT;
    match vertical {
        Vertical::Linear => {
            for value in ticks.values {
                picture.level(y(value), &format!("{} s", number_label(value)));
            }
        }
        Vertical::Logarithmic => {
            for step in 0..=4 {
                let value = (from + (to - from) * f64::from(step) / 4.0).exp2();
                picture.level(y(value), &seconds(value));
            }
        }
    }
    let marks = (right - left) as u32;
    // At most as many labels as fit side by side.
    for mark in (0..=marks).step_by(marks.div_ceil(12).max(1) as usize) {
        let value = (left + f64::from(mark)).exp2();
        // The last one would leave the picture.
        let anchor = if mark == marks { "end" } else { "middle" };
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            x(value),
            TOP + PLOT_HEIGHT + 18.0,
            escaped(&label(value))
        ));
    }
    for (index, series) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<String> = (series.points.iter())
            .map(|(at, value, _)| format!("{:.1},{:.1}", x(*at), y(*value)))
            .collect();
        picture.put(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n",
            points.join(" ")
        ));
        let mut label_before = None;
        for (at, value, beside) in &series.points {
            let (cx, cy) = (x(*at), y(*value));
            let mut label = Label {
                x: cx,
                y: cy - 8.0,
                text: beside,
            };
            if label_before.is_some_and(|before| label.meets(&before)) {
                label.y = cy + 17.0;
            }
            picture.put(format_args!(
                "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{colour}\"/>\n\
                 <text x=\"{cx:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{}</text>\n",
                label.y,
                escaped(beside),
            ));
            label_before = Some(label);
        }
        let name_x = LEFT + (index % 3) as f64 * PLOT_WIDTH / 3.0;
        let name_y = TOP + PLOT_HEIGHT + 40.0 + (index / 3) as f64 * 16.0;
        picture.put(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>\n<text x=\"{:.1}\" y=\"{name_y:.1}\">{}</text>\n",
            name_x + 4.0,
            name_y - 4.0,
            name_x + 14.0,
            escaped(&series.name)
        ));
    }
    picture
}

/// Bars of ratios, with a line at one.
pub fn ratios(title: &str, bars: &[(String, f64)]) -> Picture {
    let height = BAR_HEIGHT * bars.len() as f64;
    let mut picture = Picture::with_height(title, TOP + height + 24.0);
    let most = bars.iter().fold(1.0f64, |most, (_, ratio)| most.max(*ratio));
    // Names stand to the left of the bars, ratios to the right.
    let (left, width) = (LEFT + 250.0, PLOT_WIDTH - 300.0);
    for (index, (name, ratio)) in bars.iter().enumerate() {
        let y = TOP + BAR_HEIGHT * index as f64;
        let length = ratio / most * width;
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{text_y:.1}\">{ratio:.2}</text>\n",
            left - 6.0,
            escaped(name),
            BAR_HEIGHT - 6.0,
            COLOURS[usize::from(*ratio > 1.0)],
            left + length + 6.0,
            text_y = y + 12.0,
        ));
    }
    let one = left + width / most;
    picture.put(format_args!(
        "<line x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#222\" stroke-dasharray=\"4 3\"/>\n",
        TOP - 6.0,
        TOP + height
    ));
    picture
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 10.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_have_their_points_and_names() {
        let series = [Series {
            name: "a & b".into(),
            points: vec![(1024.0, 3.0, "here".into()), (4096.0, 1.0, "there".into())],
        }];
        for vertical in [Vertical::Linear, Vertical::Logarithmic] {
            let svg = Picture::stack(vec![lines("title", |x| format!("{x}"), vertical, &series)]);
            assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
            assert!(svg.contains("a &amp; b") && svg.contains(">here<") && !svg.contains("NaN"));
        }
        let nothing = Picture::stack(vec![lines("title", |x| format!("{x}"), Vertical::Linear, &[])]);
        assert!(!nothing.contains("NaN") && !nothing.contains("inf"));
    }

    #[test]
    fn labels_do_not_meet_and_levels_are_round() {
        let series = [Series {
            name: "a".into(),
            points: vec![(1024.0, 34.1, "first".into()), (1030.0, 34.0, "second".into())],
        }];
        let svg = Picture::stack(vec![lines(
            "title",
            |x| format!("{x}"),
            Vertical::Linear,
            &series,
        )]);
        let foot = |label: &str| -> f64 {
            let line = svg.lines().find(|line| line.contains(&format!(">{label}<")));
            let (_, rest) = line.and_then(|line| line.split_once(" y=\"")).expect("a label");
            rest.split('"')
                .next()
                .and_then(|y| y.parse().ok())
                .expect("a number")
        };
        assert!(foot("second") - foot("first") >= LABEL_HEIGHT, "{svg}");
        assert!(svg.contains(">10 s<") && svg.contains(">40 s<"), "{svg}");
    }

    #[test]
    fn bars_beyond_one_look_different() {
        let svg = Picture::stack(vec![ratios("title", &[("a".into(), 0.5), ("b".into(), 2.0)])]);
        assert!(svg.contains(COLOURS[0]) && svg.contains(COLOURS[1]) && svg.contains("2.00"));
    }
}
