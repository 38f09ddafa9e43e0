//! The library from outside, on small made-up sources.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use spillproof_graft::{Error, Operation, Substitution, Tree, Upstream, digest};

const SOURCE: &str = r#"//! Root documentation.
#![allow(dead_code)]

/// A bag.
pub struct Bag<T> {
    items: Vec<T>,
    pub(crate) label: String,
}

impl<T> Bag<T> {
    /// Makes one.
    pub fn new(items: Vec<T>) -> Self {
        let label = "bag".to_string();
        Self { items, label }
    }

    fn empty() -> Self {
        Bag { items: Vec::new(), label: String::new() }
    }
}

impl<T> IntoIterator for Bag<T> {
    type Item = T;
    fn into_iter(self) -> Iter { self.items.into_iter() }
}

#[cfg(feature = "fast")]
fn speed() -> u32 { 2 }

#[cfg(not(feature = "fast"))]
fn speed() -> u32 { 1 }
"#;

fn tree() -> Tree {
    Tree::new(
        BTreeMap::from([("src/lib.rs".to_owned(), SOURCE.to_owned())]),
        false,
    )
}

/// Digest of the part of `SOURCE` between two marks (both included), as a graft would pin it.
fn pin(from: &str, to: &str) -> String {
    let start = SOURCE.find(from).unwrap();
    let end = start + SOURCE[start..].find(to).unwrap() + to.len();
    digest(&SOURCE.as_bytes()[start..end])[..16].to_owned()
}

fn pin_struct() -> String {
    pin("/// A bag", "}")
}

fn pin_new() -> String {
    pin("/// Makes one", "label }\n    }")
}

fn written(tree: Tree) -> String {
    let out = tempfile::tempdir().unwrap();
    let root = tree.write(&out.path().join("upstream")).unwrap();
    std::fs::read_to_string(root.join("src/lib.rs")).unwrap()
}

fn refused(tree: Tree) -> Error {
    let out = tempfile::tempdir().unwrap();
    tree.write(out.path()).unwrap_err()
}

fn graft(item: &str, pinned: &str, operation: Operation<'_>) -> Tree {
    let mut tree = tree();
    tree.graft("src/lib.rs", item, pinned, operation);
    tree
}

#[test]
fn a_tree_without_grafts_is_written_unchanged() {
    assert_eq!(written(tree()), SOURCE);
}

#[test]
fn bodies_are_replaced() {
    let text = written(graft(
        "impl Bag :: fn new",
        &pin_new(),
        Operation::Body("Self::empty()"),
    ));
    assert!(
        text.contains("pub fn new(items: Vec<T>) -> Self {\nSelf::empty()\n}"),
        "{text}"
    );
    assert!(!text.contains("Self { items, label }"), "{text}");
}

#[test]
fn statements_go_in_front_of_a_body() {
    let text = written(graft(
        "impl Bag :: fn new",
        &pin_new(),
        Operation::Prepend("check(&items);"),
    ));
    assert!(
        text.contains("pub fn new(items: Vec<T>) -> Self {\ncheck(&items);\n"),
        "{text}"
    );
    assert!(text.contains("Self { items, label }"), "{text}");
}

#[test]
fn a_wrapped_function_keeps_the_original_beside_it() {
    let wrap = Operation::Wrap {
        rename: "new_plain",
        visibility: "",
        body: "Self::new_plain(items)",
    };
    let text = written(graft("impl Bag :: fn new", &pin_new(), wrap));
    assert!(
        text.contains("pub fn new(items: Vec<T>) -> Self {\nSelf::new_plain(items)\n}"),
        "{text}"
    );
    assert!(
        text.contains("    fn new_plain(items: Vec<T>) -> Self {\n        let label")
            || text.contains("\nfn new_plain"),
        "{text}"
    );
    assert_eq!(text.matches("/// Makes one.").count(), 2, "{text}");
}

#[test]
fn both_halves_of_a_wrapped_function_keep_its_cfg() {
    let pinned = pin("#[cfg(feature", "2 }");
    let wrap = Operation::Wrap {
        rename: "speed_plain",
        visibility: "pub",
        body: "speed_plain()",
    };
    let text = written(graft("#[cfg(feature = \"fast\")] fn speed", &pinned, wrap));
    assert_eq!(text.matches("#[cfg(feature = \"fast\")]").count(), 2, "{text}");
    assert!(text.contains("pub fn speed_plain() -> u32 { 2 }"), "{text}");
}

#[test]
fn a_field_changes_type_and_its_makers_convert() {
    let mut tree = tree();
    let field = Operation::FieldType {
        field: "items",
        ty: "Pile<T>",
    };
    tree.graft("src/lib.rs", "struct Bag", &pin_struct(), field);
    let visible = Operation::FieldVisibility {
        field: "label",
        visibility: "pub",
    };
    tree.graft("src/lib.rs", "struct Bag", &pin_struct(), visible);
    let make = Operation::Construct {
        field: "items",
        with: "Pile::from",
    };
    tree.graft("src/lib.rs", "impl Bag :: fn new", &pin_new(), make);
    tree.graft(
        "src/lib.rs",
        "impl Bag :: fn empty",
        &pin("fn empty", "new() }\n    }"),
        make,
    );
    let text = written(tree);
    assert!(text.contains("items: Pile<T>,\n    pub label: String"), "{text}");
    assert!(
        text.contains("Self { items: Pile::from(items), label }"),
        "{text}"
    );
    assert!(
        text.contains("Bag { items: Pile::from(Vec::new()), label"),
        "{text}"
    );
}

#[test]
fn associated_types_visibilities_and_tokens_change() {
    let mut tree = tree();
    let ty = Operation::AssociatedType("&'static T");
    tree.graft(
        "src/lib.rs",
        "impl IntoIterator for Bag :: type Item",
        &pin("type Item", ";"),
        ty,
    );
    tree.graft(
        "src/lib.rs",
        "struct Bag",
        &pin_struct(),
        Operation::Visibility("pub(crate)"),
    );
    let three = Operation::Substitute(&[Substitution {
        from: "2 }",
        to: "3 }",
        count: 1,
    }]);
    tree.graft(
        "src/lib.rs",
        "#[cfg(feature = \"fast\")] fn speed",
        &pin("#[cfg(feature", "2 }"),
        three,
    );
    tree.append("src/lib.rs", "mod extra;");
    let text = written(tree);
    assert!(text.contains("type Item = &'static T;"), "{text}");
    assert!(text.contains("pub(crate) struct Bag"), "{text}");
    assert!(text.contains("fn speed() -> u32 { 3 }"), "{text}");
    assert!(text.ends_with("\nmod extra;\n"), "{text}");
}

#[test]
fn inner_attributes_are_taken_out_and_pinned() {
    let pinned = digest(b"//! Root documentation.\n#![allow(dead_code)]\n");
    let mut stripped = tree();
    stripped.strip_inner_attributes("src/lib.rs", &pinned);
    let text = written(stripped);
    assert!(
        !text.contains("Root documentation") && !text.contains("#!["),
        "{text}"
    );
    let mut drifted = tree();
    drifted.strip_inner_attributes("src/lib.rs", &digest(b""));
    assert!(matches!(refused(drifted), Error::Drift { item, .. } if item == "inner attributes"));
}

#[test]
fn drift_names_the_item_and_both_digests() {
    let error = refused(graft(
        "struct Bag",
        "0123456789abcdef",
        Operation::Visibility("pub"),
    ));
    let Error::Drift {
        file,
        item,
        pinned,
        found,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (file.as_str(), item.as_str(), pinned.as_str()),
        ("src/lib.rs", "struct Bag", "0123456789abcdef")
    );
    assert!(found.starts_with(&pin_struct()));
    assert!(error.to_string().contains("struct Bag"));
}

#[test]
fn a_digest_too_short_to_mean_anything_is_drift() {
    let pinned = pin_struct();
    assert!(matches!(
        refused(graft("struct Bag", "", Operation::Visibility("pub"))),
        Error::Drift { .. }
    ));
    assert!(matches!(
        refused(graft("struct Bag", &pinned[..8], Operation::Visibility("pub"))),
        Error::Drift { .. }
    ));
}

#[test]
fn a_path_must_name_exactly_one_item() {
    let error = refused(graft("fn speed", "0123456789abcdef", Operation::Body("3")));
    assert!(matches!(error, Error::AmbiguousItem { count: 2, .. }), "{error}");
    let error = refused(graft("fn slowness", "0123456789abcdef", Operation::Body("3")));
    assert!(matches!(error, Error::NoSuchItem { .. }), "{error}");
    let mut elsewhere = tree();
    elsewhere.graft("src/other.rs", "fn f", "0123456789abcdef", Operation::Body(""));
    assert!(matches!(refused(elsewhere), Error::NotPinned { file } if file == "src/other.rs"));
}

#[test]
fn operations_that_do_not_fit_say_why() {
    let pinned = pin_struct();
    for (operation, expected) in [
        (Operation::Body(""), "not a function"),
        (Operation::Prepend(""), "not a function"),
        (Operation::AssociatedType("u8"), "not an associated type"),
        (
            Operation::FieldType {
                field: "absent",
                ty: "u8",
            },
            "no field `absent`",
        ),
        (
            Operation::Substitute(&[Substitution {
                from: "T",
                to: "U",
                count: 7,
            }]),
            "not 7",
        ),
    ] {
        let error = refused(graft("struct Bag", &pinned, operation));
        assert!(
            matches!(&error, Error::Misfit { why, .. } if why.contains(expected)),
            "{error}"
        );
    }
    let make = Operation::Construct {
        field: "absent",
        with: "f",
    };
    assert!(matches!(
        refused(graft("impl Bag :: fn new", &pin_new(), make)),
        Error::Misfit { .. }
    ));
}

#[test]
fn overlapping_grafts_are_refused_by_name() {
    let mut tree = graft("impl Bag :: fn new", &pin_new(), Operation::Body(""));
    let label = Operation::Substitute(&[Substitution {
        from: "\"bag\"",
        to: "\"sack\"",
        count: 1,
    }]);
    tree.graft("src/lib.rs", "impl Bag :: fn new", &pin_new(), label);
    let error = refused(tree);
    assert!(
        matches!(&error, Error::Overlap { items, .. } if items[0] == "impl Bag :: fn new"),
        "{error}"
    );
}

#[test]
fn what_no_longer_parses_is_refused() {
    let error = refused(graft(
        "impl Bag :: fn new",
        &pin_new(),
        Operation::Body("let = ;"),
    ));
    assert!(matches!(error, Error::Syntax { when: "after", .. }), "{error}");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let mut tree = graft("struct Bag", "0123456789abcdef", Operation::Visibility(""));
    tree.graft("src/lib.rs", "fn absent", "0123456789abcdef", Operation::Body(""));
    let error = refused(tree);
    assert!(
        matches!(&error, Error::Several(errors) if errors.len() == 2),
        "{error}"
    );
}

#[test]
fn blessing_collects_digests_instead_of_checking_them() {
    let files = BTreeMap::from([("src/lib.rs".to_owned(), SOURCE.to_owned())]);
    let mut tree = Tree::new(files, true);
    tree.graft("src/lib.rs", "struct Bag", "", Operation::Visibility("pub"));
    assert_eq!(
        tree.blessed(),
        [format!("src/lib.rs `struct Bag` {}", pin_struct())]
    );
    // A variable that was forgotten must not turn the pins off.
    let error = refused(tree);
    assert!(matches!(error, Error::Blessed), "{error}");
}

/// A release of one file as a directory and as a `.crate`, with an upstream that pins it.
struct Release {
    folder: tempfile::TempDir,
    files: String,
    archive_digest: String,
}

impl Release {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("bag-1.0.0");
        std::fs::create_dir_all(source.join("src")).unwrap();
        std::fs::write(source.join("Cargo.toml"), "").unwrap();
        std::fs::write(source.join("src/lib.rs"), SOURCE).unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_dir_all("bag-1.0.0", &source).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&builder.into_inner().unwrap()).unwrap();
        let bytes = gz.finish().unwrap();
        std::fs::write(folder.path().join("bag-1.0.0.crate"), &bytes).unwrap();
        let files = format!("{}  src/lib.rs\n", digest(SOURCE.as_bytes()));
        Self {
            folder,
            files,
            archive_digest: digest(&bytes),
        }
    }

    fn open(&self, place: &Path) -> Result<Tree, Error> {
        let upstream = Upstream {
            name: "bag",
            version: "1.0.0",
            archive_digest: &self.archive_digest,
            files: &self.files,
            source_variable: "BAG_SOURCE",
        };
        upstream.open_at(place)
    }
}

#[test]
fn the_source_may_be_a_directory_or_an_archive_or_a_folder_with_one() {
    let release = Release::new();
    // The folder is a package of its own, too.
    std::fs::write(release.folder.path().join("Cargo.toml"), "").unwrap();
    for name in ["bag-1.0.0", "bag-1.0.0.crate", "."] {
        let tree = release.open(&release.folder.path().join(name)).unwrap();
        assert_eq!(tree.file("src/lib.rs").unwrap(), SOURCE);
    }
}

#[test]
fn a_tampered_source_is_refused_by_file() {
    let release = Release::new();
    let source = release.folder.path().join("bag-1.0.0");
    std::fs::write(source.join("src/lib.rs"), SOURCE.replace("bag", "sack")).unwrap();
    let error = release.open(&source).unwrap_err();
    assert!(
        matches!(&error, Error::Tampered { file, .. } if file == "src/lib.rs"),
        "{error}"
    );
    let archive = release.folder.path().join("bag-1.0.0.crate");
    let mut bytes = std::fs::read(&archive).unwrap();
    bytes.push(0);
    std::fs::write(&archive, bytes).unwrap();
    let error = release.open(&archive).unwrap_err();
    assert!(
        matches!(&error, Error::Tampered { file, .. } if file == "the archive"),
        "{error}"
    );
}

#[test]
fn a_place_that_is_not_there_is_an_error_with_instructions() {
    let release = Release::new();
    let error = release.open(&release.folder.path().join("absent")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::SourceNotFound { .. }));
    for remedy in [
        "curl -LO https://static.crates.io/crates/bag/bag-1.0.0.crate",
        "`cargo vendor` and `cargo fetch` leave it out",
        "BAG_SOURCE = { value = \"bag-1.0.0.crate\", relative = true }",
    ] {
        assert!(text.contains(remedy), "{text}");
    }
}
