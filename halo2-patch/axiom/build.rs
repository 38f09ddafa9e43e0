//! Writes upstream's source with our grafts into `OUT_DIR`; `src/lib.rs` includes it. Nothing of upstream is kept here:
//! only the digests of its files (`upstream.sha256`) and, below, of the items that are changed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use spillproof_graft::{Operation, Tree, Upstream};

const UPSTREAM: Upstream<'_> = Upstream {
    name: "halo2-axiom",
    version: "0.5.3",
    archive_digest: "18316396f9bc7dcd6ac1602443ea4f83f2c93fa5abe448a28db3abceb9c7aab3",
    files: include_str!("upstream.sha256"),
    source_variable: "SPILLPROOF_HALO2_AXIOM_SRC",
};

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `cargo::error` shows one line each, without the build script's whole output.
            error
                .to_string()
                .lines()
                .for_each(|line| println!("cargo::error={line}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: this is for cargo to run")?);
    let mut tree = UPSTREAM.open(&out)?;
    // Restated in src/lib.rs.
    tree.strip_inner_attributes("src/lib.rs", "874aa4f714130b16");
    // Restated in tests/upstream_plonk_api.rs.
    tree.strip_inner_attributes("tests/plonk_api.rs", "d078d158683944d3");
    reproducible(&mut tree)?;
    params(&mut tree);
    tree.blessed()
        .iter()
        .for_each(|line| println!("cargo::warning=bless {line}"));
    tree.write(&out.join("upstream"))?;
    Ok(())
}

/// The two things that stock leaves to chance: the random polynomial of the vanishing argument, and the order of
/// permuted lookup values.
fn reproducible(tree: &mut Tree) -> Result<(), Box<dyn Error>> {
    let vanishing = "src/plonk/vanishing/prover.rs";
    let body = "if crate::spillproof::draws_in_order() { spillproof_draw::commit(params, domain, rng, transcript) } \
                else { Self::commit_in_parallel(params, domain, rng, transcript) }";
    let wrap = Operation::Wrap {
        rename: "commit_in_parallel",
        visibility: "",
        body,
    };
    tree.graft(vanishing, "impl Argument :: fn commit", "6be157c07803c4ed", wrap);
    append_module(tree, vanishing, "spillproof_draw", "vanishing.rs")?;

    let lookup = "src/plonk/lookup/prover.rs";
    let arguments = "(pk, params, domain, rng, input_expression, table_expression)";
    let body = format!(
        "if crate::spillproof::reproducible() {{ spillproof_order::permute_expression_pair{arguments} }} \
         else {{ permute_expression_pair_in_map_order{arguments} }}"
    );
    let wrap = Operation::Wrap {
        rename: "permute_expression_pair_in_map_order",
        visibility: "",
        body: &body,
    };
    tree.graft(lookup, "fn permute_expression_pair", "1cd846f63657df7f", wrap);
    append_module(tree, lookup, "spillproof_order", "lookup.rs")
}

/// `ParamsKZG`: its points may be on disk.
fn params(tree: &mut Tree) {
    let file = "src/poly/kzg/commitment.rs";
    let mut graft = |item: &str, pinned: &str, operation| tree.graft(file, item, pinned, operation);

    let construct = |field| Operation::Construct {
        field,
        with: "crate::spillproof::bases::Bases::from",
    };
    for field in ["g", "g_lagrange"] {
        let ty = "crate::spillproof::bases::Bases<E::G1Affine>";
        graft(
            "struct ParamsKZG",
            "abff2966b83b88c4",
            Operation::FieldType { field, ty },
        );
        graft("impl ParamsKZG :: fn setup", "e57cea18cd118a37", construct(field));
        graft(
            "impl ParamsKZG :: fn read_custom",
            "ed9d2ffa5d49f48b",
            construct(field),
        );
    }
    let wrap = |rename, body| Operation::Wrap {
        rename,
        visibility: "",
        body,
    };
    let setup =
        "crate::spillproof::params::setup(k, rng).unwrap_or_else(|rng| Self::setup_in_memory(k, rng))";
    graft(
        "impl ParamsKZG :: fn setup",
        "e57cea18cd118a37",
        wrap("setup_in_memory", setup),
    );
    let read = "match crate::spillproof::engine::store::<E::G1Affine>()? {
            Some(store) => crate::spillproof::params::read(&*store, reader, format),
            None => Self::read_custom_in_memory(reader, format),
        }";
    graft(
        "impl ParamsKZG :: fn read_custom",
        "ed9d2ffa5d49f48b",
        wrap("read_custom_in_memory", read),
    );
    let from_parts = "crate::spillproof::params::from_parts(k, g, g_lagrange, g2, s_g2)";
    graft(
        "impl ParamsKZG :: fn from_parts",
        "2d5fd07381f0d9bc",
        Operation::Body(from_parts),
    );
    let write = "crate::spillproof::params::write(self, writer, format)";
    graft(
        "impl ParamsKZG :: fn write_custom",
        "076da4ab8885ff59",
        Operation::Body(write),
    );
    let downsize = "crate::spillproof::params::downsize(self, k)";
    graft(
        "impl Params for ParamsKZG :: fn downsize",
        "4f0cacfb31e74202",
        Operation::Body(downsize),
    );
    let commit_lagrange = "crate::spillproof::bases::commit::<E>(&self.g_lagrange, poly)";
    graft(
        "impl Params for ParamsKZG :: fn commit_lagrange",
        "7dd13d2b5596efaf",
        Operation::Body(commit_lagrange),
    );
    graft(
        "impl ParamsProver for ParamsKZG :: fn commit",
        "c007fa2fe6c3a225",
        Operation::Body("crate::spillproof::bases::commit::<E>(&self.g, poly)"),
    );
}

/// Hangs a file of ours under `src/grafted` into a file of upstream's as a child module, which sees its private items.
fn append_module(tree: &mut Tree, file: &str, name: &str, ours: &str) -> Result<(), Box<dyn Error>> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let path = Path::new(&here).join("src/grafted").join(ours);
    tree.append(file, &format!("#[path = {:?}]\nmod {name};", path));
    Ok(())
}
