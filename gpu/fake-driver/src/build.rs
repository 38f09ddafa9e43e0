//! Compiles the library once for each content: the name of the folder is a digest of sources, compiler and
//! flags, and the folder appears whole.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const DRIVER: &[(&str, &str)] = &[
    ("memory.cpp", include_str!("../cuda/memory.cpp")),
    ("schedule.cpp", include_str!("../cuda/schedule.cpp")),
    ("control.cpp", include_str!("../cuda/control.cpp")),
    ("device.cpp", include_str!("../cuda/device.cpp")),
    ("work.cpp", include_str!("../cuda/work.cpp")),
];
const HEADERS: &[(&str, &str)] = &[
    ("state.h", include_str!("../cuda/state.h")),
    ("schedule.h", include_str!("../cuda/schedule.h")),
    ("entry.h", include_str!("../cuda/entry.h")),
];
const TEST_KERNELS: (&str, &str) = ("test_kernels.cpp", include_str!("../cuda/test_kernels.cpp"));
const FLAGS: &[&str] = &[
    "-std=c++17",
    "-O1",
    "-Wall",
    "-Wextra",
    "-fPIC",
    "-shared",
    "-pthread",
];

/// The compiled library.
#[derive(Debug, Clone)]
pub struct Built {
    /// The folder for `LD_LIBRARY_PATH`. It holds `libcuda.so` and no other library.
    pub folder: PathBuf,
    /// The shared library of the two test kernels.
    pub test_kernels: PathBuf,
}

impl Built {
    /// A command whose loader finds the fake driver before any other.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut search = OsString::from(&self.folder);
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH") {
            search.push(":");
            search.push(before);
        }
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", search);
        command
    }
}

/// No C++ compiler was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCompiler(String);

impl fmt::Display for NoCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no C++ compiler to build the fake driver with ({})", self.0)
    }
}

impl std::error::Error for NoCompiler {}

/// Builds the fake driver, unless it is built already.
///
/// # Errors
/// [`NoCompiler`], if neither `$CXX` nor `g++` can be started.
///
/// # Panics
/// If the compiler rejects the library: a bug of this crate.
pub fn build() -> Result<Built, NoCompiler> {
    static BUILT: OnceLock<Result<Built, NoCompiler>> = OnceLock::new();
    BUILT.get_or_init(build_once).clone()
}

fn build_once() -> Result<Built, NoCompiler> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    let version = Command::new(&compiler)
        .arg("--version")
        .output()
        .map_err(|e| NoCompiler(format!("{compiler}: {e}")))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&version.stdout);
    for (name, text) in DRIVER.iter().chain(HEADERS).chain([&TEST_KERNELS]) {
        hasher.update(name.as_bytes()).update(text.as_bytes());
    }
    FLAGS.iter().for_each(|flag| {
        hasher.update(flag.as_bytes());
    });
    let digest = hasher.finalize().to_hex();
    let folder = super::build_folder().join(format!("fake-cuda-{}", &digest[..16]));
    if !folder.is_dir() {
        publish(&compiler, &folder).unwrap_or_else(|e| panic!("building {}: {e}", folder.display()));
    }
    Ok(Built {
        test_kernels: folder.join("kernels/libtest_kernels.so"),
        folder,
    })
}

/// Compiles into a folder of this process and renames it, since another process may build at the same time.
fn publish(compiler: &str, folder: &Path) -> io::Result<()> {
    let partial = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(partial.join("source"))?;
    std::fs::create_dir_all(partial.join("kernels"))?;
    for (name, text) in DRIVER.iter().chain(HEADERS).chain([&TEST_KERNELS]) {
        std::fs::write(partial.join("source").join(name), text)?;
    }
    let driver: Vec<&str> = DRIVER.iter().map(|(name, _)| *name).collect();
    compile(compiler, &partial, &driver, "../libcuda.so")?;
    compile(
        compiler,
        &partial,
        &[TEST_KERNELS.0],
        "../kernels/libtest_kernels.so",
    )?;
    match std::fs::rename(&partial, folder) {
        Err(_) if folder.is_dir() => std::fs::remove_dir_all(&partial),
        other => other,
    }
}

fn compile(compiler: &str, partial: &Path, sources: &[&str], output: &str) -> io::Result<()> {
    let done = Command::new(compiler)
        .current_dir(partial.join("source"))
        .args(FLAGS)
        .args(["-o", output])
        .args(sources)
        .arg("-ldl")
        .output()?;
    if done.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(
            String::from_utf8_lossy(&done.stderr).into_owned(),
        ))
    }
}
