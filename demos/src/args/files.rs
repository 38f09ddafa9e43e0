//! The files of a command line: a command does not write over a file that it reads, nor two results into one
//! file, and the places of its results are looked at before its work.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{Command, Groth16, LinkOf, Messages, Open, Ptau, Ranks, Srs};
use crate::failure::Failure;
use crate::output::STANDARD;

/// The files of a command, each with the argument that names it.
#[derive(Debug, Default)]
pub struct Files<'a> {
    reads: Vec<(&'static str, &'a Path)>,
    /// Read too, from the first byte to the last, so that a pipe does.
    reads_once: Vec<(&'static str, &'a Path)>,
    writes: Vec<(&'static str, &'a Path)>,
    /// Written too, from the first byte to the last, so that standard output takes them.
    streams: Vec<(&'static str, &'a Path)>,
}

/// What a path leads to: a file that is there, or the name of one that is not.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Here { device: u64, inode: u64 },
    Name(PathBuf),
}

impl<'a> Files<'a> {
    fn new<const R: usize, const W: usize>(
        reads: [(&'static str, &'a Path); R],
        writes: [(&'static str, &'a Path); W],
    ) -> Self {
        Self {
            reads: reads.into(),
            writes: writes.into(),
            ..Self::default()
        }
    }

    /// Reads files, and writes one that may be a stream.
    fn to_stream<const R: usize>(
        reads: [(&'static str, &'a Path); R],
        (name, stream): (&'static str, &'a PathBuf),
    ) -> Self {
        Self::new(reads, []).and_streams(name, Some(stream))
    }

    fn and_reads(mut self, name: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.reads.extend(path.map(|path| (name, path.as_path())));
        self
    }

    fn and_reads_once(mut self, name: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.reads_once.extend(path.map(|path| (name, path.as_path())));
        self
    }

    fn and_writes(mut self, name: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.writes.extend(path.map(|path| (name, path.as_path())));
        self
    }

    fn and_streams(mut self, name: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.streams.extend(path.map(|path| (name, path.as_path())));
        self
    }

    fn and_messages(self, messages: &'a Messages) -> Self {
        self.and_reads_once("--pace", messages.pace.as_ref().and_then(LinkOf::file))
    }

    /// Whether a result goes to standard output.
    ///
    /// # Errors
    /// [`Failure::Usage`] for two of them, and for a file that is written out of order.
    pub fn take_stdout(&self) -> Result<bool, Failure> {
        let is_standard = |(_, path): &&(&str, &Path)| *path == Path::new(STANDARD);
        if let Some((name, _)) = self.writes.iter().find(is_standard) {
            return Err(Failure::Usage(format!(
                "{name} is -, standard output: a container or a key is a file and no stream; name one (./- has that name)"
            )));
        }
        let mut standard = self.streams.iter().filter(is_standard);
        match (standard.next(), standard.next()) {
            (Some((first, _)), Some((second, _))) => Err(Failure::Usage(format!(
                "{first} and {second} are both standard output: name a file for one of them"
            ))),
            (first, _) => Ok(first.is_some()),
        }
    }

    /// Looks at the files that are written.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a file that is also read, or written twice; [`Failure::Content`] for one that
    /// is write-protected, or whose folder is not there, and for a pipe that is read in any order.
    pub fn check(&self) -> Result<(), Failure> {
        for &(name, path) in &self.reads {
            has_any_order(name, path)?;
        }
        let read = self.reads.iter().chain(&self.reads_once);
        let read: Vec<_> = read.map(|&(name, path)| (name, place(path))).collect();
        let mut written: Vec<(&str, Place)> = Vec::new();
        let streams = self
            .streams
            .iter()
            .filter(|(_, path)| *path != Path::new(STANDARD));
        for &(name, path) in self.writes.iter().chain(streams) {
            let Some(place) = place(path) else { continue };
            let shown = path.display();
            if let Some((other, _)) = read.iter().find(|(_, read)| read.as_ref() == Some(&place)) {
                return Err(Failure::Usage(format!(
                    "{name} and {other} are the same file, {shown}: it would be replaced; name another one"
                )));
            }
            if let Some((other, _)) = written.iter().find(|(_, written)| *written == place) {
                return Err(Failure::Usage(format!(
                    "{name} and {other} are the same file, {shown}: name two"
                )));
            }
            written.push((name, place));
            is_writable(path)?;
        }
        Ok(())
    }
}

/// `None` for a pipe, a terminal or another device, which may have several parts in a command, and for a
/// folder, which is refused elsewhere.
fn place(path: &Path) -> Option<Place> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Some(Place::Here {
            device: found.dev(),
            inode: found.ino(),
        }),
        Ok(_) => None,
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
            Some(Place::Name(folder.join(path.file_name()?)))
        }
    }
}

/// Refuses a pipe or a device, whose bytes come once and in one order. A file that is missing is refused
/// elsewhere.
fn has_any_order(name: &str, path: &Path) -> Result<(), Failure> {
    let Ok(found) = fs::metadata(path).map(|found| found.file_type()) else {
        return Ok(());
    };
    let kind = match () {
        () if found.is_fifo() => "a pipe",
        () if found.is_socket() => "a socket",
        () if found.is_char_device() => "a device",
        () => return Ok(()),
    };
    Err(Failure::Content {
        file: path.to_owned(),
        details: format!(
            "{name} is {kind}, and its bytes are read in any order: save them to a file, and name that"
        ),
    })
}

/// A file that is there may be replaced; one that is not needs its folder.
fn is_writable(path: &Path) -> Result<(), Failure> {
    const WRITE_BITS: u32 = 0o222;
    match fs::metadata(path) {
        Ok(found) if found.mode() & WRITE_BITS == 0 => Err(Failure::Content {
            file: path.to_owned(),
            details: "the file is write-protected: name another one, or allow it (chmod u+w)".into(),
        }),
        Ok(_) => Ok(()),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder.filter(|folder| !folder.is_dir()) {
                None => Ok(()),
                Some(folder) => Err(Failure::Content {
                    file: path.to_owned(),
                    details: format!(
                        "there is no folder {}: make it, or name another file",
                        folder.display()
                    ),
                }),
            }
        }
    }
}

impl Command {
    /// The files that the command reads and writes.
    pub fn files(&self) -> Files<'_> {
        match self {
            Self::Srs(command) => command.files(),
            Self::Groth16(command) => command.files(),
            Self::Ptau(command) => command.files(),
            Self::Ranks(Ranks::Bench(bench)) => Files::default().and_messages(&bench.messages),
            Self::Msm(msm) => Files::default().and_reads("--srs", msm.srs.as_ref()),
            Self::Commit(commit) => {
                Files::new([("--srs", &commit.srs), ("--polynomial", &commit.polynomial)], [])
                    .and_streams("--out", commit.out.as_ref())
            }
            Self::Open(Open::Verify(open)) => {
                Files::new([("--srs", &open.srs)], []).and_reads_once("FILE", open.file.as_ref())
            }
            Self::Keygen(keygen) => Files::new([], [("--out", &keygen.out)])
                .and_reads("--srs", keygen.parameters.file.as_ref())
                .and_streams("--vk", keygen.vk.as_ref()),
            Self::Prove(prove) => Files::to_stream([], ("--out", &prove.out))
                .and_reads("--srs", prove.statement.parameters.file.as_ref())
                .and_reads("--key", prove.key.as_ref())
                .and_reads("--witness", prove.witness.as_ref())
                .and_streams("--public", prove.public.as_ref())
                .and_reads_once("--checkpoint-key", prove.kept.checkpoint_key.as_ref())
                .and_streams("--report", prove.report.as_ref())
                .and_streams("--samples", prove.samples.as_ref())
                .and_streams("--svg", prove.svg.as_ref()),
            Self::Verify(verify) => Files::default()
                .and_reads_once("PROOF", Some(&verify.proof))
                .and_reads("--srs", verify.statement.parameters.file.as_ref())
                .and_reads_once("--vk", verify.vk.as_ref())
                .and_reads("--key", verify.key.as_ref())
                .and_reads_once("--public", verify.public.as_ref())
                .and_reads("--witness", verify.witness.as_ref()),
            Self::Demo(demo) => Files::default().and_streams("--svg", demo.svg.as_ref()),
            // `new` makes a folder, which may not be there.
            Self::Plan(plan) => Files::default().and_reads("--key", plan.key.as_ref()),
            // Keys may be folders; the server looks at them itself.
            Self::Serve(serve) => serve
                .srs
                .iter()
                .fold(Files::default(), |files, srs| files.and_reads("--srs", Some(srs)))
                .and_reads_once("--token-file", serve.token_file.as_ref()),
            Self::New(_) | Self::Completions(_) | Self::Man | Self::Options => Files::default(),
        }
    }
}

impl Srs {
    fn files(&self) -> Files<'_> {
        match self {
            Self::Gen { out, .. } => Files::new([], [("--out", out)]),
            Self::Export { file, out, .. } => Files::to_stream([("FILE", file)], ("--out", out)),
            // Parameters of zcash's are read from the first byte to the last.
            Self::Import { file, out, .. } => {
                Files::new([], [("--out", out)]).and_reads_once("FILE", Some(file))
            }
            Self::Lagrange { file, out, .. } => Files::new([("FILE", file)], [("--out", out)]),
            Self::Verify { file } | Self::Inspect { file } => Files::new([("FILE", file)], []),
        }
    }
}

impl Ptau {
    fn files(&self) -> Files<'_> {
        match self {
            Self::Prepare { file, out } | Self::Truncate { file, out, .. } => {
                Files::new([("FILE", file)], [("OUT", out)])
            }
            Self::Import { file, out, .. } => Files::new([("FILE", file)], [("--out", out)]),
            Self::Verify { file, .. } => Files::new([("FILE", file)], []),
        }
    }
}

impl Groth16 {
    fn files(&self) -> Files<'_> {
        match self {
            Self::Prove {
                key,
                witness,
                proof,
                public,
                kept,
                gpu: _,
                report,
                on,
                link,
            } => match witness.is_dir() {
                // The command looks at folders.
                true => Files::new([("KEY", key)], []),
                false => Files::to_stream([("KEY", key), ("WITNESS", witness)], ("PROOF", proof))
                    .and_streams("PUBLIC", Some(public)),
            }
            .and_streams("--report", report.as_ref())
            .and_reads_once("--checkpoint-key", kept.checkpoint_key.as_ref())
            .and_reads_once("--link", link.as_ref().and_then(LinkOf::file))
            .and_messages(&on.messages),
            Self::Setup { circuit, powers, key } => {
                Files::new([("CIRCUIT", circuit), ("POWERS", powers)], [("KEY", key)])
            }
            Self::Contribute { key, out, .. } | Self::Beacon { key, out, .. } => {
                Files::new([("KEY", key)], [("OUT", out)])
            }
            Self::Vkey { key, out } => Files::to_stream([("KEY", key)], ("OUT", out)),
            Self::Import { key, out, on: _ } => Files::new([("KEY", key)], [("--out", out)]),
            Self::Example(example) => Files::new([], [("KEY", &example.key), ("WITNESS", &example.witness)])
                .and_writes("--r1cs", example.r1cs.as_ref())
                .and_writes("--ptau", example.ptau.as_ref()),
            Self::VerifyKey {
                circuit, powers, key, ..
            } => Files::new([("CIRCUIT", circuit), ("POWERS", powers), ("KEY", key)], []),
            Self::Inspect { file } => Files::new([("FILE", file)], []),
            Self::Plan { key, on, .. } => Files::new([("KEY", key)], [])
                .and_reads_once("--link", on.link.file())
                .and_streams("--svg", on.svg.as_ref()),
            Self::Verify { .. } => Files::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn one_stream_may_be_standard_output() {
        let standard = PathBuf::from("-");
        let stream = || Files::to_stream([], ("--out", &standard));
        assert!(stream().take_stdout().unwrap());
        assert!(stream().check().is_ok());
        assert!(
            !Files::to_stream([], ("--out", &PathBuf::from("./-")))
                .take_stdout()
                .unwrap()
        );
        assert!(
            stream()
                .and_streams("--svg", Some(&standard))
                .take_stdout()
                .is_err()
        );
        let container = Files::new([], [("--out", &*standard)]).take_stdout();
        let refused = container.unwrap_err().to_string();
        assert!(
            refused.contains("--out is -") && refused.contains("no stream"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_read_is_not_written_and_nothing_is_written_twice() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (file, link, hard, new) = (at("file"), at("link"), at("hard"), at("new"));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        fs::hard_link(&file, &hard).unwrap();
        let refused = |reads: &[&PathBuf], writes: &[&PathBuf]| {
            let files = Files {
                reads: reads.iter().map(|path| ("IN", path.as_path())).collect(),
                writes: writes.iter().map(|path| ("OUT", path.as_path())).collect(),
                ..Files::default()
            };
            files.check().is_err()
        };
        for same in [&file, &link, &hard] {
            assert!(refused(&[&file], &[same]), "{same:?}");
            assert!(refused(&[], &[same, &file]), "{same:?}");
        }
        assert!(refused(&[], &[&new, &dir.path().join("./new")]));
        assert!(!refused(&[&file], &[&new]));
        assert!(!refused(&[&file, &file], &[&new, &at("newer")]));
        let null = PathBuf::from("/dev/null");
        assert!(!refused(&[], &[&null, &null]));
        let device = has_any_order("--srs", &null).unwrap_err().to_string();
        assert!(
            device.contains("--srs is a device") && device.contains("save them to a file"),
            "{device}"
        );
        let once = Files::default().and_reads_once("PROOF", Some(&null));
        assert!(once.check().is_ok());
        assert!(refused(&[], &[&at("nowhere/new")]));
        fs::set_permissions(&hard, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(refused(&[], &[&file]));
    }
}
