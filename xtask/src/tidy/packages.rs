//! Packages: which may use which, and the lints that each must have. What cargo says is taken, not what a
//! manifest looks like.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Finding;

/// In the order in which data flows: a package may use those before it when it ships (development
/// dependencies are free). What a package does use, its manifest says, and Cargo keeps.
const ORDER: &[&str] = &[
    "spillproof-format",
    "spillproof-kernels",
    "spillproof-ranks",
    "spillproof-mpi",
    "spillproof-engine",
    "spillproof-commit",
    "spillproof-plonk",
    "spillproof-groth16",
    "spillproof-arkworks",
    "spillproof",
    "spillproof-report",
    "spillproof-testing",
    "spillproof-benches",
    "spillproof-graft",
    "spillproof-gpu",
    "spillproof-gpu-host",
    "spillproof-fake-driver",
    "halo2-axiom",
    "halo2_proofs",
    "midnight-proofs",
    "spillproof-bindings",
    "spillproof-circom",
    "spillproof-c",
    "spillproof-python",
    "spillproof-node",
    "spillproof-circuits",
    "spillproof-cgroup-tests",
    "spillproof-server",
    "spillproof-cli",
    "spillproof-bench",
    "xtask",
];

/// Uses that the order would allow, and that are wrong all the same: proof systems know nothing of each
/// other, an accelerator knows no proof system, and what looks on from outside uses nothing.
const NEVER: &[(&str, &[&str])] = &[
    ("spillproof-groth16", &["spillproof-plonk"]),
    ("spillproof-report", &["spillproof-plonk", "spillproof-groth16"]),
    (
        "spillproof-gpu",
        &["spillproof-commit", "spillproof-plonk", "spillproof-groth16"],
    ),
    ("halo2_proofs", &["halo2-axiom"]),
    ("midnight-proofs", &["halo2-axiom", "halo2_proofs"]),
    (
        "spillproof-cgroup-tests",
        &["spillproof-engine", "spillproof", "spillproof-circuits"],
    ),
];

/// Packages with lints of their own: the drop-ins compile upstream source.
const UPSTREAM_LINTS: &[&str] = &["halo2-axiom", "halo2_proofs", "midnight-proofs"];

/// `cargo metadata` of the workspace's own packages; needs nothing but this tree.
pub fn metadata(root: &Path) -> Result<Value, String> {
    cargo_metadata(root, &["--no-deps"])
}

/// `cargo metadata` with every dependency of this platform, from what has been fetched.
pub fn metadata_with_dependencies(root: &Path) -> Result<Value, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = run(Command::new(rustc).arg("-vV"))?;
    let version = String::from_utf8_lossy(&version);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc names no host")?;
    cargo_metadata(root, &["--filter-platform", host])
}

fn cargo_metadata(root: &Path, arguments: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(arguments)
        .current_dir(root);
    serde_json::from_slice(&run(&mut command)?).map_err(|e| format!("cargo metadata: {e}"))
}

fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(output.stdout)
}

/// Packages that use what they must not, or that have no lints.
pub fn check(root: &Path, metadata: &Value) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for package in ours(metadata) {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let file = manifest.strip_prefix(root).unwrap_or(manifest);
        findings.extend(
            forbidden_uses(package)
                .into_iter()
                .map(|message| Finding::new(file, 0, message)),
        );
        if !UPSTREAM_LINTS.contains(&name) {
            let text =
                std::fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
            findings.extend(
                missing_lints(package, &text)
                    .into_iter()
                    .map(|message| Finding::new(file, 0, message)),
            );
        }
    }
    Ok(findings)
}

fn ours(metadata: &Value) -> impl Iterator<Item = &Value> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.filter(|package| package["source"].is_null())
}

fn forbidden_uses(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(place) = ORDER.iter().position(|known| *known == name) else {
        return vec![format!(
            "package `{name}` has no place in the direction of rooms: give it one in xtask/src/tidy/packages.rs"
        )];
    };
    let never = NEVER
        .iter()
        .find(|(user, _)| *user == name)
        .map_or(&[][..], |(_, used)| used);
    let may_use = |used: &str| ORDER[..place].contains(&used) && !never.contains(&used);
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        // A path is one of ours; the registry's crate of the same name is not.
        .filter(|dependency| !dependency["path"].is_null() && dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|used| !may_use(used))
        .map(|used| format!("`{name}` must not use `{used}`: rooms use those before them"))
        .collect()
}

/// `missing_docs` is asked of libraries only, in the manifest or at the head of the library.
fn missing_lints(package: &Value, manifest: &str) -> Vec<String> {
    let inherits = section(manifest, "[lints]").any(|line| line == "workspace = true");
    let own = |lint: &str| section(manifest, "[lints.rust]").any(|line| line.starts_with(lint));
    let mut missing = Vec::new();
    if !inherits && !own("unsafe_code") {
        missing.push("no `[lints] workspace = true`, and no `unsafe_code` lint of its own".to_owned());
    }
    let targets = package["targets"].as_array().into_iter().flatten();
    let library = targets.into_iter().find(|target| target["kind"][0] == "lib");
    if let Some(library) = library {
        let head = library["src_path"]
            .as_str()
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        if !own("missing_docs") && !head.contains("(missing_docs)]") {
            missing.push("a library must have the lint `missing_docs`".to_owned());
        }
    }
    missing
}

fn section<'a>(manifest: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().map(str::trim);
    lines
        .skip_while(move |line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_reverse_direction_is_found() {
        let package = json!({"name": "spillproof-format", "dependencies": [
            {"name": "spillproof", "path": "/x", "kind": null},
            {"name": "spillproof-graft", "path": "/x", "kind": "dev"},
            {"name": "halo2-axiom", "kind": null},
        ]});
        assert_eq!(
            forbidden_uses(&package),
            ["`spillproof-format` must not use `spillproof`: rooms use those before them"]
        );
    }

    #[test]
    fn proof_systems_know_nothing_of_each_other() {
        let package = json!({"name": "spillproof-groth16", "dependencies": [
            {"name": "spillproof-plonk", "path": "/x", "kind": null},
            {"name": "spillproof-commit", "path": "/x", "kind": null},
        ]});
        assert_eq!(
            forbidden_uses(&package),
            ["`spillproof-groth16` must not use `spillproof-plonk`: rooms use those before them"]
        );
    }

    #[test]
    fn build_dependencies_count() {
        let package = json!({"name": "spillproof-engine", "dependencies": [{"name": "spillproof", "path": "/x", "kind": "build"}]});
        assert_eq!(forbidden_uses(&package).len(), 1);
    }

    #[test]
    fn lints_are_asked_for() {
        let binary = json!({"targets": [{"kind": ["bin"]}]});
        let library = json!({"targets": [{"kind": ["lib"]}]});
        assert_eq!(missing_lints(&binary, "[lints]\nworkspace = true").len(), 0);
        assert_eq!(missing_lints(&binary, "[package]\nworkspace = true").len(), 1);
        assert_eq!(missing_lints(&library, "[lints]\nworkspace = true").len(), 1);
        let own = "[lints.rust]\nunsafe_code = \"deny\"\nmissing_docs = \"warn\"";
        assert_eq!(missing_lints(&library, own).len(), 0);
    }
}
