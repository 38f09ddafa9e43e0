//! What can be done to an item, as edits of the file that it stands in.

use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::Visit;

use crate::edit::Edit;
use crate::item::{Found, Lines};

/// What a graft does to the item that it names.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Replace the body of a function (text without the outer braces).
    Body(&'a str),
    /// Put statements in front of a function's body (for a member of a trait's `impl`, which
    /// [`Operation::Wrap`] can't do).
    Prepend(&'a str),
    /// Put a function with the same attributes and signature in front, with `body`, and keep the original
    /// under another name. Not for a member of a trait's `impl`, which can't have more members: use
    /// [`Operation::Prepend`] or [`Operation::Body`].
    Wrap {
        /// The original's new name.
        rename: &'a str,
        /// The original's new visibility (may be empty).
        visibility: &'a str,
        /// The body of the function in front.
        body: &'a str,
    },
    /// Replace the type of a struct's field.
    FieldType {
        /// Name of the field.
        field: &'a str,
        /// Its new type.
        ty: &'a str,
    },
    /// Change the visibility of a struct's field.
    FieldVisibility {
        /// Name of the field.
        field: &'a str,
        /// Its new visibility.
        visibility: &'a str,
    },
    /// Wherever the item makes a struct with this field (`S { field, .. }`, `S { field: value }`), pass the
    /// value through `with` first: `S { field: with(value) }`. Goes with [`Operation::FieldType`].
    Construct {
        /// Name of the field.
        field: &'a str,
        /// Path of a function from the old type to the new one.
        with: &'a str,
    },
    /// Replace the right-hand side of an associated type.
    AssociatedType(&'a str),
    /// Change the visibility of a function, a struct or a module.
    Visibility(&'a str),
    /// Replace short pieces of text within the item. Keep them to a token or two: upstream's lines stay
    /// upstream.
    Substitute(&'a [Substitution<'a>]),
}

/// One replacement of [`Operation::Substitute`].
#[derive(Clone, Copy, Debug)]
pub struct Substitution<'a> {
    /// What to look for, literally.
    pub from: &'a str,
    /// What to put in its place.
    pub to: &'a str,
    /// How often it must be there.
    pub count: usize,
}

impl Operation<'_> {
    /// The edits that do this to `found`, or why that can't be done.
    pub(crate) fn edits(
        &self,
        source: &str,
        lines: &Lines<'_>,
        path: &str,
        found: Found<'_>,
    ) -> Result<Vec<Edit>, String> {
        let edit = |range: Range<usize>, text: String| Edit {
            range,
            text,
            item: path.to_owned(),
        };
        let function = || {
            found
                .function()
                .ok_or_else(|| "this is not a function".to_owned())
        };
        match *self {
            Self::Body(body) => {
                let (_, _, block) = function()?;
                Ok(vec![edit(lines.range(block.span()), format!("{{\n{body}\n}}"))])
            }
            Self::Prepend(statements) => {
                let (_, _, block) = function()?;
                let start = lines.range(block.span()).start + "{".len();
                Ok(vec![edit(start..start, format!("\n{statements}\n"))])
            }
            Self::Wrap {
                rename,
                visibility,
                body,
            } => {
                let (old_visibility, signature, block) = function()?;
                let start = lines.range(found.span()).start;
                let block = lines.range(block.span());
                let head = &source[start..block.start];
                Ok(vec![
                    edit(start..start, format!("{head}{{\n{body}\n}}\n\n")),
                    edit(
                        visibility_range(lines, old_visibility, signature.span()),
                        spaced(visibility),
                    ),
                    edit(lines.range(signature.ident.span()), rename.to_owned()),
                ])
            }
            Self::FieldType { field, ty } => Ok(vec![edit(
                lines.range(struct_field(found, field)?.ty.span()),
                ty.to_owned(),
            )]),
            Self::FieldVisibility { field, visibility } => {
                let field = struct_field(found, field)?;
                let at = visibility_range(lines, &field.vis, field.ident.span());
                Ok(vec![edit(at, spaced(visibility))])
            }
            Self::Construct { field, with } => {
                let (_, _, block) = function()?;
                let mut finder = FieldValues {
                    field,
                    values: Vec::new(),
                };
                finder.visit_block(block);
                if finder.values.is_empty() {
                    return Err(format!("no struct with a field `{field}` is made here"));
                }
                let text = |value: &syn::FieldValue| {
                    format!("{field}: {with}({})", &source[lines.range(value.expr.span())])
                };
                Ok(finder
                    .values
                    .iter()
                    .map(|value| edit(lines.range(value.span()), text(value)))
                    .collect())
            }
            Self::AssociatedType(ty) => match found {
                Found::AssociatedType(item) => Ok(vec![edit(lines.range(item.ty.span()), ty.to_owned())]),
                _ => Err("this is not an associated type".to_owned()),
            },
            Self::Visibility(visibility) => {
                let at = match found {
                    Found::Item(syn::Item::Fn(item)) => visibility_range(lines, &item.vis, item.sig.span()),
                    Found::Method(item) => visibility_range(lines, &item.vis, item.sig.span()),
                    Found::Item(syn::Item::Struct(item)) => {
                        visibility_range(lines, &item.vis, item.struct_token.span)
                    }
                    Found::Item(syn::Item::Mod(item)) => {
                        visibility_range(lines, &item.vis, item.mod_token.span)
                    }
                    _ => return Err("only functions, structs and modules can change visibility".to_owned()),
                };
                Ok(vec![edit(at, spaced(visibility))])
            }
            Self::Substitute(substitutions) => {
                let range = lines.range(found.span());
                let mut edits = Vec::new();
                for Substitution { from, to, count } in substitutions {
                    let hits: Vec<usize> = source[range.clone()]
                        .match_indices(from)
                        .map(|(at, _)| range.start + at)
                        .collect();
                    if hits.len() != *count {
                        return Err(format!("{from:?} is there {} times, not {count}", hits.len()));
                    }
                    edits.extend(
                        hits.into_iter()
                            .map(|at| edit(at..at + from.len(), (*to).to_owned())),
                    );
                }
                Ok(edits)
            }
        }
    }
}

/// Where a visibility stands or would stand: with the white space after it, in front of `next`.
fn visibility_range(
    lines: &Lines<'_>,
    visibility: &syn::Visibility,
    next: proc_macro2::Span,
) -> Range<usize> {
    let next = lines.range(next).start;
    match visibility {
        syn::Visibility::Inherited => next..next,
        _ => lines.range(visibility.span()).start..next,
    }
}

fn spaced(visibility: &str) -> String {
    if visibility.is_empty() {
        String::new()
    } else {
        format!("{visibility} ")
    }
}

fn struct_field<'a>(found: Found<'a>, name: &str) -> Result<&'a syn::Field, String> {
    let Found::Item(syn::Item::Struct(item)) = found else {
        return Err("this is not a struct".to_owned());
    };
    let named = |field: &&syn::Field| field.ident.as_ref().is_some_and(|ident| ident == name);
    item.fields
        .iter()
        .find(named)
        .ok_or_else(|| format!("there is no field `{name}`"))
}

/// Collects the places where a struct literal gives this field its value.
struct FieldValues<'a, 'ast> {
    field: &'a str,
    values: Vec<&'ast syn::FieldValue>,
}

impl<'ast> Visit<'ast> for FieldValues<'_, 'ast> {
    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        self.values
            .extend(literal.fields.iter().filter(|value| match &value.member {
                syn::Member::Named(name) => name == self.field,
                syn::Member::Unnamed(_) => false,
            }));
        syn::visit::visit_expr_struct(self, literal);
    }
}
