//! The verifier's sums: scalars of the bases stand as challenges until a sum is evaluated, and then stream.

use spillproof_graft::{Operation, Substitution, Tree};

/// `MSM` and `Guard`.
pub fn graft(tree: &mut Tree) {
    let file = "src/poly/commitment/msm.rs";
    let mut graft = |item: &str, pinned: &str, operation| tree.graft(file, item, pinned, operation);
    let ty = "Option<crate::spillproof::msm::BaseScalars<C::Scalar>>";
    let field = "g_scalars";
    graft(
        "struct MSM",
        "17a5fb8d0595385b",
        Operation::FieldType { field, ty },
    );
    let visibility = "pub(crate)";
    graft(
        "struct MSM",
        "17a5fb8d0595385b",
        Operation::FieldVisibility { field, visibility },
    );
    let added = [Substitution {
        from: "self.add_to_g_scalars(g_scalars)",
        to: "self.spillproof_g_scalars().add(g_scalars)",
        count: 1,
    }];
    graft(
        "impl MSM :: fn add_msm",
        "a6e7bb17a1561dec",
        Operation::Substitute(&added),
    );
    graft(
        "impl MSM :: fn add_constant_term",
        "bb42f990ee439c7d",
        Operation::Body("self.spillproof_g_scalars().add_constant(constant)"),
    );
    graft(
        "impl MSM :: fn add_to_g_scalars",
        "bc32be2cb68be50d",
        Operation::Body("self.spillproof_g_scalars().add_vector(scalars)"),
    );
    let scaled = [
        Substitution {
            from: "for g_scalar in g_scalars {",
            to: "{",
            count: 1,
        },
        Substitution {
            from: "*g_scalar *= &factor",
            to: "g_scalars.scale(factor)",
            count: 1,
        },
    ];
    graft(
        "impl MSM :: fn scale",
        "d01ee86175c29f22",
        Operation::Substitute(&scaled),
    );
    // Without the scalars of the bases the rest is small: stock's sum, to which theirs is added.
    let eval = "let sum = self.g_scalars.as_ref().and_then(|scalars| self.params.g.sum_on_disk(scalars));
        match sum {
            None => self.eval_in_memory(),
            Some(sum) => self.spillproof_others_and(sum),
        }";
    let wrap = Operation::Wrap {
        rename: "eval_in_memory",
        visibility: "",
        body: eval,
    };
    graft("impl MSM :: fn eval", "49c261061e151f07", wrap);
    tree.append(
        file,
        "impl<'a, C: CurveAffine> MSM<'a, C> {
    pub(crate) fn spillproof_g_scalars(&mut self) -> &mut crate::spillproof::msm::BaseScalars<C::Scalar> {
        let rows = self.params.n as usize;
        self.g_scalars.get_or_insert_with(|| crate::spillproof::msm::BaseScalars::zeros(rows))
    }

    /// Whether the sum of the bases and all other terms cancel out.
    fn spillproof_others_and(mut self, of_bases: C::CurveExt) -> bool {
        self.g_scalars = None;
        self.append_term(C::Scalar::ONE, of_bases.into());
        self.eval_in_memory()
    }
}",
    );
    let file = "src/poly/commitment/verifier.rs";
    tree.graft(
        file,
        "impl Guard :: fn use_challenges",
        "c0ebd82af14fa2be",
        Operation::Body("self.msm.spillproof_g_scalars().add_opening(&self.u, self.neg_c); self.msm"),
    );
    let compute = "let scalars = crate::spillproof::msm::BaseScalars::of_opening(&self.u, C::Scalar::ONE);
        if let Some(sum) = self.msm.params.g.sum_on_disk(&scalars) {
            return sum.to_affine_vartime();
        }";
    tree.graft(
        file,
        "impl Guard :: fn compute_g",
        "17b6b7b88d09ee15",
        Operation::Prepend(compute),
    );
}
