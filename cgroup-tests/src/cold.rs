//! Sending files out of the page cache, so that the next reader pays for them.

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
