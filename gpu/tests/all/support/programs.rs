//! Programs on the devices of the fake driver: a compiler of generated text for the host.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use super::skipped;
use spillproof_fake_driver::host_module_image;
use spillproof_gpu::kernels::{Compiler, Text};
use spillproof_gpu::program::Limits;
use spillproof_gpu::{Error, Result};

/// Small kernels with few values in a thread: many cuts, many slots.
pub const SMALL: Limits = Limits {
    multiplications: 6,
    steps: 20,
    held: 4,
    steps_min: 1,
    kernels_max: 64,
};

/// Compiles texts with `$CXX`, or `c++`, and the shim; its images are modules of the fake driver.
pub struct Host {
    folder: tempfile::TempDir,
    compiled: Cell<u32>,
}

fn cxx() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".into())
}

impl Host {
    pub fn new() -> Self {
        // Unit tests do not have that folder.
        let folder = match option_env!("CARGO_TARGET_TMPDIR") {
            Some(folder) => tempfile::tempdir_in(folder).unwrap(),
            None => tempfile::tempdir().unwrap(),
        };
        Self {
            folder,
            compiled: Cell::new(0),
        }
    }

    /// Whether no compiler is found; prints `SKIPPED`.
    pub fn missing() -> bool {
        let found = Command::new(cxx()).arg("--version").output();
        if let Err(error) = &found {
            skipped(&format!(
                "generated programs are not compiled: {}: {error}",
                cxx()
            ));
        }
        found.is_err()
    }

    /// The number of compiled texts.
    pub fn compiled(&self) -> u32 {
        self.compiled.get()
    }
}

impl Compiler for Host {
    fn version(&self) -> Result<String> {
        Ok(cxx())
    }

    fn compile(&self, text: &Text, _: (i32, i32)) -> Result<Vec<u8>> {
        let number = self.compiled.get();
        self.compiled.set(number + 1);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        for (name, content) in &text.headers {
            std::fs::write(folder.join(name), content).unwrap();
        }
        let main = folder.join("main.cpp");
        std::fs::write(&main, &text.main).unwrap();
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        let library = folder.join("program.so");
        let output = Command::new(cxx())
            .args([
                "-std=c++20",
                "-O1",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .args(["-Wno-unknown-pragmas", "-U_FORTIFY_SOURCE", "-DSPK_HOST=1"])
            .arg("-I")
            .arg(&folder)
            .arg("-I")
            .arg(&shim)
            .arg(&main)
            .arg(shim.join("shim.cpp"))
            .arg("-o")
            .arg(&library)
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(Error::Compile {
                arch: "the host".into(),
                log: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        Ok(host_module_image(&library))
    }
}
