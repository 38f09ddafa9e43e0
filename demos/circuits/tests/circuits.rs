//! The circuits over the drop-ins and over the unmodified crates. Not tests within the library: with its
//! provers it takes minutes to compile.

#![allow(clippy::expect_used, clippy::duplicate_mod)]

/// Checks of all constraints one by one.
macro_rules! mock_prover {
    ($k:expr, $circuit:expr, $instances:expr) => {
        MockProver::run($k, $circuit, $instances)
    };
}

/// halo2-axiom tells a circuit which one it is.
fn unscoped<T>(_: spillproof_circuits::Kind, work: impl FnOnce() -> T) -> T {
    work()
}

#[path = "."]
mod axiom_dropin {
    use super::unscoped as scope;
    use spillproof_circuits::axiom::dropin as system;

    #[path = "axiom.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}

#[path = "."]
mod axiom_stock {
    use super::unscoped as scope;
    use spillproof_circuits::axiom::stock as system;

    #[cfg(feature = "stock-prover")]
    #[path = "axiom.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}

#[path = "."]
mod zcash_dropin {
    use spillproof_circuits::zcash::dropin as system;

    use spillproof_circuits::Kind;

    fn scope<T>(kind: Kind, work: impl FnOnce() -> T) -> T {
        system::any::Any::scope(kind, work)
    }

    #[path = "zcash.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}

#[path = "."]
mod zcash_stock {
    use spillproof_circuits::zcash::stock as system;

    use spillproof_circuits::Kind;

    fn scope<T>(kind: Kind, work: impl FnOnce() -> T) -> T {
        system::any::Any::scope(kind, work)
    }

    #[cfg(feature = "stock-prover")]
    #[path = "zcash.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}

/// From here on without k, which midnight-proofs finds out.
macro_rules! mock_prover {
    ($k:expr, $circuit:expr, $instances:expr) => {
        MockProver::run($circuit, $instances)
    };
}

#[path = "."]
mod midnight_dropin {
    use spillproof_circuits::midnight::dropin as system;

    use spillproof_circuits::Kind;

    fn scope<T>(kind: Kind, work: impl FnOnce() -> T) -> T {
        system::any::Any::scope(kind, work)
    }

    #[path = "midnight.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}

#[path = "."]
mod midnight_stock {
    use spillproof_circuits::midnight::stock as system;

    use spillproof_circuits::Kind;

    fn scope<T>(kind: Kind, work: impl FnOnce() -> T) -> T {
        system::any::Any::scope(kind, work)
    }

    #[cfg(feature = "stock-prover")]
    #[path = "midnight.rs"]
    mod proofs;
    #[path = "satisfied.rs"]
    mod satisfied;
}
