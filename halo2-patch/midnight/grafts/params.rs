//! `ParamsKZG`: its points may be on disk.

use spillproof_graft::Operation;

use super::{Pins, Source};

/// Fields, constructors, reading and writing, commitments.
pub fn graft(source: &mut Source) {
    let file = "src/poly/kzg/params.rs";
    let mut graft = |item: &str, pinned, operation| source.graft(file, item, Pins::both(pinned), operation);
    let (setup, from_parts, read) = ("ac56b1b55b3fd353", "55be9a55386a5834", "280a208984b681ab");
    for field in ["g", "g_lagrange"] {
        let ty = "crate::spillproof::bases::Bases<E::G1>";
        let with = "crate::spillproof::bases::Bases::from";
        graft(
            "struct ParamsKZG",
            "35dd5a9f1ff5a3db",
            Operation::FieldType { field, ty },
        );
        graft(
            "impl ParamsKZG :: fn unsafe_setup",
            setup,
            Operation::Construct { field, with },
        );
        graft(
            "impl ParamsKZG :: fn read_custom",
            read,
            Operation::Construct { field, with },
        );
    }
    let wrap = |rename, body| Operation::Wrap {
        rename,
        visibility: "",
        body,
    };
    let body =
        "crate::spillproof::params::setup(k, rng).unwrap_or_else(|rng| Self::unsafe_setup_in_memory(k, rng))";
    graft(
        "impl ParamsKZG :: fn unsafe_setup",
        setup,
        wrap("unsafe_setup_in_memory", body),
    );
    let body = "match crate::spillproof::params::read(reader, format)? {
            Some(params) => Ok(params),
            None => Self::read_custom_in_memory(reader, format),
        }";
    graft(
        "impl ParamsKZG :: fn read_custom",
        read,
        wrap("read_custom_in_memory", body),
    );
    let body = "crate::spillproof::params::from_parts(k, g, g_lagrange, g2, s_g2)";
    graft(
        "impl ParamsKZG :: fn from_parts",
        from_parts,
        Operation::Body(body),
    );
    let body = "crate::spillproof::params::downsize(self, new_k)";
    graft(
        "impl ParamsKZG :: fn downsize",
        "bea55ff805bb1560",
        Operation::Body(body),
    );
    let body = "crate::spillproof::params::write(self, writer, format)";
    graft(
        "impl ParamsKZG :: fn write_custom",
        "bb8dc273f8ffde3f",
        Operation::Body(body),
    );

    let (file, scheme) = (
        "src/poly/kzg/mod.rs",
        "impl PolynomialCommitmentScheme for KZGCommitmentScheme",
    );
    let commit = "if let Some(sum) = params.g.sum_on_disk(&polynomial.values) {
            return sum;
        }";
    source.graft(
        file,
        &format!("{scheme} :: fn commit"),
        Pins {
            v07: "e978952fc824ec99",
            v08: "f0c7534474e9e50c",
        },
        Operation::Prepend(commit),
    );
    let commit = "if let Some(sum) = params.g_lagrange.sum_on_disk(&poly.values) {
            return sum;
        }";
    source.graft(
        file,
        &format!("{scheme} :: fn commit_lagrange"),
        Pins {
            v07: "a1fd60c9adc92827",
            v08: "83a3c57e5b8d71e9",
        },
        Operation::Prepend(commit),
    );
}
