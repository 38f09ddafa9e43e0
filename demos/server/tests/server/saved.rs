//! Saved keys of halo2-axiom and midnight-proofs, beside those of Groth16: proofs, refusals, budgets.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ark_bls12_381::{Bls12_381, Fr as BlsScalar};
use spillproof_circuits::axiom::dropin::any::Any;
use spillproof_circuits::axiom::dropin::dialect::Fr;
use spillproof_circuits::axiom::dropin::halo2::halo2curves::ff::PrimeField;
use spillproof_circuits::axiom::dropin::halo2::spillproof::save_witness;
use spillproof_circuits::axiom::dropin::proof::{downsize, verify, verifying_key};
use spillproof_circuits::axiom::dropin::prover::proving_key;
use spillproof_circuits::axiom::dropin::saved::{SavedKey, open_params, save_key};
use spillproof_circuits::midnight::dropin as midnight;
use spillproof_circuits::midnight::dropin::saved::Midnight;
use spillproof_circuits::saved::{Saved as _, public_digits};
use spillproof_circuits::{Kind, Scheme};
use spillproof_commit::{Engine, Scalar, generate};
use spillproof_format::{Curve, FrameKey, HEADER_BYTES, Header, RootHasher};
use spillproof_server::{Error, Server, Settings};
use tempfile::TempDir;

use crate::client::{Answer, Request};
use crate::fixture::{KEYS, Running, check, proofs, session};

const K: u32 = 8;
/// The parameters are for more rows than keys have.
const PARAMETERS_K: u32 = 9;
const SEED: u64 = 7;
const SECRET: u64 = 1234;

/// What a program saves.
pub struct Saved {
    dir: TempDir,
    /// Of the circuit `sums`.
    pub witness: Vec<u8>,
    /// Of another circuit.
    other: Vec<u8>,
    /// That does not satisfy the circuit.
    unsatisfied: Vec<u8>,
    instances: Vec<Vec<Fr>>,
}

pub static SAVED: LazyLock<Saved> = LazyLock::new(Saved::make);

impl Saved {
    fn make() -> Self {
        let (dir, scratch) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let session = session("64MiB", &scratch);
        let _pinned = session.pin();
        let workspace = session.workspace();
        let parameters = dir.path().join("parameters.srs");
        generate::<Engine>(workspace, &parameters, PARAMETERS_K, Scalar::from(SECRET), |_| ())
            .expect("an SRS");
        let mut params = open_params(&parameters).expect("parameters");
        downsize(&mut params, K);
        fs::create_dir(dir.path().join("keys")).expect("a folder");
        let mut witnesses = Vec::new();
        let at = dir.path().join("witness");
        for (name, kind) in [("sums", Kind::Chain), ("ranges", Kind::Lookups)] {
            let vk = verifying_key(&params, kind, K).expect("a verifying key");
            let pk = proving_key(&params, vk, kind, K).expect("a proving key");
            save_key(&pk, kind, K, &Self::key_in(dir.path(), name)).expect("a key");
            let circuit = Any::new(kind, K, SEED);
            let instances = circuit.instances();
            let mut save = |instances: &[Vec<Fr>]| {
                let columns: Vec<&[Fr]> = instances.iter().map(Vec::as_slice).collect();
                save_witness(pk.get_vk(), &circuit, &columns, &at).expect("a witness");
                witnesses.push(fs::read(&at).expect("a witness"));
            };
            save(&instances);
            let mut others = instances;
            others[0][0] += Fr::one();
            save(&others);
        }
        let [witness, unsatisfied, other, _] = witnesses.try_into().expect("two of each circuit");
        Self {
            dir,
            witness,
            other,
            unsatisfied,
            instances: Any::new(Kind::Chain, K, SEED).instances(),
        }
    }

    fn key_in(dir: &Path, name: &str) -> PathBuf {
        dir.join("keys").join(name).with_extension("key")
    }

    fn key(&self, name: &str) -> PathBuf {
        Self::key_in(self.dir.path(), name)
    }

    fn parameters(&self) -> PathBuf {
        self.dir.path().join("parameters.srs")
    }

    /// Takes these keys, and their parameters.
    pub fn settings(&self, settings: &mut Settings) {
        settings.keys.push(self.dir.path().join("keys"));
        settings.parameters.push(self.parameters());
    }
}

fn post(server: &Running, key: &str, body: &[u8]) -> Answer {
    Request::post(&proofs(key), body).send(server.address)
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{answer:?}"
    );
}

/// The public inputs as the result has them.
fn digits(instances: &[Vec<Fr>]) -> serde_json::Value {
    let digits = |value: &Fr| -> String {
        let bytes = value.to_repr();
        bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
    };
    let columns = instances.iter();
    columns
        .map(|values| values.iter().map(digits).collect::<Vec<_>>())
        .collect()
}

/// The bytes of a result.
fn proof_of(result: &serde_json::Value) -> Vec<u8> {
    let digits = result["proof"].as_str().expect("digits");
    let pairs = digits.as_bytes().as_chunks::<2>().0.iter();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    pairs.map(|pair| byte(pair).expect("digits")).collect()
}

/// Whether the bytes of a result are a proof of the circuit.
fn verifies(result: &serde_json::Value, scheme: Scheme) -> bool {
    let proof = proof_of(result);
    let scratch = tempfile::tempdir().expect("a folder");
    let session = session("32MiB", &scratch);
    let _pinned = session.pin();
    let key = SavedKey::open(&SAVED.key("sums")).expect("a key");
    let mut params = open_params(SAVED.parameters()).expect("parameters");
    downsize(&mut params, K);
    verify(&params, key.key.get_vk(), &SAVED.instances, &proof, scheme).is_ok()
}

#[test]
fn each_multi_opening_argument_that_is_asked_for() {
    let server = Running::with("64MiB", |settings| SAVED.settings(settings));
    let post = |scheme: &str| {
        Request::post(&proofs("sums"), &SAVED.witness)
            .with("spillproof-scheme", scheme)
            .with("idempotency-key", "once")
            .send(server.address)
    };
    let made = post("GWC");
    assert_eq!(made.status, 200, "{made:?}");
    assert!(verifies(&made.json(), Scheme::Gwc));
    assert!(!verifies(&made.json(), Scheme::Shplonk));
    assert_eq!(post("gwc").json(), made.json());
    is(&post("shplonk"), 422, "idempotency_key_reused");
    server.end();
}

#[test]
fn proofs_of_both_systems() {
    let server = Running::with("64MiB", |settings| SAVED.settings(settings));
    let said = server.get("/v1/keys/sums").json();
    for (field, expected) in [("name", "sums"), ("system", "halo2-axiom")] {
        assert_eq!(said[field], expected, "{said}");
    }
    assert_eq!(said["schemes"], serde_json::json!(["shplonk", "gwc"]));
    assert_eq!((&said["logRows"], &said["insecure"]), (&K.into(), &true.into()));
    assert!(said["witnessBytes"].as_u64() >= Some(SAVED.witness.len() as u64));
    let listed = server.get("/v1/keys").json();
    let systems = listed["keys"].as_array().expect("keys").iter();
    let saved = systems.filter(|key| key["system"] == "halo2-axiom").count();
    assert_eq!(
        (saved, listed["keys"].as_array().map(Vec::len)),
        (2, Some(KEYS.all.len() + 2))
    );
    let mut proofs_made = Vec::new();
    for _ in 0..2 {
        let answer = post(&server, "sums", &SAVED.witness);
        assert_eq!(answer.status, 200, "{answer:?}");
        let result = answer.json();
        assert_eq!(result["publicInputs"], digits(&SAVED.instances));
        assert!(verifies(&result, Scheme::Shplonk), "{result}");
        let job = answer.header("content-location").expect("the job");
        let said = server.get(job).json();
        assert_eq!((&said["state"], &said["result"]), (&"done".into(), &result));
        proofs_made.push(result);
        let groth16 = post(&server, "medium", KEYS.witness("medium"));
        check("medium", &groth16.json());
    }
    // Random values are the system's.
    assert_ne!(proofs_made[0], proofs_made[1]);
    let other = post(&server, "ranges", &SAVED.other);
    assert_eq!(other.status, 200, "{other:?}");
    server.end();
}

/// A scalar above the modulus, under digests that are right.
fn above_the_modulus(witness: &[u8]) -> Vec<u8> {
    let mut bytes = witness.to_vec();
    let mut header = Header::decode_prefix(&bytes).expect("a header");
    let (frames, frame_bytes) = (header.frames() as usize, header.frame_bytes() as usize);
    let table = HEADER_BYTES + frames * frame_bytes;
    let advice = header.find_label("advice").expect("a section").first_frame as usize;
    let scalar = HEADER_BYTES + advice * frame_bytes;
    bytes[scalar..scalar + 32].fill(0xff);
    let (key, mut root) = (FrameKey::of(&header), RootHasher::new(&header));
    for frame in 0..frames {
        let at = HEADER_BYTES + frame * frame_bytes;
        let digest = key.digest(frame as u64, &bytes[at..at + frame_bytes]);
        bytes[table + 32 * frame..][..32].copy_from_slice(&digest);
        root.update(&digest);
    }
    header.root = root.finish().expect("a root");
    bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
    bytes
}

#[test]
fn witnesses_that_are_none() {
    let server = Running::with("64MiB", |settings| {
        SAVED.settings(settings);
        settings.queue = 4;
    });
    let witness = &SAVED.witness;
    is(
        &post(&server, "sums", &SAVED.unsatisfied),
        422,
        "witness_unsatisfied",
    );
    let refused = |body: &[u8], said: &str| {
        let answer = post(&server, "sums", body);
        is(&answer, 422, "witness_invalid");
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains(said), "{detail}");
    };
    let of_another_key = post(&server, "ranges", witness);
    is(&of_another_key, 422, "witness_invalid");
    let detail = of_another_key.json()["detail"].to_string();
    assert!(
        detail.contains("the witness of the key with the hash"),
        "{detail}"
    );
    // A container of another kind.
    refused(
        &fs::read(SAVED.key("sums")).expect("a key")[..8192],
        "ProvingKeyBundle",
    );
    refused(KEYS.witness("small"), "");
    refused(b"", "");
    refused(&witness[..100], "");
    refused(&witness[..witness.len() - 1], "container");
    refused(&above_the_modulus(witness), "not below the modulus");
    // A bit of the header, of each frame, of the digest table and of its padding.
    let header = Header::decode_prefix(witness).expect("a header");
    let frame_bytes = header.frame_bytes() as usize;
    let frames = (0..header.frames() as usize).map(|frame| HEADER_BYTES + frame * frame_bytes + 9);
    let table = HEADER_BYTES + header.frames() as usize * frame_bytes;
    for at in frames.chain([50, table, witness.len() - 1]) {
        let mut changed = witness.clone();
        changed[at] ^= 1;
        refused(&changed, "");
    }
    // Public inputs in all rows would be as long, so that this witness has the most bytes.
    let most = server.get("/v1/keys/sums").json()["witnessBytes"].as_u64();
    assert_eq!(most, Some(witness.len() as u64));
    let long = [witness, &[0][..]].concat();
    is(&post(&server, "sums", &long), 413, "witness_too_large");
    // That of a saved circuit, for a key of Groth16.
    let answer = post(&server, "small", witness);
    is(&answer, 413, "witness_too_large");
    assert_eq!(post(&server, "sums", witness).status, 200);
    server.end();
}

#[test]
fn jobs_that_are_stopped() {
    let server = Running::with("64MiB", |settings| SAVED.settings(settings));
    let held = server.hold();
    let begin = || {
        let answer = Request::post(&proofs("sums"), &SAVED.witness)
            .with("prefer", "respond-async")
            .send(server.address);
        answer.header("location").expect("a place").to_owned()
    };
    let [running, waiting] = [begin(), begin()];
    server.until("it is running", || server.state(&running) == "running");
    for job in [&running, &waiting] {
        assert_eq!(Request::delete(job).send(server.address).status, 202);
        server.until("it is stopped", || server.state(job) == "stopped");
    }
    drop(held);
    server.end();
}

#[test]
fn the_budget_that_is_named_is_enough() {
    let with = |memory: &str| {
        Running::with(memory, |settings| {
            settings.keys = vec![SAVED.key("ranges")];
            settings.parameters = vec![SAVED.parameters()];
        })
    };
    let ample = with("64MiB");
    let needed = ample.get("/v1/keys/ranges").json()["neededBytes"]
        .as_u64()
        .expect("bytes");
    ample.end();
    let small = with(&(needed - 1).to_string());
    let refused = post(&small, "ranges", &SAVED.other);
    is(&refused, 422, "budget_too_small");
    assert_eq!(refused.json()["neededBytes"], needed);
    small.end();
    let enough = with(&needed.to_string());
    let answer = post(&enough, "ranges", &SAVED.other);
    assert_eq!(answer.status, 200, "{answer:?}");
    enough.end();
}

/// What a server with saved keys does not start with.
#[test]
fn keys_and_parameters_that_do_not_belong_together() {
    let run = |parameters: Vec<PathBuf>| {
        let scratch = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            parameters,
            ..Settings::new(vec![SAVED.key("sums")])
        };
        let server = Server::bind(session("64MiB", &scratch), settings).expect("a server");
        server.run().expect_err("no parameters for the key")
    };
    let refused = run(Vec::new());
    assert!(
        matches!(&refused, Error::NoParameters { file, .. } if *file == SAVED.key("sums")),
        "{refused}"
    );
    let refused = run(vec![SAVED.key("sums")]);
    assert!(matches!(&refused, Error::Parameters { .. }), "{refused}");
    let (scratch, folder) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let few = folder.path().join("few.srs");
    let own = session("64MiB", &scratch);
    generate::<Engine>(own.workspace(), &few, K - 1, Scalar::from(SECRET), |_| ()).expect("an SRS");
    let refused = run(vec![few.clone()]);
    assert!(
        matches!(&refused, Error::FewParameters { found, k, .. } if (*found, *k) == (K - 1, K)),
        "{refused}"
    );
    let refused = run(vec![few.clone(), SAVED.parameters()]);
    assert!(
        matches!(&refused, Error::SameCurve { files } if files[0] == few),
        "{refused}"
    );
    // Those of another curve are no parameters of the key's.
    let refused = run(vec![MIDNIGHT.parameters()]);
    let curve = Curve::Bn254;
    assert!(
        matches!(&refused, Error::NoParameters { curve: found, .. } if *found == curve),
        "{refused}"
    );
}

/// What a program over midnight-proofs saves.
struct OfMidnight {
    dir: TempDir,
    witness: Vec<u8>,
    unsatisfied: Vec<u8>,
    instances: Vec<Vec<midnight::dialect::Fr>>,
}

static MIDNIGHT: LazyLock<OfMidnight> = LazyLock::new(OfMidnight::make);

impl OfMidnight {
    fn make() -> Self {
        let [dir, scratch] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let session = session("64MiB", &scratch);
        let _pinned = session.pin();
        let (parameters, key, at) = (
            dir.path().join("parameters.srs"),
            dir.path().join("midnight.key"),
            dir.path().join("witness"),
        );
        let secret = BlsScalar::from(SECRET);
        generate::<Bls12_381>(session.workspace(), &parameters, PARAMETERS_K, secret, |_| ())
            .expect("an SRS");
        let mut params = Midnight::open_params(&parameters).expect("parameters");
        Midnight::downsize(&mut params, K);
        let vk = midnight::proof::verifying_key(&params, Kind::Chain, K).expect("a verifying key");
        let pk = midnight::prover::proving_key(&params, vk, Kind::Chain, K).expect("a proving key");
        let circuit = midnight::any::Any::new(Kind::Chain, K, SEED);
        let instances = circuit.instances();
        let save = |instances: &[Vec<midnight::dialect::Fr>]| {
            let columns: Vec<_> = instances.iter().map(Vec::as_slice).collect();
            midnight::halo2::spillproof::save_witness(pk.get_vk(), &circuit, &columns, &at)
                .expect("a witness");
            fs::read(&at).expect("a witness")
        };
        let (witness, unsatisfied) = midnight::any::Any::scope(Kind::Chain, || {
            midnight::halo2::spillproof::save_described_key(&pk, &circuit, 0, &key).expect("a key");
            let mut others = instances.clone();
            others[0][0] += midnight::dialect::Fr::from(1);
            (save(&instances), save(&others))
        });
        Self {
            dir,
            witness,
            unsatisfied,
            instances,
        }
    }

    fn parameters(&self) -> PathBuf {
        self.dir.path().join("parameters.srs")
    }

    fn settings(&self, settings: &mut Settings) {
        settings.keys.push(self.dir.path().join("midnight.key"));
        settings.parameters.push(self.parameters());
    }

    /// Whether the bytes of a result are a proof of the circuit.
    fn verifies(&self, result: &serde_json::Value) -> bool {
        let scratch = tempfile::tempdir().expect("a folder");
        let session = session("32MiB", &scratch);
        let _pinned = session.pin();
        let key = Midnight::open_key(&self.dir.path().join("midnight.key")).expect("a key");
        let mut params = Midnight::open_params(&self.parameters()).expect("parameters");
        Midnight::downsize(&mut params, K);
        let columns: Vec<_> = self.instances.iter().map(Vec::as_slice).collect();
        Midnight::verify(&params, &key, &columns, &proof_of(result), None).is_ok()
    }
}

#[test]
fn keys_of_three_systems() {
    let server = Running::with("64MiB", |settings| {
        SAVED.settings(settings);
        MIDNIGHT.settings(settings);
    });
    let said = server.get("/v1/keys/midnight").json();
    for (field, expected) in [("system", "halo2-midnight"), ("curve", "bls12381")] {
        assert_eq!(said[field], expected, "{said}");
    }
    assert_eq!(said["schemes"], serde_json::json!([]));
    assert_eq!((&said["logRows"], &said["insecure"]), (&K.into(), &true.into()));
    let made = post(&server, "midnight", &MIDNIGHT.witness);
    assert_eq!(made.status, 200, "{made:?}");
    let result = made.json();
    assert!(MIDNIGHT.verifies(&result), "{result}");
    let columns: Vec<_> = MIDNIGHT.instances.iter().map(Vec::as_slice).collect();
    assert_eq!(
        result["publicInputs"],
        serde_json::json!(public_digits::<Midnight>(&columns))
    );
    // Random values are the system's.
    assert_ne!(post(&server, "midnight", &MIDNIGHT.witness).json(), result);
    assert_eq!(post(&server, "sums", &SAVED.witness).status, 200);
    assert_eq!(post(&server, "medium", KEYS.witness("medium")).status, 200);

    is(
        &post(&server, "midnight", &MIDNIGHT.unsatisfied),
        422,
        "witness_unsatisfied",
    );
    for (key, witness) in [("midnight", &SAVED.witness), ("sums", &MIDNIGHT.witness)] {
        let refused = post(&server, key, witness);
        is(&refused, 422, "witness_invalid");
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains("is expected"), "{detail}");
    }
    for at in [50, HEADER_BYTES + 40, MIDNIGHT.witness.len() - 1] {
        let mut changed = MIDNIGHT.witness.clone();
        changed[at] ^= 1;
        is(&post(&server, "midnight", &changed), 422, "witness_invalid");
    }
    let with_scheme = Request::post(&proofs("midnight"), &MIDNIGHT.witness)
        .with("spillproof-scheme", "gwc")
        .send(server.address);
    is(&with_scheme, 400, "bad_header");
    server.end();
}
