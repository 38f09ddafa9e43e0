//! Where the kernels and the systems are compiled: in their own packages, once, and nowhere else.
//!
//! A generic function is compiled in each package that calls it, for each type. So a package offers functions
//! and methods over types that it knows, and its users call those. This counts what is left: bytes of code of
//! a package in the libraries of other ones, by the symbols that `nm` lists there. It builds nothing: the
//! libraries are those of the last `cargo build --release`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Packages whose code belongs in their own libraries.
const OWNERS: &[&str] = &[
    "spillproof_kernels",
    "spillproof_commit",
    "spillproof_plonk",
    "spillproof_groth16",
];

/// A loop over threads, into which the compiler puts what its caller does there: code of the caller.
const LOOPS: &str = "spillproof_kernels::parallel::";

/// Libraries, and the bytes of code of the owners, all together, that each may have: what the settings of a
/// release leave there of generic code around kernels, and a fiftieth more. The aim is zero. Lower a limit
/// when its row has fallen; raise one only with a changed setting of the release, or with a curve that a
/// system is new on, as KZG and PLONK were on BLS12-381.
const LIMITS: &[(&str, u64)] = &[
    ("spillproof_kernels", 0),
    ("spillproof_engine", 42_700),
    ("spillproof_commit", 229_900),
    ("spillproof_plonk", 220_200),
    ("spillproof_groth16", 100_200),
    ("spillproof_gpu", 5_400),
    ("spillproof_report", 0),
    ("halo2_axiom", 204_500),
    ("halo2_proofs", 0),
    ("midnight_proofs", 20_800),
    ("spillproof_bindings", 2_500),
    ("spillproof_circom", 2_300),
    ("spillproof_circuits", 49_900),
    ("spillproof_cli", 5_900),
];

/// A library, and the bytes of each owner's code that are in it.
struct Row {
    library: &'static str,
    bytes: Vec<u64>,
    limit_bytes: u64,
}

/// A table of all libraries in `target`, the folder of builds.
///
/// # Errors
/// Libraries past their limits, and no libraries.
pub fn check(target: &Path) -> Result<String, String> {
    if Command::new("nm").arg("--version").output().is_err() {
        return Ok("SKIPPED: `nm` (binutils) is not installed: where code is compiled is not checked".into());
    }
    let folder = target.join("release/deps");
    let mut rows = Vec::new();
    for &(library, limit_bytes) in LIMITS {
        if let Some(symbols) = newest_with_code_of_ours(&folder, library)? {
            rows.push(Row {
                library,
                bytes: bytes_of_owners(&symbols, library),
                limit_bytes,
            });
        }
    }
    if rows.is_empty() {
        let folder = folder.display();
        return Err(format!(
            "no libraries in {folder}: run `cargo build --release` before"
        ));
    }
    let past: Vec<_> = rows
        .iter()
        .filter(|row| row.total_bytes() > row.limit_bytes)
        .map(|row| row.library)
        .collect();
    match past.is_empty() {
        true => Ok(table(&rows)),
        false => Err(format!(
            "{}\n{}: code of other packages is compiled there; call what those have compiled, or compile it there (compiled.rs)",
            table(&rows),
            past.join(", ")
        )),
    }
}

impl Row {
    fn total_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:22}", "KiB of code in");
    for owner in OWNERS {
        let _ = write!(text, "{:>10}", owner.trim_start_matches("spillproof_"));
    }
    let _ = write!(text, "{:>10}{:>10}", "together", "at most");
    let kib = |bytes: u64| format!("{:.1}", bytes as f64 / 1024.0);
    for row in rows {
        let _ = write!(text, "\n{:22}", row.library);
        for (owner, &bytes) in OWNERS.iter().zip(&row.bytes) {
            let cell = if *owner == row.library {
                "-".into()
            } else {
                kib(bytes)
            };
            let _ = write!(text, "{cell:>10}");
        }
        let _ = write!(text, "{:>10}{:>10}", kib(row.total_bytes()), kib(row.limit_bytes));
    }
    text
}

/// What `nm` says of the newest build of a library. A drop-in has the name of the crate that it replaces,
/// which has no code of ours: of two that were built, that one is passed over.
fn newest_with_code_of_ours(folder: &Path, library: &str) -> Result<Option<String>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(None);
    };
    let mut builds: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if is_build_of(&path, library) {
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            builds.push((modified.map_err(failed)?, path));
        }
    }
    builds.sort();
    for (_, path) in builds.iter().rev() {
        let mut nm = Command::new("nm");
        nm.args(["-C", "-S", "-t", "d", "--defined-only"]).arg(path);
        let output = nm.output().map_err(|e| format!("nm: {e}"))?;
        let symbols = String::from_utf8_lossy(&output.stdout).into_owned();
        if symbols.contains("spillproof") {
            return Ok(Some(symbols));
        }
    }
    Ok(None)
}

/// `libNAME-HASH.rlib`, or `libNAME.rlib`.
fn is_build_of(path: &Path, library: &str) -> bool {
    let stem = path
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("lib")?.strip_suffix(".rlib"));
    stem.is_some_and(|stem| stem == library || stem.rsplit_once('-').is_some_and(|(name, _)| name == library))
}

/// Bytes of the code of each owner, but for the library's own.
fn bytes_of_owners(symbols: &str, library: &str) -> Vec<u64> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for line in symbols.lines() {
        let mut fields = line.splitn(4, ' ');
        let (_, Some(size), Some(kind), Some(name)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if let ("t" | "T" | "w" | "W" | "v" | "V", Ok(size)) = (kind, size.parse::<u64>())
            && !name.trim_start_matches('<').starts_with(LOOPS)
        {
            *bytes.entry(package_of(name)).or_default() += size;
        }
    }
    let of = |owner: &&str| match *owner == library {
        true => 0,
        false => bytes.get(owner).copied().unwrap_or_default(),
    };
    OWNERS.iter().map(of).collect()
}

/// The crate that a demangled symbol is from: that of a function, or of the type that a method belongs to. A
/// trait of ours for a type of others is implemented where the trait is.
fn package_of(name: &str) -> &str {
    let first = |path: &'_ str| -> usize { path.find("::").unwrap_or(path.len()) };
    let path = name.trim_start_matches(['<', '&', '(', '[', '*', ' ']);
    let path = ["mut ", "const ", "dyn "]
        .iter()
        .fold(path, |path, word| path.strip_prefix(word).unwrap_or(path));
    let package = &path[..first(path)];
    let is_ours = package.starts_with("spillproof") || package.starts_with("halo2");
    match name.split_once(" as spillproof_") {
        Some((kept, _)) if name.starts_with('<') && !is_ours && is_balanced(&kept[1..]) => {
            let of_trait = &name[kept.len() + " as ".len()..];
            &of_trait[..first(of_trait)]
        }
        _ => package,
    }
}

/// Whether every `<` has its `>`: what follows is not inside of a type's parameters.
fn is_balanced(text: &str) -> bool {
    text.matches('<').count() == text.replace("->", "").matches('>').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_belongs_to_the_crate_of_its_code() {
        assert_eq!(
            package_of("spillproof_kernels::msm::Msm<P,B>::update"),
            "spillproof_kernels"
        );
        assert_eq!(
            package_of("<spillproof_plonk::Rounds as core::ops::Drop>::drop"),
            "spillproof_plonk"
        );
        assert_eq!(
            package_of(
                "<ark_ff::Fp<ark_ff::MontBackend<T,_>,_> as spillproof_kernels::field::CoordinateField>::inverted"
            ),
            "spillproof_kernels"
        );
        assert_eq!(
            package_of("<halo2_axiom::X as spillproof_plonk::Outside>::write"),
            "halo2_axiom"
        );
        assert_eq!(
            package_of("core::ptr::drop_in_place<spillproof_kernels::msm::Msm>"),
            "core"
        );
        assert_eq!(
            package_of("<alloc::vec::Vec<<T as spillproof_kernels::F>::X> as core::Clone>::clone"),
            "alloc"
        );
        assert_eq!(
            package_of("<&mut spillproof_commit::Srs as core::fmt::Debug>::fmt"),
            "spillproof_commit"
        );
    }

    #[test]
    fn code_is_counted_and_data_is_not() {
        let symbols = "0000 0000000000000010 t spillproof_kernels::f\n0000 0000000000000032 r spillproof_kernels::TABLE\n\
                       spillproof_kernels-hash.o:\n0000 0000000000000005 T spillproof_plonk::g\n0000 T memcpy";
        assert_eq!(bytes_of_owners(symbols, "spillproof_plonk"), [10, 0, 0, 0]);
        assert_eq!(bytes_of_owners(symbols, "halo2_axiom"), [10, 0, 5, 0]);
    }

    #[test]
    fn builds_are_known_by_their_names() {
        assert!(is_build_of(
            Path::new("x/libspillproof_circom.rlib"),
            "spillproof_circom"
        ));
        assert!(is_build_of(
            Path::new("x/libhalo2_axiom-94fd23e4067206ae.rlib"),
            "halo2_axiom"
        ));
        assert!(!is_build_of(
            Path::new("x/libspillproof_gpu_host-94fd.rlib"),
            "spillproof_gpu"
        ));
        assert!(!is_build_of(
            Path::new("x/libspillproof_c-94fd.rmeta"),
            "spillproof_c"
        ));
    }
}
