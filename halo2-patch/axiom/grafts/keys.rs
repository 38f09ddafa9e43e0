//! Keys: selectors of a verifying key are bits, and on disk in a session.

use spillproof_graft::{Operation, Substitution, Tree};

/// The field, and how it is made, written and read.
pub fn graft(tree: &mut Tree) {
    let mut graft = |item: &str, pinned: &str, operation| tree.graft("src/plonk.rs", item, pinned, operation);
    let ty = "crate::spillproof::SelectorBits";
    graft(
        "struct VerifyingKey",
        "f63b16f30572d553",
        Operation::FieldType {
            field: "selectors",
            ty,
        },
    );

    // Stock's loop over selectors writes none, and ours all of them right after.
    let no_selectors = [Substitution {
        from: "&self.selectors",
        to: "crate::spillproof::SelectorBits::written_after()",
        count: 1,
    }];
    graft(
        "impl VerifyingKey :: fn write",
        "53d9bd397172cb4b",
        Operation::Substitute(&no_selectors),
    );
    let write = "self.write_but_selectors(writer, format)?;
        self.selectors.write(writer)";
    let wrap = Operation::Wrap {
        rename: "write_but_selectors",
        visibility: "",
        body: write,
    };
    graft("impl VerifyingKey :: fn write", "53d9bd397172cb4b", wrap);

    let parameter = [Substitution {
        from: "Vec<Vec<bool>>",
        to: ty,
        count: 1,
    }];
    graft(
        "impl VerifyingKey :: fn from_parts",
        "48492a35b524dddb",
        Operation::Substitute(&parameter),
    );
    let from_parts = "let selectors = crate::spillproof::SelectorBits::from(selectors);
        Self::spillproof_from_parts(domain, fixed_commitments, permutation, cs, selectors, compress_selectors)";
    let wrap = Operation::Wrap {
        rename: "spillproof_from_parts",
        visibility: "pub(crate)",
        body: from_parts,
    };
    graft("impl VerifyingKey :: fn from_parts", "48492a35b524dddb", wrap);

    let read = [
        Substitution {
            from: "= if compress_selectors",
            to: "= if let Some(read) = crate::spillproof::selectors::read(reader, k, compress_selectors, &cs)? { read } \
                 else if compress_selectors",
            count: 1,
        },
        Substitution {
            from: "(cs, selectors)\n",
            to: "(cs, selectors.into())\n",
            count: 1,
        },
        Substitution {
            from: "vec![])\n",
            to: "Default::default())\n",
            count: 1,
        },
        Substitution {
            from: "Self::from_parts",
            to: "Self::spillproof_from_parts",
            count: 1,
        },
    ];
    graft(
        "impl VerifyingKey :: fn read",
        "95c41f9e26c981fe",
        Operation::Substitute(&read),
    );
}
