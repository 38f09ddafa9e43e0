//! The built-in circuits: four shapes that load a prover in four different ways.
//!
//! | module | columns | what it loads |
//! |---|---|---|
//! | [`chain`](axiom::stock::chain) | 3 advice, 5 fixed, 4 permuted | the permutation argument |
//! | [`wide`](axiom::stock::wide) | 96 advice, degree 5, 192 queries | the quotient, and the openings |
//! | [`lookups`](axiom::stock::lookups) | 7 advice, 6 fixed, 4 lookups | the sorts and the grand products of the lookup argument |
//! | [`machine`](axiom::stock::machine) | 262 advice, 158 lookups | what is done for each column, when there are few rows |
//!
//! Every circuit fills all usable rows of `2^k`, is a pure function of `(k, seed)`, and makes its values row
//! by row: it holds no memory that grows with `k`, so that what a run needs is what its prover needs.
//!
//! A circuit is written once and compiled six times: each file names halo2 as `super::halo2` only, and the
//! differences between releases as `super::dialect`. For halo2-axiom ([`axiom`]: KZG over BN254), for zcash's
//! halo2_proofs ([`zcash`]: inner products over Vesta) and for midnight-proofs ([`midnight`]: KZG over
//! BLS12-381) `stock` gives that name to the unmodified crate, `dropin` to the drop-in.
//!
//! Each prover and verifier of the six crates is compiled here, for one type of circuits, one of generators
//! and one of transcripts: upstream's once, the drop-in's in a session once for each opening. The packages that use this one compile none of them.

#![warn(missing_docs)]
// The circuits are compiled several times on purpose: for the drop-ins and for the crates that they replace.
#![allow(clippy::duplicate_mod)]

/// halo2-axiom: KZG over BN254.
pub mod axiom {
    pub mod dropin;
    pub mod stock;
}
/// midnight-proofs: KZG over BLS12-381.
pub mod midnight {
    pub mod dropin;
    pub mod stock;
}
pub mod saved;
/// zcash's halo2_proofs: inner-product commitments over Vesta.
pub mod zcash {
    pub mod dropin;
    pub mod params;
    pub mod stock;
}

/// The proof systems, each of which has a drop-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// halo2-axiom: KZG over BN254.
    Axiom,
    /// midnight-proofs: KZG over BLS12-381.
    Midnight,
    /// zcash's halo2_proofs: inner-product commitments over Vesta.
    Zcash,
}

/// The built-in circuits by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Additions and multiplications, held together by copies.
    Chain,
    /// 96 columns in one gate of degree 5.
    Wide,
    /// Range checks and exclusive-or.
    Lookups,
    /// 262 columns and 158 lookups, for few rows.
    Machine,
}

/// The multi-opening argument of a proof of halo2-axiom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Boneh, Drake, Fisch, Gabizon: one opening proof whatever the points.
    Shplonk,
    /// Gabizon, Williamson, Ciobotaru: one for each point.
    Gwc,
}

/// An error of reading a proof, in words.
fn unreadable(error: &std::io::Error, proof: &[u8]) -> std::io::Error {
    let message = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => format!("the proof is cut short: it has {} bytes", proof.len()),
        _ => format!("these bytes are no proof of this circuit: {error}"),
    };
    std::io::Error::new(error.kind(), message)
}

/// The error of a proof behind which bytes follow: they would be part of no proof, and another file than the
/// one that was made.
fn trailing(proof: &[u8], rest: &[u8]) -> std::io::Error {
    let message = format!(
        "{} bytes follow the proof, which has {}",
        rest.len(),
        proof.len() - rest.len()
    );
    std::io::Error::new(std::io::ErrorKind::InvalidData, message)
}
