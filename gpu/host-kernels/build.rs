//! Compiles `gpu/shim/host.cpp`, and with it every kernel, to a shared library. Without a C++ compiler the
//! package still builds, and its function says what is missing: only tests need the library.

use std::error::Error;
use std::io::ErrorKind;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let gpu = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("..");
    let (kernels, shim) = (gpu.join("kernels"), gpu.join("shim"));
    for folder in [&kernels, &shim] {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let library = PathBuf::from(std::env::var("OUT_DIR")?).join("libspillproof_host_kernels.so");
    let compiler = match cc::Build::new()
        .cpp(true)
        .opt_level(2)
        .pic(true)
        .try_get_compiler()
    {
        Ok(compiler) => compiler,
        Err(error) => return missing(&error.to_string()),
    };
    let mut command = compiler.to_command();
    command
        .args([
            "-std=c++20",
            "-shared",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unknown-pragmas",
            // Fibers jump between stacks, which its checks take for a mistake.
            "-U_FORTIFY_SOURCE",
        ])
        .arg("-I")
        .arg(&shim)
        .arg("-I")
        .arg(&kernels)
        .arg(shim.join("host.cpp"))
        .arg(shim.join("interpret.cpp"))
        .arg(shim.join("shim.cpp"))
        .arg("-o")
        .arg(&library);
    match command.status() {
        Ok(status) if status.success() => {
            println!("cargo::rustc-env=SPILLPROOF_HOST_KERNELS={}", library.display());
            Ok(())
        }
        Ok(status) => {
            Err(format!("the kernels do not compile for the host: {command:?} gave {status}").into())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => missing(&format!("{command:?}: {error}")),
        Err(error) => Err(format!("{command:?}: {error}").into()),
    }
}

fn missing(reason: &str) -> Result<(), Box<dyn Error>> {
    let line = reason.replace('\n', " ");
    println!("cargo::rustc-env=SPILLPROOF_HOST_KERNELS_MISSING={line}");
    Ok(())
}
