//! `cargo xtask fixtures DIR`: keys of public ceremonies and snarkjs, from npm's registry, with the versions
//! and digests of `demos/circom/published/package-lock.json`. Outside programs: nothing of them is built or
//! linked.

use std::io;
use std::path::Path;
use std::process::Command;

/// Fetches into `dir`; `false` where npm is missing or its registry is out of reach.
pub fn fetch(root: &Path, dir: &Path) -> io::Result<bool> {
    if !Command::new("npm")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("SKIPPED: npm is not installed, so no published keys are fetched");
        return Ok(false);
    }
    std::fs::create_dir_all(dir)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(root.join("demos/circom/published").join(name), dir.join(name))?;
    }
    let status = Command::new("npm")
        .args([
            "ci",
            "--legacy-peer-deps",
            "--ignore-scripts",
            "--omit=dev",
            "--omit=peer",
            "--omit=optional",
            "--no-audit",
            "--no-fund",
        ])
        .current_dir(dir)
        .status()?;
    if !status.success() {
        println!("SKIPPED: npm cannot fetch the published keys here");
    }
    Ok(status.success())
}
