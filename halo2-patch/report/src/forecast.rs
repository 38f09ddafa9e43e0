//! Progress of a run, and its remaining time.
//!
//! The plan has the seconds and the bytes of each step. Steps before the current one are done; the current one is done in
//! proportion to its bytes. The rest of the planned seconds passes at the pace of the run so far.

use std::time::Instant;

use spillproof::plan::Plan;

/// Before this part of the plan is done, the plan's own pace counts.
const PACED_FRACTION: f64 = 0.05;

/// A plan and its progress.
pub struct Forecast {
    steps: Vec<Planned>,
    /// The step under way.
    at: Option<usize>,
    /// Bytes that had moved when it began.
    moved_before: u64,
    /// When the first step began.
    started: Option<Instant>,
    /// Fractions never go back.
    fraction: f64,
}

struct Planned {
    phase: &'static str,
    name: &'static str,
    seconds: f64,
    bytes: u64,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The part of the planned seconds that is done.
    pub fraction: f64,
    /// Until the end.
    pub eta_seconds: f64,
}

impl Forecast {
    /// At the start of a plan.
    pub fn new(plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(|step| Planned {
            phase: step.phase.name(),
            name: step.name,
            seconds: step.seconds,
            bytes: step.bytes_read + step.bytes_written,
        });
        Self {
            steps: steps.collect(),
            at: None,
            moved_before: 0,
            started: None,
            fraction: 0.0,
        }
    }

    /// A step begins, after `moved_bytes` bytes. A step that is not in the plan, or an earlier one, changes nothing.
    pub fn begin(&mut self, phase: &str, name: &str, moved_bytes: u64, now: Instant) {
        self.started.get_or_insert(now);
        let found = (self.steps.iter()).position(|step| (step.phase, step.name) == (phase, name));
        if found > self.at {
            self.at = found;
            self.moved_before = moved_bytes;
        }
    }

    /// The progress after `moved_bytes` bytes.
    pub fn now(&mut self, moved_bytes: u64, now: Instant) -> Now {
        let total = self.steps.iter().map(|step| step.seconds).sum::<f64>().max(1e-9);
        let mut done = 0.0;
        if let Some(at) = self.at {
            done += self.steps[..at].iter().map(|step| step.seconds).sum::<f64>();
            let step = &self.steps[at];
            let moved = moved_bytes.saturating_sub(self.moved_before) as f64;
            done += step.seconds * (moved / step.bytes.max(1) as f64).min(1.0);
        }
        self.fraction = self.fraction.max(done / total).min(1.0);
        let elapsed = self.started.map_or(0.0, |started| (now - started).as_secs_f64());
        let pace = match self.fraction > PACED_FRACTION {
            true => elapsed / (self.fraction * total),
            false => 1.0,
        };
        Now {
            fraction: self.fraction,
            eta_seconds: (1.0 - self.fraction) * total * pace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn forecast() -> Forecast {
        let step = |phase, name, seconds, bytes| Planned {
            phase,
            name,
            seconds,
            bytes,
        };
        Forecast {
            steps: vec![
                step("keys", "a", 1.0, 100),
                step("prove", "a", 2.0, 100),
                step("prove", "b", 1.0, 0),
            ],
            at: None,
            moved_before: 0,
            started: None,
            fraction: 0.0,
        }
    }

    #[test]
    fn a_run_goes_on_at_its_own_pace() {
        let (mut forecast, begun) = (forecast(), Instant::now());
        let planned = Now {
            fraction: 0.0,
            eta_seconds: 4.0,
        };
        assert_eq!(forecast.now(0, begun), planned);
        forecast.begin("keys", "a", 10, begun);
        assert_eq!(forecast.now(60, begun + Duration::from_secs(1)).fraction, 0.125);
        forecast.begin("prove", "a", 110, begun + Duration::from_secs(2));
        let half = forecast.now(160, begun + Duration::from_secs(4));
        assert_eq!(half.fraction, 0.5);
        assert!((half.eta_seconds - 4.0).abs() < 1e-9, "{half:?}");
    }

    #[test]
    fn nothing_goes_back() {
        let (mut forecast, begun) = (forecast(), Instant::now());
        forecast.begin("prove", "b", 0, begun);
        forecast.begin("prove", "a", 0, begun);
        forecast.begin("prove", "unheard of", 0, begun);
        assert_eq!(forecast.now(0, begun).fraction, 0.75);
        assert_eq!(forecast.now(1 << 30, begun).fraction, 1.0);
    }
}
