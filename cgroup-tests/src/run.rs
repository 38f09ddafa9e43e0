//! Running a program inside a group.
//!
//! A shell joins the group and then becomes the program (`exec`), so the program's first page is already
//! charged; the pages of the shell stay charged to our own group.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Figures, Group, Refusal, Result};

/// How a program ended, and its figures.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// From start to end.
    pub seconds: f64,
    /// The kernel's figures of the group, up to now.
    pub figures: Figures,
    /// It ran past its timeout and was stopped.
    pub timed_out: bool,
}

impl Outcome {
    /// Killed by the kernel for lack of memory, by both the signal and the group's count.
    pub fn is_oom_killed(&self) -> bool {
        self.status.signal() == Some(9) && self.figures.oom_kills > 0 && !self.timed_out
    }
}

impl Group {
    /// Runs `program` in this group, for at most `timeout`. The environment is inherited, and `environment`
    /// is added.
    ///
    /// # Errors
    /// [`Refusal::Program`] if it cannot be started, [`Refusal::Unreadable`] if the group's figures cannot be
    /// read.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Outcome> {
        let program = program.as_ref();
        let failed = |source| Refusal::Program {
            program: program.to_string_lossy().into_owned(),
            source,
        };
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", r#"echo $$ > "$0" && exec "$@""#])
            .arg(self.procs_file())
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied());
        let ended = to_its_end(command, timeout, |_| ()).map_err(failed)?;
        Ok(Outcome {
            status: ended.status,
            stdout: ended.stdout,
            stderr: ended.stderr,
            seconds: ended.seconds,
            figures: self.figures()?,
            timed_out: ended.timed_out,
        })
    }
}

/// How a program without a group ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// From start to end.
    pub seconds: f64,
    /// The highest resident memory (`VmHWM`), read from outside every few milliseconds: the last growth
    /// before the end can be missed if it lasts less than that.
    pub peak_bytes: u64,
    /// It ran past its timeout and was stopped.
    pub timed_out: bool,
}

/// Runs `program` in no group of its own, for at most `timeout`, and watches its memory.
///
/// # Errors
/// [`Refusal::Program`] if it cannot be started.
pub fn watched<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
    environment: &[(&str, &str)],
    timeout: Duration,
) -> Result<Ended> {
    watched_with(program, arguments, environment, timeout, |_| ())
}

/// The same, and calls `look` with the program's process id every few milliseconds.
///
/// # Errors
/// As [`watched`].
pub fn watched_with<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
    environment: &[(&str, &str)],
    timeout: Duration,
    mut look: impl FnMut(u32),
) -> Result<Ended> {
    let program = program.as_ref();
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied());
    let mut peak_bytes = 0;
    // A program may reset its own high-water mark, so the highest of all readings counts.
    let look = |id: u32| {
        peak_bytes = high_water_bytes(id).unwrap_or(0).max(peak_bytes);
        look(id);
    };
    let ended = to_its_end(command, timeout, look).map_err(|source| Refusal::Program {
        program: program.to_string_lossy().into_owned(),
        source,
    })?;
    Ok(Ended { peak_bytes, ..ended })
}

fn high_water_bytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn to_its_end(mut command: Command, timeout: Duration, look: impl FnMut(u32)) -> std::io::Result<Ended> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let (status, timed_out) = wait(&mut child, started + timeout, look)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Ended {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
        seconds,
        peak_bytes: 0,
        timed_out,
    })
}

fn wait(
    child: &mut Child,
    deadline: Instant,
    mut look: impl FnMut(u32),
) -> std::io::Result<(ExitStatus, bool)> {
    loop {
        look(child.id());
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if Instant::now() > deadline {
            child.kill()?;
            return Ok((child.wait()?, true));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _what_came_until_then = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(pipe: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&pipe.join().unwrap_or_default()).into_owned()
}
