//! `Params`: its points may be on disk.

use spillproof_graft::{Operation, Substitution, Tree};

/// Fields, constructors, reading and writing, commitments.
pub fn graft(tree: &mut Tree) {
    let file = "src/poly/commitment.rs";
    let mut graft = |item: &str, pinned: &str, operation| tree.graft(file, item, pinned, operation);
    for field in ["g", "g_lagrange"] {
        let ty = "crate::spillproof::bases::Bases<C>";
        graft(
            "struct Params",
            "20f57002f4d693d6",
            Operation::FieldType { field, ty },
        );
        let with = "crate::spillproof::bases::Bases::from";
        graft(
            "impl Params :: fn new",
            "13b78c1cc466c171",
            Operation::Construct { field, with },
        );
        graft(
            "impl Params :: fn read",
            "9b999bdbbc3bb42b",
            Operation::Construct { field, with },
        );
    }
    let new = "crate::spillproof::params::new(k).unwrap_or_else(|| Self::new_in_memory(k))";
    let wrap = |rename, body| Operation::Wrap {
        rename,
        visibility: "",
        body,
    };
    graft(
        "impl Params :: fn new",
        "13b78c1cc466c171",
        wrap("new_in_memory", new),
    );
    let read = "match crate::spillproof::params::read(reader)? {
            Some(params) => Ok(params),
            None => Self::read_in_memory(reader),
        }";
    graft(
        "impl Params :: fn read",
        "9b999bdbbc3bb42b",
        wrap("read_in_memory", read),
    );
    let write = "crate::spillproof::params::write(self, writer)";
    graft(
        "impl Params :: fn write",
        "262ca964da1a8f36",
        Operation::Body(write),
    );
    graft(
        "impl Params :: fn get_g",
        "4d6d5e2d2db0c4e2",
        Operation::Body("self.g.to_vec()"),
    );
    let commit = "if let Some(sum) = self.g.sum_on_disk(&poly[..]) {
            return sum + self.w * r.0;
        }";
    graft(
        "impl Params :: fn commit",
        "0a7ec1638e901aa3",
        Operation::Prepend(commit),
    );
    let commit = "if let Some(sum) = self.g_lagrange.sum_on_disk(&poly[..]) {
            return sum + self.w * r.0;
        }";
    graft(
        "impl Params :: fn commit_lagrange",
        "e62c586fe4825ab7",
        Operation::Prepend(commit),
    );
    let commit = "if let Some(sum) = self.g_lagrange.sum_on_disk(instance) {
            return sum + self.w * Blind::<C::Scalar>::default().0;
        }";
    graft(
        "impl Params :: fn commit_lagrange_instance",
        "d485112e603e46f3",
        Operation::Prepend(commit),
    );
    let open =
        "if crate::spillproof::openings::create_proof(params, &mut rng, transcript, p_poly, p_blind, x_3)? {
        return Ok(());
    }";
    let file = "src/poly/commitment/prover.rs";
    tree.graft(
        file,
        "fn create_proof",
        "4d0fc4f13a4cb886",
        Operation::Prepend(open),
    );
    let owned = [Substitution {
        from: "params.g.clone()",
        to: "params.g.to_vec()",
        count: 1,
    }];
    tree.graft(
        file,
        "fn create_proof",
        "4d0fc4f13a4cb886",
        Operation::Substitute(&owned),
    );
    let open = "if crate::spillproof::openings::create_multiopen_proof(params, &mut rng, transcript, queries.clone())? {
        return Ok(());
    }";
    tree.graft(
        "src/poly/multiopen/prover.rs",
        "fn create_proof",
        "f9daf4254aa16443",
        Operation::Prepend(open),
    );
}
