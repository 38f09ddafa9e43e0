//! The source of one release in memory, the grafts on it, and the way to disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned as _;

use crate::edit::{Edit, apply};
use crate::item::{Lines, find};
use crate::{Error, Operation, Result, digest};

/// Files by their path within the crate (`src/lib.rs`), and what is to be done to them. Mistakes are
/// collected and come back together from [`Tree::write`].
#[derive(Debug)]
pub struct Tree {
    files: BTreeMap<String, String>,
    /// Files that are no text: they are written as they are.
    copied: BTreeMap<String, Vec<u8>>,
    edits: BTreeMap<String, Vec<Edit>>,
    errors: Vec<Error>,
    blessed: Option<Vec<String>>,
}

impl Tree {
    /// From files whose digests have been checked. With `bless`, no item's digest is checked; all of them are
    /// collected for [`Tree::blessed`], and nothing can be written.
    pub fn new(files: BTreeMap<String, String>, bless: bool) -> Self {
        Self {
            files,
            copied: BTreeMap::new(),
            edits: BTreeMap::new(),
            errors: Vec::new(),
            blessed: bless.then(Vec::new),
        }
    }

    /// With files that are no text, which are written as they are.
    pub(crate) fn copying(mut self, files: BTreeMap<String, Vec<u8>>) -> Self {
        self.copied = files;
        self
    }

    /// Text of a file as it came from upstream.
    ///
    /// # Errors
    /// [`Error::NotPinned`] if there is no such file, or it is no text.
    pub fn file(&self, file: &str) -> Result<&str> {
        self.files
            .get(file)
            .map(String::as_str)
            .ok_or_else(|| Error::NotPinned {
                file: file.to_owned(),
            })
    }

    /// Lines `<file> <item> <digest>` of everything that was named, if blessing.
    pub fn blessed(&self) -> &[String] {
        self.blessed.as_deref().unwrap_or_default()
    }

    /// Does `operation` to the item with this path, if it still has this digest: the first 16 hexadecimal
    /// digits, or more, of the SHA-256 of its text, from its first attribute to its last token. Several
    /// grafts may share an item.
    pub fn graft(&mut self, file: &str, item: &str, pinned: &str, operation: Operation<'_>) {
        self.collect(|tree| tree.graft_item(file, item, pinned, operation), file);
    }

    /// Takes the inner attributes and inner documentation from a crate's root, since `include!` refuses them.
    /// They have to be restated by hand in the file that includes it, hence they are pinned.
    pub fn strip_inner_attributes(&mut self, file: &str, pinned: &str) {
        self.collect(|tree| tree.strip(file, pinned), file);
    }

    /// Adds text at the end of a file: a `#[path = ".."] mod ..;`, mostly.
    pub fn append(&mut self, file: &str, text: &str) {
        let added = |tree: &mut Self| {
            let end = tree.file(file)?.len();
            Ok(vec![Edit {
                range: end..end,
                text: format!("\n{text}\n"),
                item: "end of file".to_owned(),
            }])
        };
        self.collect(added, file);
    }

    /// Applies everything and writes all files under `root`, which is emptied first. Returns `root`.
    ///
    /// # Errors
    /// Everything that went wrong since the tree was opened, overlapping grafts, and files that no longer
    /// parse.
    pub fn write(mut self, root: &Path) -> Result<PathBuf> {
        let mut errors = std::mem::take(&mut self.errors);
        for (file, edits) in &self.edits {
            match self.file(file).and_then(|source| grafted(file, source, edits)) {
                Ok(text) => drop(self.files.insert(file.clone(), text)),
                Err(error) => errors.push(error),
            }
        }
        if self.blessed.is_some() {
            errors.push(Error::Blessed);
        }
        match errors.len() {
            0 => {}
            1 => return Err(errors.remove(0)),
            _ => return Err(Error::Several(errors)),
        }
        if root.exists() {
            fs::remove_dir_all(root).map_err(|source| Error::File {
                path: root.into(),
                source,
            })?;
        }
        let texts = self.files.iter().map(|(file, text)| (file, text.as_bytes()));
        let copied = self.copied.iter().map(|(file, bytes)| (file, &bytes[..]));
        for (file, bytes) in texts.chain(copied) {
            let path = root.join(file);
            let parent = path.parent().unwrap_or(root);
            fs::create_dir_all(parent).map_err(|source| Error::File {
                path: parent.into(),
                source,
            })?;
            fs::write(&path, bytes).map_err(|source| Error::File { path, source })?;
        }
        Ok(root.to_owned())
    }

    fn collect(&mut self, make: impl FnOnce(&mut Self) -> Result<Vec<Edit>>, file: &str) {
        match make(self) {
            Ok(edits) => self.edits.entry(file.to_owned()).or_default().extend(edits),
            Err(error) => self.errors.push(error),
        }
    }

    fn graft_item(
        &mut self,
        file: &str,
        item: &str,
        pinned: &str,
        operation: Operation<'_>,
    ) -> Result<Vec<Edit>> {
        let source = self.file(file)?;
        let syntax = parse(file, source, "before")?;
        let hits = find(&syntax, item);
        let found = match hits.as_slice() {
            [found] => *found,
            [] => {
                return Err(Error::NoSuchItem {
                    file: file.to_owned(),
                    item: item.to_owned(),
                });
            }
            _ => {
                let count = hits.len();
                return Err(Error::AmbiguousItem {
                    file: file.to_owned(),
                    item: item.to_owned(),
                    count,
                });
            }
        };
        let lines = Lines::new(source);
        let text = &source[lines.range(found.span())];
        let edits = operation
            .edits(source, &lines, item, found)
            .map_err(|why| Error::Misfit {
                file: file.to_owned(),
                item: item.to_owned(),
                why,
            });
        let now = digest(text.as_bytes());
        self.pin(file, item, pinned, now)?;
        edits
    }

    fn strip(&mut self, file: &str, pinned: &str) -> Result<Vec<Edit>> {
        const ITEM: &str = "inner attributes";
        let source = self.file(file)?;
        let syntax = parse(file, source, "before")?;
        let lines = Lines::new(source);
        let ranges: Vec<_> = syntax
            .attrs
            .iter()
            .map(|attribute| lines.range(attribute.span()))
            .collect();
        let all: String = ranges
            .iter()
            .flat_map(|range| [&source[range.clone()], "\n"])
            .collect();
        let empty = |range| Edit {
            range,
            text: String::new(),
            item: ITEM.to_owned(),
        };
        let edits = ranges.into_iter().map(empty).collect();
        self.pin(file, ITEM, pinned, digest(all.as_bytes()))?;
        Ok(edits)
    }

    fn pin(&mut self, file: &str, item: &str, pinned: &str, found: String) -> Result<()> {
        if let Some(blessed) = &mut self.blessed {
            blessed.push(format!("{file} `{item}` {}", &found[..16]));
            return Ok(());
        }
        if pinned.len() < 16 || !found.starts_with(pinned) {
            let pinned = pinned.to_owned();
            return Err(Error::Drift {
                file: file.to_owned(),
                item: item.to_owned(),
                pinned,
                found,
            });
        }
        Ok(())
    }
}

fn parse(file: &str, source: &str, when: &'static str) -> Result<syn::File> {
    syn::parse_file(source).map_err(|error| {
        let at = error.span().start();
        let message = format!("line {}, column {}: {error}", at.line, at.column + 1);
        Error::Syntax {
            file: file.to_owned(),
            when,
            message,
        }
    })
}

fn grafted(file: &str, source: &str, edits: &[Edit]) -> Result<String> {
    let text = apply(source, edits).map_err(|items| Error::Overlap {
        file: file.to_owned(),
        items,
    })?;
    parse(file, &text, "after")?;
    Ok(text)
}
