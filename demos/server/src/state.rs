//! How far jobs are, and how many are so far.

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its witness is on its way.
    Receiving,
    /// In the queue.
    Waiting,
    /// Proves, or waits for room in the budget.
    Running,
    /// There is a proof.
    Done,
    /// There is an error.
    Failed,
    /// It was stopped.
    Stopped,
}

impl State {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Receiving => "receiving",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Stopped)
    }
}

/// How many jobs there are.
pub(crate) struct Counts {
    pub receiving: usize,
    pub waiting: usize,
    pub running: usize,
    pub ended: usize,
    pub queue_limit: usize,
    pub results_bytes: usize,
}

impl Counts {
    pub fn by_state(&self) -> [(&'static str, usize); 4] {
        [
            (State::Receiving.text(), self.receiving),
            (State::Waiting.text(), self.waiting),
            (State::Running.text(), self.running),
            ("ended", self.ended),
        ]
    }
}
