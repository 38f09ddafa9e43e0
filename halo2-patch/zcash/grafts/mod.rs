//! The grafts, a file for each part of upstream that they change. `cargo xtask tidy` sees to it that none
//! holds a line of upstream's.

use std::error::Error;
use std::path::Path;

use spillproof_graft::Tree;

mod params;
mod plonk;
mod tests;
mod verifier;

/// All of them.
pub fn all(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    params::graft(tree);
    verifier::graft(tree);
    tests::graft(tree);
    plonk::graft(tree)
}

/// Hangs a file of ours under `src/grafted` into a file of upstream's as a child `module`, which sees its
/// private items.
fn append_module(tree: &mut Tree, file: &str, module: &str, ours: &str) -> Result<(), Box<dyn Error>> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let path = Path::new(&here).join("src/grafted").join(ours);
    // A checkout that is moved together with its build folder has no file at this path: the module is hung in
    // anew.
    println!("cargo::rerun-if-changed={}", path.display());
    tree.append(file, &format!("#[path = {:?}]\n{module};", path));
    Ok(())
}
