//! Making a group with a limit, and removing it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cgroups_rs::cgroup::get_cgroups_relative_paths;
use cgroups_rs::cpu::CpuController;
use cgroups_rs::hierarchies::auto;
use cgroups_rs::memory::MemController;
use cgroups_rs::{Cgroup, Controller};

use crate::{Refusal, Result};

/// Which interface the kernel offers for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy per controller.
    V1,
    /// One hierarchy.
    V2,
}

/// A memory control group with a hard limit. Dropping it kills what still runs in it, and removes it.
#[derive(Debug)]
pub struct Group {
    handle: Cgroup,
    folder: PathBuf,
    version: Version,
    limit_bytes: u64,
    may_swap: bool,
}

impl Group {
    /// Makes a group in which no more than `limit_bytes` (whole pages) of memory can be charged, swap
    /// included.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] where memory cannot be limited; [`Refusal::NotTaken`] if the limit does not
    /// read back.
    pub fn create(limit_bytes: u64) -> Result<Self> {
        Self::new(limit_bytes, false)
    }

    /// The same for memory alone: pages that do not fit may go to swap, up to all swap of the machine.
    ///
    /// # Errors
    /// As [`Group::create`].
    pub fn with_swap(limit_bytes: u64) -> Result<Self> {
        Self::new(limit_bytes, true)
    }

    fn new(limit_bytes: u64, may_swap: bool) -> Result<Self> {
        let (version, parents) = parents(MEMORY)?;
        let mut reasons = Vec::new();
        for parent in parents {
            let path = parent.join(fresh_name());
            let (handle, folder) = match create(&path, MEMORY) {
                Ok(made) => made,
                Err(reason) => {
                    reasons.push(reason);
                    continue;
                }
            };
            let group = Self {
                handle,
                folder,
                version,
                limit_bytes,
                may_swap,
            };
            match group.limit() {
                Ok(()) => return Ok(group),
                Err(not_taken @ Refusal::NotTaken { .. }) => return Err(not_taken),
                Err(other) => reasons.push(other.to_string()),
            }
        }
        Err(Refusal::Unsupported(reasons.join("; ")))
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// The interface that is in use.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The group's folder, with its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A process joins by writing its id here.
    pub(crate) fn procs_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    fn limit(&self) -> Result<()> {
        match self.version {
            Version::V1 => {
                self.set("memory.limit_in_bytes", self.limit_bytes)?;
                if self.may_swap {
                    return Ok(());
                }
                // Counts memory and swap together: without it, a process over its limit swaps on.
                let both = "memory.memsw.limit_in_bytes";
                if self.folder.join(both).exists() {
                    self.set(both, self.limit_bytes)
                } else {
                    no_swap_or("this kernel has no memory.memsw.limit_in_bytes")
                }
            }
            Version::V2 => {
                self.set("memory.max", self.limit_bytes)?;
                if self.may_swap {
                    return Ok(());
                }
                if self.folder.join("memory.swap.max").exists() {
                    self.set("memory.swap.max", 0)
                } else {
                    no_swap_or("this kernel has no memory.swap.max")
                }
            }
        }
    }

    fn set(&self, name: &str, bytes: u64) -> Result<()> {
        let file = self.folder.join(name);
        fs::write(&file, bytes.to_string())
            .map_err(|error| Refusal::Unsupported(format!("{}: {error}", file.display())))?;
        let reads = fs::read_to_string(&file).map_err(|error| Refusal::Unreadable {
            file: file.clone(),
            details: error.to_string(),
        })?;
        let taken = reads
            .trim()
            .parse::<u64>()
            .is_ok_and(|taken| taken <= bytes && bytes - taken < PAGE_BYTES_MAX);
        if taken {
            Ok(())
        } else {
            Err(Refusal::NotTaken {
                file,
                wrote_bytes: bytes,
                reads: reads.trim().into(),
            })
        }
    }
}

/// Limits are kept in whole pages, of at most this size on any machine.
const PAGE_BYTES_MAX: u64 = 65536;

impl Drop for Group {
    fn drop(&mut self) {
        for attempt in 0..100 {
            let left = fs::read_to_string(self.procs_file()).unwrap_or_default();
            for pid in left
                .lines()
                .filter_map(|line| line.trim().parse().ok())
                .filter_map(rustix::process::Pid::from_raw)
            {
                let _gone_already = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            if self.handle.delete().is_ok() && !self.folder.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1 + attempt));
        }
        eprintln!(
            "{} could not be removed: processes are left in it",
            self.folder.display()
        );
    }
}

/// The interface, and the paths in the hierarchy below which a group may be made: our own group's, then the
/// top.
pub(crate) fn parents(controller: &str) -> Result<(Version, Vec<PathBuf>)> {
    let hierarchy = auto();
    let version = if hierarchy.v2() { Version::V2 } else { Version::V1 };
    let top = Cgroup::load_with_specified_controllers(hierarchy, "", vec![controller.into()]);
    let mount = folder_of(&top, controller)
        .filter(|mount| mount.is_dir())
        .ok_or_else(|| {
            Refusal::Unsupported(format!(
                "no mounted cgroup hierarchy has a {controller} controller"
            ))
        })?;
    let own = get_cgroups_relative_paths().map_err(|error| Refusal::Unsupported(error.to_string()))?;
    let own = match version {
        Version::V1 => own.get(controller),
        Version::V2 => own.get(""),
    };
    let own = PathBuf::from(own.map_or("", |own| own.trim_start_matches('/')));
    // In a container the mount may begin below the top of the tree that /proc/self/cgroup speaks of: the
    // first components are missing.
    let names: Vec<_> = own.iter().collect();
    let mounted = (0..=names.len()).map(|missing| names[missing..].iter().collect::<PathBuf>());
    let own = mounted.into_iter().find(|path| mount.join(path).is_dir());
    let mut paths = vec![own.unwrap_or_default(), PathBuf::new()];
    paths.dedup();
    Ok((version, paths))
}

/// Makes a group, and gives its folder; or says why it cannot be made.
pub(crate) fn create(path: &Path, controller: &str) -> std::result::Result<(Cgroup, PathBuf), String> {
    let handle = Cgroup::new_with_specified_controllers(auto(), path, Some(vec![controller.into()]))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    // The crate reports no error of a v1 hierarchy.
    match folder_of(&handle, controller) {
        Some(folder) if folder.is_dir() => Ok((handle, folder)),
        _ => Err(format!("{}: the group cannot be made", path.display())),
    }
}

fn folder_of(group: &Cgroup, controller: &str) -> Option<PathBuf> {
    if controller == CPU {
        let cpu: &CpuController = group.controller_of()?;
        return Some(cpu.path().to_owned());
    }
    let memory: &MemController = group.controller_of()?;
    Some(memory.path().to_owned())
}

const MEMORY: &str = "memory";
pub(crate) const CPU: &str = "cpu";

pub(crate) fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "spillproof-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn no_swap_or(why: &str) -> Result<()> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().skip(1).any(|line| !line.trim().is_empty()) {
        return Err(Refusal::Unsupported(format!("swap is on, and {why}")));
    }
    Ok(())
}
