//! `cargo xtask package`: whether each package that is published can be packaged. It builds nothing and sends
//! nothing.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The packages that are published: those whose manifest does not say otherwise.
pub fn published(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["publish"].is_null())
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .collect()
}

/// The names of the packages that are published.
pub fn names(root: &Path) -> Result<Vec<String>, String> {
    Ok(published(&crate::tidy::metadata(root)?))
}

/// Packages them into the target folder. Gives their names.
pub fn run(root: &Path) -> Result<Vec<String>, String> {
    let names = names(root)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["package", "--no-verify", "--allow-dirty", "--locked"])
        .current_dir(root);
    for name in &names {
        command.args(["--package", name]);
    }
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(names),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packages_that_stay_here_are_left_out() {
        let metadata = json!({"packages": [{"name": "a", "publish": null}, {"name": "b", "publish": []}]});
        assert_eq!(published(&metadata), ["a"]);
    }
}
