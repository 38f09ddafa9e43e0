//! More cores than the machine has, each slower by the same factor.
//!
//! On a machine of C cores, every thread of a program gets at most C/N of a core: a control group of its own
//! with a quota of the processor's time (CFS bandwidth control, cgroup v1). N threads that are all busy then
//! have the machine's C cores together, and a stretch in which one thread works alone takes N/C times as long
//! as it would. So times by C/N are those of a machine of N cores, but for caches and memory, which are the
//! machine's own; disks look faster by N/C.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use cgroups_rs::Cgroup;

use crate::group::{CPU, Version, create, fresh_name, parents};
use crate::{Refusal, Result};

/// The kernel takes no quota below a millisecond.
const QUOTA_US: u64 = 1000;
/// The kernel takes no period above a second.
const PERIOD_MAX_US: u64 = 1_000_000;

/// Limits each thread of a program that is shown to it ([`SlowCores::hold`]). The groups go on drop.
#[derive(Debug)]
pub struct SlowCores {
    handle: Cgroup,
    folder: PathBuf,
    period_us: u64,
    held: HashSet<u32>,
}

impl SlowCores {
    /// `cores` slow cores, which together are those of this machine.
    ///
    /// # Errors
    /// [`Refusal::NoSlowCores`] where threads cannot be limited: without cgroup v1's controller of the
    /// processor, or without the right to make groups.
    pub fn of(cores: usize) -> Result<Self> {
        let here = thread::available_parallelism().map_or(1, |cores| cores.get());
        let period_us = QUOTA_US * cores as u64 / here as u64;
        if !(QUOTA_US..=PERIOD_MAX_US).contains(&period_us) {
            let reason = format!(
                "{cores} cores on a machine of {here}: from {here} to {} can be",
                here * 1000
            );
            return Err(Refusal::NoSlowCores(reason));
        }
        let (version, parents) = parents(CPU).map_err(|refusal| match refusal {
            Refusal::Unsupported(reason) => Refusal::NoSlowCores(reason),
            other => other,
        })?;
        if version == Version::V2 {
            return Err(Refusal::NoSlowCores(
                "threads are limited through cgroup v1, and this machine has v2".into(),
            ));
        }
        let mut reasons = Vec::new();
        for parent in parents {
            match create(&parent.join(fresh_name()), CPU) {
                Ok((handle, folder)) => {
                    return Ok(Self {
                        handle,
                        folder,
                        period_us,
                        held: HashSet::new(),
                    });
                }
                Err(reason) => reasons.push(reason),
            }
        }
        Err(Refusal::NoSlowCores(reasons.join("; ")))
    }

    /// The share of a core that each thread gets.
    pub fn share(&self) -> f64 {
        QUOTA_US as f64 / self.period_us as f64
    }

    /// Limits the threads of this process that are not limited yet. Call it every few milliseconds: new
    /// threads run at full speed until then.
    ///
    /// # Errors
    /// [`Refusal::NoSlowCores`] if a thread that still runs cannot be limited.
    pub fn hold(&mut self, process: u32) -> Result<()> {
        let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
            return Ok(());
        };
        for entry in threads.flatten() {
            let thread = entry.file_name().to_string_lossy().parse::<u32>();
            let Ok(thread) = thread else { continue };
            if self.held.contains(&thread) {
                continue;
            }
            match self.limit(thread) {
                Ok(()) => {
                    self.held.insert(thread);
                }
                // It ended meanwhile.
                Err(_) if !entry.path().exists() => {}
                Err(error) => return Err(Refusal::NoSlowCores(error.to_string())),
            }
        }
        Ok(())
    }

    fn limit(&self, thread: u32) -> std::io::Result<()> {
        let folder = self.folder.join(thread.to_string());
        fs::create_dir_all(&folder)?;
        for (name, wrote) in [
            ("cpu.cfs_period_us", self.period_us),
            ("cpu.cfs_quota_us", QUOTA_US),
        ] {
            let file = folder.join(name);
            fs::write(&file, wrote.to_string())?;
            let reads = fs::read_to_string(&file)?;
            if reads.trim() != wrote.to_string() {
                let reason = format!("{}: wrote {wrote}, reads back {}", file.display(), reads.trim());
                return Err(std::io::Error::other(reason));
            }
        }
        fs::write(folder.join("tasks"), thread.to_string())
    }
}

impl Drop for SlowCores {
    fn drop(&mut self) {
        for attempt in 0..20 {
            remove_groups_in(&self.folder);
            if self.handle.delete().is_ok() && !self.folder.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(5 * (1 + attempt)));
        }
        eprintln!(
            "{} could not be removed: threads are left in it",
            self.folder.display()
        );
    }
}

fn remove_groups_in(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Files of the group cannot be removed, and a group goes only without threads: what stays is tried
        // again.
        let _stays = fs::remove_dir(entry.path());
    }
}
