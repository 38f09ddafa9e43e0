//! Busy cores over time: the samples of a run (`spillproof prove --samples`), read back.

use spillproof_cli::report::svg::{LEFT, PLOT_WIDTH, Picture};

/// Shorter spans say nothing: samples come every 10 ms, and an emulated core works a millisecond at a time.
const WINDOW_SECONDS: f64 = 0.05;
/// Below this many busy cores on average, nothing ran.
const NOTHING: f64 = 0.25;
/// Up to this many, one thread ran.
const ONE: f64 = 1.25;
const COLUMNS: usize = 400;

/// Time of processors, summed up since the start of a run.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Seconds since the start, and processors' seconds until then.
    samples: Vec<[f64; 2]>,
}

/// A stretch of a run by the number of threads that ran, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Busy {
    /// Processors' time.
    pub work_seconds: f64,
    /// No thread ran: all waited, for the disk or the system.
    pub none_seconds: f64,
    /// One thread ran.
    pub one_seconds: f64,
}

impl Timeline {
    /// Of comma-separated values. If emulated cores are `slower` times slower than real ones, times are
    /// scaled to real ones.
    pub fn parse(csv: &str, slower: f64) -> Option<Self> {
        let mut lines = csv.lines();
        let names: Vec<&str> = lines.next()?.split(',').collect();
        let column = |name: &str| names.iter().position(|known| *known == name);
        let (seconds, processor) = (column("seconds")?, column("processor_seconds")?);
        let samples = lines.map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            let value = |column: usize| values.get(column)?.parse::<f64>().ok();
            Some([value(seconds)? / slower, value(processor)?])
        });
        Some(Self {
            samples: samples.collect::<Option<_>>()?,
        })
    }

    /// Processors' seconds until `seconds`, between samples on a straight line.
    fn processor_at(&self, seconds: f64) -> f64 {
        let after = self.samples.partition_point(|sample| sample[0] < seconds);
        match (
            after.checked_sub(1).and_then(|before| self.samples.get(before)),
            self.samples.get(after),
        ) {
            (Some(&[from, low]), Some(&[to, high])) => {
                low + (high - low) * (seconds - from) / (to - from).max(1e-9)
            }
            (Some(&[_, last]), None) => last,
            (None, first) => first.map_or(0.0, |first| first[1]),
        }
    }

    /// Between two times, in windows that are `slower` times shorter than on real cores.
    pub fn busy(&self, from_seconds: f64, to_seconds: f64, slower: f64) -> Busy {
        let windows = ((to_seconds - from_seconds) * slower / WINDOW_SECONDS)
            .floor()
            .max(1.0);
        let window_seconds = (to_seconds - from_seconds) / windows;
        let mut busy = Busy::default();
        for window in 0..windows as u64 {
            let from = from_seconds + window as f64 * window_seconds;
            let work = self.processor_at(from + window_seconds) - self.processor_at(from);
            busy.work_seconds += work;
            match work / window_seconds.max(1e-9) {
                cores if cores < NOTHING => busy.none_seconds += window_seconds,
                cores if cores < ONE => busy.one_seconds += window_seconds,
                _ => {}
            }
        }
        busy
    }

    /// Busy cores between two times, up to `cores`, with the steps (name and beginning) as bands.
    pub fn picture(&self, title: &str, [from, to]: [f64; 2], cores: f64, steps: &[(String, f64)]) -> Picture {
        let mut picture = Picture::new(title);
        let span = (to - from).max(1e-9);
        let x = |seconds: f64| LEFT + (seconds - from) / span * PLOT_WIDTH;
        for (index, (name, start)) in steps.iter().enumerate() {
            let end = steps.get(index + 1).map_or(to, |next| next.1);
            picture.band(index, [x(*start), x(end)], name);
        }
        let width = span / COLUMNS as f64;
        let busy = (0..COLUMNS).map(|column| {
            let at = from + column as f64 * width;
            (self.processor_at(at + width) - self.processor_at(at)) / width
        });
        picture.cores(&busy.collect::<Vec<_>>(), cores, span);
        picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores for a second, one for a second, none for a second.
    fn timeline(slower: f64) -> Timeline {
        let line = |i: u32| {
            let seconds = f64::from(i) / 100.0;
            let work = 2.0 * seconds.min(1.0) + (seconds - 1.0).clamp(0.0, 1.0);
            format!("{},{work},0", seconds * slower)
        };
        let lines: Vec<String> = (0..=300).map(line).collect();
        Timeline::parse(
            &format!("seconds,processor_seconds,other\n{}", lines.join("\n")),
            slower,
        )
        .expect("samples")
    }

    #[test]
    fn stretches_are_told_apart() {
        for slower in [1.0, 8.0] {
            let busy = timeline(slower).busy(0.0, 3.0, slower);
            assert!((busy.work_seconds - 3.0).abs() < 0.01, "{busy:?}");
            assert!((busy.one_seconds - 1.0).abs() < 0.06, "{busy:?}");
            assert!((busy.none_seconds - 1.0).abs() < 0.06, "{busy:?}");
        }
        assert!((timeline(1.0).busy(0.5, 1.0, 1.0).work_seconds - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_picture_has_its_steps() {
        let steps = [("first & only".to_owned(), 0.0)];
        let svg = Picture::stack(vec![timeline(1.0).picture("title", [0.0, 3.0], 2.0, &steps)]);
        assert!(svg.contains("first &amp; only") && svg.contains("<polygon") && !svg.contains("NaN"));
        let nothing = Timeline { samples: vec![] };
        assert!(!Picture::stack(vec![nothing.picture("title", [0.0, 0.0], 1.0, &[])]).contains("NaN"));
    }

    #[test]
    fn values_that_are_none_are_refused() {
        assert!(Timeline::parse("seconds\n1", 1.0).is_none());
        assert!(Timeline::parse("seconds,processor_seconds\n1,x", 1.0).is_none());
    }
}
