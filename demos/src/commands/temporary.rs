//! Files of one command, which go with it.

use std::path::{Path, PathBuf};

use crate::args::Global;
use crate::signals;

/// A name in the folder of scratch files, for this process. A signal that ends the program removes the file.
pub(super) fn scratch_file(global: &Global, what: &str) -> PathBuf {
    let dir = global.dir.clone().unwrap_or_else(std::env::temp_dir);
    let file = dir.join(format!("spillproof-{what}-{}.bin", std::process::id()));
    signals::expect_file(&file);
    file
}

/// Removes a file on drop.
pub(super) struct Removed<'a>(pub &'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // If it was never made, there is nothing to remove.
        let _ = std::fs::remove_file(self.0);
    }
}
