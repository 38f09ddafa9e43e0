//! Which file uses which, inside of a package: paths of Rust, resolved to the file that has the item.
//!
//! A path begins at the crate, at `self`, at some `super`s, or at a name that the module has imported. It is
//! followed from module to module, through imports and re-exports (`pub use`), as far as they are in the
//! package; the module in which it ends is used. A glob import is a use of its module. Methods, and paths
//! that macros put together, are not seen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::source::{Source, Token};

/// A module's path from the crate's root.
pub type Module = Vec<String>;

/// A package's modules; each is a file.
pub struct Package<'a> {
    /// Each module's file, and the names that it imports.
    modules: BTreeMap<Module, (&'a Source, BTreeMap<String, Module>)>,
}

/// A file names an item of another one.
#[derive(Debug, PartialEq, Eq)]
pub struct Use {
    pub from: Module,
    pub line: usize,
    pub to: Module,
}

/// Imports and re-exports on the way of one path; more are a circle of them.
const HOPS_MAX: usize = 8;

impl<'a> Package<'a> {
    /// The files below `folder`, a package's `src`.
    pub fn read(sources: &'a [Source], folder: &str) -> Self {
        let mut modules = BTreeMap::new();
        for source in sources {
            if let Some(module) = source.below(folder) {
                let module = without_file_name(module);
                let imports = paths(&source.tokens, &module)
                    .into_iter()
                    .filter_map(|path| Some((path.import?, path.names)))
                    .collect();
                modules.entry(module).or_insert((source, imports));
            }
        }
        Self { modules }
    }

    /// Every use of a file by another. A module and those inside of it tell one story: they may name each
    /// other, and are left out.
    pub fn uses(&self) -> Vec<Use> {
        let mut uses = Vec::new();
        for (module, (source, imports)) in &self.modules {
            for path in paths(&source.tokens, module) {
                let names = match imports.get(&path.names[0]) {
                    Some(import) if path.is_relative => [import, &path.names[1..]].concat(),
                    None if path.is_relative => continue,
                    _ => path.names,
                };
                let to = self.resolve(&names, HOPS_MAX);
                if !to.starts_with(module) && !module.starts_with(&to) {
                    uses.push(Use {
                        from: module.clone(),
                        line: path.line,
                        to,
                    });
                }
            }
        }
        uses
    }

    /// The file of a module.
    pub fn file(&self, module: &Module) -> PathBuf {
        self.modules
            .get(module)
            .map(|(source, _)| source.file.clone())
            .unwrap_or_default()
    }

    /// The module in which a path from the root ends.
    fn resolve(&self, names: &[String], hops: usize) -> Module {
        let mut module = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let inner = [&module[..], std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&inner) {
                module = inner;
                continue;
            }
            let import = self
                .modules
                .get(&module)
                .and_then(|(_, imports)| imports.get(name));
            return match import {
                Some(import) if hops > 0 => self.resolve(&[import, &names[at + 1..]].concat(), hops - 1),
                _ => module,
            };
        }
        module
    }
}

/// `storage/mod` is the module `storage`, `lib` and `main` are the root.
fn without_file_name(mut module: Module) -> Module {
    let is_root = module.len() == 1 && (module[0] == "lib" || module[0] == "main");
    if is_root || module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    module
}

/// A path as it stands in a file.
struct Path {
    line: usize,
    /// From the root, or from the module if it is relative.
    names: Vec<String>,
    /// The name that it has in the module, for an import.
    import: Option<String>,
    /// It begins with a name: an imported one, or another crate's.
    is_relative: bool,
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| token.text.as_str())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// All paths of a file that stands at `module`.
fn paths(tokens: &[Token], module: &Module) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if text(tokens, at) == "use" && text(tokens, at + 1) != "<" {
            let mut branches = Vec::new();
            at = branches_of(tokens, at + 1, &[], &mut branches);
            found.extend(branches.into_iter().filter_map(|(line, names, import)| {
                let (names, is_relative) = from_root(&names, module)?;
                Some(Path {
                    line,
                    // An import of a name is one of a module inside, or of another crate, which no module is.
                    names: match is_relative {
                        true => [module, &names[..]].concat(),
                        false => names,
                    },
                    import: Some(import),
                    is_relative: false,
                })
            }));
            continue;
        }
        let starts = is_name(text(tokens, at)) && text(tokens, at + 1) == "::";
        if !starts || text(tokens, at.wrapping_sub(1)) == "::" {
            at += 1;
            continue;
        }
        let line = tokens[at].line;
        let mut names = vec![text(tokens, at).to_owned()];
        while text(tokens, at + 1) == "::" && is_name(text(tokens, at + 2)) {
            names.push(text(tokens, at + 2).to_owned());
            at += 2;
        }
        at += 1;
        if let Some((names, is_relative)) = from_root(&names, module) {
            found.push(Path {
                line,
                names,
                import: None,
                is_relative,
            });
        }
    }
    found.retain(|path| !path.names.is_empty());
    found
}

/// The path from the root, and whether it begins with a name instead. `None` if it leaves the crate.
fn from_root(names: &[String], module: &Module) -> Option<(Vec<String>, bool)> {
    let first = names.first()?.as_str();
    let supers = names.iter().take_while(|name| *name == "super").count();
    match first {
        "crate" => Some((names[1..].to_vec(), false)),
        "self" => Some(([module, &names[1..]].concat(), false)),
        "super" => {
            let outer = &module[..module.len().checked_sub(supers)?];
            Some(([outer, &names[supers..]].concat(), false))
        }
        "Self" | "std" | "core" => None,
        _ => Some((names.to_vec(), true)),
    }
}

/// The paths of a `use` from `at` on, with the name that each brings; returns where the item ends.
fn branches_of(
    tokens: &[Token],
    mut at: usize,
    outer: &[String],
    branches: &mut Vec<(usize, Vec<String>, String)>,
) -> usize {
    let mut names = outer.to_vec();
    let mut import = None;
    let mut line = 0;
    loop {
        let token = text(tokens, at);
        match token {
            "{" => {
                at = branches_of(tokens, at + 1, &names, branches);
                import = None;
                continue;
            }
            "as" => {
                import = Some(text(tokens, at + 1).to_owned());
                at += 1;
            }
            "*" => import = Some("*".to_owned()),
            name if is_name(name) => {
                line = tokens[at].line;
                if name != "self" || names.is_empty() {
                    names.push(name.to_owned());
                }
                import = Some(names.last().cloned().unwrap_or_default());
            }
            "," | "}" | ";" | "" => {
                if let Some(import) = import.take() {
                    branches.push((line, std::mem::replace(&mut names, outer.to_vec()), import));
                }
                names = outer.to_vec();
                if token != "," {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Vec<(String, usize, String)> {
        let sources: Vec<_> = files
            .iter()
            .map(|(file, text)| Source::parse(format!("p/src/{file}"), *text).unwrap())
            .collect();
        let package = Package::read(&sources, "p/src");
        package
            .uses()
            .into_iter()
            .map(|found| (found.from.join("/"), found.line, found.to.join("/")))
            .collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_has_the_item() {
        let files = [
            (
                "lib.rs",
                "pub mod a; mod b; pub use b::{deep::Item, Other as Renamed};",
            ),
            (
                "a.rs",
                "use crate::{Item, Renamed};\nuse super::b::deep;\nfn f() { deep::g(); super::b::h() }",
            ),
            (
                "b/mod.rs",
                "pub mod deep; pub struct Other; use self::deep::Item;",
            ),
            (
                "b/deep.rs",
                "use std::fmt; use super::Other; use rayon::Item as _; pub struct Item;",
            ),
        ];
        let found = uses(&files);
        let to = |line| {
            found
                .iter()
                .filter(|found| found.1 == line)
                .map(|found| found.2.as_str())
                .collect::<Vec<_>>()
        };
        assert!(
            found.iter().all(|found| found.0 == "a"),
            "a folder and its files tell one story: {found:?}"
        );
        assert_eq!(to(1), ["b/deep", "b"]);
        assert_eq!(to(2), ["b/deep"]);
        assert_eq!(to(3), ["b/deep", "b"]);
    }

    #[test]
    fn circles_of_re_exports_end() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::X;"),
            ("a.rs", "pub use crate::b::X;"),
            ("b.rs", "pub use crate::X;"),
        ];
        assert!(uses(&files).len() <= 2);
    }
}
