//! Edits of one text: replaced byte ranges that must not overlap.

use std::ops::Range;

/// Replace `range` of the original text. An empty range inserts.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    /// Bytes of the original text.
    pub(crate) range: Range<usize>,
    /// What stands there afterwards.
    pub(crate) text: String,
    /// The item for which this is done, for messages.
    pub(crate) item: String,
}

/// Applies all edits at once. Insertions at one place keep their order and precede a replacement that starts
/// there.
///
/// # Errors
/// The two items whose edits overlap.
pub(crate) fn apply(source: &str, edits: &[Edit]) -> Result<String, [String; 2]> {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut result = String::with_capacity(source.len());
    let (mut done, mut before) = (0, "");
    for edit in sorted {
        if edit.range.start < done {
            return Err([before.to_owned(), edit.item.clone()]);
        }
        result.push_str(&source[done..edit.range.start]);
        result.push_str(&edit.text);
        (done, before) = (edit.range.end, &edit.item);
    }
    result.push_str(&source[done..]);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(range: Range<usize>, text: &str, item: &str) -> Edit {
        Edit {
            range,
            text: text.into(),
            item: item.into(),
        }
    }

    #[test]
    fn edits_apply_in_source_order_whatever_order_they_came_in() {
        let edits = [
            edit(6..11, "there", "b"),
            edit(0..0, "> ", "a"),
            edit(0..5, "hi", "a"),
        ];
        assert_eq!(apply("hello world", &edits).unwrap(), "> hi there");
    }

    #[test]
    fn insertions_at_one_place_keep_their_order() {
        assert_eq!(
            apply("x", &[edit(1..1, "a", "a"), edit(1..1, "b", "b")]).unwrap(),
            "xab"
        );
    }

    #[test]
    fn overlap_names_both_items() {
        let edits = [edit(0..5, "", "first"), edit(4..6, "", "second")];
        assert_eq!(apply("hello world", &edits).unwrap_err(), ["first", "second"]);
        let same = [edit(0..5, "", "first"), edit(0..5, "", "second")];
        assert!(apply("hello world", &same).is_err());
        let inside = [edit(0..5, "", "first"), edit(3..3, "y", "second")];
        assert!(apply("hello world", &inside).is_err());
    }
}
