//! Proofs are right, whichever way they come.

use std::fs;
use std::io::Write;

use serde_json::Value;
use spillproof_circom::prove::Key;

use crate::client::{Request, answer_of, connect};
use crate::fixture::{KEYS, Running, check, proofs, session};

#[test]
fn proofs_with_keys_of_all_kinds() {
    let server = Running::start();
    for files in &KEYS.all {
        let answer = Request::post(&proofs(files.name), &files.witness).send(server.address);
        assert_eq!(answer.status, 200, "{}: {answer:?}", files.name);
        let result = answer.json();
        assert_eq!(result.as_object().map(|fields| fields.len()), Some(2), "{result}");
        check(files.name, &result);
        let job = answer.header("content-location").expect("the job").to_owned();
        let job = server.get(&job).json();
        assert_eq!((&job["state"], &job["result"]), (&"done".into(), &result));
        assert_eq!(job["key"], files.name);
    }
    server.end();
}

/// What is said of keys is what their files say.
#[test]
fn keys_are_described() {
    let server = Running::start();
    let list = server.get("/v1/keys").json();
    let names: Vec<_> = list["keys"]
        .as_array()
        .expect("keys")
        .iter()
        .map(|key| &key["name"])
        .collect();
    assert_eq!(names, ["imported", "medium", "other-curve", "small"]);
    let scratch = tempfile::tempdir().expect("a folder");
    let own = session("32MiB", &scratch);
    for files in &KEYS.all {
        let said = server.get(&format!("/v1/keys/{}", files.name)).json();
        let key = Key::open(&own, &KEYS.file(files.name), &mut |_| ()).expect("a key");
        let verification_key: Value =
            serde_json::from_slice(&key.verification_key().expect("a verification key")).expect("JSON");
        assert_eq!(said["verificationKey"], verification_key);
        assert_eq!(said["witnessBytes"], files.witness.len());
        assert_eq!(said["signals"], key.shape().signals);
        assert_eq!(said["publicSignals"], key.shape().public);
        assert_eq!(said["insecure"], key.summary().is_without_contribution);
        let curve = if files.name == "other-curve" {
            "bls12381"
        } else {
            "bn128"
        };
        assert_eq!(said["curve"], curve);
        assert!(said["neededBytes"].as_u64() > Some(1 << 20), "{said}");
    }
    server.end();
}

/// A body in chunks, of whose length nothing is said before, and one that is sent when it is asked for.
#[test]
fn bodies_in_chunks() {
    let server = Running::start();
    let (witness, path) = (KEYS.witness("medium"), proofs("medium"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/octet-stream\r\n"
    );
    let mut stream = connect(server.address);
    stream
        .write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes())
        .expect("a head");
    for piece in witness.chunks(777) {
        stream
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .expect("a chunk");
        stream.write_all(piece).expect("a chunk");
        stream.write_all(b"\r\n").expect("a chunk");
    }
    stream.write_all(b"0\r\n\r\n").expect("the last chunk");
    let answer = answer_of(stream).expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    check("medium", &answer.json());
    let mut stream = connect(server.address);
    let expecting = format!(
        "{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        witness.len()
    );
    stream.write_all(expecting.as_bytes()).expect("a head");
    let mut interim = [0; 25];
    std::io::Read::read_exact(&mut stream, &mut interim).expect("a word to go on");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(witness).expect("a body");
    let answer = answer_of(stream).expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    server.end();
}

/// Several requests on one connection.
#[test]
fn connections_are_kept() {
    use std::io::Read;
    let server = Running::start();
    let mut stream = connect(server.address);
    for _ in 0..3 {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .expect("a request");
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).expect("an answer");
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        assert!(
            text.starts_with("HTTP/1.1 200") && text.ends_with("{\"status\":\"ok\"}"),
            "{text}"
        );
    }
    drop(stream);
    server.end();
}

/// Sixteen clients, mixed keys: each gets a proof of its own.
#[test]
fn many_clients_at_a_time() {
    let server = Running::with("32MiB", |settings| settings.proofs = 3);
    std::thread::scope(|scope| {
        for client in 0..16 {
            let server = &server;
            scope.spawn(move || {
                let files = &KEYS.all[client % KEYS.all.len()];
                let answer = Request::post(&proofs(files.name), &files.witness).send(server.address);
                assert_eq!(answer.status, 200, "{answer:?}");
                check(files.name, &answer.json());
            });
        }
    });
    assert_eq!(server.metric("spillproof_jobs_ended_total{state=\"done\"}"), 16.0);
    let peak_bytes = server.metric("spillproof_budget_bytes{kind=\"peak\"}");
    assert!(
        peak_bytes > 0.0 && peak_bytes <= f64::from(32 << 20),
        "{peak_bytes}"
    );
    assert!(server.metric("spillproof_step_seconds_count{step=\"verification\"}") >= 16.0);
    assert!(server.metric("spillproof_file_bytes_total{direction=\"written\"}") > 0.0);
    server.end();
}

/// One key alone, by its file.
#[test]
fn a_key_by_its_file() {
    let server = Running::with("32MiB", |settings| settings.keys = vec![KEYS.file("small")]);
    let answer = Request::post(&proofs("small"), KEYS.witness("small")).send(server.address);
    check("small", &answer.json());
    assert_eq!(server.get("/v1/keys/medium").code(), "no_such_key");
    assert!(fs::exists(KEYS.file("small")).expect("a file"));
    server.end();
}
