//! Items by path: `fn f`, `struct S`, `mod m :: fn f`, `impl S :: fn f`, `impl Trait for S :: type T`.
//!
//! Generic arguments and leading path segments are left out (`impl Params for ParamsKZG`), a reference keeps
//! its `&`. A segment may start with the item's `#[cfg(..)]`, which picks one of several with the same name.

use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned as _;

/// An item, or a member of an `impl`.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    Item(&'a syn::Item),
    Method(&'a syn::ImplItemFn),
    AssociatedType(&'a syn::ImplItemType),
}

impl<'a> Found<'a> {
    /// From the first attribute to the last token.
    pub(crate) fn span(self) -> Span {
        match self {
            Self::Item(item) => item.span(),
            Self::Method(item) => item.span(),
            Self::AssociatedType(item) => item.span(),
        }
    }

    /// Visibility, signature and body, if this is a function.
    pub(crate) fn function(self) -> Option<(&'a syn::Visibility, &'a syn::Signature, &'a syn::Block)> {
        match self {
            Self::Item(syn::Item::Fn(function)) => Some((&function.vis, &function.sig, &function.block)),
            Self::Method(function) => Some((&function.vis, &function.sig, &function.block)),
            _ => None,
        }
    }
}

/// Every item with this path.
pub(crate) fn find<'a>(file: &'a syn::File, path: &str) -> Vec<Found<'a>> {
    let segments: Vec<&str> = path.split(" :: ").map(str::trim).collect();
    let mut found = Vec::new();
    descend(&file.items, &segments, &mut found);
    found
}

fn descend<'a>(items: &'a [syn::Item], path: &[&str], found: &mut Vec<Found<'a>>) {
    let Some((segment, rest)) = path.split_first() else {
        return;
    };
    for item in items {
        let Some((name, attributes)) = name(item) else {
            continue;
        };
        if !matches(segment, &name, attributes) {
            continue;
        }
        match (rest, item) {
            ([], _) => found.push(Found::Item(item)),
            (_, syn::Item::Mod(module)) => {
                if let Some((_, content)) = &module.content {
                    descend(content, rest, found);
                }
            }
            ([member], syn::Item::Impl(block)) => {
                found.extend(block.items.iter().filter_map(|item| {
                    match item {
                        syn::ImplItem::Fn(item) => {
                            matches(member, &format!("fn {}", item.sig.ident), &item.attrs)
                                .then_some(Found::Method(item))
                        }
                        syn::ImplItem::Type(item) => {
                            matches(member, &format!("type {}", item.ident), &item.attrs)
                                .then_some(Found::AssociatedType(item))
                        }
                        _ => None,
                    }
                }));
            }
            _ => {}
        }
    }
}

/// Does `segment` (perhaps with a `#[cfg(..)]` in front) mean the item with this name and these attributes?
fn matches(segment: &str, name: &str, attributes: &[syn::Attribute]) -> bool {
    let Some(rest) = segment.strip_prefix("#[cfg(") else {
        return segment == name;
    };
    let Some((condition, wanted)) = rest.split_once(")]") else {
        return false;
    };
    wanted.trim() == name
        && attributes.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => {
                without_spaces(&list.tokens.to_string()) == without_spaces(condition)
            }
            _ => false,
        })
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn name(item: &syn::Item) -> Option<(String, &[syn::Attribute])> {
    Some(match item {
        syn::Item::Const(item) => (format!("const {}", item.ident), &item.attrs),
        syn::Item::Enum(item) => (format!("enum {}", item.ident), &item.attrs),
        syn::Item::Fn(item) => (format!("fn {}", item.sig.ident), &item.attrs),
        syn::Item::Mod(item) => (format!("mod {}", item.ident), &item.attrs),
        syn::Item::Struct(item) => (format!("struct {}", item.ident), &item.attrs),
        syn::Item::Trait(item) => (format!("trait {}", item.ident), &item.attrs),
        syn::Item::Type(item) => (format!("type {}", item.ident), &item.attrs),
        syn::Item::Impl(item) => {
            let on = type_name(&item.self_ty)?;
            match &item.trait_ {
                Some((_, path, _)) => (
                    format!("impl {} for {on}", path.segments.last()?.ident),
                    &item.attrs,
                ),
                None => (format!("impl {on}"), &item.attrs),
            }
        }
        _ => return None,
    })
}

fn type_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        syn::Type::Reference(reference) => Some(format!("&{}", type_name(&reference.elem)?)),
        _ => None,
    }
}

/// From the parser's lines and columns to bytes. (`Span::byte_range` would do; it is too new for a loose
/// floor.)
pub(crate) struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        let after_newlines = source.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            source,
            starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    pub(crate) fn range(&self, span: Span) -> Range<usize> {
        self.offset(span.start())..self.offset(span.end())
    }

    fn offset(&self, at: LineColumn) -> usize {
        let start = self
            .starts
            .get(at.line.wrapping_sub(1))
            .copied()
            .unwrap_or(self.source.len());
        let line = &self.source[start..];
        start
            + line
                .char_indices()
                .nth(at.column)
                .map_or(line.len(), |(offset, _)| offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, path: &str) -> Vec<String> {
        let file = syn::parse_file(source).unwrap();
        let lines = Lines::new(source);
        find(&file, path)
            .into_iter()
            .map(|found| source[lines.range(found.span())].to_owned())
            .collect()
    }

    const SOURCE: &str = "//! é\nmod m { fn f() { \"ü\" } }\nfn f() {}\n/// doc\npub struct S<T> { t: T }\n\
        impl<T> S<T> { fn f(&self) {} }\nimpl<T> fmt::Debug for S<T> { type O = u8; fn f() {} }\n\
        impl<'a> From<&'a u8> for &'a S<u8> { fn g() {} }\n";

    #[test]
    fn items_are_found_where_they_are() {
        assert_eq!(texts(SOURCE, "fn f"), ["fn f() {}"]);
        assert_eq!(texts(SOURCE, "mod m :: fn f"), ["fn f() { \"ü\" }"]);
        assert_eq!(texts(SOURCE, "struct S"), ["/// doc\npub struct S<T> { t: T }"]);
        assert_eq!(texts(SOURCE, "impl S :: fn f"), ["fn f(&self) {}"]);
        assert_eq!(texts(SOURCE, "impl Debug for S :: fn f"), ["fn f() {}"]);
        assert_eq!(texts(SOURCE, "impl Debug for S :: type O"), ["type O = u8;"]);
        assert_eq!(texts(SOURCE, "impl From for &S :: fn g"), ["fn g() {}"]);
        assert!(texts(SOURCE, "fn absent").is_empty());
    }

    #[test]
    fn a_cfg_picks_one_of_several() {
        let source = "#[cfg(feature = \"a\")]\nfn f() { 1 }\n#[cfg(not(feature = \"a\"))]\nfn f() { 2 }\n";
        assert_eq!(texts(source, "fn f").len(), 2);
        assert_eq!(
            texts(source, "#[cfg(not(feature = \"a\"))] fn f"),
            ["#[cfg(not(feature = \"a\"))]\nfn f() { 2 }"]
        );
        assert_eq!(texts(source, "#[cfg(feature=\"a\")] fn f").len(), 1);
        assert!(texts(source, "#[cfg(unix)] fn f").is_empty());
    }
}
