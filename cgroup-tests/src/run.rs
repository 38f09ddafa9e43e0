//! Running a program inside a group.
//!
//! A shell joins the group and then becomes the program (`exec`), so the program's first page is already charged; what the shell
//! took before it joined stays with our own group.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Figures, Group, Refusal, Result};

/// How a program ended, and what it took.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it said besides.
    pub stderr: String,
    /// From start to end.
    pub seconds: f64,
    /// What the kernel counted for the group, up to now.
    pub figures: Figures,
    /// It ran longer than it was given, and was stopped for that.
    pub timed_out: bool,
}

impl Outcome {
    /// Killed by the kernel for want of memory: both the signal and the group's count say so.
    pub fn is_oom_killed(&self) -> bool {
        self.status.signal() == Some(9) && self.figures.oom_kills > 0 && !self.timed_out
    }
}

impl Group {
    /// Runs `program` in this group, for at most `timeout`. The environment is inherited, and `environment` is added.
    ///
    /// # Errors
    /// [`Refusal::Program`] if it cannot be started, [`Refusal::Unreadable`] if the group's figures cannot be read.
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
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let (status, timed_out) = wait(&mut child, started + timeout).map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Outcome {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
            seconds,
            figures: self.figures()?,
            timed_out,
        })
    }
}

fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<(ExitStatus, bool)> {
    loop {
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
