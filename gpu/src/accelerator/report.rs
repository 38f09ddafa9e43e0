//! The report of an accelerator: jobs by device, jobs of the processor, and reasons.

use std::fmt;
use std::sync::Mutex;

use super::rates::Worth;
use crate::Error;
use crate::lock::locked;

/// The most different reasons that are listed.
const REASONS_MAX: usize = 8;

/// A kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// One sum of scalars times points.
    Sum,
    /// One whole transform.
    Transform,
    /// Columns of a transform that ranks share.
    Panel,
    /// One coset of a quotient.
    Quotient,
    /// The quotient of one constraint system.
    Constraints,
}

/// Jobs of one kind that are counted together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jobs {
    pub kind: JobKind,
    pub count: u64,
}

impl Jobs {
    pub fn one(kind: JobKind) -> Self {
        Self { kind, count: 1 }
    }
}

/// The jobs of each device, the jobs of the processor, and the reasons.
///
/// As text: `12 sums, 7 transforms, 4 quotients on 0: NVIDIA H200 (..); 3 by the processor: reason`. With
/// several devices each has its own part, and its points where sums were shared: `12 sums on 2 devices: 512
/// points of 12 sums on 0: ..; 512 points of 12 sums on 1: ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    devices: Vec<DeviceReport>,
    /// Sums that several devices made together.
    shared: u64,
    /// Why devices took jobs of a kind, the last time.
    taken: Vec<(JobKind, String)>,
    declined: Reasons,
}

/// The jobs of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceReport {
    name: String,
    sums: u64,
    transforms: u64,
    panels: u64,
    quotients: u64,
    constraints: u64,
    shared: u64,
    points: u64,
    left: Reasons,
}

/// Reasons why jobs were left, with their numbers of jobs, in the order of their first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Reasons {
    named: Vec<(String, u64)>,
    others: u64,
}

impl Reasons {
    fn add(&mut self, why: &str, count: u64) {
        if let Some((_, counted)) = self.named.iter_mut().find(|(known, _)| known == why) {
            *counted += count;
        } else if self.named.len() < REASONS_MAX {
            self.named.push((why.to_owned(), count));
        } else {
            self.others += count;
        }
    }

    fn count(&self) -> u64 {
        self.named.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (why, count)) in self.named.iter().enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            match self.named.len() {
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

impl DeviceReport {
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Quotients of constraint systems.
    pub fn constraints(&self) -> u64 {
        self.constraints
    }

    /// Sums that it made alone.
    pub fn sums(&self) -> u64 {
        self.sums
    }

    /// Transforms.
    pub fn transforms(&self) -> u64 {
        self.transforms
    }

    /// Panels of transforms that ranks share.
    pub fn panels(&self) -> u64 {
        self.panels
    }

    /// Quotients, each on one coset.
    pub fn quotients(&self) -> u64 {
        self.quotients
    }

    /// Sums that devices shared, and that it had a part in.
    pub fn shared_sums(&self) -> u64 {
        self.shared
    }

    /// Its points in shared sums.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The reasons why it left jobs or shares to other devices or the processor, with their numbers; the
    /// first eight different reasons.
    pub fn left_to_others(&self) -> &[(String, u64)] {
        &self.left.named
    }
}

/// Counts jobs for a report: jobs that an accelerator does, or a plan of jobs, which emits no tracing.
#[derive(Debug)]
pub(super) struct Book {
    report: Mutex<Report>,
    is_planned: bool,
}

impl Book {
    /// A book of jobs that these devices do.
    pub fn of(devices: impl IntoIterator<Item = String>) -> Self {
        Self {
            report: Mutex::new(Report::new(devices)),
            is_planned: false,
        }
    }

    /// A book of planned jobs.
    pub fn of_a_plan(devices: impl IntoIterator<Item = String>) -> Self {
        Self {
            is_planned: true,
            ..Self::of(devices)
        }
    }

    /// The report so far.
    pub fn report(&self) -> Report {
        locked(&self.report).clone()
    }

    /// A device does jobs.
    pub fn done(&self, device: usize, jobs: Jobs) {
        let Jobs { kind, count } = jobs;
        locked(&self.report).done(device, kind, count);
        if !self.is_planned {
            tracing::debug!(job = ?kind, count, device, "done by the device");
        }
    }

    /// Devices make `count` sums together; `points` gives the points of each.
    pub fn shared(&self, points: impl IntoIterator<Item = (usize, u64)>, count: u64) {
        let mut report = locked(&self.report);
        report.shared(count);
        for (device, points) in points {
            report.had_points(device, points, count);
        }
        if !self.is_planned {
            tracing::debug!(job = ?JobKind::Sum, count, "done by several devices");
        }
    }

    /// A job of this kind was worth a device, by the rates and reads of `worth`.
    pub fn taken(&self, kind: JobKind, worth: &Worth) {
        if let Some(why) = worth.why() {
            locked(&self.report).taken(kind, why);
        }
    }

    /// A device leaves its share of `count` jobs, or all of them, to others.
    pub fn left(&self, device: usize, why: &str, count: u64) {
        locked(&self.report).left(device, why, count);
    }

    /// A device leaves jobs to others, because of an error.
    pub fn failed(&self, device: usize, jobs: Jobs, error: &Error, why: &str) {
        if !self.is_planned && error.is_of_a_plan() {
            tracing::debug!(job = ?jobs.kind, device, %error, "a device has no plan for the job");
        } else if !self.is_planned {
            tracing::warn!(job = ?jobs.kind, device, %error, "a device failed, another device or the processor does the job");
        }
        self.left(device, why, jobs.count);
    }

    /// `count` jobs are left to the processor.
    pub fn declined(&self, why: &str, count: u64) {
        locked(&self.report).declined(why, count);
    }
}

impl Report {
    fn new(devices: impl IntoIterator<Item = String>) -> Self {
        let of_device = |name| DeviceReport {
            name,
            sums: 0,
            transforms: 0,
            panels: 0,
            quotients: 0,
            constraints: 0,
            shared: 0,
            points: 0,
            left: Reasons::default(),
        };
        Self {
            devices: devices.into_iter().map(of_device).collect(),
            shared: 0,
            taken: Vec::new(),
            declined: Reasons::default(),
        }
    }

    /// Each of the devices.
    pub fn devices(&self) -> &[DeviceReport] {
        &self.devices
    }

    /// Sums that devices made.
    pub fn sums(&self) -> u64 {
        self.of_all(DeviceReport::sums) + self.shared
    }

    /// Transforms that devices made.
    pub fn transforms(&self) -> u64 {
        self.of_all(DeviceReport::transforms)
    }

    /// Panels that devices made, of transforms that ranks share.
    pub fn panels(&self) -> u64 {
        self.of_all(DeviceReport::panels)
    }

    /// Quotients that devices made, each on one coset.
    pub fn quotients(&self) -> u64 {
        self.of_all(DeviceReport::quotients)
    }

    /// Quotients of constraint systems that devices made.
    pub fn constraints(&self) -> u64 {
        self.of_all(DeviceReport::constraints)
    }

    /// Whether a device did any job.
    pub fn is_any_of_a_device(&self) -> bool {
        self.sums() + self.transforms() + self.panels() + self.quotients() + self.constraints() > 0
    }

    /// Why devices took jobs, for each kind that they took: that of the last job. None where all jobs are wanted.
    pub fn reasons_to_take(&self) -> &[(JobKind, String)] {
        &self.taken
    }

    /// Jobs that were offered and left to the processor.
    pub fn by_the_processor(&self) -> u64 {
        self.declined.count()
    }

    /// The reasons for that, with their numbers of jobs, in the order of their first appearance; the first
    /// eight different reasons.
    pub fn reasons(&self) -> &[(String, u64)] {
        &self.declined.named
    }

    fn done(&mut self, device: usize, job: JobKind, count: u64) {
        if let Some(of) = self.devices.get_mut(device) {
            match job {
                JobKind::Sum => of.sums += count,
                JobKind::Transform => of.transforms += count,
                JobKind::Panel => of.panels += count,
                JobKind::Quotient => of.quotients += count,
                JobKind::Constraints => of.constraints += count,
            }
        }
    }

    fn taken(&mut self, job: JobKind, why: String) {
        match self.taken.iter_mut().find(|(known, _)| *known == job) {
            Some((_, last)) => *last = why,
            None => self.taken.push((job, why)),
        }
    }

    /// `count` sums that devices made together.
    fn shared(&mut self, count: u64) {
        self.shared += count;
    }

    /// A device's part of `count` sums.
    fn had_points(&mut self, device: usize, points: u64, count: u64) {
        if let Some(of) = self.devices.get_mut(device).filter(|_| points > 0) {
            of.points += points;
            of.shared += count;
        }
    }

    /// A device left its share of `count` jobs, or all of them, to others.
    fn left(&mut self, device: usize, why: &str, count: u64) {
        if let Some(of) = self.devices.get_mut(device) {
            of.left.add(why, count);
        }
    }

    fn declined(&mut self, why: &str, count: u64) {
        self.declined.add(why, count);
    }

    fn of_all(&self, count: impl Fn(&DeviceReport) -> u64) -> u64 {
        self.devices.iter().map(count).sum()
    }
}

/// `12 sums`, `1 transform`, ..; `nothing` if there is none.
fn listed(kinds: &[(u64, &str)]) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let done: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {kind}{}", plural(*count)))
        .collect();
    if done.is_empty() {
        "nothing".to_owned()
    } else {
        done.join(", ")
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut done = listed(&[
            (self.sums, "sum"),
            (self.transforms, "transform"),
            (self.panels, "panel"),
            (self.quotients, "quotient"),
            (self.constraints, "constraint quotient"),
        ]);
        if self.points > 0 {
            let points = listed(&[(self.points, "point")]);
            let sums = match self.shared {
                1 => "a sum".to_owned(),
                shared => format!("{shared} sums"),
            };
            let alone = match done.as_str() {
                "nothing" => String::new(),
                done => format!(", {done}"),
            };
            done = format!("{points} of {sums}{alone}");
        }
        write!(f, "{done} on {}", self.name)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.devices[..] {
            [device] => device.fmt(f)?,
            devices => {
                let done = listed(&[
                    (self.sums(), "sum"),
                    (self.transforms(), "transform"),
                    (self.panels(), "panel"),
                    (self.quotients(), "quotient"),
                    (self.constraints(), "constraint quotient"),
                ]);
                write!(f, "{done} on {} devices", devices.len())?;
                for (i, device) in devices.iter().enumerate() {
                    write!(f, "{} {device}", if i > 0 { ";" } else { ":" })?;
                    match device.left.count() {
                        0 => {}
                        jobs => write!(f, ", which left {jobs} to others: {}", device.left)?,
                    }
                }
            }
        }
        for (kind, why) in &self.taken {
            let kind = match kind {
                JobKind::Sum => "sums",
                JobKind::Transform => "a transform",
                JobKind::Panel => "a panel",
                JobKind::Quotient => "a quotient",
                JobKind::Constraints => "a constraint quotient",
            };
            write!(f, "; {kind} in {why}")?;
        }
        match self.by_the_processor() {
            0 => Ok(()),
            jobs => write!(f, "; {jobs} by the processor: {}", self.declined),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_by_people() {
        let mut report = Report::new(["0: a card".into()]);
        assert_eq!(report.to_string(), "nothing on 0: a card");
        report.done(0, JobKind::Sum, 12);
        report.done(0, JobKind::Transform, 1);
        assert_eq!(report.to_string(), "12 sums, 1 transform on 0: a card");
        let mut with_quotients = report.clone();
        with_quotients.done(0, JobKind::Quotient, 4);
        assert_eq!(
            with_quotients.to_string(),
            "12 sums, 1 transform, 4 quotients on 0: a card"
        );
        let mut taken = report.clone();
        taken.taken(JobKind::Sum, "1 s".into());
        taken.taken(JobKind::Sum, "2 s".into());
        assert_eq!(
            taken.to_string(),
            "12 sums, 1 transform on 0: a card; sums in 2 s"
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

    #[test]
    fn a_report_says_which_device_did_what() {
        let mut report = Report::new(["0: a card", "1: another"].map(String::from));
        assert_eq!(
            report.to_string(),
            "nothing on 2 devices: nothing on 0: a card; nothing on 1: another"
        );
        report.shared(3);
        report.had_points(0, 700, 3);
        report.had_points(1, 0, 3);
        report.left(1, "lost", 3);
        report.done(0, JobKind::Transform, 1);
        report.declined("busy", 2);
        assert_eq!(
            report.to_string(),
            "3 sums, 1 transform on 2 devices: 700 points of 3 sums, 1 transform on 0: a card; nothing on 1: another, which left 3 to \
             others: lost; 2 by the processor: busy"
        );
        assert_eq!((report.sums(), report.by_the_processor()), (3, 2));
    }
}
