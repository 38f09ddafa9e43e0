//! Witnesses that come in pieces are those of files, and take a ledger of a fixed size.

use std::io::{self, Read};
use std::path::Path;

use ark_bls12_381::Bls12_381;
use ark_bn254::{Bn254, Fr};
use spillproof_engine::Error;
use spillproof_engine::budget::Budget;
use spillproof_engine::column::{Column, Workspace};
use spillproof_groth16::PairingCurve;
use spillproof_groth16::iden3::{STREAM_BYTES, read_wtns_bytes, read_wtns_stream, wtns_bytes};

use crate::circom_files;
use crate::common::place;
use crate::r1cs::{Circuit, Values};

const MIB: u64 = 1 << 20;
/// Bytes before the values.
const PRELUDE_BYTES: usize = 76;

/// Gives so many bytes at a time, then one more each time.
struct Drops<'a> {
    rest: &'a [u8],
    bytes: usize,
}

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.bytes.min(into.len()).min(self.rest.len());
        into[..bytes].copy_from_slice(&self.rest[..bytes]);
        self.rest = &self.rest[bytes..];
        self.bytes = self.bytes % 5000 + 1;
        Ok(bytes)
    }
}

fn streamed<E: PairingCurve>(
    workspace: &Workspace,
    file: &[u8],
    len_bytes: u64,
) -> spillproof_engine::Result<Column<E::Scalar>> {
    let mut source = Drops { rest: file, bytes: 1 };
    read_wtns_stream::<E>(workspace, Path::new("a witness"), len_bytes, &mut source)
}

fn same_as_a_file<E: PairingCurve>(constraints: usize) {
    let place = place(16 * MIB);
    let circuit = Circuit::<E::Scalar>::random(constraints as u64, constraints, 1, Values::Full);
    let file = circom_files::wtns::<E>(&circuit.witness);
    assert_eq!(wtns_bytes(circuit.witness.len() as u64), file.len() as u64);
    let ledger = Budget::new(STREAM_BYTES);
    let workspace = place.workspace.clone().with_budget(ledger.clone());
    let leases = place.workspace.budget.leases();
    let column = streamed::<E>(&workspace, &file, file.len() as u64).expect("a witness");
    assert_eq!(
        place.workspace.budget.leases(),
        leases,
        "a lease on another ledger"
    );
    assert!(ledger.peak_bytes() > 0 && ledger.held_bytes() == 0, "{ledger:?}");
    assert!(column.on_disk());
    assert!(
        column.to_vec().expect("values") == circuit.witness,
        "{constraints}"
    );
}

#[test]
fn witnesses_from_streams_are_those_of_files() {
    for constraints in [1, 2, 1000, 1023, 1024, 1025, 9000] {
        same_as_a_file::<Bn254>(constraints);
    }
    same_as_a_file::<Bls12_381>(3000);
}

/// Whatever byte of the first ones is another, and wherever it ends, a stream is refused where a file is.
#[test]
fn streams_that_are_no_witness_are_refused() {
    let place = place(16 * MIB);
    let workspace = &place.workspace;
    let circuit = Circuit::<Fr>::random(5, 40, 1, Values::Full);
    let file = circom_files::wtns::<Bn254>(&circuit.witness);
    let len_bytes = file.len() as u64;
    for at in 0..PRELUDE_BYTES + 64 {
        for flipped in [1, 0x80] {
            let mut changed = file.clone();
            changed[at] ^= flipped;
            let of_stream = streamed::<Bn254>(workspace, &changed, len_bytes);
            let of_file = read_wtns_bytes::<Bn254>(workspace, Path::new("a witness"), &changed);
            assert_eq!(of_stream.is_ok(), of_file.is_ok(), "byte {at}");
            assert!(!matches!(of_stream, Err(Error::File { .. })), "byte {at}");
        }
    }
    for end in [
        0,
        1,
        PRELUDE_BYTES - 1,
        PRELUDE_BYTES,
        PRELUDE_BYTES + 33,
        file.len() - 1,
    ] {
        // It ends before it said it would, or says so.
        let early = streamed::<Bn254>(workspace, &file[..end], len_bytes);
        assert!(
            matches!(early, Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::UnexpectedEof)
        );
        let short = streamed::<Bn254>(workspace, &file[..end], end as u64);
        assert!(matches!(short, Err(Error::Format { .. })), "{end}");
    }
    let over_another_curve = streamed::<Bls12_381>(workspace, &file, len_bytes);
    assert!(matches!(over_another_curve, Err(Error::Invalid(_))));
    // Values first: a file of any order is read, a stream is not.
    let (prefix, sections) = file.split_at(12);
    let (header, values) = sections.split_at(PRELUDE_BYTES - 24);
    let swapped = [prefix, values, header].concat();
    read_wtns_bytes::<Bn254>(workspace, Path::new("a witness"), &swapped).expect("a witness");
    let refused = streamed::<Bn254>(workspace, &swapped, len_bytes).err();
    assert!(matches!(&refused, Some(Error::Format { .. })), "{refused:?}");
    place.assert_nothing_held();
}
