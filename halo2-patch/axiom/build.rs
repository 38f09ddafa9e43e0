//! Writes upstream's source with our grafts into `OUT_DIR`; `src/lib.rs` includes it. Nothing of upstream is
//! kept here: only the digests of its files (`upstream.sha256`) and, under `grafts`, of the items that are
//! changed.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use spillproof_graft::Upstream;

mod grafts;

const UPSTREAM: Upstream<'_> = Upstream {
    name: "halo2-axiom",
    version: "0.5.3",
    archive_digest: "18316396f9bc7dcd6ac1602443ea4f83f2c93fa5abe448a28db3abceb9c7aab3",
    files: include_str!("upstream.sha256"),
    source_variable: "SPILLPROOF_HALO2_AXIOM_SRC",
};

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=grafts");
    match run() {
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

fn run() -> Result<(), Box<dyn Error>> {
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: this is for cargo to run")?);
    let mut tree = UPSTREAM.open(&out)?;
    // Restated in src/lib.rs.
    tree.strip_inner_attributes("src/lib.rs", "874aa4f714130b16");
    grafts::all(&mut tree)?;
    tree.blessed()
        .iter()
        .for_each(|line| println!("cargo::warning=bless {line}"));
    tree.write(&out.join("upstream"))?;
    Ok(())
}
