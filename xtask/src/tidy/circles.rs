//! Files of a package that import each other in a circle: none is left but for a reason that is written here.
//!
//! A module's file and the files in its folder may name each other ([`Package::uses`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Finding;
use super::paths::{Module, Package};
use super::source::Source;

/// Circles that stay: the package's folder, the files, and why. A circle that is gone leaves the list.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "core/kernels/src",
        &[
            "backend/mod.rs",
            "backend/lanes.rs",
            "compiled.rs",
            "curve.rs",
            "field/mod.rs",
            "msm/mod.rs",
            "ntt/mod.rs",
            "points/mod.rs",
            "vector/mod.rs",
        ],
        "a field says which lanes it has, lanes are those of a field, and the functions that a field is compiled for are its trait's",
    ),
    (
        "core/kernels/src",
        &["msm/config.rs", "msm/window.rs"],
        "to be cut: the bytes of a worker belong to the configuration",
    ),
    (
        "core/kernels/src",
        &[
            "ntt/domain.rs",
            "ntt/element.rs",
            "ntt/panel.rs",
            "ntt/strips.rs",
            "ntt/twiddles.rs",
        ],
        "to be cut: an element says how its strips are transformed",
    ),
    (
        "core/kernels/src",
        &["points/digits.rs", "points/endomorphism.rs"],
        "to be cut: halves of scalars and their digits",
    ),
    (
        "core/kernels/src",
        &["vector/evaluate.rs", "vector/instruction.rs"],
        "to be cut: an instruction and its evaluation",
    ),
    (
        "core/commit/src",
        &[
            "compiled.rs",
            "generate.rs",
            "jacobian.rs",
            "kzg.rs",
            "srs.rs",
            "srs_check.rs",
            "srs_in_place.rs",
            "srs_import.rs",
            "srs_stream.rs",
        ],
        "a curve's trait has what is compiled for it as methods, and what calls them is over such a curve",
    ),
    (
        "core/plonk/src",
        &["compiled.rs", "plan.rs"],
        "a plan is a dry run of the prover that a curve is compiled for, and the curve's trait has the plan as a method",
    ),
    (
        "core/groth16/src",
        &[
            "arkworks/mod.rs",
            "arkworks/file.rs",
            "arkworks/given.rs",
            "arkworks/zkey.rs",
            "compiled.rs",
            "dealt.rs",
            "file.rs",
            "iden3/coefficients.rs",
            "iden3/key.rs",
            "iden3/plan.rs",
            "iden3/witness.rs",
            "key.rs",
            "over_ranks.rs",
            "over_ranks/kept.rs",
            "over_ranks/key_share.rs",
            "proof.rs",
            "quotient.rs",
            "task.rs",
        ],
        "a curve's trait has what is compiled for it as methods, and their bodies are over such a curve",
    ),
    (
        "disk-format/src",
        &["geometry.rs", "header.rs"],
        "a header is valid if its geometry is, and a geometry follows from the header's sections",
    ),
];

/// A circle, by its files.
struct Circle<'a> {
    folder: &'a str,
    files: Vec<String>,
    /// A line of the first file that is part of it.
    line: usize,
}

/// Circles that no reason allows, and reasons without a circle.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    compare(&circles(sources), ALLOWED)
}

fn compare(circles: &[Circle<'_>], allowed: &[(&str, &[&str], &str)]) -> Vec<Finding> {
    let allows = |circle: &Circle<'_>, (folder, files, _): &(&str, &[&str], &str)| {
        circle.folder == *folder && circle.files.iter().all(|file| files.contains(&file.as_str()))
    };
    let forbidden = circles
        .iter()
        .filter(|circle| !allowed.iter().any(|entry| allows(circle, entry)))
        .map(|circle| {
            let message = format!(
                "files import each other in a circle: {}. Move what they share to a file of its own",
                circle.files.join(", ")
            );
            Finding::new(
                &Path::new(circle.folder).join(&circle.files[0]),
                circle.line,
                message,
            )
        });
    let gone = allowed
        .iter()
        .filter(|entry| !circles.iter().any(|circle| allows(circle, entry)))
        .map(|(folder, files, _)| {
            let message = format!(
                "{} are in no circle: take them off xtask/src/tidy/circles.rs",
                files.join(", ")
            );
            Finding::new(Path::new(folder), 0, message)
        });
    forbidden.chain(gone).collect()
}

/// All circles of all packages.
fn circles(sources: &[Source]) -> Vec<Circle<'_>> {
    let folders: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| {
            let file = source.file.to_str()?;
            file.strip_suffix("/lib.rs")
                .or_else(|| file.strip_suffix("/main.rs"))
        })
        .filter(|folder| folder.ends_with("src"))
        .collect();
    folders
        .into_iter()
        .flat_map(|folder| circles_of(&Package::read(sources, folder), folder))
        .collect()
}

fn circles_of<'a>(package: &Package<'_>, folder: &'a str) -> Vec<Circle<'a>> {
    let uses = package.uses();
    let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for used in &uses {
        edges.entry(&used.from).or_default().insert(&used.to);
    }
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = edges
        .keys()
        .map(|&from| (from, reached_from(from, &edges)))
        .collect();
    let reaches = |from: &Module, to: &Module| reached.get(from).is_some_and(|all| all.contains(to));
    let mut found: Vec<Circle<'_>> = Vec::new();
    let mut seen = BTreeSet::new();
    for &first in edges.keys() {
        if seen.contains(first) || !reaches(first, first) {
            continue;
        }
        let members: Vec<&Module> = edges
            .keys()
            .copied()
            .filter(|other| reaches(first, other) && reaches(other, first))
            .collect();
        let within = |used: &&super::paths::Use| used.from == *first && members.contains(&&used.to);
        found.push(Circle {
            folder,
            files: members
                .iter()
                .map(|module| name(package, module, folder))
                .collect(),
            line: uses.iter().find(within).map_or(0, |used| used.line),
        });
        seen.extend(members);
    }
    found
}

fn reached_from<'a>(
    from: &'a Module,
    edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for &to in edges.get(module).into_iter().flatten() {
            if reached.insert(to) {
                next.push(to);
            }
        }
    }
    reached
}

fn name(package: &Package<'_>, module: &Module, folder: &str) -> String {
    let file = package.file(module);
    file.strip_prefix(folder).unwrap_or(&file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[(&str, &[&str], &str)] = &[("p/src", &["a.rs", "b.rs", "c/mod.rs"], "a reason")];

    fn findings(a: &str, allowed: &[(&str, &[&str], &str)]) -> Vec<String> {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; use a::f;"),
            ("a.rs", a),
            ("b.rs", "use crate::c::h;\nuse crate::f;"),
            ("c/mod.rs", "mod inner; use inner::X;"),
            ("c/inner.rs", "use super::h;"),
        ];
        let sources: Vec<_> = files
            .iter()
            .map(|(file, text)| Source::parse(format!("p/src/{file}"), *text).unwrap())
            .collect();
        let found = compare(&circles(&sources), allowed);
        found.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_circle_is_found_through_what_is_re_exported() {
        let found = findings("\nuse crate::b::g;", &[]);
        assert_eq!(
            found,
            [
                "p/src/a.rs:2: files import each other in a circle: a.rs, b.rs. Move what they share to a file of its own"
            ]
        );
        assert_eq!(findings("use crate::c::h;", &[]), [""; 0]);
    }

    #[test]
    fn a_reason_allows_a_circle_while_it_is_there() {
        assert_eq!(findings("use crate::b::g;", ALLOWED), [""; 0]);
        let found = findings("", ALLOWED);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("in no circle"), "{found:?}");
    }
}
