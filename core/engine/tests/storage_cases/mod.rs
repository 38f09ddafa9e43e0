//! What tests of the storage run in: {uring, several rings, pread} x {direct, buffered} x {disk, tmpfs}.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use spillproof_engine::Error;
use spillproof_engine::storage::{Backend, FaultPlan, Storage};
use spillproof_testing::skipped;
use tempfile::TempDir;

pub const PAGE: usize = 4096;

/// A place to test in, and how.
pub struct Case {
    pub name: String,
    pub backend: Backend,
    pub direct: bool,
    /// That ask for transfers: several rings are for more than a few.
    pub threads: usize,
    pub dir: TempDir,
}

impl Case {
    pub fn storage(&self, faults: FaultPlan) -> Storage {
        Storage::builder()
            .dir(self.dir.path())
            .backend(self.backend)
            .direct(self.direct)
            .threads(self.threads)
            .faults(faults)
            .build()
            .unwrap()
    }

    pub fn entries(&self) -> Vec<PathBuf> {
        entries(self.dir.path())
    }
}

pub fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// Every case that this machine has; the others are skipped aloud.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, root) in [
        ("disk", Path::new(env!("CARGO_TARGET_TMPDIR"))),
        ("tmpfs", Path::new("/dev/shm")),
    ] {
        if !root.is_dir() {
            skipped(format_args!("{place}, there is no {}", root.display()));
            continue;
        }
        for (backend, threads) in [(Backend::Uring, 1), (Backend::Uring, 16), (Backend::Pread, 1)] {
            for direct in [true, false] {
                let dir = TempDir::new_in(root).unwrap();
                let name = format!("{backend:?} for {threads} direct={direct} on {place}");
                let storage = Storage::builder()
                    .dir(dir.path())
                    .backend(backend)
                    .threads(threads);
                match storage.build() {
                    Ok(_) => cases.push(Case {
                        name,
                        backend,
                        direct,
                        threads,
                        dir,
                    }),
                    Err(error @ Error::Unavailable { .. }) => skipped(format_args!("{name}: {error}")),
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }
    assert!(cases.iter().any(|case| case.backend == Backend::Pread));
    cases
}
