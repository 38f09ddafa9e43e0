//! Files that a command writes: found to be writable before its work, and under their names when they are
//! whole.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use spillproof_engine::budget::{Budget, PAGE_BYTES};
use spillproof_engine::storage::{Append, Backend, Publish, Storage};

use crate::failure::Failure;
use crate::run::Result;

/// A file that is to be written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    File(Publish),
    /// A pipe, a terminal or another device, which is written to as it is.
    Stream,
    /// Standard output.
    Standard,
}

/// The name of standard output.
pub const STANDARD: &str = "-";

impl Output {
    /// For the file `path`, or for the one that a symbolic link of this name leads to; [`STANDARD`] is
    /// standard output.
    ///
    /// # Errors
    /// [`Failure::File`] where no file can be made, [`Failure::Engine`] for a folder, [`Failure::Content`] for
    /// a symbolic link or a pipe that another user has put into a folder of many users.
    pub fn create(path: &Path) -> Result<Self> {
        if path == Path::new(STANDARD) {
            return Ok(Self {
                path: "standard output".into(),
                to: To::Standard,
            });
        }
        refuse_links_of_others(path)?;
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_stream = fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        let to = match is_stream {
            true => To::Stream,
            false => To::File(publish(&path).map_err(of(&path))?),
        };
        Ok(Self { path, to })
    }

    /// Writes all of it, and gives the file its name.
    ///
    /// # Errors
    /// [`Failure::File`]; a file that had the name keeps it then.
    pub fn write(self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        let mut pieces = self.in_pieces(bytes.len())?;
        let written = pieces.write_all(bytes);
        written.map_err(Failure::file(&pieces.path))?;
        pieces.finish()
    }

    /// For bytes that are not all in memory: `buffer_bytes` are.
    ///
    /// # Errors
    /// Of memory that there is not enough of.
    pub fn in_pieces(self, buffer_bytes: usize) -> Result<Pieces> {
        let to = match self.to {
            To::File(file) => {
                let buffer_bytes = buffer_bytes.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
                Target::File(Box::new(Append::new(
                    file,
                    &Budget::new(buffer_bytes as u64),
                    buffer_bytes,
                )?))
            }
            To::Stream => {
                let stream = fs::OpenOptions::new().append(true).open(&self.path);
                Target::Stream(stream.map_err(Failure::file(&self.path))?)
            }
            To::Standard => Target::Standard(io::stdout()),
        };
        Ok(Pieces { path: self.path, to })
    }
}

/// Writes results that belong together: all are whole, under names beside their own, before the first gets
/// its name. A stream gets its bytes then.
///
/// # Errors
/// [`Failure::File`] while none has its name: files that had the names keep them.
/// [`Failure::Incomplete`] when some have theirs.
pub fn write_together(results: Vec<(Output, Vec<u8>)>) -> Result<()> {
    let (mut files, mut streams) = (Vec::new(), Vec::new());
    for (output, bytes) in results {
        match output.to {
            To::File(_) => {
                let mut pieces = output.in_pieces(bytes.len())?;
                let written = pieces.write_all(&bytes);
                written.map_err(Failure::file(&pieces.path))?;
                pieces.prepare()?;
                files.push(pieces);
            }
            To::Stream | To::Standard => streams.push((output, bytes)),
        }
    }
    let mut written: Vec<PathBuf> = Vec::new();
    let mut note = |path: PathBuf, result: Result<()>| match result {
        Ok(()) => {
            written.push(path);
            Ok(())
        }
        Err(failure) if written.is_empty() => Err(failure),
        Err(failure) => Err(Failure::Incomplete {
            written: written.clone(),
            missing: path,
            source: Box::new(failure),
        }),
    };
    for (output, bytes) in streams {
        note(output.path.clone(), output.write(bytes))?;
    }
    for pieces in files {
        note(pieces.path.clone(), pieces.finish())?;
    }
    Ok(())
}

/// A file that is being written.
#[derive(Debug)]
pub struct Pieces {
    path: PathBuf,
    to: Target,
}

#[derive(Debug)]
enum Target {
    File(Box<Append>),
    Stream(fs::File),
    Standard(io::Stdout),
}

impl Pieces {
    /// Writes the rest, and leaves only the name to [`Self::finish`].
    ///
    /// # Errors
    /// [`Failure::File`].
    fn prepare(&mut self) -> Result<()> {
        match &mut self.to {
            Target::File(file) => file.prepare().map_err(of(&self.path)),
            Target::Stream(_) | Target::Standard(_) => Ok(()),
        }
    }

    /// Writes the rest, and gives the file its name.
    ///
    /// # Errors
    /// [`Failure::File`]; a file that had the name keeps it then.
    pub fn finish(self) -> Result<()> {
        match self.to {
            Target::File(file) => file.finish().map_err(of(&self.path)),
            Target::Stream(_) => Ok(()),
            Target::Standard(mut stream) => stream.flush().map_err(Failure::file(&self.path)),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::File(file) => file.push(bytes).map(|()| bytes.len()).map_err(of_system),
            Target::Stream(stream) => stream.write(bytes),
            Target::Standard(stream) => stream.write(bytes),
        }
    }

    /// Nothing: the rest of a file is written when it is finished.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn publish(path: &Path) -> spillproof_engine::Result<Publish> {
    // No scratch is made here: any folder does.
    let storage = Storage::builder().dir(".").backend(Backend::Inline).build()?;
    storage.publish(path)
}

/// Symbolic links that lead to one another at most, as in the kernel.
const LINKS_MAX: usize = 40;

/// Refuses a name that another user has given to a symbolic link or a pipe in a folder where everyone may make
/// files and each owns theirs (a sticky one, such as `/tmp`): that user chose where the result goes. It is the
/// rule of `fs.protected_symlinks` and `fs.protected_fifos` (proc_sys_fs(5)): links of this user and of the
/// folder's owner are followed.
fn refuse_links_of_others(path: &Path) -> Result<()> {
    const STICKY_AND_FOR_ALL: u32 = 0o1002;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let (Ok(found), Ok(around)) = (fs::symlink_metadata(&path), fs::metadata(&folder)) else {
            return Ok(());
        };
        let kind = found.file_type();
        let is_shared = around.mode() & STICKY_AND_FOR_ALL == STICKY_AND_FOR_ALL;
        let users = [rustix::process::geteuid().as_raw(), around.uid()];
        if is_shared && (kind.is_symlink() || kind.is_fifo()) && !users.contains(&found.uid()) {
            let kind = if kind.is_fifo() { "pipe" } else { "symbolic link" };
            return Err(Failure::Content {
                details: format!(
                    "a {kind} of another user (number {}) in a folder of many users, who chose where the result would go: name another file",
                    found.uid()
                ),
                file: path,
            });
        }
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// The system's error alone.
fn of_system(error: spillproof_engine::Error) -> io::Error {
    match error {
        spillproof_engine::Error::File { source, .. } | spillproof_engine::Error::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// The system's error, with the file's name alone.
fn of(path: &Path) -> impl FnOnce(spillproof_engine::Error) -> Failure {
    let path = path.to_owned();
    move |error| match error {
        spillproof_engine::Error::File { source, .. } | spillproof_engine::Error::Io { source, .. } => {
            Failure::File { file: path, source }
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    /// A file stays as it was until the new one is whole; one that cannot be made is refused before any work.
    #[test]
    fn outputs_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("proof"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        let output = Output::create(&link).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(Output::create(&path).unwrap());
        for bytes in [&b"new"[..], &[7; 5000], b""] {
            Output::create(&link).unwrap().write(bytes).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        output.write("last").unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"last");
        let mut pieces = Output::create(&path).unwrap().in_pieces(4096).unwrap();
        let long: Vec<u8> = (0..10_000).map(|index| index as u8).collect();
        for piece in long.chunks(999) {
            pieces.write_all(piece).unwrap();
            pieces.flush().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"last");
        }
        pieces.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), long);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        Output::create(Path::new("/dev/null"))
            .unwrap()
            .write("gone")
            .unwrap();
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let planted = shared.path().join("planted");
        symlink(&path, &planted).unwrap();
        Output::create(&planted)
            .unwrap()
            .write("through a link of one's own")
            .unwrap();
        let before = fs::read(&path).unwrap();
        for nowhere in [
            dir.path(),
            &path.join("x"),
            &dir.path().join("nowhere/x"),
            Path::new("/"),
        ] {
            let refused = Output::create(nowhere).unwrap_err().explain();
            assert!(refused.contains(&nowhere.display().to_string()), "{refused}");
        }
        const ANOTHER_USER: u32 = 65534;
        if lchown(&planted, Some(ANOTHER_USER), None).is_err() {
            spillproof_testing::skipped("a link cannot be given to another user here (needs root)");
            return;
        }
        // A link of one's own that leads to it, too.
        let own = dir.path().join("own");
        symlink(&planted, &own).unwrap();
        for through in [&planted, &own] {
            let refused = Output::create(through).unwrap_err().explain();
            assert!(
                refused.contains("planted: a symbolic link of another user"),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), before);
        lchown(shared.path(), Some(ANOTHER_USER), None).unwrap();
        assert!(Output::create(&planted).is_ok(), "a link of the folder's owner");
    }

    /// Two results appear together; if the second cannot be made ready, the first is not there either.
    #[test]
    fn results_that_belong_together_appear_together() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (proof, public) = (at("proof"), at("public"));
        let results = |text: &str| {
            let outputs = [&proof, &public].map(|path| Output::create(path).unwrap());
            outputs
                .into_iter()
                .map(|output| (output, text.as_bytes().to_vec()))
                .collect::<Vec<_>>()
        };
        let read = || [&proof, &public].map(|path| fs::read(path).unwrap_or_default());
        write_together(results("first")).unwrap();
        assert_eq!(read(), [b"first"; 2]);
        // The second name becomes a folder while the command works: a rename to it fails.
        let prepared = results("second");
        fs::remove_file(&public).unwrap();
        fs::create_dir(&public).unwrap();
        let failure = write_together(prepared).unwrap_err();
        assert_eq!(failure.exit_code(), 3);
        let explained = failure.explain();
        assert!(
            explained.contains("public was not written") && explained.contains("proof was"),
            "{explained}"
        );
        assert_eq!(fs::read(&proof).unwrap(), b"second");
        fs::remove_dir(&public).unwrap();
        // The folder of the second one goes: neither gets its name.
        let folder = at("folder");
        fs::create_dir(&folder).unwrap();
        let other = Output::create(&folder.join("public")).unwrap();
        let outputs = vec![
            (Output::create(&proof).unwrap(), b"third".to_vec()),
            (other, b"third".to_vec()),
        ];
        fs::remove_dir(&folder).unwrap();
        let failure = write_together(outputs).unwrap_err();
        assert_eq!(failure.exit_code(), 1, "{failure}");
        assert_eq!(fs::read(&proof).unwrap(), b"second");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
