//! `cargo xtask dist DIR`: a release as an archive: the binary, the C libraries and their headers, documents,
//! licences; and its SHA-256.
//!
//! Built for the host, or for the target that `SPILLPROOF_DIST_TARGET` names. The file `NEEDS` in the archive
//! says which shared libraries the binary takes, and from which release of glibc on it works: that of the
//! machine that built it. All of them must be in `SHARED`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Names of the shared libraries that each system with glibc has.
const SHARED: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
const PACKAGES: &[&str] = &["spillproof-cli", "spillproof-c", "spillproof-circom"];
const LIBRARIES: &[&str] = &["spillproof_c", "spillproof_circom"];
const HEADERS: &[&str] = &[
    "demos/c/include/spillproof.h",
    "demos/circom/include/spillproof_groth16.h",
];
const TEXTS: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Builds and packs. Gives the archive.
pub fn run(root: &Path, dir: &Path) -> Result<PathBuf, String> {
    let metadata = crate::tidy::metadata_with_dependencies(root)?;
    let version =
        version(&metadata, "spillproof-cli").ok_or("cargo metadata knows no package spillproof-cli")?;
    let target = target();
    let products = build(root, &metadata, target.as_deref(), PACKAGES)?;
    let machine = match &target {
        Some(target) => target.clone(),
        None => format!("{}-linux", std::env::consts::ARCH),
    };
    let name = format!("spillproof-{version}-{machine}");
    let folder = dir.join(&name);
    if folder.exists() {
        return Err(format!("{} is there already: remove it first", folder.display()));
    }
    copy(&products.join("spillproof"), &folder.join("bin/spillproof"))?;
    for library in LIBRARIES {
        for file in [format!("lib{library}.so"), format!("lib{library}.a")] {
            let product = products.join(&file);
            // There are no shared libraries of static targets, and rapidsnark's functions are a shared
            // library only.
            if product.exists() {
                copy(&product, &folder.join("lib").join(file))?;
            }
        }
    }
    for file in HEADERS {
        copy(&root.join(file), &folder.join("include").join(name_of(file)))?;
    }
    for file in TEXTS {
        copy(&root.join(file), &folder.join(file))?;
    }
    let list = licences(&metadata, &folder.join("licences"))?;
    write(&folder.join("licences/LIST"), &list)?;
    let needs = needs(&folder.join("bin/spillproof"))?;
    write(&folder.join("NEEDS"), &needs)?;
    print!("{needs}");
    pack(dir, &name)
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The target that the environment names; the host without it.
pub fn target() -> Option<String> {
    std::env::var("SPILLPROOF_DIST_TARGET").ok()
}

/// A package's version.
pub fn version(metadata: &Value, name: &str) -> Option<String> {
    let mut packages = metadata["packages"].as_array()?.iter();
    let package = packages.find(|package| package["name"] == name)?;
    package["version"].as_str().map(str::to_owned)
}

/// Builds packages for release. Gives the folder of what was made.
pub fn build(
    root: &Path,
    metadata: &Value,
    target: Option<&str>,
    packages: &[&str],
) -> Result<PathBuf, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--locked"]).current_dir(root);
    for package in packages {
        command.args(["--package", package]);
    }
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    run_command(&mut command)?;
    let products = metadata["target_directory"].as_str().unwrap_or("target");
    Ok(Path::new(products)
        .join(target.unwrap_or_default())
        .join("release"))
}

/// What of the system the binary takes, in words; an error if that is more than [`SHARED`].
pub fn needs(binary: &Path) -> Result<String, String> {
    let text = run_command(
        Command::new("readelf")
            .args(["--dynamic", "--version-info"])
            .arg(binary),
    )?;
    describe(&text).map_err(|problem| format!("{}: {problem}", binary.display()))
}

/// What readelf says, in words.
fn describe(text: &str) -> Result<String, String> {
    let libraries: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| Some(line.split_once('[')?.1.trim_end_matches(']')))
        .collect();
    if let Some(other) = libraries.iter().find(|library| !SHARED.contains(library)) {
        return Err(format!(
            "takes {other}, which not every system has: link it statically"
        ));
    }
    let parts = text.split("GLIBC_").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()
            .unwrap_or("")
    });
    let numbers = parts.map(|release| {
        let numbers = release.split('.').filter_map(|part| part.parse().ok());
        numbers.collect::<Vec<u32>>()
    });
    Ok(match numbers.max() {
        Some(release) if !libraries.is_empty() => {
            let release: Vec<_> = release.iter().map(u32::to_string).collect();
            let libraries: Vec<_> = libraries.into_iter().collect();
            format!(
                "Linux with glibc {} or later ({})\n",
                release.join("."),
                libraries.join(", ")
            )
        }
        _ => "Linux; no shared libraries\n".to_owned(),
    })
}

/// The texts of the licences of all that is built in, and a list with the licence that each package names.
pub fn licences(metadata: &Value, folder: &Path) -> Result<String, String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut list = String::new();
    for package in packages.filter(|package| !package["source"].is_null()) {
        let [name, version, manifest] =
            ["name", "version", "manifest_path"].map(|key| package[key].as_str().unwrap_or_default());
        let licence = package["license"].as_str().unwrap_or("see its text");
        list += &format!("{name} {version}: {licence}\n");
        let source = Path::new(manifest).parent().unwrap_or(Path::new(""));
        let files = fs::read_dir(source).map_err(|error| format!("{}: {error}", source.display()))?;
        for file in files.flatten() {
            let file_name = file.file_name().to_string_lossy().into_owned();
            let upper = file_name.to_uppercase();
            let is_text = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"]
                .iter()
                .any(|start| upper.starts_with(start));
            if is_text && file.path().is_file() {
                let target = folder.join(format!("{name}-{version}")).join(file_name);
                copy(&file.path(), &target)?;
            }
        }
    }
    Ok(list)
}

/// The folder as `NAME.tar.gz`, the same bytes for the same files, and its digest beside it.
fn pack(dir: &Path, name: &str) -> Result<PathBuf, String> {
    let archive = format!("{name}.tar.gz");
    let date = std::env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| "0".to_owned());
    let mut tar = Command::new("tar");
    tar.current_dir(dir)
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{date}"))
        .args(["--use-compress-program", "gzip -n", "-cf", &archive, name]);
    run_command(&mut tar)?;
    let digest = run_command(Command::new("sha256sum").arg(&archive).current_dir(dir))?;
    write(&dir.join(format!("{archive}.sha256")), &digest)?;
    Ok(dir.join(archive))
}

/// Copies a file, and makes the folder that it goes to.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{} to {}: {error}", from.display(), to.display())),
    }
}

/// Writes a file.
pub fn write(to: &Path, text: &str) -> Result<(), String> {
    fs::write(to, text).map_err(|error| format!("{}: {error}", to.display()))
}

/// Its standard output.
fn run_command(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name}: {}", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_binary_takes_is_said() {
        let needed = |library: &str| format!(" 0x0000000000000001 (NEEDED)  Shared library: [{library}]\n");
        let versions =
            "  0x0010:   Name: GLIBC_2.9  Flags: none\n  0x0020:   Name: GLIBC_2.34  Flags: none\n";
        assert_eq!(
            describe(&(needed("libc.so.6") + versions)).unwrap(),
            "Linux with glibc 2.34 or later (libc.so.6)\n"
        );
        assert_eq!(
            describe("no dynamic section").unwrap(),
            "Linux; no shared libraries\n"
        );
        assert!(
            describe(&needed("libssl.so.3"))
                .unwrap_err()
                .contains("libssl.so.3")
        );
    }
}
