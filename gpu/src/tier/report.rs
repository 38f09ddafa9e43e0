//! Who did which jobs.

use std::fmt;

/// Reasons that are told apart.
const REASONS_MAX: usize = 8;

/// A kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// One sum of scalars times points.
    Sum,
    /// One whole transform.
    Transform,
    /// One coset of a quotient.
    Quotient,
}

/// Who did which jobs, and why not the device.
///
/// Written as `12 sums, 7 transforms, 4 quotients on 0: NVIDIA H200 (..); 3 by the processor: why`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    device: String,
    sums: u64,
    transforms: u64,
    quotients: u64,
    declined: Vec<(String, u64)>,
    others: u64,
}

impl Report {
    pub(super) fn new(device: String) -> Self {
        Self {
            device,
            sums: 0,
            transforms: 0,
            quotients: 0,
            declined: Vec::new(),
            others: 0,
        }
    }

    /// Which device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Sums that the device made.
    pub fn sums(&self) -> u64 {
        self.sums
    }

    /// Transforms that the device made.
    pub fn transforms(&self) -> u64 {
        self.transforms
    }

    /// Quotients that the device made, each on one coset.
    pub fn quotients(&self) -> u64 {
        self.quotients
    }

    /// Whether the device did anything.
    pub fn is_any_of_the_device(&self) -> bool {
        self.sums + self.transforms + self.quotients > 0
    }

    /// Jobs that were offered, and left to the processor.
    pub fn by_the_processor(&self) -> u64 {
        self.declined.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }

    /// Why, and how many jobs each time, in the order in which reasons came up; of some eight different ones no more.
    pub fn reasons(&self) -> &[(String, u64)] {
        &self.declined
    }

    pub(super) fn done(&mut self, job: Job, count: u64) {
        match job {
            Job::Sum => self.sums += count,
            Job::Transform => self.transforms += count,
            Job::Quotient => self.quotients += count,
        }
    }

    pub(super) fn declined(&mut self, why: &str, count: u64) {
        if let Some((_, counted)) = self.declined.iter_mut().find(|(known, _)| known == why) {
            *counted += count;
        } else if self.declined.len() < REASONS_MAX {
            self.declined.push((why.to_owned(), count));
        } else {
            self.others += count;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let kinds = [
            (self.sums, "sum"),
            (self.transforms, "transform"),
            (self.quotients, "quotient"),
        ];
        let done: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| format!("{count} {kind}{}", plural(*count)))
            .collect();
        let done = if done.is_empty() {
            "nothing".to_owned()
        } else {
            done.join(", ")
        };
        write!(f, "{done} on {}", self.device)?;
        let jobs = self.by_the_processor();
        if jobs == 0 {
            return Ok(());
        }
        write!(f, "; {jobs} by the processor: ")?;
        for (i, (why, count)) in self.declined.iter().enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            match self.declined.len() {
                1 if self.others == 0 => write!(f, "{why}")?,
                _ => write!(f, "{separator}{why} ({count})")?,
            }
        }
        match self.others {
            0 => Ok(()),
            others => write!(f, "; for other reasons ({others})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_by_people() {
        let mut report = Report::new("0: a card".into());
        assert_eq!(report.to_string(), "nothing on 0: a card");
        report.done(Job::Sum, 12);
        report.done(Job::Transform, 1);
        assert_eq!(report.to_string(), "12 sums, 1 transform on 0: a card");
        let mut with_quotients = report.clone();
        with_quotients.done(Job::Quotient, 4);
        assert_eq!(
            with_quotients.to_string(),
            "12 sums, 1 transform, 4 quotients on 0: a card"
        );
        report.declined("too small", 2);
        report.declined("too small", 1);
        assert_eq!(
            report.to_string(),
            "12 sums, 1 transform on 0: a card; 3 by the processor: too small"
        );
        report.declined("lost", 1);
        assert!(
            report
                .to_string()
                .ends_with("; 4 by the processor: too small (3); lost (1)")
        );
        (0..20).for_each(|i| report.declined(&format!("reason {i}"), 1));
        assert_eq!(
            (report.by_the_processor(), report.reasons().len()),
            (24, REASONS_MAX)
        );
        assert!(report.to_string().ends_with("; for other reasons (14)"));
    }
}
