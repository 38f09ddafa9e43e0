//! Proofs in a session with an accelerator: with one that declines, they take the ways that they take without one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use spillproof_engine::accelerator::{Accelerator, Answer, Constraints, Coset, Sums, Totals, Transform};
use spillproof_engine::budget::{Budget, ByteSize};
use spillproof_engine::column::Placement;
use spillproof_engine::{Result, Session};
use spillproof_groth16::{PairingCurve, prove_in};

use crate::common::column_in;
use crate::proofs::{blinding, key_on_disk};
use crate::r1cs::{Circuit, Key, Values, text};

/// Takes nothing, and counts what it is offered.
#[derive(Debug, Default)]
struct Declines {
    jobs: AtomicU64,
    sums: AtomicU64,
    transforms: AtomicU64,
    constraints: AtomicU64,
    distrusted: Mutex<bool>,
}

impl Accelerator for Declines {
    fn sums(&self, job: &mut Sums<'_>, _: &Budget) -> Result<Answer<Totals>> {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        self.sums.fetch_add(job.count(), Ordering::Relaxed);
        Ok(Answer::Declined("it takes nothing".into()))
    }

    fn transform(&self, _: &mut Transform<'_>, _: &Budget) -> Result<Answer<()>> {
        self.transforms.fetch_add(1, Ordering::Relaxed);
        Ok(Answer::Declined("it takes nothing".into()))
    }

    fn quotient(&self, _: &mut Coset<'_>, _: &Budget) -> Result<Answer<()>> {
        Ok(Answer::Declined("it takes nothing".into()))
    }

    fn constraints(&self, _: &mut Constraints<'_>, _: &Budget) -> Result<Answer<()>> {
        self.constraints.fetch_add(1, Ordering::Relaxed);
        Ok(Answer::Declined("it takes nothing".into()))
    }

    fn would_transform(&self, _: u32, _: &Budget) -> bool {
        false
    }

    fn distrust(&self) {
        *self.distrusted.lock().expect("a flag") = true;
    }
}

/// The bytes that a proof writes.
fn bytes_written<E: PairingCurve>(accelerator: Option<Arc<Declines>>) -> u64 {
    let circuit = Circuit::<E::Scalar>::random(21, 16_000, 3, Values::Full);
    let made = Key::<E>::new(&circuit, 21);
    let random = blinding(21);
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = Session::builder()
        .memory(ByteSize::Bytes(3 << 20))
        .dir(dir.path())
        .threads(2);
    if let Some(accelerator) = accelerator {
        builder = builder.accelerator(accelerator);
    }
    let session = Arc::new(builder.build().expect("a session"));
    let key = key_on_disk(session.workspace(), &circuit, &made);
    let witness = column_in(session.workspace(), &circuit.witness, Placement::Disk);
    let before = session.storage().stats().bytes_written;
    let proof = prove_in(&session, &key, &witness, random).expect("a proof");
    assert!(text(&proof) == made.prove(&circuit, random));
    session.storage().stats().bytes_written - before
}

#[test]
fn an_accelerator_that_declines_costs_no_passes_over_the_disk() {
    let of_bn254 = Arc::new(Declines::default());
    assert_eq!(
        bytes_written::<Bn254>(Some(Arc::clone(&of_bn254))),
        bytes_written::<Bn254>(None)
    );
    // A, B1, C and B2 in one job, the quotient, then H; transforms are not even offered.
    assert_eq!(of_bn254.jobs.load(Ordering::Relaxed), 2);
    assert_eq!(of_bn254.constraints.load(Ordering::Relaxed), 1);
    assert_eq!(of_bn254.sums.load(Ordering::Relaxed), 5);
    assert_eq!(of_bn254.transforms.load(Ordering::Relaxed), 0);
    assert!(!*of_bn254.distrusted.lock().expect("a flag"));
    let of_bls12_381 = Arc::new(Declines::default());
    assert_eq!(
        bytes_written::<Bls12_381>(Some(Arc::clone(&of_bls12_381))),
        bytes_written::<Bls12_381>(None)
    );
    assert_eq!(of_bls12_381.sums.load(Ordering::Relaxed), 0);
    assert_eq!(of_bls12_381.constraints.load(Ordering::Relaxed), 0);
}
