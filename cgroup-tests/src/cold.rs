//! Sending files out of the page cache, so that the next reader pays for them; and reading them into it, so that it does
//! not.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise, fsync};

/// Writes the file's dirty pages out and drops its clean ones. Pages that a running process has mapped stay.
///
/// # Errors
/// What the kernel says.
pub fn evict(file: &Path) -> io::Result<()> {
    let open = File::open(file)?;
    fsync(&open)?;
    fadvise(&open, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Reads the file into the page cache, for which this process's group pays, if it is not there already.
///
/// # Errors
/// What the kernel says.
pub fn read_in(file: &Path) -> io::Result<()> {
    io::copy(&mut File::open(file)?, &mut io::sink())?;
    Ok(())
}
