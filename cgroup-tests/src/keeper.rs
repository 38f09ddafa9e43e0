//! A script that runs after this process, however the process ends.
//!
//! A shell in a process group of its own waits for the end of a pipe that only this process holds open, and
//! then runs the script: when the value is dropped, on a panic, on ctrl-C, and when this process is killed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Refusal, Result};

/// The waiting shell. Dropping it runs the script and waits for its end.
#[derive(Debug)]
pub struct Keeper {
    shell: Child,
}

impl Keeper {
    /// `script` will run with `path` as its `$0`.
    ///
    /// # Errors
    /// [`Refusal::Program`] if there is no shell.
    pub fn new(script: &str, path: &Path) -> Result<Self> {
        let shell = Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("cat > /dev/null; {script}"))
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|source| Refusal::Program {
                program: "/bin/sh".into(),
                source,
            })?;
        Ok(Self { shell })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _its_errors_are_ignored = self.shell.wait();
    }
}
