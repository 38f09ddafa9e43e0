//! Files past 700 lines: do they contain more than one idea?

use super::Finding;
use super::source::Source;

const LINES_MAX: usize = 700;

/// Files that are longer.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter_map(|source| {
            let lines = source.text.lines().count();
            (lines > LINES_MAX).then(|| {
                Finding::new(
                    &source.file,
                    0,
                    format!("{lines} lines (more than {LINES_MAX}): is it one idea, or two?"),
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_pointed_at() {
        let long = Source::parse("a.rs", "fn f() {}\n".repeat(LINES_MAX + 1)).unwrap();
        let short = Source::parse("b.rs", "fn f() {}\n".repeat(LINES_MAX)).unwrap();
        assert_eq!(check(&[long]).len(), 1);
        assert_eq!(check(&[short]).len(), 0);
    }
}
