//! Requests and answers as bytes: `midnight-serialize`'s tagged form of tuples of the ledger's types. What is
//! read here keeps its room in the share for bodies.

use std::collections::HashMap;

use midnight_base_crypto::signatures::Signature;
use midnight_ledger::structure::{ProofPreimageMarker, ProofPreimageVersioned, Transaction};
use midnight_serialize::{tagged_deserialize, tagged_serialize, Deserializable, Serializable, Tagged};
use midnight_storage::db::InMemoryDB;
use midnight_transient_crypto::commitment::PedersenRandomness;
use midnight_transient_crypto::curve::Fr;
use midnight_transient_crypto::proofs::{KeyLocation, ProvingKeyMaterial, WrappedIr};

use crate::body::{Body, Room};
use crate::failure::{Failure, Result};

/// A transaction whose proofs are to be made.
pub type Unproven = Transaction<Signature, ProofPreimageMarker, PedersenRandomness, InMemoryDB>;

/// The body of `/check`.
pub struct Check {
    pub preimage: ProofPreimageVersioned,
    pub ir: Option<WrappedIr>,
}

/// The body of `/prove`.
pub struct Prove {
    pub preimage: ProofPreimageVersioned,
    pub material: Option<ProvingKeyMaterial>,
    pub binding_input: Option<Fr>,
}

/// The body of `/prove-tx`.
pub struct ProveTransaction {
    pub transaction: Unproven,
    pub materials: HashMap<KeyLocation, ProvingKeyMaterial>,
}

/// What was read from a body, with the room that it takes.
pub struct Read<T> {
    pub what: T,
    pub room: Room,
}

/// The body of `/k`: the tagged bytes of a circuit.
pub fn k(mut body: Body) -> Result<Read<Vec<u8>>> {
    let mut what = Vec::with_capacity(body.len());
    std::io::Read::read_to_end(&mut body, &mut what).map_err(|_| Failure::BodyBroken)?;
    Ok(Read {
        what,
        room: body.into_room(),
    })
}

/// The body of `/check`.
pub fn check(body: Body) -> Result<Read<Check>> {
    let expected = "a preimage and perhaps a circuit";
    let Read { what, room } = read(body, expected)?;
    let (preimage, ir) = what;
    Ok(Read {
        what: Check { preimage, ir },
        room,
    })
}

/// The body of `/prove`.
pub fn prove(body: Body) -> Result<Read<Prove>> {
    let expected = "a preimage, perhaps key material, and perhaps a binding input";
    let Read { what, room } = read(body, expected)?;
    let (preimage, material, binding_input) = what;
    Ok(Read {
        what: Prove {
            preimage,
            material,
            binding_input,
        },
        room,
    })
}

/// The body of `/prove-tx`.
pub fn prove_transaction(body: Body) -> Result<Read<ProveTransaction>> {
    let Read { what, room } = read(body, "a transaction and key material by its locations")?;
    let (transaction, materials) = what;
    Ok(Read {
        what: ProveTransaction {
            transaction,
            materials,
        },
        room,
    })
}

/// The reader's own text is not handed on: it quotes the body.
fn read<T: Deserializable + Tagged>(mut body: Body, expected: &'static str) -> Result<Read<T>> {
    let what = tagged_deserialize(&mut body).map_err(|_| Failure::Body { expected })?;
    Ok(Read {
        what,
        room: body.into_room(),
    })
}

/// An answer's bytes.
pub fn answer<T: Serializable + Tagged>(value: &T) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tagged_serialize(value, &mut bytes).map_err(|error| Failure::of_error(&error))?;
    Ok(bytes)
}
