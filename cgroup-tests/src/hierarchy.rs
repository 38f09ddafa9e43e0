//! Where memory groups can be made: the kernel's hierarchies, as `cgroups(7)` and `proc(5)` describe them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Refusal, Result, Version};

/// The hierarchy with the memory controller.
#[derive(Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its interface.
    pub version: Version,
    mount: PathBuf,
    /// Our own group, below the mount.
    own: PathBuf,
}

impl Hierarchy {
    /// The one that this machine has.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] if none has a memory controller.
    pub fn find() -> Result<Self> {
        let read = |file: &str| {
            fs::read_to_string(file).map_err(|error| Refusal::Unsupported(format!("{file}: {error}")))
        };
        let has_memory = |mount: &Path| {
            let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
            controllers.split_whitespace().any(|name| name == "memory")
        };
        let (mounts, groups) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
        Self::parse(&mounts, &groups, has_memory)
            .ok_or_else(|| Refusal::Unsupported("no mounted cgroup hierarchy has a memory controller".into()))
    }

    fn parse(mounts: &str, groups: &str, has_memory: impl Fn(&Path) -> bool) -> Option<Self> {
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let v1 = mounts.iter().find(|mount| mount.is_v1_of("memory"));
        let v2 = || {
            mounts
                .iter()
                .find(|mount| mount.kind == "cgroup2" && has_memory(mount.point))
        };
        let (version, mount) = match v1 {
            Some(mount) => (Version::V1, mount),
            None => (Version::V2, v2()?),
        };
        // Lines `id:controllers:path`; v2 has no controllers there.
        let own = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_own = match version {
                Version::V1 => controllers.split(',').any(|name| name == "memory"),
                Version::V2 => controllers.is_empty(),
            };
            is_own.then_some(Path::new(path))
        });
        let own = own.unwrap_or(Path::new("/"));
        // In a container the mount may begin below the top of the tree that /proc/self/cgroup speaks of.
        let own = own.strip_prefix(mount.root).or_else(|_| own.strip_prefix("/"));
        Some(Self {
            version,
            mount: mount.point.to_owned(),
            own: own.map(Path::to_owned).unwrap_or_default(),
        })
    }

    /// Folders in which a group may be made: our own group, then the top of the hierarchy.
    pub fn parents(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.mount.join(&self.own), self.mount.clone()];
        folders.retain(|folder| folder.is_dir());
        folders.dedup_by(|a, b| a.components().eq(b.components()));
        folders
    }

    /// Makes a group in `parent`.
    ///
    /// # Errors
    /// The system's: no right to it, or a v2 parent with processes in it.
    pub fn make(&self, parent: &Path, name: &str) -> std::io::Result<PathBuf> {
        if self.version == Version::V2 {
            // A controller reaches a group if every group above it passes it on.
            let below = parent.strip_prefix(&self.mount).unwrap_or(Path::new(""));
            let mut above = self.mount.clone();
            pass_memory_on(&above)?;
            for name in below {
                above.push(name);
                pass_memory_on(&above)?;
            }
        }
        let folder = parent.join(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

fn pass_memory_on(group: &Path) -> std::io::Result<()> {
    let file = group.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file)?;
    if enabled.split_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    fs::write(file, "+memory")
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// The folder of the file system that is mounted.
    root: &'a Path,
    point: &'a Path,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        Some(Self {
            root: Path::new(mount.next()?),
            point: Path::new(mount.next()?),
            kind: system.next()?,
            options: system.nth(1)?,
        })
    }

    fn is_v1_of(&self, controller: &str) -> bool {
        self.kind == "cgroup" && self.options.split(',').any(|option| option == controller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                      35 31 0:32 /docker/7 /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn found(mounts: &str, groups: &str) -> Option<(Version, String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let hierarchy = Hierarchy::parse(mounts, groups, |mount| mount == Path::new("/sys/fs/cgroup"))?;
        Some((hierarchy.version, text(hierarchy.mount), text(hierarchy.own)))
    }

    #[test]
    fn both_interfaces_are_found() {
        let (memory, unified) = ("/sys/fs/cgroup/memory".to_owned(), "/sys/fs/cgroup".to_owned());
        let groups = "4:cpu,memory:/docker/7/a\n0::/unified\n";
        assert_eq!(found(V1, groups), Some((Version::V1, memory.clone(), "a".into())));
        // The own group lies outside of what is mounted.
        let outside = Some((Version::V1, memory.clone(), "b".into()));
        assert_eq!(found(V1, "4:memory:/b\n"), outside);
        assert_eq!(found(V1, ""), Some((Version::V1, memory, String::new())));
        let own = Some((Version::V2, unified, "user.slice/c:d".into()));
        assert_eq!(found(V2, "1:name=systemd:/x\n0::/user.slice/c:d\n"), own);
    }

    #[test]
    fn a_hierarchy_without_a_memory_controller_is_none() {
        let unified = V2.replace("/sys/fs/cgroup", "/mnt");
        assert_eq!(found(&unified, "0::/\n"), None);
        assert_eq!(found("", ""), None);
    }
}
