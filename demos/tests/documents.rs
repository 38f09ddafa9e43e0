//! The command lines of the documents are command lines of the binary, the tour of all commands
//! (`docs/cli.md`) goes through, and the JSON that it prints is documented.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use spillproof_cli::args::Arguments;

use crate::BINARY;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The shell blocks of a document, each with the heading above it.
fn blocks(text: &str) -> Vec<(String, String)> {
    let (mut heading, mut blocks, mut block) = (String::new(), Vec::new(), None::<String>);
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take().map(|block| (heading.clone(), block))),
            (Some(block), line) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, line) => {
                if let Some(title) = line.strip_prefix('#') {
                    heading = title.trim_start_matches('#').trim().to_owned();
                }
            }
        }
    }
    blocks
}

/// The words of a line that calls the binary, up to what is the shell's or a comment.
fn words(line: &str) -> Option<Vec<&str>> {
    // A text in quotes is one word here, whatever it says.
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace(),
        _ => "text".split_whitespace(),
    });
    let words: Vec<_> = words
        .take_while(|word| !word.starts_with(['#', '>', '|', '&']))
        .collect();
    (words.first() == Some(&"spillproof")).then_some(words)
}

#[test]
fn command_lines_of_documents_are_ones() {
    let mut documents = vec![root().join("README.md"), root().join("SECURITY.md")];
    let docs = fs::read_dir(root().join("docs")).expect("documents");
    documents.extend(docs.map(|entry| entry.expect("an entry").path()));
    let mut lines = 0;
    for document in documents
        .iter()
        .filter(|path| path.extension().is_some_and(|name| name == "md"))
    {
        let Ok(text) = fs::read_to_string(document) else {
            continue;
        };
        for (_, block) in blocks(&text) {
            let joined = block.replace("\\\n", " ");
            for words in joined.lines().filter_map(words) {
                if let Err(error) = Arguments::try_parse_from(&words) {
                    panic!("{}: {}: {error}", document.display(), words.join(" "));
                }
                lines += 1;
            }
        }
    }
    assert!(lines > 50, "{lines}");
}

/// The names of variables in the sources of what ships are those that a misspelt one is compared with.
#[test]
fn variables_of_the_sources_are_known() {
    fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(folder).expect("a folder");
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            match path.is_dir() {
                true if path.ends_with("target") || path.ends_with("tests") => {}
                true => sources(&path, into),
                false => {
                    into.extend(Some(path).filter(|path| path.extension().is_some_and(|kind| kind == "rs")))
                }
            }
        }
    }
    let known = root().join("core/engine/src/session/variables.rs");
    let known = fs::read_to_string(known).expect("the list");
    let mut files = Vec::new();
    for folder in [
        "core",
        "demos/src",
        "demos/circom/src",
        "demos/bindings/src",
        "halo2-patch/axiom/src",
        "gpu/src",
    ] {
        sources(&root().join(folder), &mut files);
    }
    let mut names = std::collections::BTreeSet::new();
    for file in files.iter().filter(|file| !file.ends_with("variables.rs")) {
        let text = fs::read_to_string(file).expect("a source");
        for part in text.split("\"SPILLPROOF_").skip(1) {
            let name: String = part
                .chars()
                .take_while(|c| c.is_ascii_uppercase() || *c == '_' || c.is_ascii_digit())
                .collect();
            names.insert(name);
        }
    }
    assert!(names.len() > 15, "{names:?}");
    for name in names
        .iter()
        .filter(|name| !name.is_empty() && !name.starts_with("TEST_"))
    {
        assert!(
            known.contains(&format!("\"{name}\"")),
            "SPILLPROOF_{name} is not in session/variables.rs"
        );
    }
}

/// Blocks of the tour that other tests run, in parts: a new program, a demonstration under a limit of the
/// kernel, a proof of 2^18 rows that is killed, another program.
const ELSEWHERE: [&str; 4] = [
    "A program of one's own",
    "Demos",
    "A proof that goes on after a crash",
    "The benchmark",
];

#[test]
fn the_tour_of_all_commands() {
    let dir = tempfile::tempdir().expect("a folder");
    let tour = fs::read_to_string(root().join("docs/cli.md")).expect("the tour");
    let binaries = Path::new(BINARY).parent().expect("the binary's folder");
    let path = format!(
        "{}:{}",
        binaries.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut blocks_run = 0;
    for (heading, block) in blocks(&tour) {
        if ELSEWHERE.contains(&heading.as_str()) {
            continue;
        }
        let output = Command::new("sh")
            .args(["-e", "-u", "-c", &block])
            .current_dir(dir.path())
            .env("PATH", &path)
            .env_remove("SPILLPROOF_MEMORY")
            .env_remove("SPILLPROOF_DIR")
            .output()
            .expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{heading}: {block}\n{errors}");
        blocks_run += 1;
    }
    assert!(blocks_run >= 8, "{blocks_run}");
    json_is_documented(dir.path(), &tour);
}

/// All names of fields in a value.
fn names(value: &serde_json::Value, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                into.push(name.clone());
                names(value, into);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

/// Every field that a command of the tour prints as JSON is in `docs/json.md`, or, of a GPU, in
/// `docs/gpu.md`. The files are the tour's.
fn json_is_documented(dir: &Path, tour: &str) {
    let read = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect("a document");
    let documents = read("json.md") + &read("gpu.md");
    let mut seen: Vec<[String; 2]> = Vec::new();
    for (heading, block) in blocks(tour) {
        for words in block
            .lines()
            .filter_map(words)
            .filter(|_| !ELSEWHERE.contains(&heading.as_str()))
            // Their standard output is no JSON: a file, a script, a page.
            .filter(|words| !words.contains(&"-") && !["completions", "man"].contains(&words[1]))
        {
            let name = [
                words[1].to_owned(),
                words.get(2).map(|&word| word.to_owned()).unwrap_or_default(),
            ];
            if seen.contains(&name) {
                continue;
            }
            let mut command = Command::new(BINARY);
            command
                .args(&words[1..])
                .args((!words.contains(&"--json")).then_some("--json"));
            let output = command.current_dir(dir).output().expect("the binary runs");
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{words:?}: {errors}");
            let mut fields = Vec::new();
            names(
                &serde_json::from_slice(&output.stdout).expect("JSON"),
                &mut fields,
            );
            for event in errors.lines().filter(|line| line.starts_with('{')) {
                names(&serde_json::from_str(event).expect("JSON"), &mut fields);
            }
            for field in fields {
                let is_there = ["", "[]"]
                    .iter()
                    .any(|array| documents.contains(&format!("`{field}{array}`")));
                assert!(is_there, "{words:?}: {field}");
            }
            seen.push(name);
        }
    }
    assert!(seen.len() >= 15, "{seen:?}");
}
