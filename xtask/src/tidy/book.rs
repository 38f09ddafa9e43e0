//! Every document is a page of the book, and every page of the book is there.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Documents that `docs/SUMMARY.md` does not name, and names of documents that are not there.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let docs = root.join("docs");
    let summary = std::fs::read_to_string(root.join(SUMMARY)).map_err(|e| format!("{SUMMARY}: {e}"))?;
    let entries = std::fs::read_dir(&docs).map_err(|e| format!("{}: {e}", docs.display()))?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let pages = names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md");
    Ok(compare(&pages.collect(), &summary))
}

fn compare(pages: &BTreeSet<String>, summary: &str) -> Vec<Finding> {
    let links =
        |line: &str| -> Option<String> { Some(line.split_once("](")?.1.split_once(')')?.0.to_owned()) };
    let named: BTreeSet<String> = summary.lines().filter_map(links).collect();
    let missing = pages.difference(&named);
    let missing = missing.map(|page| format!("docs/{page} is not a page of the book: name it here"));
    let gone = named.difference(pages);
    let gone = gone.map(|page| format!("there is no docs/{page}"));
    let messages = missing.chain(gone);
    messages
        .map(|message| Finding::new(Path::new(SUMMARY), 0, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_names_are_compared_both_ways() {
        let pages = BTreeSet::from(["a.md".to_owned(), "b.md".to_owned()]);
        assert!(compare(&pages, "# Summary\n- [A](a.md)\n    - [B](b.md)\n").is_empty());
        let findings = compare(&pages, "- [A](a.md)\n- [C](c.md)\n");
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "docs/b.md is not a page of the book: name it here",
                "there is no docs/c.md"
            ]
        );
    }
}
