//! Progress of a run, and its remaining time.
//!
//! The plan has the seconds of each step. The pace of a run is the time that its ended steps took, divided by
//! the time that the plan has for them. The remaining time is the planned time of the later steps at that
//! pace, and what is left of the step under way: its planned time at that pace, less the time that it has
//! run, but at least a tenth of the latter. Bytes do not tell how far a step is: one that commits to columns
//! makes all of them first.
//!
//! A step that takes more than `PACE_MAX` times its plan, or less than 1 / `PACE_MAX` of it, says nothing of
//! the pace: a circuit's own synthesis is in no plan, and neither is how small the values of a column are.
//!
//! Before the plan's steps there may be a phase whose time is estimated by itself, the making of parameters.

use std::time::Instant;

use spillproof_engine::plan::Plan;

/// The name of a phase that is one step.
pub const WHOLE: &str = "";
/// The plan's own pace counts as much as this part of it, done as planned.
const PLANNED_PART: f64 = 0.1;
/// Steps that are slower, or quicker, than this do not count.
const PACE_MAX: f64 = 3.0;
/// A step that has run past its time is believed to take so much more of what it has run.
const OVERRUN: f64 = 0.1;

/// A plan and its progress.
pub struct Forecast {
    steps: Vec<Planned>,
    /// The step under way, and when it began.
    at: Option<(usize, Instant)>,
    /// When the first step began.
    started: Option<Instant>,
    /// Planned seconds of the steps that have ended, and what they took.
    planned: f64,
    taken: f64,
    /// Fractions never go back.
    fraction: f64,
}

struct Planned {
    phase: &'static str,
    name: &'static str,
    seconds: f64,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The part of the time that is over.
    pub fraction: f64,
    /// Since the first step began.
    pub elapsed_seconds: f64,
    /// Until the end.
    pub eta_seconds: f64,
}

impl Forecast {
    /// At the start of a plan, before which a phase takes about so many seconds.
    pub fn new(before: Option<(&'static str, f64)>, plan: &Plan) -> Self {
        let before = before.map(|(phase, seconds)| Planned {
            phase,
            name: WHOLE,
            seconds,
        });
        let steps = plan.steps.iter().map(|step| Planned {
            phase: step.phase.name(),
            name: step.name,
            seconds: step.seconds,
        });
        Self::of(before.into_iter().chain(steps).collect())
    }

    fn of(steps: Vec<Planned>) -> Self {
        Self {
            steps,
            at: None,
            started: None,
            planned: 0.0,
            taken: 0.0,
            fraction: 0.0,
        }
    }

    /// A step begins. A step that is not in the plan, or an earlier one, changes nothing.
    pub fn begin(&mut self, phase: &str, name: &str, now: Instant) {
        self.started.get_or_insert(now);
        let found = (self.steps.iter()).position(|step| (step.phase, step.name) == (phase, name));
        let Some(found) = found.filter(|found| self.at.is_none_or(|(at, _)| *found > at)) else {
            return;
        };
        if let Some((at, began)) = self.at {
            // Steps between the two had nothing to do.
            let planned = self.steps[at].seconds;
            let taken = (now - began).as_secs_f64();
            if (planned / PACE_MAX..=planned * PACE_MAX).contains(&taken) {
                self.planned += planned;
                self.taken += taken;
            }
        }
        self.at = Some((found, now));
    }

    /// The progress.
    pub fn now(&mut self, now: Instant) -> Now {
        let total: f64 = self.steps.iter().map(|step| step.seconds).sum();
        let prior = (PLANNED_PART * total).max(1e-9);
        let pace = (prior + self.taken) / (prior + self.planned);
        let (of_step, later) = match self.at {
            None => (0.0, &self.steps[..]),
            Some((at, began)) => {
                let run = (now - began).as_secs_f64();
                let left = self.steps[at].seconds * pace - run;
                (left.max(OVERRUN * run), &self.steps[at + 1..])
            }
        };
        let eta_seconds = of_step + later.iter().map(|step| step.seconds).sum::<f64>() * pace;
        let elapsed = self.started.map_or(0.0, |started| (now - started).as_secs_f64());
        let fraction = elapsed / (elapsed + eta_seconds).max(1e-9);
        self.fraction = self.fraction.max(fraction).min(1.0);
        Now {
            fraction: self.fraction,
            elapsed_seconds: elapsed,
            eta_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn forecast() -> Forecast {
        let step = |phase, name, seconds| Planned { phase, name, seconds };
        Forecast::of(vec![
            step("keys", "synthesize", 0.0),
            step("keys", "a", 10.0),
            step("prove", "a", 20.0),
            step("prove", "b", 10.0),
        ])
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.02 * expected.max(1.0)
    }

    #[test]
    fn a_run_goes_on_at_its_own_pace() {
        let (mut forecast, begun) = (forecast(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let planned = Now {
            fraction: 0.0,
            elapsed_seconds: 0.0,
            eta_seconds: 40.0,
        };
        assert_eq!(forecast.now(begun), planned);
        // The circuit's own time is no pace.
        forecast.begin("keys", "synthesize", begun);
        forecast.begin("keys", "a", at(7));
        assert!(close(forecast.now(at(7)).eta_seconds, 40.0));
        // Twice as slow as planned.
        forecast.begin("prove", "a", at(27));
        let now = forecast.now(at(27));
        assert!(close(now.elapsed_seconds, 27.0), "{now:?}");
        assert!(close(now.eta_seconds, 30.0 * (24.0 / 14.0)), "{now:?}");
        // Past its time.
        let late = forecast.now(at(27 + 60));
        assert!(close(late.eta_seconds, 6.0 + 10.0 * (24.0 / 14.0)), "{late:?}");
        assert!(close(late.fraction, 87.0 / (87.0 + late.eta_seconds)));
    }

    #[test]
    fn nothing_goes_back() {
        let (mut forecast, begun) = (forecast(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        forecast.begin("prove", "b", begun);
        let before = forecast.now(at(9)).fraction;
        assert!(close(before, 0.9), "{before}");
        forecast.begin("prove", "a", at(9));
        forecast.begin("prove", "unheard of", at(9));
        assert_eq!(forecast.now(at(9)).fraction, before);
        assert!(forecast.now(at(1000)).fraction < 1.0);
    }

    #[test]
    fn a_plan_without_steps_is_no_error() {
        let now = Forecast::of(Vec::new()).now(Instant::now());
        assert_eq!((now.fraction, now.eta_seconds), (0.0, 0.0));
    }
}
