//! Brings circuits of Midnight's published crates in: examples of midnight-zk-stdlib, and a bench of
//! midnight-proofs. Their sources are found in cargo's cache, and are modules in `OUT_DIR`; each gets a child
//! of ours (`src/samples`), which makes an instance and a witness. Nothing of them is kept here.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A circuit of a published crate.
struct Published<'p> {
    /// Its file.
    source: &'p Path,
    /// The name of its module, and of ours in `src/samples`.
    name: &'p str,
    /// Where what is needed of the file ends: at the item that begins with this text.
    until: Option<&'p str>,
    /// What the file imports and this program lacks.
    without: &'p [&'p str],
}

fn main() -> Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let stdlib = package(&here, "midnight-zk-stdlib")?;
    // The drop-in has no benches: the crate that it stands for lies beside the library.
    let proofs = stdlib.with_file_name("midnight-proofs-0.8.3");
    if !proofs.is_dir() {
        let message = format!(
            "{} is not there: run `cargo fetch` in `unmodified` first",
            proofs.display()
        );
        return Err(message.into());
    }
    println!("cargo::rustc-env=ZK_STDLIB={}", stdlib.display());
    println!("cargo::rerun-if-changed=Cargo.lock");
    let jwt = stdlib.join("examples/identity/jwt");
    let utils = fs::read_to_string(jwt.join("utils.rs"))?;
    fs::write(out.join("utils.rs"), utils)?;
    let published = [
        Published {
            source: &stdlib.join("examples/sha_preimage.rs"),
            name: "sha",
            until: None,
            without: &[],
        },
        Published {
            source: &proofs.join("benches/zswap_output.rs"),
            name: "zswap",
            until: Some("fn sample_zswap_inputs"),
            without: &["use criterion::", "bench::prover::benchmark_create_proof,"],
        },
        Published {
            source: &jwt.join("full_credential.rs"),
            name: "credential",
            until: None,
            without: &[],
        },
    ];
    let mut modules = String::new();
    for circuit in published {
        let name = circuit.name;
        fs::write(out.join(format!("{name}.rs")), circuit.module()?)?;
        writeln!(
            modules,
            "#[path = {:?}]\npub mod {name};",
            out.join(format!("{name}.rs"))
        )?;
    }
    fs::write(out.join("circuits.rs"), modules)?;
    Ok(())
}

impl Published<'_> {
    /// The module's text: the published file's, and a child of ours.
    fn module(&self) -> Result<String> {
        let Self {
            source,
            name,
            until,
            without,
        } = self;
        println!("cargo::rerun-if-changed={}", source.display());
        let mut text =
            fs::read_to_string(source).map_err(|error| format!("{}: {error}", source.display()))?;
        if let Some(item) = until {
            let end = text
                .find(item)
                .ok_or_else(|| format!("{} has no `{item}`", source.display()))?;
            text.truncate(end);
        }
        let lines = text
            .lines()
            .filter(|line| !without.iter().any(|part| line.trim_start().starts_with(part)));
        let mut text: Vec<_> = lines.collect();
        let samples = fs::canonicalize(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(samples_of(name)?))?;
        println!("cargo::rerun-if-changed={}", samples.display());
        let child = format!("#[path = {samples:?}]\nmod samples;");
        text.push(&child);
        Ok(text.join("\n"))
    }
}

/// The file of a circuit's samples, from the folder of the package that is built.
fn samples_of(name: &str) -> Result<String> {
    let ours = format!("src/samples/{name}.rs");
    let above = format!("../{ours}");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    Ok(if here.join(&ours).is_file() { ours } else { above })
}

/// The folder of a package's source.
fn package(here: &Path, name: &str) -> Result<PathBuf> {
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--offline",
        "--manifest-path",
    ]);
    let output = cargo.arg(here.join("Cargo.toml")).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let found = packages.iter().find(|package| package["name"] == name);
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.ok_or_else(|| format!("cargo knows no package `{name}`"))?;
    Ok(Path::new(manifest)
        .parent()
        .ok_or("a manifest lies in a folder")?
        .to_path_buf())
}
