//! A picture of how far more ranks pay: seconds by number of ranks, a line for each link, both axes logarithmic.

use super::plan_ranks::Reach;
use crate::report::axis::number_label;
use crate::report::svg::{LEFT, PLOT_HEIGHT, PLOT_WIDTH, Picture, TOP};

const COLOURS: [&str; 5] = ["#cc3311", "#ee7733", "#009988", "#0077bb", "#aa3377"];
/// Room for the names of links, at the right.
const NAMES_WIDTH: f64 = 150.0;
const NAME_LINE: f64 = 16.0;

/// The picture. Empty lines are left out.
pub fn render(title: &str, reaches: &[Reach]) -> String {
    let points = || reaches.iter().flat_map(|reach| &reach.seconds);
    let ranks_max = points().map(|(ranks, _)| *ranks).max().unwrap_or(1).max(2);
    let seconds = || points().map(|(_, seconds)| *seconds);
    // Whole powers of two around all of them.
    let least = seconds().fold(f64::INFINITY, f64::min).max(1e-3).log2().floor();
    let most = seconds().fold(0.0, f64::max).max(2e-3).log2().ceil();
    let width = PLOT_WIDTH - NAMES_WIDTH;
    let x = |ranks: usize| LEFT + (ranks as f64).log2() / (ranks_max as f64).log2() * width;
    let bottom = TOP + PLOT_HEIGHT;
    let y = |seconds: f64| bottom - (seconds.log2() - least) / (most - least).max(1.0) * PLOT_HEIGHT;
    let mut picture = Picture::new(title);
    for exponent in least as i32..=most as i32 {
        let tick = f64::from(exponent).exp2();
        picture.level(y(tick), &format!("{} s", number_label(tick)));
    }
    let counts =
        std::iter::successors(Some(1), |ranks| Some(ranks * 2)).take_while(|ranks| *ranks <= ranks_max);
    for ranks in counts {
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{ranks}</text>\n",
            x(ranks),
            bottom + 18.0
        ));
    }
    picture.put(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">ranks</text>\n",
        LEFT + width / 2.0,
        bottom + 36.0
    ));
    for (index, reach) in reaches.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line: Vec<String> = reach
            .seconds
            .iter()
            .map(|(ranks, seconds)| format!("{:.1},{:.1}", x(*ranks), y(seconds.max(1e-3))))
            .collect();
        picture.put(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n",
            line.join(" ")
        ));
        let (left, line) = (LEFT + width + 12.0, TOP + NAME_LINE * (index as f64 + 1.0));
        picture.put(format_args!(
            "<line x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
            left + 16.0,
            line - 4.0,
            line - 4.0
        ));
        picture.put(format_args!(
            "<text x=\"{:.1}\" y=\"{line:.1}\">{}</text>\n",
            left + 22.0,
            crate::report::svg::escaped(&reach.link)
        ));
    }
    Picture::stack(vec![picture])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_link() {
        let reach = |link: &str, seconds: Vec<(usize, f64)>| Reach {
            link: link.into(),
            seconds,
            pays_up_to: 2,
        };
        let reaches = [
            reach("1 < 2", vec![(1, 8.0), (2, 4.5), (4, 3.0)]),
            reach("other", vec![(1, 8.0), (4, 2.0)]),
        ];
        let svg = render("title", &reaches);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(
            svg.contains("1 &lt; 2") && svg.contains(">4</text>") && !svg.contains("NaN"),
            "{svg}"
        );
        assert!(!render("none", &[]).contains("NaN"));
    }
}
