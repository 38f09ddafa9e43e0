//! Memory over time: a thread that samples every few milliseconds, the phases as marks, and the curve as
//! text.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use spillproof_engine::budget::Budget;
use spillproof_engine::storage::{IoStats, Storage};

use super::spent::Spent;
use super::table::bytes;

const INTERVAL: Duration = Duration::from_millis(10);
/// Past this many samples every second one is dropped, and the interval doubled: memory is bounded.
const SAMPLES_MAX: usize = 8192;

/// Resident memory at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Since the start.
    pub seconds: f64,
    /// Resident memory of the process (`VmRSS`), in bytes.
    pub resident_bytes: u64,
    /// Leased bytes of the budget.
    pub leased_bytes: u64,
    /// Bytes that the engine had read from files by then.
    pub bytes_read: u64,
    /// Bytes that the engine had written to files by then.
    pub bytes_written: u64,
    /// Time of processors that the process had used by then, all threads together.
    pub processor_seconds: f64,
}

/// When a phase began.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its name.
    pub name: String,
    /// Since the start.
    pub seconds: f64,
}

/// The samples and marks of a run.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// In order of time.
    pub marks: Vec<Mark>,
}

/// Samples the memory of the process until it is dropped.
pub struct Sampler {
    started: Instant,
    samples: Arc<Mutex<Vec<Sample>>>,
    watched: Arc<Mutex<Option<(Storage, Budget)>>>,
    marks: Vec<Mark>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts the thread.
    pub fn start() -> Self {
        let started = Instant::now();
        let samples = Arc::new(Mutex::new(Vec::with_capacity(SAMPLES_MAX)));
        let stop = Arc::new(AtomicBool::new(false));
        let watched: Arc<Mutex<Option<(Storage, Budget)>>> = Arc::default();
        let (seen, asked_to_stop, session) = (Arc::clone(&samples), Arc::clone(&stop), Arc::clone(&watched));
        let watch = move || {
            let mut interval = INTERVAL;
            let mut moved = IoStats::default();
            while !asked_to_stop.load(Ordering::Relaxed) {
                if let Some(resident_bytes) = status_bytes("VmRSS:") {
                    let session = session.lock().unwrap_or_else(PoisonError::into_inner);
                    let leased_bytes = session.as_ref().map_or(0, |(storage, budget)| {
                        moved = storage.stats();
                        budget.held_bytes() + budget.spare_bytes()
                    });
                    drop(session);
                    let mut samples = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    samples.push(Sample {
                        seconds: started.elapsed().as_secs_f64(),
                        resident_bytes,
                        leased_bytes,
                        bytes_read: moved.bytes_read,
                        bytes_written: moved.bytes_written,
                        processor_seconds: Spent::now(moved).processor.as_secs_f64(),
                    });
                    if samples.len() == SAMPLES_MAX {
                        halve(&mut samples);
                        interval *= 2;
                    }
                }
                thread::park_timeout(interval);
            }
        };
        let thread = thread::Builder::new()
            .name("memory curve".into())
            .spawn(watch)
            .ok();
        Self {
            started,
            samples,
            watched,
            marks: Vec::new(),
            stop,
            thread,
        }
    }

    /// From now on, samples contain the bytes that this storage has moved and the leased bytes of the budget.
    pub fn watch(&self, storage: &Storage, budget: &Budget) {
        let watched = (storage.clone(), budget.clone());
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
    }

    /// Lets the storage and the budget go: from now on nothing is leased, and no more bytes move.
    pub fn unwatch(&self) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(watched);
    }

    /// Since the start.
    pub fn elapsed_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// From the start to a moment.
    pub fn seconds_at(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.started).as_secs_f64()
    }

    /// A phase began at `seconds`.
    pub fn mark(&mut self, name: &str, seconds: f64) {
        self.marks.push(Mark {
            name: name.to_owned(),
            seconds,
        });
    }

    /// The highest sample since `seconds`.
    pub fn peak_since(&self, seconds: f64) -> u64 {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let since = samples
            .iter()
            .rev()
            .take_while(|sample| sample.seconds >= seconds);
        since.map(|sample| sample.resident_bytes).max().unwrap_or(0)
    }

    /// The highest sample between two moments.
    pub fn peak_between(&self, from: Instant, to: Instant) -> u64 {
        let [from, to] = [from, to].map(|moment| self.seconds_at(moment));
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let within = samples
            .iter()
            .filter(|sample| sample.seconds >= from && sample.seconds <= to);
        within.map(|sample| sample.resident_bytes).max().unwrap_or(0)
    }

    /// The samples and marks so far.
    pub fn curve(&self) -> Curve {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        Curve {
            samples: samples.clone(),
            marks: self.marks.clone(),
        }
    }

    /// Keeps the last `count` marks.
    pub fn keep_marks(&mut self, count: usize) {
        let surplus = self.marks.len().saturating_sub(count);
        self.marks.drain(..surplus);
    }

    /// Stops the thread.
    pub fn finish(mut self) -> Curve {
        self.stop();
        let samples = std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner));
        Curve {
            samples,
            marks: std::mem::take(&mut self.marks),
        }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _nothing_to_report = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keeps the higher of each two neighbours, so that no peak is lost.
fn halve(samples: &mut Vec<Sample>) {
    let kept = samples
        .chunks(2)
        .map(|pair| Sample {
            resident_bytes: pair.iter().map(|sample| sample.resident_bytes).max().unwrap_or(0),
            leased_bytes: pair.iter().map(|sample| sample.leased_bytes).max().unwrap_or(0),
            ..pair[0]
        })
        .collect();
    *samples = kept;
    samples.reserve(SAMPLES_MAX - samples.len());
}

/// Resets the kernel's own high-water mark (`VmHWM`), where the kernel allows it.
pub fn reset_peak() {
    let _not_everywhere = fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory since [`reset_peak`], or ever.
pub fn peak_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

impl Curve {
    /// When the last sample was taken; a bit after the start if there is none.
    pub fn end_seconds(&self) -> f64 {
        self.samples.last().map_or(0.0, |sample| sample.seconds).max(1e-9)
    }

    /// What lies between two times, which are its start and end: what the program measured before its first
    /// phase is left out.
    pub fn between(&self, from_seconds: f64, to_seconds: f64) -> Self {
        let within = |seconds: f64| seconds >= from_seconds && seconds <= to_seconds;
        let mut samples: Vec<Sample> = (self.samples.iter())
            .filter(|sample| within(sample.seconds))
            .map(|sample| Sample {
                seconds: sample.seconds - from_seconds,
                ..*sample
            })
            .collect();
        if let Some(last) = samples.last().copied() {
            samples.push(Sample {
                seconds: to_seconds - from_seconds,
                ..last
            });
        }
        let marks = self.marks.iter().filter(|mark| within(mark.seconds));
        Self {
            samples,
            marks: marks
                .map(|mark| Mark {
                    name: mark.name.clone(),
                    seconds: mark.seconds - from_seconds,
                })
                .collect(),
        }
    }

    /// The most resident memory in each of `columns` equal spans of time.
    pub fn columns(&self, columns: usize) -> Vec<u64> {
        self.highest(columns, |sample| sample.resident_bytes)
    }

    /// The most leased memory in each of them.
    pub fn leased(&self, columns: usize) -> Vec<u64> {
        self.highest(columns, |sample| sample.leased_bytes)
    }

    fn highest(&self, columns: usize, of: impl Fn(&Sample) -> u64) -> Vec<u64> {
        let end = self.end_seconds();
        let mut highest = vec![None; columns];
        for sample in &self.samples {
            let column = ((sample.seconds / end * columns as f64) as usize).min(columns - 1);
            highest[column] = highest[column].max(Some(of(sample)));
        }
        // A span without a sample repeats the one before it.
        let mut before = 0;
        let filled = highest.into_iter().map(|value| {
            before = value.unwrap_or(before);
            before
        });
        filled.collect()
    }

    /// Bytes a second that were read and written in each of `columns` equal spans of time.
    pub fn rates(&self, columns: usize) -> Vec<[f64; 2]> {
        self.slopes(columns, |sample| {
            [sample.bytes_read as f64, sample.bytes_written as f64]
        })
    }

    /// Cores that were busy in each of `columns` equal spans of time.
    pub fn cores(&self, columns: usize) -> Vec<f64> {
        let slopes = self.slopes(columns, |sample| [sample.processor_seconds]);
        slopes.into_iter().map(|[cores]| cores).collect()
    }

    /// Growth of sums, by second, in each of `columns` equal spans of time.
    fn slopes<const N: usize>(&self, columns: usize, sums: impl Fn(&Sample) -> [f64; N]) -> Vec<[f64; N]> {
        let end = self.end_seconds();
        let mut reached: Vec<Option<[f64; N]>> = vec![None; columns];
        for sample in &self.samples {
            let column = ((sample.seconds / end * columns as f64) as usize).min(columns - 1);
            reached[column] = Some(sums(sample));
        }
        let span_seconds = end / columns as f64;
        // What was summed up before the first sample is not of the first span.
        let mut before = self.samples.first().map_or([0.0; N], &sums);
        let slopes = |reached: Option<[f64; N]>| {
            // A span without a sample gets nothing; the next one gets the growth of both.
            let now = reached.unwrap_or(before);
            let slopes = std::array::from_fn(|sum| (now[sum] - before[sum]).max(0.0) / span_seconds);
            before = now;
            slopes
        };
        reached.into_iter().map(slopes).collect()
    }

    /// The samples as comma-separated values, with names in the first line.
    pub fn csv(&self) -> String {
        let mut text =
            String::from("seconds,resident_bytes,leased_bytes,bytes_read,bytes_written,processor_seconds\n");
        for sample in &self.samples {
            text.push_str(&format!(
                "{:.6},{},{},{},{},{:.6}\n",
                sample.seconds,
                sample.resident_bytes,
                sample.leased_bytes,
                sample.bytes_read,
                sample.bytes_written,
                sample.processor_seconds
            ));
        }
        text
    }

    /// The curve in `rows` lines of `columns` characters, with a scale; phases are numbered below it.
    pub fn text(&self, columns: usize, rows: usize) -> String {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let highest = self.columns(columns);
        let top = highest.iter().copied().max().unwrap_or(0).max(1);
        let mut text = String::new();
        for row in (0..rows).rev() {
            let label = if row == rows - 1 {
                bytes(top)
            } else if row == 0 {
                "0".into()
            } else {
                String::new()
            };
            let line: String = highest
                .iter()
                .map(|&value| {
                    let eighths = (value as f64 / top as f64 * (rows * 8) as f64).round() as usize;
                    EIGHTHS[eighths.saturating_sub(row * 8).min(8)]
                })
                .collect();
            text.push_str(&format!("{label:>10} |{}\n", line.trim_end()));
        }
        let end = self.end_seconds();
        let mut axis = vec!['-'; columns];
        for (index, mark) in self.marks.iter().enumerate() {
            let at = ((mark.seconds / end * columns as f64) as usize).min(columns - 1);
            axis[at] = char::from_digit(index as u32 + 1, 36).unwrap_or('+');
        }
        text.push_str(&format!(
            "{:>10} +{} {end:.1} s\n",
            "",
            axis.iter().collect::<String>()
        ));
        let names = self.marks.iter().enumerate().map(|(index, mark)| {
            format!(
                "{} {}",
                char::from_digit(index as u32 + 1, 36).unwrap_or('+'),
                mark.name
            )
        });
        for line in lines_of(names, columns) {
            text.push_str(&format!("{:>10}  {line}\n", ""));
        }
        text
    }
}

/// Names, as many on a line as `columns` letters hold.
fn lines_of(names: impl Iterator<Item = String>, columns: usize) -> Vec<String> {
    const BETWEEN: &str = " · ";
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        let letters = |text: &str| text.chars().count();
        match lines.last_mut() {
            Some(line) if letters(line) + letters(BETWEEN) + letters(&name) <= columns => {
                line.push_str(BETWEEN);
                line.push_str(&name);
            }
            _ => lines.push(name),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        let samples = (0..100).map(|i| Sample {
            seconds: f64::from(i) / 10.0,
            resident_bytes: if i == 50 { 80 } else { 10 },
            leased_bytes: 7,
            bytes_read: 0,
            bytes_written: 0,
            processor_seconds: f64::from(i) / 5.0,
        });
        Curve {
            samples: samples.collect(),
            marks: vec![Mark {
                name: "work".into(),
                seconds: 5.0,
            }],
        }
    }

    #[test]
    fn peaks_survive_columns_and_halving() {
        assert_eq!(curve().columns(10).iter().max(), Some(&80));
        assert_eq!(curve().leased(10), [7; 10]);
        assert!(
            curve().cores(10)[1..]
                .iter()
                .all(|cores| (cores - 2.0).abs() < 0.1)
        );
        assert_eq!(curve().csv().lines().count(), 101);
        let mut samples = curve().samples;
        halve(&mut samples);
        assert_eq!(samples.len(), 50);
        assert_eq!(samples.iter().map(|sample| sample.resident_bytes).max(), Some(80));
    }

    #[test]
    fn a_part_has_its_own_times_and_sums() {
        let part = curve().between(4.0, 8.05);
        assert!((part.end_seconds() - 4.05).abs() < 1e-9);
        assert!((part.marks[0].seconds - 1.0).abs() < 1e-9);
        assert!(
            part.cores(10).iter().all(|cores| *cores < 2.6),
            "{:?}",
            part.cores(10)
        );
        assert_eq!(part.columns(4).iter().max(), Some(&80));
        assert!(Curve::default().between(0.0, 1.0).samples.is_empty());
    }

    #[test]
    fn the_text_has_its_scale_and_its_marks() {
        let text = curve().text(20, 4);
        assert_eq!(text.lines().count(), 6);
        assert!(text.lines().next().unwrap().contains('█'));
        assert!(text.contains("1 work") && text.contains("9.9 s"));
        let mut many = curve();
        let mark = many.marks[0].clone();
        many.marks.resize(20, mark);
        let text = many.text(58, 4);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.matches("work").count(), 20);
    }

    #[test]
    fn the_sampler_sees_an_allocation() {
        let sampler = Sampler::start();
        let started = sampler.elapsed_seconds();
        let block = vec![1u8; 64 << 20];
        std::hint::black_box(&block);
        thread::sleep(Duration::from_millis(60));
        drop(block);
        assert!(sampler.peak_since(started) > 64 << 20);
        assert!(!sampler.finish().samples.is_empty());
    }
}
