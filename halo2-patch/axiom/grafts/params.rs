//! `ParamsKZG`: its points may be on disk.

use spillproof_graft::{Operation, Substitution, Tree};

/// Fields, constructors, reading and writing, commitments.
pub fn graft(tree: &mut Tree) {
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
    let commit_lagrange = "crate::spillproof::bases::commit::<E, _>(&self.g_lagrange, poly)";
    graft(
        "impl Params for ParamsKZG :: fn commit_lagrange",
        "7dd13d2b5596efaf",
        Operation::Body(commit_lagrange),
    );
    graft(
        "impl ParamsProver for ParamsKZG :: fn commit",
        "c007fa2fe6c3a225",
        Operation::Body("crate::spillproof::bases::commit::<E, _>(&self.g, poly)"),
    );
    many(tree);
}

/// Commitments to many polynomials at once: a method of both traits, with a body that any parameters have,
/// and one for `ParamsKZG`.
fn many(tree: &mut Tree) {
    let file = "src/poly/commitment.rs";
    tree.graft(
        file,
        "trait Params",
        "98158a1d0bb0b585",
        Operation::Substitute(&[Substitution {
            from: "+ 'params;",
            to: "+ 'params;

    /// Commitments to many polynomials at once, each as `commit_lagrange` gives it.
    fn commit_lagrange_many(
        &self,
        polys: &[(&Polynomial<C::ScalarExt, LagrangeCoeff>, Blind<C::ScalarExt>)],
    ) -> Vec<C::CurveExt> {
        polys.iter().map(|(poly, r)| self.commit_lagrange(poly, *r)).collect()
    }",
            count: 1,
        }]),
    );
    tree.graft(
        file,
        "trait ParamsProver",
        "a0ebc9aa687bb18a",
        Operation::Substitute(&[Substitution {
            from: "-> Self;",
            to: "-> Self;

    /// Commitments to many polynomials at once, each as `commit` gives it.
    fn commit_many(
        &self,
        polys: &[(&Polynomial<C::ScalarExt, Coeff>, Blind<C::ScalarExt>)],
    ) -> Vec<C::CurveExt> {
        polys.iter().map(|(poly, r)| self.commit(poly, *r)).collect()
    }",
            count: 1,
        }]),
    );
    let file = "src/poly/kzg/commitment.rs";
    tree.graft(
        file,
        "impl Params for ParamsKZG",
        "bf50cb6027c9abe6",
        Operation::Substitute(&[Substitution {
            from: "MSMKZG<E>;",
            to: "MSMKZG<E>;

    fn commit_lagrange_many(&self, polys: &[(&Polynomial<E::Fr, LagrangeCoeff>, Blind<E::Fr>)]) -> Vec<E::G1> {
        let polys: Vec<_> = polys.iter().map(|(poly, _)| *poly).collect();
        crate::spillproof::bases::commit_many::<E, _>(&self.g_lagrange, &polys)
    }",
            count: 1,
        }]),
    );
    tree.graft(
        file,
        "impl ParamsProver for ParamsKZG",
        "de64f70cfa6bd12b",
        Operation::Substitute(&[Substitution {
            from: "ParamsVerifierKZG<E>;",
            to: "ParamsVerifierKZG<E>;

    fn commit_many(&self, polys: &[(&Polynomial<E::Fr, Coeff>, Blind<E::Fr>)]) -> Vec<E::G1> {
        let polys: Vec<_> = polys.iter().map(|(poly, _)| *poly).collect();
        crate::spillproof::bases::commit_many::<E, _>(&self.g, &polys)
    }",
            count: 1,
        }]),
    );
}
