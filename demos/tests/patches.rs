//! What cargo makes of a patch, and which guard sees it: the claims of docs/halo2.md, on packages of
//! a few lines. Two of them have the names and releases of halo2-axiom and of its drop-in; the registry is a
//! folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PATCH: &str = "[patch.crates-io]\nhalo2-axiom = { path = \"../drop-in\" }\n";
const STOCK: &str = "pub mod plonk {}";
/// The guard through the program's own dependency, and through the library that proves.
const OWN: &str = "halo2_axiom::spillproof::IS_HERE";
const OF_LIBRARY: &str = "library::halo2_proofs::spillproof::IS_HERE";

/// A folder with a registry, a drop-in, a library over halo2-axiom, and a program over that library.
struct Packages(tempfile::TempDir);

impl Packages {
    fn new() -> Self {
        let packages = Self(tempfile::tempdir().expect("a folder"));
        let registry = packages.path("registry");
        for version in ["0.4.5", "0.5.2", "0.5.3"] {
            let folder = format!("registry/halo2-axiom-{version}");
            packages.package(&folder, "halo2-axiom", version, "", STOCK);
            packages.write(&format!("{folder}/.cargo-checksum.json"), r#"{"files":{}}"#);
        }
        let drop_in = "pub mod spillproof { pub const IS_HERE: () = (); }";
        packages.package("drop-in", "halo2-axiom", "0.5.3", "", drop_in);
        let sources = "[source.crates-io]\nreplace-with = \"folder\"\n[source.folder]\ndirectory = ";
        packages.write(".cargo/config.toml", &format!("{sources}{registry:?}\n"));
        packages
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn package(&self, folder: &str, name: &str, version: &str, rest: &str, source: &str) {
        let head = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n");
        self.write(&format!("{folder}/Cargo.toml"), &(head + rest));
        self.write(&format!("{folder}/src/lib.rs"), source);
    }

    /// The library, as `halo2-base` is one: it hands on the crate that it proves with.
    fn library(&self, halo2: &str) {
        let dependencies = format!("[dependencies]\nhalo2-axiom = {halo2}\n");
        self.package(
            "library",
            "library",
            "0.1.0",
            &dependencies,
            "pub use halo2_axiom as halo2_proofs;",
        );
    }

    fn program(&self, halo2: &str, patches: &str) {
        let dependencies = format!("halo2-axiom = \"{halo2}\"\nlibrary = {{ path = \"../library\" }}\n");
        let rest = format!("[workspace]\n[dependencies]\n{dependencies}{patches}");
        self.package("program", "program", "0.1.0", &rest, "");
    }

    /// Whether it ended well, and what it said.
    fn cargo(&self, words: &str) -> (bool, String) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(words.split(' '))
            .current_dir(self.path("program"))
            .env("CARGO_HOME", self.path("home"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            // A repository in a folder is one of the network to cargo.
            .env_remove("CARGO_NET_OFFLINE");
        let output = cargo.output().expect("cargo runs");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), said.concat())
    }

    /// The program with this guard: whether it compiles. If not, it is for the guard.
    fn compiles(&self, guard: &str) -> (bool, String) {
        self.write("program/src/lib.rs", &format!("const _: () = {guard};\n"));
        let (is_well, said) = self.cargo("check");
        assert!(is_well || said.contains("could not find `spillproof`"), "{said}");
        (is_well, said)
    }

    /// Whether `cargo tree -i` names two copies of halo2-axiom.
    fn are_two(&self) -> bool {
        let (is_well, said) = self.cargo("tree --invert halo2-axiom");
        assert!(is_well || said.contains("is ambiguous"), "{said}");
        !is_well
    }

    /// Whether it names one, which is the drop-in.
    fn is_drop_in(&self) -> bool {
        let (_, said) = self.cargo("tree --invert halo2-axiom");
        let drop_in = format!(
            "halo2-axiom v0.5.3 ({})",
            canonical(&self.path("drop-in")).display()
        );
        said.lines().next() == Some(&drop_in)
    }
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).expect("a path")
}

/// The library has an older release, which no patch reaches: cargo says nothing, and only the library's own
/// guard sees it.
#[test]
fn a_library_with_an_older_release() {
    let packages = Packages::new();
    packages.library("\"0.4.5\"");
    packages.program("0.5.3", PATCH);
    let (compiles, said) = packages.compiles(OWN);
    assert!(compiles && !said.contains("warning"), "{said}");
    assert!(!packages.compiles(OF_LIBRARY).0);
    assert!(packages.are_two());

    packages.library("\"0.5\"");
    assert!(packages.compiles(OF_LIBRARY).0);
    assert!(packages.is_drop_in());
}

/// The library takes halo2-axiom from a repository, which takes a patch of its own.
#[test]
fn a_library_with_a_repository() {
    let packages = Packages::new();
    packages.package("upstream", "halo2-axiom", "0.5.3", "", STOCK);
    let upstream = packages.path("upstream");
    for words in [
        "init -q",
        "add .",
        "-c user.name=x -c user.email=x@x.x commit -qm x",
    ] {
        let mut git = Command::new("git");
        git.args(words.split(' ')).current_dir(&upstream);
        if !git.status().is_ok_and(|status| status.success()) {
            return crate::skipped("git makes no repository here");
        }
    }
    let url = format!("file://{}", upstream.display());
    packages.library(&format!("{{ git = {url:?} }}"));
    packages.program("0.5.3", PATCH);
    let (compiles, said) = packages.compiles(OWN);
    assert!(compiles && !said.contains("warning"), "{said}");
    assert!(!packages.compiles(OF_LIBRARY).0);
    assert!(packages.are_two());

    let second = PATCH.replace("crates-io", &format!("{url:?}"));
    packages.program("0.5.3", &format!("{PATCH}{second}"));
    assert!(packages.compiles(OF_LIBRARY).0);
    assert!(packages.is_drop_in());
}

/// The lock file has an older release: cargo warns, every guard sees it, and `cargo update` helps.
#[test]
fn a_lock_file_with_an_older_release() {
    let packages = Packages::new();
    packages.library("\"0.5\"");
    packages.program("=0.5.2", "");
    packages.write("program/src/lib.rs", "");
    let (is_well, said) = packages.cargo("generate-lockfile");
    assert!(is_well, "{said}");
    packages.program("0.5", PATCH);
    let (compiles, said) = packages.compiles(OWN);
    assert!(
        !compiles && said.to_lowercase().contains("patch `halo2-axiom v0.5.3"),
        "{said}"
    );
    assert!(said.contains("was not used in the crate graph"), "{said}");
    assert!(!packages.is_drop_in() && !packages.are_two());
    let (is_well, said) = packages.cargo("update --package halo2-axiom");
    assert!(is_well, "{said}");
    assert!(packages.compiles(OWN).0 && packages.compiles(OF_LIBRARY).0);
    assert!(packages.is_drop_in());
}
