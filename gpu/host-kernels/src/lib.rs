//! The kernels of `gpu/kernels`, compiled for the host.
//!
//! For each kernel `spk_x` the library exports `void host_spk_x(unsigned gx, gy, gz, bx, by, bz, size_t
//! shared_bytes, void **args)`, which runs the grid to its end on the calling thread; `args` is as in
//! `cuLaunchKernel`. `const char *host_spk_names(void)` gives the kernels' names, one a line.
#![warn(missing_docs)]

use std::path::PathBuf;

/// Why there is no library.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLibrary {
    /// No C++ compiler was found when this package was built.
    #[error(
        "the kernels are not compiled for the host: no C++ compiler ({0}); install one (g++ or clang++) and touch gpu/kernels"
    )]
    NoCompiler(String),
    /// It was built and is gone.
    #[error("{0} has been removed since it was built; run cargo clean -p spillproof-gpu-host")]
    Removed(PathBuf),
}

/// Where the library is.
///
/// # Errors
/// [`NoLibrary`], when it could not be built, or is no longer there.
pub fn library() -> Result<PathBuf, NoLibrary> {
    let Some(path) = option_env!("SPILLPROOF_HOST_KERNELS").map(PathBuf::from) else {
        let reason =
            option_env!("SPILLPROOF_HOST_KERNELS_MISSING").unwrap_or("the build script gave no reason");
        return Err(NoLibrary::NoCompiler(reason.to_owned()));
    };
    if path.exists() {
        Ok(path)
    } else {
        Err(NoLibrary::Removed(path))
    }
}
