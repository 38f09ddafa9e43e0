//! `Polynomial`: its values may be on disk, and those of an empty one nowhere.

use spillproof_graft::{Operation, Substitution, Tree};

/// The backing, and what is made of it.
pub fn graft(tree: &mut Tree) {
    backing(tree);
    bytes(tree);
    domain(tree);
    transforms(tree);
    let evaluate = "crate::spillproof::values::evaluate(self.poly, self.point)";
    tree.graft(
        "src/poly/query.rs",
        "impl Query for ProverQuery :: fn get_eval",
        "fd9ed6dc18a73c38",
        Operation::Body(evaluate),
    );
}

fn backing(tree: &mut Tree) {
    let mut graft = |item: &str, pinned: &str, operation| tree.graft("src/poly.rs", item, pinned, operation);
    graft(
        "impl Storage for Host :: type Backing",
        "10bf9afdeab38075",
        Operation::AssociatedType("crate::spillproof::Values<F>"),
    );
    let any_backing = [Substitution {
        from: "&Vec<F>",
        to: "&Self::Backing<F>",
        count: 1,
    }];
    graft(
        "impl Storage for Host :: fn backing_len",
        "87a1a3f6ccfb6fed",
        Operation::Substitute(&any_backing),
    );
    let construct = Operation::Construct {
        field: "storage",
        with: "crate::spillproof::Values::from",
    };
    graft("impl Polynomial :: fn new", "0e05f31f9a1a8afc", construct);
    graft(
        "impl Polynomial :: fn into_values",
        "3164849164c39de7",
        Operation::Body("self.storage.into_vec()"),
    );
}

fn domain(tree: &mut Tree) {
    let mut graft = |item: &str, pinned: &str, body: &str| {
        tree.graft("src/poly/domain.rs", item, pinned, Operation::Body(body));
    };
    let zeros = "crate::spillproof::values::constant(F::ZERO, self.n as usize)";
    graft(
        "impl EvaluationDomain :: fn empty_coeff",
        "854aa6db47cb7bcd",
        zeros,
    );
    graft(
        "impl EvaluationDomain :: fn empty_lagrange",
        "06a17296b5daa8de",
        zeros,
    );
    graft(
        "impl EvaluationDomain :: fn empty_lagrange_assigned",
        "671453c31e36410c",
        "crate::spillproof::values::constant(Assigned::from(F::ZERO), self.n as usize)",
    );
    graft(
        "impl EvaluationDomain :: fn constant_lagrange",
        "e35210e6e5eeb91d",
        "crate::spillproof::values::constant(scalar, self.n as usize)",
    );
    graft(
        "impl EvaluationDomain :: fn empty_extended",
        "f618015d2d8a79d4",
        "crate::spillproof::values::constant(F::ZERO, self.extended_len())",
    );
    graft(
        "impl EvaluationDomain :: fn constant_extended",
        "52985c6b2248a8bc",
        "crate::spillproof::values::constant(scalar, self.extended_len())",
    );
    let slice = [Substitution {
        from: "a: &mut Vec<F>",
        to: "a: &mut [F]",
        count: 1,
    }];
    tree.graft(
        "src/poly/domain.rs",
        "impl EvaluationDomain :: fn ifft",
        "9704af56d44a5307",
        Operation::Substitute(&slice),
    );
}

fn bytes(tree: &mut Tree) {
    let mut graft = |item: &str, pinned: &str, operation| tree.graft("src/poly.rs", item, pinned, operation);
    let read = "match crate::spillproof::serde::read(reader, format) {
            Some(poly) => poly,
            None => Self::read_in_memory(reader, format),
        }";
    graft(
        "impl Polynomial :: fn read",
        "821210ab2f16deb3",
        Operation::Wrap {
            rename: "read_in_memory",
            visibility: "",
            body: read,
        },
    );
    let write = "crate::spillproof::serde::write(self, writer, format)";
    graft(
        "impl Polynomial :: fn write",
        "72e25924b22da5fb",
        Operation::Body(write),
    );
}

fn transforms(tree: &mut Tree) {
    let mut graft =
        |item: &str, pinned: &str, operation| tree.graft("src/poly/domain.rs", item, pinned, operation);
    let ty = "crate::spillproof::FftDataMap<F>";
    graft(
        "struct EvaluationDomain",
        "c84c8efe5d1224f1",
        Operation::FieldType {
            field: "fft_data",
            ty,
        },
    );
    let lazy = [
        Substitution {
            from: "HashMap::new",
            to: "crate::spillproof::FftDataMap::new",
            count: 1,
        },
        Substitution {
            from: "FFTData::<F>::new",
            to: "crate::spillproof::domain::FftDataEntry::new",
            count: 1,
        },
    ];
    graft(
        "impl EvaluationDomain :: fn new",
        "d7da108261ee6629",
        Operation::Substitute(&lazy),
    );
    let to_coeff = "crate::spillproof::domain::lagrange_to_coeff(self, a)
            .unwrap_or_else(|a| self.lagrange_to_coeff_in_memory(a))";
    graft(
        "impl EvaluationDomain :: fn lagrange_to_coeff",
        "d19cdf86c166831b",
        Operation::Wrap {
            rename: "lagrange_to_coeff_in_memory",
            visibility: "",
            body: to_coeff,
        },
    );
    let to_part = "crate::spillproof::domain::coeff_to_extended_part(self, a, extended_omega_factor)
            .unwrap_or_else(|a| self.coeff_to_extended_part_in_memory(a, extended_omega_factor))";
    graft(
        "impl EvaluationDomain :: fn coeff_to_extended_part",
        "96188782ea3ca9b3",
        Operation::Wrap {
            rename: "coeff_to_extended_part_in_memory",
            visibility: "",
            body: to_part,
        },
    );
}
