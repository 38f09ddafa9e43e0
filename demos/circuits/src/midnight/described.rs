//! A circuit of a program's own, by the description that it saved beside its key.
//!
//! Nothing is synthesised: the key is in one file, the witness in another.

use std::io;

use super::dialect::description::{CircuitDescription, Element, Midnight, MidnightRelease, ProofsOf};
use super::dialect::{Fr, PrimeField};
use super::halo2::plonk::ConstraintSystem;
use super::halo2::utils::SerdeFormat;
use super::proof::VerifierKey;
use super::rebuilt::{check_degree, configure};

/// Bytes of a point of a key.
const POINT_BYTES: usize = 96;
/// Bytes of a key before its points: version, k, number of fixed columns.
const HEAD_BYTES: usize = 6;

/// The circuit's constraint system, before its selectors become fixed columns.
pub fn constraint_system(of: &CircuitDescription) -> ConstraintSystem<Fr> {
    let mut cs = ConstraintSystem::default();
    configure(&mut cs, of);
    cs
}

/// Whether midnight-proofs takes the circuit with `2^k` rows as the program's did, and its proofs are this
/// release's; what they are like.
///
/// # Errors
/// In words, for a circuit that it would not take.
pub fn check(of: &CircuitDescription, k: u32) -> Result<Midnight, String> {
    let ProofsOf::Midnight(proofs) = of.proofs else {
        return Err("a key of halo2-axiom: its proofs are over BN254".to_owned());
    };
    if proofs.release != MidnightRelease::V08 {
        return Err(
            "a key of midnight-proofs 0.7, whose proofs differ from those of 0.8, which are made here: prove it in its program, with \
             create_proof_from_witness"
                .to_owned(),
        );
    }
    if proofs.has_truncated_challenges {
        return Err(
            "a key for proofs with truncated challenges, which are not made here: prove it in its program, with \
             create_proof_from_witness"
                .to_owned(),
        );
    }
    let cs = constraint_system(of);
    check_degree(&cs, of, k)?;
    if (1 << k) < cs.minimum_rows() {
        return Err(format!(
            "2^{k} rows, and the circuit has {} at least",
            cs.minimum_rows()
        ));
    }
    // Upstream's verifier takes the first point that is opened for the row itself.
    let committed = |(column, _): &&(usize, i32)| *column < proofs.committed_instances;
    let first = of.advice_queries.first();
    let first = first.or_else(|| of.instance_queries.iter().find(committed));
    match first {
        Some((_, rotation)) if *rotation != 0 => Err(
            "a circuit whose first query is not in the row itself: midnight-proofs' verifier cannot take its proofs"
                .to_owned(),
        ),
        _ => Ok(proofs),
    }
}

/// The verifying key of a described circuit, from its bytes.
///
/// # Errors
/// For bytes that are no key of that circuit, and for a circuit that [`check`] refuses.
pub fn read_verifying_key(mut bytes: &[u8], of: &CircuitDescription) -> io::Result<VerifierKey> {
    let refused = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let none = |bytes: &[u8]| {
        let found = bytes.len();
        refused(format!(
            "{found} bytes are no verifying key of the circuit of the description"
        ))
    };
    let points = of.fixed_columns + of.simple_selectors.len() + of.permuted.len();
    let (Some(&k), true) = (bytes.get(1), bytes.len() == HEAD_BYTES + POINT_BYTES * points) else {
        return Err(none(bytes));
    };
    if u32::from(k) > Fr::S {
        return Err(none(bytes));
    }
    check(of, k.into()).map_err(refused)?;
    let key = VerifierKey::read_from_cs(&mut bytes, SerdeFormat::RawBytes, constraint_system(of))?;
    match bytes.is_empty() && key.fixed_commitments().len() == key.cs().num_fixed_columns() {
        true => Ok(key),
        false => Err(none(bytes)),
    }
}

/// The hash of a key, as in its description: the same as there, unless the description is of another circuit.
pub fn hash_of(key: &VerifierKey) -> Element {
    key.transcript_repr().to_repr()
}
