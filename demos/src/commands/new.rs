//! `spillproof new`: a small program with a circuit of its own over a drop-in, as a beginning.
//!
//! Its source is the example of the drop-in, which is compiled and run with the tests. Its manifest patches
//! the released crate with the drop-in of a clone of this repository.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::{Global, New, ProgramOver};
use crate::failure::Failure;
use crate::run::{Result, Run};

/// Names that cargo or rustc refuse for a program, and those of its dependencies.
const REFUSED_NAMES: [&str; 60] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "halo2-axiom",
    "halo2_proofs",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "rand",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "virtual",
    "yield",
];

/// A drop-in, as a program uses it.
struct DropIn {
    /// The package that it stands for.
    package: &'static str,
    /// That package's release.
    version: &'static str,
    /// Its folder in the repository.
    folder: &'static str,
    /// The source of the program.
    program: &'static str,
    /// The generator of random values.
    rand: &'static str,
    /// Lines for its README: what the binary does with the files that it saves.
    saved: &'static str,
}

impl DropIn {
    fn of(system: ProgramOver) -> Self {
        match system {
            ProgramOver::Axiom => Self {
                package: "halo2-axiom",
                version: "0.5.3",
                folder: "halo2-patch/axiom",
                program: include_str!("../../../halo2-patch/axiom/examples/axiom_circuit.rs"),
                rand: r#""0.8""#,
                saved: "
With a name as the third argument the program saves its parameters, key and witness, from which `spillproof` makes a proof:

```sh
cargo run --release -- 16 64MiB squares
spillproof prove --key squares.key --witness squares.witness --srs squares.params --out squares.proof --public squares.json
spillproof verify --key squares.key --public squares.json --srs squares.params squares.proof
```
",
            },
            ProgramOver::Zcash => Self {
                package: "halo2_proofs",
                version: "0.4.1",
                folder: "halo2-patch/zcash",
                program: include_str!("../../../halo2-patch/zcash/examples/zcash_circuit.rs"),
                rand: r#"{ version = "0.10", default-features = false, features = ["sys_rng"] }"#,
                saved: "",
            },
        }
    }
}

#[derive(Serialize)]
struct Outcome {
    folder: String,
    system: ProgramOver,
    /// The folder of the drop-in.
    drop_in: String,
    /// Below the folder.
    files: Vec<&'static str>,
}

/// Writes the program.
///
/// # Errors
/// [`Failure::Usage`] for a name that no package may have, and a folder that is no clone of the repository;
/// [`Failure::File`] for a folder that is there already or cannot be made.
pub fn run(global: &Global, args: &New) -> Result<()> {
    let run = Run::start(global);
    let name = package_name(&args.folder)?;
    let drop_in = DropIn::of(args.system);
    let patch = folder_of(&drop_in, args)?;
    let files = [
        ("Cargo.toml", manifest(name, &drop_in, &patch)?),
        ("README.md", readme(name, &drop_in, &patch)),
        ("src/main.rs", drop_in.program.to_owned()),
        (".gitignore", "/target\n/run.html\n".to_owned()),
    ];
    fs::create_dir(&args.folder).map_err(Failure::file(&args.folder))?;
    if let Err(failure) = write(&args.folder, &files) {
        // It was made here, so nothing of the user's is in it.
        let _a_part_is_left = fs::remove_dir_all(&args.folder);
        return Err(failure);
    }
    let outcome = Outcome {
        folder: args.folder.display().to_string(),
        system: args.system,
        drop_in: patch.display().to_string(),
        files: files.iter().map(|(file, _)| *file).collect(),
    };
    run.say(format_args!(
        "{}: a program with a circuit of its own, over the drop-in {}; README.md has its commands",
        outcome.folder, outcome.drop_in
    ));
    run.finish("new", &outcome)?;
    Ok(())
}

fn write(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    let source = folder.join("src");
    fs::create_dir(&source).map_err(Failure::file(&source))?;
    for (file, text) in files {
        let file = folder.join(file);
        fs::write(&file, text).map_err(Failure::file(&file))?;
    }
    Ok(())
}

/// The name of the folder, if a package may have it.
fn package_name(folder: &Path) -> Result<&str> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !is_name {
        return Err(Failure::Usage(format!(
            "{}: the folder's name is the program's: letters, digits, `-` and `_`, a letter first",
            folder.display()
        )));
    }
    if REFUSED_NAMES.contains(&name) {
        return Err(Failure::Usage(format!(
            "{name}: no program over the drop-in can have this name, which cargo, Rust or a dependency has: take another one"
        )));
    }
    Ok(name)
}

/// The folder of the drop-in, as an absolute path: in the clone that is named, else in the first folder
/// around this program or around the current folder that has it.
fn folder_of(drop_in: &DropIn, args: &New) -> Result<PathBuf> {
    let is_drop_in = |folder: &PathBuf| folder.join("build.rs").is_file();
    if let Some(clone) = &args.path {
        let folder = fs::canonicalize(clone.join(drop_in.folder))
            .ok()
            .filter(is_drop_in);
        return folder.ok_or_else(|| {
            Failure::Usage(format!(
                "--path {}: no clone of spillproof's repository, which has the drop-in in {}",
                clone.display(),
                drop_in.folder
            ))
        });
    }
    let places = [std::env::current_exe(), std::env::current_dir()];
    let places = places
        .into_iter()
        .flatten()
        .filter_map(|place| fs::canonicalize(place).ok());
    let mut folders = places.flat_map(|place| {
        let around: Vec<_> = place
            .ancestors()
            .map(|folder| folder.join(drop_in.folder))
            .collect();
        around
    });
    folders.find(is_drop_in).ok_or_else(|| {
        Failure::Usage(
            "neither this program nor the current folder is in a clone of spillproof's repository, which has the drop-ins: name one \
             with --path"
                .into(),
        )
    })
}

fn manifest(name: &str, drop_in: &DropIn, patch: &Path) -> Result<String> {
    let DropIn {
        package,
        version,
        rand,
        ..
    } = drop_in;
    // A string of JSON is one of TOML.
    let patch = serde_json::to_string(&patch)?;
    Ok(format!(
        r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2021"
rust-version = "1.91.1"
publish = false

# A workspace of its own. In a larger one, [patch.crates-io] and [profile.dev] go to the root's Cargo.toml.
[workspace]

[dependencies]
# The very release that the drop-in stands for: cargo leaves a patch for another one unused.
{package} = "={version}"
rand = {rand}

[patch.crates-io]
{package} = {{ path = {patch} }}

# Field arithmetic without optimisation is some thirty times slower.
[profile.dev]
opt-level = 3
"#
    ))
}

fn readme(name: &str, drop_in: &DropIn, patch: &Path) -> String {
    let package = drop_in.package;
    let documents = patch.join("../../docs/halo2.md");
    let documents = fs::canonicalize(&documents).unwrap_or(documents);
    format!(
        "# {name}

A circuit of its own over {package}, in `src/main.rs`: setup, keys, a proof, its verification.

```sh
cargo run --release -- 12                         # in memory
cargo run --release -- 16 64MiB                   # within a budget that the program sets
SPILLPROOF_MEMORY=64MiB SPILLPROOF_DIR=. SPILLPROOF_PROGRESS=1 SPILLPROOF_REPORT=run.html cargo run --release -- 18
```

The last line needs no code: the budget, the folder of scratch files, progress and a page of the run come from variables. Proofs from disk and from memory
are the same bytes for the same random values, and the unmodified {package} verifies both.
{}
`cargo tree -i {package}` says which {package} proves: its first line names the folder of the drop-in. If a library brings another {package} into the program,
cargo names both, and proofs of that library are not within a budget.

{} has the rest.
",
        drop_in.saved,
        documents.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_packages() {
        for good in ["proofs", "a", "my-proof_2", "x/y/proofs", "./proofs", "proofs/"] {
            assert!(package_name(Path::new(good)).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "/",
            "2proofs",
            "-p",
            "my proof",
            "pröof",
            "a.b",
            "fn",
            "test",
            "rand",
            "halo2-axiom",
        ] {
            assert!(package_name(Path::new(bad)).is_err(), "{bad}");
        }
    }

    /// The manifest and the library agree on the release.
    #[test]
    fn releases_are_those_of_the_drop_ins() {
        for system in [ProgramOver::Axiom, ProgramOver::Zcash] {
            let drop_in = DropIn::of(system);
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            let manifest = root.join(drop_in.folder).join("Cargo.toml");
            let manifest = fs::read_to_string(manifest).unwrap();
            for line in [
                format!("name = \"{}\"", drop_in.package),
                format!("version = \"{}\"", drop_in.version),
            ] {
                assert!(manifest.lines().any(|found| found == line), "{system:?}: {line}");
            }
        }
    }

    #[test]
    fn a_path_with_quotes_is_quoted() {
        let text = manifest("x", &DropIn::of(ProgramOver::Axiom), Path::new("/a \"b\"/c")).unwrap();
        assert!(text.contains(r#"path = "/a \"b\"/c" }"#), "{text}");
    }
}
