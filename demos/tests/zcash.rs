//! zcash's halo2 in the binary: proofs of a session are those of memory and of the unmodified crate,
//! parameters go through files, plans are held to runs.

use std::sync::Arc;

use spillproof_circuits::Kind;
use spillproof_circuits::zcash::dropin::{proof, prover};
use spillproof_circuits::zcash::stock;
use spillproof_engine::Session;
use spillproof_engine::budget::ByteSize;
use spillproof_engine::plan::{Phase, Plan, Rates};

use crate::plan::{alone, differences, measured};
use crate::runs::{refused, succeeds};

const THREADS: usize = 2;

#[test]
fn proofs_of_a_session_are_those_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    succeeds(dir, "srs gen --system zcash --k 8 --memory 16MiB --out made.srs");
    succeeds(dir, "srs verify made.srs --memory 16MiB");
    succeeds(dir, "srs export made.srs --out params");
    succeeds(dir, "srs import params --system zcash --out imported.srs");
    succeeds(dir, "srs export imported.srs --out again");
    assert!(read("params") == read("again"));
    let mut by_stock = Vec::new();
    stock::proof::Params::new(8).write(&mut by_stock).unwrap();
    assert!(read("params") == by_stock);

    let statement = "--system zcash --circuit lookups --k 8 --seed 5";
    succeeds(
        dir,
        &format!("prove {statement} --memory 16MiB --params imported.srs --out session"),
    );
    succeeds(dir, &format!("prove {statement} --memory 16MiB --out anew"));
    succeeds(
        dir,
        &format!("prove {statement} --no-session --params params --out memory"),
    );
    assert!(read("session") == read("memory") && read("session") == read("anew"));
    succeeds(dir, &format!("verify {statement} session"));
    succeeds(dir, &format!("verify {statement} --params params session"));

    let mut damaged = read("session");
    damaged[40] ^= 1;
    std::fs::write(dir.join("damaged"), damaged).unwrap();
    refused(dir, &format!("verify {statement} damaged"), 1);
    let other = refused(dir, &format!("verify {statement} --params made.srs session"), 1);
    assert!(other.contains("srs export"), "{other}");
    let other = refused(dir, "prove --system zcash --k 9 --params made.srs --out none", 1);
    assert!(other.contains("k = 8"), "{other}");
    let other = refused(dir, "prove --k 8 --params made.srs --out none", 1);
    assert!(other.contains("an SRS is needed"), "{other}");
    let small = refused(dir, "prove --system zcash --k 12 --memory 1MiB --out none", 1);
    assert!(small.contains("--memory"), "{small}");
    let mut bytes = read("params");
    bytes.push(0);
    std::fs::write(dir.join("longer"), &bytes).unwrap();
    let longer = refused(dir, "srs import longer --system zcash --out none", 1);
    assert!(longer.contains("bytes after"), "{longer}");
    bytes.truncate(4000);
    std::fs::write(dir.join("shorter"), bytes).unwrap();
    refused(dir, "srs import shorter --system zcash --out none", 1);
    refused(dir, "srs gen --system zcash --seed 1 --k 4 --out none", 2);
    refused(dir, "srs gen --curve pallas --k 4 --out none", 2);
    assert!(!dir.join("none").exists());
    succeeds(
        dir,
        "srs gen --system zcash --curve pallas --k 3 --out pallas.srs",
    );
    succeeds(dir, "srs verify pallas.srs");
    refused(
        dir,
        "prove --system zcash --k 3 --params pallas.srs --out none",
        2,
    );
    let curve = refused(
        dir,
        "prove --system zcash --k 4 --params pallas.srs --out none",
        1,
    );
    assert!(curve.contains("curve"), "{curve}");
}

fn planned(kind: Kind, k: u32, budget_bytes: u64) -> spillproof_engine::Result<Plan> {
    let cs = proof::constraint_system(kind);
    let shape = halo2_proofs::spillproof::Shape::<proof::Curve>::new(&cs, k, 1);
    shape.plan(budget_bytes, THREADS, &Rates::default())
}

/// Of `chain` only: `lookups` of this size reads and writes less than is planned. Of 2^11 rows in 4 MiB a
/// proof, which knows what its key holds, keeps other columns in memory than the plan, in as much time.
#[test]
fn what_is_planned_happens() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for (kind, k, budget_bytes) in [(Kind::Chain, 11, 3 << 20), (Kind::Chain, 13, 8 << 20)] {
        let plan = planned(kind, k, budget_bytes).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let builder = Session::builder()
            .memory(ByteSize::Bytes(budget_bytes))
            .dir(dir.path())
            .threads(THREADS);
        let session = Arc::new(builder.build().unwrap());
        let _current = session.install();
        let params = proof::Params::new(k);
        let (key, of_vk) = measured(&session, || proof::verifying_key(&params, kind, k).unwrap());
        let (key, of_pk) = measured(&session, || prover::proving_key(&params, key, kind, k).unwrap());
        let (_, of_proof) = measured(&session, || prover::prove(&params, &key, kind, k, 7).unwrap());
        let what = format!("{kind:?} {k} {} MiB", budget_bytes >> 20);
        for (phase, happened) in [
            (Phase::VerifyingKey, of_vk),
            (Phase::ProvingKey, of_pk),
            (Phase::Proof, of_proof),
        ] {
            wrong.extend(differences(&what, &plan, phase, happened));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A proof is made in the smallest budget that its plan names, parameters included.
#[test]
fn the_smallest_budget_works() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, name) in [(Kind::Chain, "chain"), (Kind::Lookups, "lookups")] {
        let smallest = planned(kind, 11, 1 << 30).unwrap().smallest_budget_bytes;
        println!("{name}: {smallest} bytes");
        let statement = format!("--system zcash --circuit {name} --k 11 --threads {THREADS}");
        succeeds(
            dir.path(),
            &format!("prove {statement} --memory {smallest} --out proof"),
        );
        let less = smallest / 4 * 3;
        let reason = refused(
            dir.path(),
            &format!("prove {statement} --memory {less} --out none"),
            1,
        );
        assert!(reason.contains("--memory"), "{reason}");
    }
}
