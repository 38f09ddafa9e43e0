//! Where NVRTC is: where the loader looks, as everywhere; then in the folder that [`FOLDER_VARIABLE`] names; then where CUDA's installers
//! and Python's packages put it, beside the `nvcc` and the `python3` of `PATH` too.
//!
//! `cudarc` asks for the library by its bare name, and NVRTC so for a second one of its own. A library that is loaded already, from
//! wherever, answers to that name: so those that are found here are loaded by their whole path, and stay.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cudarc::nvrtc::sys;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::driver;

/// Names a folder with NVRTC in it, or with one of the folders in it that installers make.
pub const FOLDER_VARIABLE: &str = "SPILLPROOF_NVRTC_DIR";

/// Where installers put libraries, below what they were told.
const BELOW: [&str; 5] = ["", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];
/// Major versions that `cudarc` asks for, newest first.
const MAJORS: [i32; 2] = [13, 12];

/// Makes the library answer to its name, from one of these folders if the loader finds none by itself; whether it does.
pub(super) fn load(roots: impl Iterator<Item = PathBuf>) -> bool {
    if is_loadable() {
        return true;
    }
    // The driver refuses code of a later major version than its own.
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

/// Where to look, if nobody says.
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

/// What holds a Python's packages; itself too, for those that keep libraries apart.
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
    // SAFETY: loads `libnvrtc.so` and drops it again; its initialisers are those of the installed one. `cudarc` would panic
    // without it.
    unsafe { sys::is_culib_present() }
}

/// Loads the library and those that it will ask for, for good.
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
                // Never unloaded: programs of it may be anywhere.
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
