//! What the kernel says about this process and its cgroup: limits and peaks, read back, never assumed.
//! Every reading is `None` where the kernel does not tell.

use std::fs;
use std::path::{Path, PathBuf};

/// The most resident memory that the process ever had (`VmHWM`): anonymous, file maps and shared.
pub fn resident_peak_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// Resident anonymous memory now (`RssAnon`).
pub fn anonymous_bytes() -> Option<u64> {
    status_bytes("RssAnon:")
}

/// Bytes of the program's file and its libraries that are mapped and not written to: as much of them as was
/// used is resident.
pub fn program_bytes() -> Option<u64> {
    program_bytes_of(&fs::read_to_string("/proc/self/maps").ok()?)
}

/// From the text of `/proc/self/maps`, whose lines are `from-to rights offset device inode path`.
fn program_bytes_of(maps: &str) -> Option<u64> {
    let bytes = maps.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        let inode = fields.nth(2)?;
        // Shared maps are columns.
        let is_program = rights.starts_with("r-") && rights.ends_with('p') && inode != "0";
        let (from, to) = range.split_once('-').filter(|_| is_program)?;
        let address = |digits| u64::from_str_radix(digits, 16).ok();
        address(to)?.checked_sub(address(from)?)
    });
    Some(bytes.sum()).filter(|bytes| *bytes > 0)
}

/// Memory that the machine could give without swapping (`MemAvailable`).
pub fn available_bytes() -> Option<u64> {
    kib_line(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// The smallest memory limit of the process's cgroup and its ancestors, v1 or v2; `None` if there is no
/// limit. Above `memory.high` a process goes on, but the kernel slows it down until it has hardly any memory
/// more: that is a limit, too.
pub fn cgroup_limit_bytes() -> Option<u64> {
    Cgroup::own()?.limit_bytes()
}

/// The most memory ever charged to the process's cgroup, page cache included.
pub fn cgroup_peak_bytes() -> Option<u64> {
    let group = Cgroup::own()?;
    fs::read_to_string(group.dir.join(group.peak_file()))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn status_bytes(key: &str) -> Option<u64> {
    kib_line(&fs::read_to_string("/proc/self/status").ok()?, key)
}

/// `Key:   123 kB` as bytes.
fn kib_line(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value
        .trim()
        .strip_suffix("kB")?
        .trim_end()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Where the memory controller of this process's group lives.
struct Cgroup {
    root: PathBuf,
    dir: PathBuf,
    version: u8,
}

impl Cgroup {
    fn own() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::find(&groups, &mounts)
    }

    /// From the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`: the v1 memory controller if there is
    /// one, else v2.
    fn find(groups: &str, mounts: &str) -> Option<Self> {
        let path_of = |wanted: fn(&str) -> bool| {
            groups.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let (controllers, path) = (fields.next()?, fields.next()?);
                wanted(controllers).then_some(path)
            })
        };
        // mountinfo: `id parent dev root mount-point options [tags] - type source super-options`.
        let mount_of = |kind: &str, option: Option<&str>| {
            mounts.lines().find_map(|line| {
                let (before, after) = line.split_once(" - ")?;
                let mut after = after.split(' ');
                let matches = after.next()? == kind
                    && option.is_none_or(|option| {
                        after
                            .nth(1)
                            .is_some_and(|all| all.split(',').any(|o| o == option))
                    });
                let mut before = before.split(' ').skip(3);
                matches.then_some((before.next()?, before.next()?))
            })
        };
        let v1 = path_of(|controllers| controllers.split(',').any(|name| name == "memory"))
            .zip(mount_of("cgroup", Some("memory")))
            .map(|found| (found, 1));
        let v2 = || {
            path_of(str::is_empty)
                .zip(mount_of("cgroup2", None))
                .map(|found| (found, 2))
        };
        let ((path, (mounted_root, mount_point)), version) = v1.or_else(v2)?;
        // In a container the mount may show a subtree only: the group's path is then given from the real
        // root.
        let inside = Path::new(path)
            .strip_prefix(mounted_root)
            .or_else(|_| Path::new(path).strip_prefix("/"))
            .ok()?;
        let root = PathBuf::from(mount_point);
        let mut dir = root.join(inside);
        if !dir.is_dir() {
            dir.clone_from(&root);
        }
        Some(Self { root, dir, version })
    }

    /// The group's folder, its parent, and so on up to the mount.
    fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.dir.ancestors().take_while(|dir| dir.starts_with(&self.root))
    }

    fn limit_bytes(&self) -> Option<u64> {
        let of_file = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let files = |dir| self.limit_files().iter().map(move |file| Path::join(dir, file));
        let limits = self.ancestors().flat_map(files).filter_map(of_file);
        // v1 writes a number near 2^63 for "no limit", v2 writes `max`.
        limits.filter(|&bytes| bytes < 1 << 60).min()
    }

    fn limit_files(&self) -> &'static [&'static str] {
        if self.version == 1 {
            &["memory.limit_in_bytes"]
        } else {
            &["memory.max", "memory.high"]
        }
    }

    fn peak_file(&self) -> &'static str {
        if self.version == 1 {
            "memory.max_usage_in_bytes"
        } else {
            "memory.peak"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_plausible() {
        let peak = resident_peak_bytes().unwrap();
        let anonymous = anonymous_bytes().unwrap();
        assert!(anonymous <= peak && anonymous > 4096, "{anonymous} {peak}");
        assert!(available_bytes().unwrap() > 1 << 20);
    }

    #[test]
    fn pages_of_programs_are_told_from_others() {
        let maps = "\
            00400000-00500000 r--p 00000000 08:01 12 /bin/program\n\
            00500000-00900000 r-xp 00100000 08:01 12 /bin/program\n\
            00900000-00910000 rw-p 00500000 08:01 12 /bin/program\n\
            01000000-09000000 rw-p 00000000 00:00 0 [heap]\n\
            0a000000-0b000000 r--s 00000000 08:01 13 /scratch/column\n\
            7ff00000-7ff20000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(program_bytes_of(maps), Some(5 << 20));
        assert_eq!(program_bytes_of("no maps"), None);
    }

    #[test]
    fn the_smallest_limit_of_a_group_and_those_around_it_holds() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("pod/container");
        fs::create_dir_all(&dir).unwrap();
        let write = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
        let limit = |version| {
            let (root, dir) = (root.path().to_owned(), dir.clone());
            Cgroup { root, dir, version }.limit_bytes()
        };
        assert_eq!((limit(1), limit(2)), (None, None));
        write("pod/container/memory.max", "max\n");
        write("pod/container/memory.high", "max\n");
        assert_eq!(limit(2), None);
        write("pod/memory.max", "1073741824\n");
        assert_eq!(limit(2), Some(1 << 30));
        write("pod/container/memory.high", "536870912\n");
        assert_eq!(limit(2), Some(512 << 20));
        write("pod/container/memory.max", "268435456\n");
        assert_eq!(limit(2), Some(256 << 20));
        write("pod/container/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(1), None);
        write("pod/memory.limit_in_bytes", "4096\n");
        assert_eq!(limit(1), Some(4096));
    }

    #[test]
    fn groups_are_found_in_both_versions() {
        let v2 = Cgroup::find(
            "0::/user.slice/a\n",
            "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        )
        .unwrap();
        assert_eq!((v2.version, v2.root.to_str()), (2, Some("/sys/fs/cgroup")));
        let v1 = Cgroup::find(
            "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/y\n",
            "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 24 0:28 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        )
        .unwrap();
        assert_eq!((v1.version, v1.dir.to_str()), (1, Some("/sys/fs/cgroup/memory/")));
        assert!(Cgroup::find("", "").is_none());
    }
}
