//! A swap file for the life of this process: a [`Keeper`] turns it off and removes it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Keeper, Refusal, Result};

const AFTERWARDS: &str = r#"swapoff "$0"; rm -f "$0""#;

/// Swap in a file. Dropping it turns it off and removes the file.
#[derive(Debug)]
pub struct SwapFile {
    file: PathBuf,
    _keeper: Keeper,
}

impl SwapFile {
    /// Makes a file of `bytes` in `folder`, which must be on a disk, and swaps to it.
    ///
    /// # Errors
    /// [`Refusal::NoSwap`] where that is not possible; it usually takes root.
    pub fn on(folder: &Path, bytes: u64) -> Result<Self> {
        let file = folder.join(format!("spillproof-swap-{}", std::process::id()));
        let keeper = Keeper::new(AFTERWARDS, &file)?;
        tool(
            Command::new("fallocate")
                .arg("-l")
                .arg(bytes.to_string())
                .arg(&file),
        )?;
        tool(Command::new("chmod").arg("600").arg(&file))?;
        tool(Command::new("mkswap").arg(&file))?;
        tool(Command::new("swapon").arg(&file))?;
        Ok(Self {
            file,
            _keeper: keeper,
        })
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

fn tool(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Refusal::NoSwap(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Refusal::NoSwap(said))
}
