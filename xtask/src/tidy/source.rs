//! Rust sources as flat lists of tokens with their lines.
//!
//! Lexing drops comments, and leaves strings and doc texts as single literals; so what a check finds is code.
//! Items under `#[cfg(test)]` are dropped too: the habits are about what ships.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// One token: an identifier, a literal, or a mark such as `::`, `{`, `#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A source file.
#[derive(Debug)]
pub struct Source {
    /// Path from the workspace's root.
    pub file: PathBuf,
    /// As it stands.
    pub text: String,
    /// What ships: no comments, no test code.
    pub tokens: Vec<Token>,
}

impl Source {
    /// Every `.rs` file below `root`, apart from build products and hidden folders.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        let mut files = Vec::new();
        walk(root, &mut files)?;
        files.sort();
        files.iter().map(|file| Self::read(root, file)).collect()
    }

    fn read(root: &Path, path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = path.strip_prefix(root).unwrap_or(path).to_owned();
        Self::parse(file, text)
    }

    /// Lexes a text that stands at `file`.
    pub fn parse(file: impl Into<PathBuf>, text: impl Into<String>) -> Result<Self, String> {
        let (file, text) = (file.into(), text.into());
        let stream: TokenStream = text
            .parse()
            .map_err(|e| format!("{}: does not lex: {e}", file.display()))?;
        let mut tokens = Vec::new();
        let is_test_file = file.components().any(|part| {
            matches!(
                part.as_os_str().to_str(),
                Some("tests" | "tests.rs" | "benches" | "fuzz")
            )
        });
        if !is_test_file {
            flatten(stream, &mut tokens);
        }
        Ok(Self { file, text, tokens })
    }

    /// The folders and files below `prefix`, without the extension: `core/engine/src/storage/pread.rs` below
    /// `core/engine/src` is `[storage, pread]`.
    pub fn below(&self, prefix: &str) -> Option<Vec<String>> {
        let rest = self.file.strip_prefix(prefix).ok()?.with_extension("");
        Some(
            rest.components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect(),
        )
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if is_cfg_test(&trees[at..]) {
            at += test_item_length(&trees[at..]);
            continue;
        }
        let line = trees[at].span().start().line;
        match &trees[at] {
            TokenTree::Group(group) => {
                let (open, close) = marks(group.delimiter());
                tokens.push(Token {
                    text: open.into(),
                    line,
                });
                flatten(group.stream(), tokens);
                tokens.push(Token {
                    text: close.into(),
                    line: group.span_close().start().line,
                });
            }
            TokenTree::Punct(first) if first.as_char() == ':' && first.spacing() == Spacing::Joint => {
                tokens.push(Token {
                    text: "::".into(),
                    line,
                });
                at += 1;
            }
            other => tokens.push(Token {
                text: other.to_string(),
                line,
            }),
        }
        at += 1;
    }
}

fn marks(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

fn is_cfg_test(trees: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = trees else {
        return false;
    };
    hash.as_char() == '#' && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// From `#[cfg(test)]` to the end of the item: a braced block, or a semicolon.
fn test_item_length(trees: &[TokenTree]) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    trees.iter().position(ends).map_or(trees.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        Source::parse("x.rs", source)
            .unwrap()
            .tokens
            .into_iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(
            texts("// unsafe\nfn f() { \"unsafe {}\"; }"),
            ["fn", "f", "(", ")", "{", "\"unsafe {}\"", ";", "}"]
        );
    }

    #[test]
    fn tests_are_left_out() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(test)] use x::y;\nfn c() {}";
        assert_eq!(
            texts(source),
            ["fn", "a", "(", ")", "{", "}", "fn", "c", "(", ")", "{", "}"]
        );
        assert!(
            Source::parse("core/tests/x.rs", "fn a() {}")
                .unwrap()
                .tokens
                .is_empty()
        );
    }

    #[test]
    fn paths_and_lines() {
        let source = Source::parse("x.rs", "use a;\nuse crate::b;").unwrap();
        let line_of = |text: &str| {
            source
                .tokens
                .iter()
                .find(|token| token.text == text)
                .unwrap()
                .line
        };
        assert_eq!((line_of("crate"), line_of("::"), line_of("b")), (2, 2, 2));
    }

    #[test]
    fn module_paths() {
        let source = Source::parse("core/engine/src/storage/pread.rs", "").unwrap();
        assert_eq!(source.below("core/engine/src").unwrap(), ["storage", "pread"]);
        assert_eq!(source.below("gpu"), None);
    }
}
