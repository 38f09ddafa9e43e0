//! Ticks at round values.

use super::table::bytes;

/// Ticks of an axis from 0, at multiples of a round step.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// The values, from 0.
    pub values: Vec<f64>,
    /// Behind the last one: where the axis ends, if nothing else says so.
    pub top: f64,
}

impl Ticks {
    /// Multiples of `step` up to the first one that is not below `most`.
    fn covering(most: f64, step: f64) -> Self {
        let count = (most / step).ceil().max(1.0);
        Self {
            values: (0..=count as u32).map(|tick| f64::from(tick) * step).collect(),
            top: count * step,
        }
    }

    /// Powers of two for steps, up to `most` bytes.
    pub fn of_bytes(most: f64) -> Self {
        Self::covering(most, (most.max(1.0) / 5.0).log2().ceil().exp2())
    }

    /// As [`Self::of_bytes`], half as many: for an axis that goes both ways.
    pub fn of_bytes_each_way(most: f64) -> Self {
        Self::covering(most, (most.max(1.0) / 2.5).log2().ceil().exp2())
    }

    /// 1, 2 or 5 times a power of ten for steps, up to `most`.
    pub fn decimal(most: f64) -> Self {
        Self::covering(most, decimal_step(most))
    }

    /// As [`Self::decimal`], of an axis that ends at `most`.
    pub fn within(most: f64) -> Self {
        let mut ticks = Self::decimal(most);
        ticks.values.retain(|value| *value <= most);
        ticks.top = most;
        ticks
    }
}

fn decimal_step(most: f64) -> f64 {
    let least = (most / 6.0).max(1e-3);
    let ten = 10f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    let step = factors
        .into_iter()
        .find(|factor| factor * ten >= least * 0.999_999);
    step.unwrap_or(10.0) * ten
}

/// Bytes of a tick: without a fraction of zero.
pub fn bytes_label(value: f64) -> String {
    bytes(value as u64).replace(".0 ", " ")
}

/// A number of a tick: without a fraction of zero.
pub fn number_label(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let labels = |ticks: &Ticks, label: fn(f64) -> String| -> Vec<String> {
            ticks.values.iter().map(|value| label(*value)).collect()
        };
        let memory = Ticks::of_bytes(46.8 * 1048576.0);
        assert_eq!(labels(&memory, bytes_label), ["0", "16 MiB", "32 MiB", "48 MiB"]);
        assert_eq!(memory.top, 48.0 * 1048576.0);
        assert_eq!(labels(&Ticks::within(13.5), number_label), ["0", "5", "10"]);
        assert_eq!(
            labels(&Ticks::within(0.31), number_label),
            ["0", "0.1", "0.2", "0.3"]
        );
        assert_eq!(
            labels(&Ticks::decimal(2.0), number_label),
            ["0", "0.5", "1", "1.5", "2"]
        );
        assert_eq!(labels(&Ticks::decimal(1.0), number_label)[1], "0.2");
        assert_eq!(
            labels(&Ticks::within(5400.0), number_label).last().unwrap(),
            "5000"
        );
    }

    #[test]
    fn any_axis_has_few_ticks() {
        for most in [0.0, 1e-9, 0.01, 1.0, 7.3, 99.9, 1e3, 123456.0, 1e13] {
            for ticks in [Ticks::of_bytes(most), Ticks::decimal(most), Ticks::within(most)] {
                assert!(ticks.values.len() <= 8, "{most}: {ticks:?}");
                assert!(ticks.values[0] == 0.0 && ticks.top >= most && ticks.top.is_finite());
            }
        }
    }
}
