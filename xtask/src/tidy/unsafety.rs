//! `unsafe` lives in leaves, and the leaves are listed.

use std::path::Path;

use super::Finding;
use super::source::Source;

/// Every file that may hold `unsafe` code, with what it is for. A file that no longer needs it must leave the
/// list.
const LEAVES: &[(&str, &str)] = &[
    ("core/engine/src/budget/alloc.rs", "the counting global allocator"),
    (
        "core/engine/src/budget/heap.rs",
        "a setting of the C library's heap",
    ),
    ("core/engine/src/budget/leased_vec.rs", "pages as typed values"),
    (
        "core/engine/src/budget/buffer.rs",
        "buffers as memory that is lent",
    ),
    ("core/engine/src/budget/lent.rs", "memory that is lent in parts"),
    ("core/engine/src/budget/pages.rs", "anonymous maps"),
    (
        "core/engine/src/budget/secret.rs",
        "a key in a page that is locked and wiped",
    ),
    (
        "core/engine/src/column/addressed.rs",
        "cells whose addresses are given out",
    ),
    ("core/engine/src/column/mapped.rs", "cells of a map"),
    ("core/engine/src/column/view.rs", "columns as slices"),
    (
        "core/kernels/src/backend/avx2/instructions.rs",
        "vector instructions, and the entry to code for one processor",
    ),
    ("core/kernels/src/backend/avx2/product.rs", "products in assembly"),
    (
        "core/kernels/src/backend/avx512/instructions.rs",
        "vector instructions, and the entry to code for one processor",
    ),
    (
        "core/kernels/src/backend/words.rs",
        "multiplication with two carries",
    ),
    ("core/engine/src/storage/map.rs", "maps of files"),
    (
        "core/engine/src/storage/paged.rs",
        "maps of files whose pages come and go",
    ),
    (
        "core/engine/src/storage/pread.rs",
        "buffers that the kernel writes into",
    ),
    (
        "core/engine/src/storage/protected.rs",
        "pages that a signal asks for",
    ),
    (
        "core/engine/src/storage/region.rs",
        "pages that the program fills itself",
    ),
    ("core/engine/src/storage/transfer.rs", "buffers in flight"),
    ("core/engine/src/storage/uring.rs", "entries of the ring"),
    (
        "core/engine/src/storage/userfault.rs",
        "calls for a descriptor of faults",
    ),
    (
        "demos/bindings/src/pointers.rs",
        "pointers that callers in C give",
    ),
    (
        "demos/c/src/functions.rs",
        "functions for C, whose callers give pointers",
    ),
    (
        "demos/circom/src/c.rs",
        "functions for C, whose callers give pointers",
    ),
    ("demos/python/src/buffers.rs", "memory of Python's objects"),
    (
        "halo2-patch/axiom/src/spillproof/cells.rs",
        "references to advice cells in a map",
    ),
    (
        "core/report/src/environment/exit.rs",
        "a function that the C library calls at the end of the process",
    ),
    (
        "halo2-patch/midnight/src/spillproof/projective.rs",
        "the engine's points as midnight-curves', and back",
    ),
    (
        "halo2-patch/zcash/src/spillproof/convert.rs",
        "limbs of pasta_curves' values, which are private",
    ),
    ("gpu/src/driver.rs", "asking the dynamic loader for the driver"),
    ("gpu/src/raw/context.rs", "the driver's contexts"),
    ("gpu/src/raw/event.rs", "the driver's events"),
    (
        "gpu/src/raw/launch.rs",
        "modules, and kernels with untyped parameters",
    ),
    ("gpu/src/raw/memory.rs", "device memory and page-locked memory"),
    (
        "gpu/src/raw/slot.rs",
        "asynchronous copies of memory that the slot owns",
    ),
    ("gpu/src/raw/stream.rs", "the driver's streams"),
    (
        "gpu/src/kernels/mod.rs",
        "the launch of a kernel, unsafe for its caller",
    ),
    (
        "gpu/src/kernels/find.rs",
        "asking the dynamic loader for the compiler",
    ),
    (
        "gpu/src/kernels/nvrtc.rs",
        "the compiler of kernels as a C library",
    ),
    (
        "gpu/src/measure/launch.rs",
        "launches of the kernels that measure a device",
    ),
    (
        "gpu/src/constraints/launch.rs",
        "launches of the kernels of constraints",
    ),
    ("gpu/src/msm/launch.rs", "launches of the MSM's kernels"),
    ("gpu/src/ntt/passes.rs", "launches of the NTT's kernels"),
    (
        "gpu/src/program/launch.rs",
        "launches of constraint programs, compiled and interpreted",
    ),
    (
        "gpu/fake-driver/src/control.rs",
        "control functions of the fake driver",
    ),
];

/// `unsafe` outside the list, and entries of the list that hold none.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let outside = sources.iter().filter(|source| leaf(&source.file).is_none()).flat_map(|source| {
        let uses = source.tokens.iter().filter(|token| token.text == "unsafe");
        uses.map(|token| {
            let message = "`unsafe` outside the leaves: move it to one, or list this file in xtask/src/tidy/unsafety.rs";
            Finding::new(&source.file, token.line, message)
        })
    });
    let stale = LEAVES.iter().filter_map(|(file, _)| {
        let source = sources.iter().find(|source| source.file == Path::new(file));
        let needs_it = source.is_some_and(|source| source.tokens.iter().any(|token| token.text == "unsafe"));
        let message =
            "listed as a leaf for `unsafe` code and has none: take it off xtask/src/tidy/unsafety.rs";
        (!needs_it).then(|| Finding::new(Path::new(file), 0, message))
    });
    outside.chain(stale).collect()
}

fn leaf(file: &Path) -> Option<&'static str> {
    LEAVES
        .iter()
        .find(|(leaf, _)| file == Path::new(leaf))
        .map(|(_, purpose)| *purpose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_where_it_stands() {
        let source = Source::parse(
            "core/engine/src/lib.rs",
            "//! unsafe\nfn f() {\n    unsafe { g() }\n}",
        )
        .unwrap();
        let findings = check(&[source]);
        let here: Vec<_> = findings
            .iter()
            .filter(|finding| finding.file.starts_with("core/engine/src/lib.rs"))
            .collect();
        assert_eq!(here.len(), 1);
        assert_eq!(here[0].line, 3);
    }

    #[test]
    fn a_leaf_without_need_is_found() {
        let sources: Vec<_> = LEAVES
            .iter()
            .map(|(file, _)| Source::parse(*file, "fn safe() {}").unwrap())
            .collect();
        assert_eq!(check(&sources).len(), LEAVES.len());
    }
}
