//! `cargo xtask dist DIR node`: the Node.js package as folders under `DIR/npm`: the main one, and the one with the
//! native half for the platform of this build. The half for another platform is built there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dist;

const PACKAGE: &str = "spillproof-node";
const LIBRARY: &str = "libspillproof_node.so";
/// What is copied of `demos/node`.
const FILES: &[&str] = &[
    "package.json",
    "index.js",
    "index.mjs",
    "index.d.ts",
    "index.d.mts",
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Builds, and lays out the folders. Gives that of the main package.
pub fn run(root: &Path, dir: &Path) -> Result<PathBuf, String> {
    let metadata = crate::tidy::metadata_with_dependencies(root)?;
    let version =
        dist::version(&metadata, PACKAGE).ok_or("cargo metadata knows no package spillproof-node")?;
    let target = dist::target();
    let arch = match &target {
        Some(target) => target.split('-').next().unwrap_or_default(),
        None => std::env::consts::ARCH,
    };
    let (platform, cpu) = platform(arch)?;
    let source = root.join("demos/node");
    let main = read_package(&source.join("package.json"))?;
    check(&main, &version, &platform)?;
    let [main_folder, platform_folder] = ["spillproof", &platform].map(|name| dir.join("npm").join(name));
    for folder in [&main_folder, &platform_folder] {
        if folder.exists() {
            return Err(format!("{} is there already: remove it first", folder.display()));
        }
    }
    let products = dist::build(root, &metadata, target.as_deref(), &[PACKAGE])?;
    for file in FILES {
        dist::copy(&source.join(file), &main_folder.join(file))?;
    }
    let scripts = fs::read_dir(source.join("lib")).map_err(|error| format!("demos/node/lib: {error}"))?;
    for script in scripts.flatten() {
        dist::copy(&script.path(), &main_folder.join("lib").join(script.file_name()))?;
    }
    let library = platform_folder.join("spillproof.node");
    dist::copy(&products.join(LIBRARY), &library)?;
    let needs = dist::needs(&library)?;
    let text = serde_json::to_string_pretty(&package_of(&main, &platform, cpu));
    let text = text.map_err(|error| format!("package.json: {error}"))?;
    dist::write(&platform_folder.join("package.json"), &(text + "\n"))?;
    let readme = format!("# {platform}\n\nThe native half of the package `spillproof`. It needs {needs}");
    dist::write(&platform_folder.join("README.md"), &readme)?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        dist::copy(&source.join(file), &platform_folder.join(file))?;
    }
    let list = dist::licences(&metadata, &platform_folder.join("licences"))?;
    dist::write(&platform_folder.join("licences/LIST"), &list)?;
    Ok(main_folder)
}

/// The name of the package for a processor, and Node's name of that.
fn platform(arch: &str) -> Result<(String, &'static str), String> {
    let cpu = match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => {
            return Err(format!(
                "there is no Node.js package for {other}: x86_64 and aarch64 have one"
            ));
        }
    };
    Ok((format!("spillproof-linux-{cpu}-gnu"), cpu))
}

fn read_package(file: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// That the main package is of the workspace's version, and asks for this platform's of the same.
fn check(main: &Value, version: &str, platform: &str) -> Result<(), String> {
    for (what, found) in [
        ("version", &main["version"]),
        (platform, &main["optionalDependencies"][platform]),
    ] {
        if found != version {
            return Err(format!(
                "demos/node/package.json: {what} is {found}, and the workspace's version is {version}"
            ));
        }
    }
    Ok(())
}

/// The `package.json` of a platform's package.
fn package_of(main: &Value, platform: &str, cpu: &str) -> Value {
    json!({
        "name": platform,
        "version": main["version"],
        "description": "The native half of the package spillproof",
        "license": main["license"],
        "main": "spillproof.node",
        "files": ["spillproof.node", "licences"],
        "engines": main["engines"],
        "os": ["linux"],
        "cpu": [cpu],
        "libc": ["glibc"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_belong_together() {
        let main = read_package(&crate::root().join("demos/node/package.json")).unwrap();
        let version = main["version"].as_str().unwrap();
        for arch in ["x86_64", "aarch64"] {
            let (name, cpu) = platform(arch).unwrap();
            check(&main, version, &name).unwrap();
            assert_eq!(package_of(&main, &name, cpu)["version"], version);
            assert!(check(&main, "0.0.0", &name).unwrap_err().contains("0.0.0"));
        }
        assert!(platform("riscv64").unwrap_err().contains("riscv64"));
    }

    #[test]
    fn all_that_the_main_package_names_is_copied() {
        let main = read_package(&crate::root().join("demos/node/package.json")).unwrap();
        let named = main["files"].as_array().unwrap().iter().filter_map(Value::as_str);
        let missing: Vec<_> = named
            .filter(|file| *file != "lib" && !FILES.contains(file))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
