//! Asking cargo itself, through a throw-away manifest that depends on the wanted release: it downloads,
//! checks and unpacks, and `cargo metadata` says where.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What forbids the network, if anything does: the variable, or an option of the cargo that runs this build
/// script, which passes it on in no variable.
pub(crate) fn network_forbidden_by() -> Option<String> {
    let variable = env::var_os("CARGO_NET_OFFLINE");
    // Of the process that started this one. Where there is no `/proc`, the variable alone counts.
    let parent = fs::read(format!("/proc/{}/cmdline", std::os::unix::process::parent_id()));
    forbidden_by(variable.as_deref(), &parent.unwrap_or_default())
}

/// `command_line` has a zero byte behind each word.
fn forbidden_by(variable: Option<&OsStr>, command_line: &[u8]) -> Option<String> {
    if variable.is_some_and(|value| value == "true" || value == "1") {
        return Some("CARGO_NET_OFFLINE".to_owned());
    }
    // Words behind `--` are those of the program that cargo will run.
    let words = command_line.split(|byte| *byte == 0);
    let mut options = words.take_while(|word| *word != b"--");
    let option = options.find(|word| matches!(*word, b"--offline" | b"--frozen"))?;
    Some(format!("cargo's option {}", String::from_utf8_lossy(option)))
}

/// Directory of the unpacked source, or what was tried and what cargo answered.
pub(crate) fn source_directory(
    name: &str,
    version: &str,
    out_dir: &Path,
    offline: bool,
) -> Result<PathBuf, String> {
    let what = if offline {
        "cargo metadata --offline"
    } else {
        "cargo metadata, with the network"
    };
    let failed = |why: String| format!("{what}: {why}");
    let probe = out_dir.join("probe");
    write_probe(&probe, name, version).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(&probe)
        .args(["metadata", "--format-version", "1"]);
    if offline {
        command.arg("--offline");
    }
    if let Some(target) = env::var_os("TARGET") {
        // Packages of other platforms need not be there.
        command.arg("--filter-platform").arg(target);
    }
    for (variable, _) in env::vars_os().filter(|(variable, _)| of_the_outer_build(variable)) {
        command.env_remove(variable);
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().replace('\n', " "),
        ));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    manifest_path(&metadata, name, version)
        .and_then(|manifest| manifest.parent().map(Path::to_owned))
        .ok_or_else(|| failed(format!("{name} {version} is not in its answer")))
}

/// Variables that the outer cargo set for this build script, not for a cargo of our own.
fn of_the_outer_build(variable: &OsStr) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_FEATURE_", "CARGO_CFG_", "CARGO_PKG_", "CARGO_MANIFEST_"];
    const NAMES: [&str; 3] = ["CARGO_ENCODED_RUSTFLAGS", "CARGO_MAKEFLAGS", "CARGO_TARGET_DIR"];
    let variable = variable.to_string_lossy();
    PREFIXES.iter().any(|prefix| variable.starts_with(prefix)) || NAMES.contains(&variable.as_ref())
}

fn write_probe(probe: &Path, name: &str, version: &str) -> std::io::Result<()> {
    fs::create_dir_all(probe.join("src"))?;
    fs::write(probe.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n[dependencies]\n\
         {name} = {{ version = \"={version}\", default-features = false }}\n"
    );
    fs::write(probe.join("Cargo.toml"), manifest)
}

fn manifest_path(metadata: &serde_json::Value, name: &str, version: &str) -> Option<PathBuf> {
    let packages = metadata.get("packages")?.as_array()?;
    let wanted = packages
        .iter()
        .find(|package| package["name"] == name && package["version"] == version)?;
    wanted["manifest_path"]
        .as_str()
        .map(OsString::from)
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_the_one_of_the_wanted_version() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "version": "0.1.0", "manifest_path": "/x/a-0.1.0/Cargo.toml" },
            { "name": "a", "version": "0.2.0", "manifest_path": "/x/a-0.2.0/Cargo.toml" },
        ]});
        assert_eq!(
            manifest_path(&metadata, "a", "0.2.0"),
            Some("/x/a-0.2.0/Cargo.toml".into())
        );
        assert_eq!(manifest_path(&metadata, "a", "0.3.0"), None);
        assert_eq!(manifest_path(&serde_json::Value::Null, "a", "0.2.0"), None);
    }

    #[test]
    fn the_network_is_forbidden_by_the_variable_and_by_options() {
        let by = |variable: Option<&str>, line: &str| {
            forbidden_by(variable.map(OsStr::new), line.replace(' ', "\0").as_bytes())
        };
        assert_eq!(by(Some("true"), ""), Some("CARGO_NET_OFFLINE".into()));
        assert_eq!(by(Some("1"), ""), Some("CARGO_NET_OFFLINE".into()));
        assert_eq!(by(Some("false"), "cargo build"), None);
        assert_eq!(
            by(None, "/bin/cargo build --offline --release"),
            Some("cargo's option --offline".into())
        );
        assert_eq!(
            by(None, "cargo --frozen build"),
            Some("cargo's option --frozen".into())
        );
        assert_eq!(by(None, "cargo run -- --offline"), None);
        assert_eq!(by(None, ""), None);
    }

    #[test]
    fn variables_of_the_outer_build_are_told_apart() {
        assert!(of_the_outer_build(OsStr::new("CARGO_FEATURE_ASM")));
        assert!(of_the_outer_build(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!of_the_outer_build(OsStr::new("CARGO_HOME")));
        assert!(!of_the_outer_build(OsStr::new("CARGO_NET_OFFLINE")));
    }
}
