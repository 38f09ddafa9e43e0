//! midnight-proofs in the binary: proofs of a session are those of memory, parameters and keys go through
//! files, plans are held to runs. That they are those of the unmodified prover, the tests of the benchmark
//! say, which contains it.

use std::path::Path;
use std::sync::Arc;

use spillproof_circuits::Kind;
use spillproof_circuits::midnight::dropin::{proof, prover};
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
    succeeds(
        dir,
        "srs gen --system midnight --k 8 --memory 16MiB --out made.srs",
    );
    std::fs::create_dir(dir.join("folder")).unwrap();
    succeeds(dir, "srs export made.srs --out folder/bls_midnight_2p8");
    succeeds(dir, "srs export made.srs --out processed --format processed");
    succeeds(dir, "srs gen --system midnight --k 9 --out larger.srs");
    succeeds(dir, "srs export larger.srs --out larger");

    let statement = "--system midnight --circuit lookups --k 8 --seed 5";
    let of_session = format!("prove {statement} --memory 16MiB");
    for (srs, out) in [
        ("--srs made.srs", "session"),
        ("--srs folder", "of-folder"),
        ("--srs folder/bls_midnight_2p8", "of-file"),
        ("--srs processed", "of-processed"),
        ("--srs larger.srs", "of-larger"),
        ("--srs-seed 1", "anew"),
        ("--srs folder --threads 1", "of-one-thread"),
    ] {
        succeeds(dir, &format!("{of_session} {srs} --out {out}"));
        assert!(read(out) == read("session"), "{out}");
    }
    for (srs, out) in [("--srs folder", "memory"), ("--srs larger", "memory-of-larger")] {
        succeeds(dir, &format!("prove {statement} --no-session {srs} --out {out}"));
        assert!(read(out) == read("session"), "{out}");
    }
    for srs in ["", "--srs folder", "--srs processed", "--srs larger"] {
        succeeds(dir, &format!("verify {statement} {srs} session"));
    }

    let mut damaged = read("session");
    damaged[140] ^= 1;
    std::fs::write(dir.join("damaged"), damaged).unwrap();
    refused(dir, &format!("verify {statement} damaged"), 1);
    let other = refused(dir, &format!("verify {statement} --srs made.srs session"), 1);
    assert!(other.contains("srs export"), "{other}");
    let small = refused(dir, "prove --system midnight --k 9 --srs made.srs --out none", 1);
    assert!(small.contains("2^8 rows"), "{small}");
    let small = refused(
        dir,
        "prove --system midnight --k 12 --memory 256KiB --out none",
        1,
    );
    assert!(small.contains("--memory"), "{small}");
    let none = refused(dir, "prove --system midnight --k 10 --srs folder --out none", 1);
    assert!(none.contains("bls_midnight_2p10"), "{none}");
    assert!(!dir.join("none").exists());
}

#[test]
fn keys_go_through_files() {
    // The session of another test would be this one's.
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    succeeds(dir, "srs gen --system midnight --k 8 --out made.srs");
    let statement = "--system midnight --circuit lookups --k 8 --srs made.srs";
    succeeds(
        dir,
        &format!("keygen {statement} --memory 16MiB --out key --vk vk"),
    );
    // midnight-proofs' own bytes, which its reader takes.
    let key = prover::read_proving_key(&mut &read("key")[..], Kind::Lookups, 8).unwrap();
    assert!(proof::verifying_key_bytes(key.get_vk()) == read("vk"));
    let params = proof::insecure_params(8, 1);
    let made = proof::verifying_key(&params, Kind::Lookups, 8).unwrap();
    assert!(proof::verifying_key_bytes(&made) == read("vk"));

    succeeds(
        dir,
        &format!("prove {statement} --memory 16MiB --key key --out keyed"),
    );
    succeeds(dir, &format!("prove {statement} --memory 16MiB --out made"));
    assert!(read("keyed") == read("made"));
    succeeds(dir, &format!("verify {statement} --vk vk keyed"));
    succeeds(
        dir,
        "verify --system midnight --circuit lookups --k 8 --srs-seed 1 --vk vk keyed",
    );
    refused(
        dir,
        "verify --system midnight --circuit lookups --k 8 --srs-seed 2 --vk vk keyed",
        1,
    );
    let longer = [&read("key")[..], &[0]].concat();
    std::fs::write(dir.join("longer"), longer).unwrap();
    let longer = refused(dir, &format!("prove {statement} --key longer --out none"), 1);
    assert!(longer.contains("bytes follow"), "{longer}");
    std::fs::write(dir.join("shorter"), &read("key")[..9000]).unwrap();
    let shorter = refused(dir, &format!("prove {statement} --key shorter --out none"), 1);
    assert!(shorter.contains("shorter"), "{shorter}");
    let other = "prove --system midnight --k 7 --srs made.srs --key key --out none";
    let other = refused(dir, other, 1);
    assert!(other.contains("2^8"), "{other}");
    assert!(!dir.join("none").exists());
}

fn planned(kind: Kind, k: u32, budget_bytes: u64) -> spillproof_engine::Result<Plan> {
    let shape = midnight_proofs::spillproof::Shape::new(&proof::constraint_system(kind), k);
    shape.plan(budget_bytes, THREADS, &Rates::default())
}

fn session(dir: &Path, budget_bytes: u64) -> Arc<Session> {
    let builder = Session::builder()
        .memory(ByteSize::Bytes(budget_bytes))
        .dir(dir)
        .threads(THREADS);
    Arc::new(builder.build().unwrap())
}

#[test]
fn what_is_planned_happens() {
    let _alone = alone();
    let mut wrong = Vec::new();
    for (kind, k, budget_bytes) in [
        (Kind::Chain, 11, 3 << 20),
        (Kind::Chain, 13, 8 << 20),
        (Kind::Lookups, 12, 8 << 20),
    ] {
        let plan = planned(kind, k, budget_bytes).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path(), budget_bytes);
        let _current = session.install();
        let params = proof::insecure_params(k, 1);
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

/// Keys and a proof are made in the smallest budget that their plan names, and in those above it.
#[test]
fn every_budget_from_the_smallest_on_works() {
    let _alone = alone();
    for (kind, k) in [(Kind::Chain, 9), (Kind::Lookups, 9)] {
        let smallest = planned(kind, k, 1 << 30).unwrap().smallest_budget_bytes;
        let mut first = None;
        for step in 0..12 {
            let budget_bytes = smallest + smallest * step * step / 40;
            let dir = tempfile::tempdir().unwrap();
            let _current = session(dir.path(), budget_bytes).install();
            let params = proof::insecure_params(k, 1);
            let key = proof::verifying_key(&params, kind, k).unwrap();
            let key = prover::proving_key(&params, key, kind, k).unwrap();
            let proof = prover::prove(&params, &key, kind, k, 7).unwrap();
            assert!(
                *first.get_or_insert_with(|| proof.clone()) == proof,
                "{kind:?} in {budget_bytes} bytes"
            );
        }
    }
}

/// A proof is made in the smallest budget that its plan names, parameters included.
#[test]
fn the_smallest_budget_works() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, name) in [(Kind::Chain, "chain"), (Kind::Lookups, "lookups")] {
        let smallest = planned(kind, 11, 1 << 30).unwrap().smallest_budget_bytes;
        println!("{name}: {smallest} bytes");
        let statement = format!("--system midnight --circuit {name} --k 11 --threads {THREADS}");
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
