//! Something that is done after us, however we end.
//!
//! A shell in a process group of its own waits for the end of a pipe that only we hold open, and then runs its script. So it does
//! when the value is dropped, on a panic, on ctrl-C, and when we are killed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Refusal, Result};

/// A shell that waits for our end. Dropping it lets it go to work, and waits for it.
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
        let _it_does_what_it_can = self.shell.wait();
    }
}
