//! Finds NVRTC: where the dynamic loader looks; then in the folder that [`FOLDER_VARIABLE`] names; then in
//! the folders of CUDA's installers and of Python's packages, also beside the `nvcc` and the `python3` of
//! `PATH`.
//!
//! `cudarc` opens the library by its bare name, and NVRTC opens its second library in the same way. A loaded
//! library answers to its name wherever it was loaded from. So this module loads both by their full paths and
//! never unloads them.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cudarc::nvrtc::sys;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::driver;

/// The environment variable that names a folder with NVRTC, or a folder that an installer wrote to.
pub const FOLDER_VARIABLE: &str = "SPILLPROOF_NVRTC_DIR";

/// The folders of the libraries below such a folder.
const BELOW: [&str; 5] = ["", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];
/// Major versions that `cudarc` looks for, newest first.
const MAJORS: [i32; 2] = [13, 12];

/// Loads the library, from one of these folders if the loader does not find it. Whether it is loaded.
pub(super) fn load(roots: impl Iterator<Item = PathBuf>) -> bool {
    if is_loadable() {
        return true;
    }
    // The driver refuses the code of a compiler with a later major version.
    let newest = driver::cuda_version().map_or(i32::MAX, |version| version / 1000);
    for folder in roots.flat_map(|root| BELOW.map(|below| root.join(below))) {
        for major in MAJORS.into_iter().filter(|&major| major <= newest) {
            let file = folder.join(format!("libnvrtc.so.{major}"));
            if file.is_file() && keep(&folder, &file, major) && is_loadable() {
                tracing::debug!(file = %file.display(), "NVRTC");
                return true;
            }
        }
    }
    false
}

/// The folders to search by default.
pub(super) fn usual_roots() -> impl Iterator<Item = PathBuf> {
    let set = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside = |program: &str| {
        let folders = std::env::split_paths(&path).filter(|folder| folder.join(program).exists());
        folders
            .filter_map(|folder| folder.parent().map(Path::to_path_buf))
            .collect::<Vec<_>>()
    };
    let cuda = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(set);
    let cuda = cuda.chain(beside("nvcc"));
    let cuda = cuda.chain(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    let pythons = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(set);
    let packages = pythons
        .chain(beside("python3"))
        .flat_map(|python| packages(&python));
    let roots: Vec<_> = set(FOLDER_VARIABLE)
        .into_iter()
        .chain(cuda)
        .chain(packages)
        .collect();
    roots.into_iter()
}

/// The package folders of a Python, and its own folder, where some distributions keep libraries.
fn packages(python: &Path) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(python.join("lib")).into_iter().flatten();
    let versions = versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| starts_with(path, "python3"));
    let packages = versions.flat_map(|version| ["site-packages", "dist-packages"].map(|of| version.join(of)));
    packages.chain([python.to_path_buf()]).collect()
}

fn starts_with(path: &Path, start: &str) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(start))
}

fn is_loadable() -> bool {
    // SAFETY: loads `libnvrtc.so` and drops it again; its initialisers are those of the installed one.
    // `cudarc` would panic without it.
    unsafe { sys::is_culib_present() }
}

/// Loads the library and its second library, and keeps both.
fn keep(folder: &Path, file: &Path, major: i32) -> bool {
    let second = format!("libnvrtc-builtins.so.{major}");
    let beside = std::fs::read_dir(folder).into_iter().flatten();
    let beside = beside
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| starts_with(path, &second));
    let loaded = |file: &Path| {
        // SAFETY: NVIDIA's library, from where it is installed; its initialisers are its own.
        match unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                // Never unloaded: compiled programs of it may exist anywhere in the process.
                std::mem::forget(library);
                true
            }
            Err(error) => {
                tracing::debug!(file = %file.display(), %error, "not NVRTC");
                false
            }
        }
    };
    beside.for_each(|file| {
        loaded(&file);
    });
    loaded(file)
}
