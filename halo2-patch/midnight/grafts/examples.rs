//! An example in upstream's documentation is for the feature `circuit-params` alone: without it, it does not
//! compile, and examples are tests.

use spillproof_graft::{Operation, Substitution};

use super::{Pins, Release, Source};

/// Without the line that is the feature's.
pub fn graft(source: &mut Source) {
    // The release before has no such example.
    let has_feature = std::env::var_os("CARGO_FEATURE_CIRCUIT_PARAMS").is_some();
    if has_feature || source.release == Release::V07 {
        return;
    }
    let line = [Substitution {
        from: "/// #     type Params = ();",
        to: "///",
        count: 1,
    }];
    source.graft(
        "src/dev/mod.rs",
        "struct RowSizer",
        Pins::both("b019f96ae3f29c05"),
        Operation::Substitute(&line),
    );
}
