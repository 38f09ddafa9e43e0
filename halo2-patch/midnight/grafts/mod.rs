//! The grafts on both releases, a file for each part of upstream that they change. `cargo xtask tidy` sees to
//! it that none holds a line of upstream's.
//!
//! The engine is built for Linux. For other systems, where a program may be built and has no session, one
//! graft is made: upstream's functions refuse variables that ask for one.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use spillproof_graft::{Operation, Tree, Upstream};

mod elsewhere;
mod examples;
mod params;
mod plonk;
mod reproducible;
mod scheme;

/// Names a `.crate` file or directory to build from. Of either release: a folder of vendored sources has both.
pub const SOURCE_VARIABLE: &str = "SPILLPROOF_MIDNIGHT_PROOFS_SRC";

/// A release of upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)] // A build script knows its own release only.
pub enum Release {
    /// 0.7.3.
    V07,
    /// 0.8.3.
    V08,
}

/// The digest of an item in each release.
#[derive(Clone, Copy, Debug)]
pub struct Pins {
    pub v07: &'static str,
    pub v08: &'static str,
}

impl Pins {
    /// Of an item that the releases have alike.
    pub const fn both(digest: &'static str) -> Self {
        Self {
            v07: digest,
            v08: digest,
        }
    }
}

/// The source of one release, and what is done to it.
pub struct Source {
    pub tree: Tree,
    pub release: Release,
}

impl Source {
    pub fn graft(&mut self, file: &str, item: &str, pins: Pins, operation: Operation<'_>) {
        let pinned = match self.release {
            Release::V07 => pins.v07,
            Release::V08 => pins.v08,
        };
        self.tree.graft(file, item, pinned, operation);
    }

    /// Hangs a file of ours under `src/grafted` into a file of upstream's as a child `module`, which sees its
    /// private items.
    pub fn append_module(&mut self, file: &str, module: &str, ours: &str) {
        let path = here("src/grafted").join(ours);
        // A checkout that is moved together with its build folder has no file at this path: the module is
        // hung in anew.
        println!("cargo::rerun-if-changed={}", path.display());
        self.tree.append(file, &format!("#[path = {path:?}]\n{module};"));
    }
}

/// The build script of a drop-in.
pub fn build(upstream: &Upstream<'_>, release: Release) -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", here("grafts").display());
    match run(upstream, release) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `cargo::error` shows one line each, without the build script's whole output.
            error
                .to_string()
                .lines()
                .for_each(|line| println!("cargo::error={line}"));
            ExitCode::FAILURE
        }
    }
}

fn run(upstream: &Upstream<'_>, release: Release) -> Result<(), Box<dyn Error>> {
    if std::env::var_os("CARGO_FEATURE_BENCH_INTERNAL").is_some() {
        return Err("the feature `bench-internal` is for upstream's own benches, which time its private functions one by one: \
                    the drop-in has none; build them over midnight-proofs of the registry"
            .into());
    }
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: this is for cargo to run")?);
    let tree = upstream.open(&out)?;
    let mut source = Source { tree, release };
    // Restated in src/lib.rs.
    source
        .tree
        .strip_inner_attributes("src/lib.rs", "d7be2b216aedd662");
    // Restated in tests/upstream_plonk_api.rs.
    source
        .tree
        .strip_inner_attributes("tests/plonk_api.rs", "47490f0a3bb49091");
    examples::graft(&mut source);
    reproducible::graft(&mut source);
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        scheme::graft(&mut source);
        params::graft(&mut source);
        plonk::graft(&mut source);
    } else {
        elsewhere::graft(&mut source);
    }
    let tree = source.tree;
    tree.blessed()
        .iter()
        .for_each(|line| println!("cargo::warning=bless {line}"));
    tree.write(&out.join("upstream"))?;
    Ok(())
}

/// A folder of this package, whichever of the two is built.
fn here(folder: &str) -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    Path::new(&manifest).join("../midnight").join(folder)
}
