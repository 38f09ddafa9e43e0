//! Requests that are wrong in ways that chance chooses: never a panic, always an answer with a code.

use std::io::Write;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use crate::client::{answer_of, connect};
use crate::fixture::{KEYS, Running};
use crate::{seeded, variable};

/// How many.
const REQUESTS: &str = "SPILLPROOF_TEST_REQUESTS";
const REQUESTS_DEFAULT: u64 = 300;
/// Of the server, with heads and bodies that do not go on.
const PATIENCE: Duration = Duration::from_millis(100);

const METHODS: [&str; 9] = [
    "GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "G ET", "\u{fffd}",
];
const PATHS: [&str; 16] = [
    "/v1/keys/small/proofs",
    "/v1/keys/medium/proofs",
    "/v1/keys/none/proofs",
    "/v1/keys",
    "/v1/keys/",
    "/v1/keys/%00",
    "/v1/keys/%ff%fe",
    "/v1/keys/..%2f..%2fetc%2fpasswd",
    "/v1/jobs/0123456789abcdef0123456789abcdef",
    "/v1/jobs/",
    "/metrics",
    "/healthz",
    "//",
    "*",
    "http://localhost/v1/keys",
    "/v1/keys/small/proofs?x=1",
];
const HEADERS: [&str; 19] = [
    "prefer: respond-async",
    "prefer: wait=99999999999",
    "prefer: wait=0",
    "prefer: ,,;=",
    "spillproof-deadline: 1e999",
    "spillproof-deadline: 0.001",
    "spillproof-deadline: x",
    "spillproof-scheme: ",
    "idempotency-key: same",
    "idempotency-key: \u{e9}",
    "content-type: text/plain",
    "content-type: application/octet-stream; charset=none",
    "transfer-encoding: chunked",
    "transfer-encoding: gzip, chunked",
    "expect: 100-continue",
    "authorization: Bearer",
    "host: [::1",
    "connection: upgrade\r\nupgrade: h2c",
    "range: bytes=0-1",
];

/// A request that is right, but for what chance changes.
fn request(rng: &mut StdRng) -> Vec<u8> {
    let pick = |rng: &mut StdRng, of: &[&'static str]| of[rng.gen_range(0..of.len())];
    let is_proof = rng.gen_bool(0.6);
    let (method, path) = match is_proof {
        true => ("POST", PATHS[0]),
        false => (pick(rng, &METHODS), pick(rng, &PATHS)),
    };
    let mut body = match rng.gen_range(0..4) {
        0 => Vec::new(),
        1 => KEYS.witness("medium")[..rng.gen_range(0..2000)].to_vec(),
        _ => KEYS.witness("small").to_vec(),
    };
    for _ in 0..rng.gen_range(0..4) {
        match rng.gen_range(0..3) {
            0 if !body.is_empty() => {
                let at = rng.gen_range(0..body.len());
                body[at] = rng.r#gen();
            }
            1 => body.truncate(rng.gen_range(0..=body.len())),
            _ => body.extend((0..rng.gen_range(0..64)).map(|_| rng.r#gen::<u8>())),
        }
    }
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    if is_proof && rng.gen_bool(0.9) {
        head.push_str("content-type: application/octet-stream\r\n");
    }
    match rng.gen_range(0..8) {
        0 => {}
        1 => head.push_str(&format!("content-length: {}\r\n", rng.r#gen::<u64>())),
        2 => head.push_str("content-length: -1\r\n"),
        3 => head.push_str(&format!("content-length: {}\r\n", body.len().saturating_sub(1))),
        _ => head.push_str(&format!("content-length: {}\r\n", body.len())),
    }
    for _ in 0..rng.gen_range(0..3) {
        head.push_str(pick(rng, &HEADERS));
        head.push_str("\r\n");
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend(body);
    // Some have other bytes in their heads.
    if rng.gen_bool(0.2) {
        for _ in 0..rng.gen_range(1..6) {
            let at = rng.gen_range(0..bytes.len().min(120));
            bytes[at] = rng.r#gen();
        }
    }
    bytes
}

#[test]
fn requests_that_are_malformed() {
    let (seed, mut rng) = seeded();
    let server = Running::with("64MiB", |settings| {
        settings.head_timeout = PATIENCE;
        settings.body_timeout = PATIENCE;
    });
    let requests = variable(REQUESTS).unwrap_or(REQUESTS_DEFAULT);
    let (mut refused, mut unanswered) = (0, 0);
    for number in 0..requests {
        let bytes = request(&mut rng);
        let label = || {
            format!(
                "seed {seed}, request {number}: {}",
                String::from_utf8_lossy(&bytes)
            )
        };
        let mut stream = connect(server.address);
        let _it_may_close_before = stream.write_all(&bytes);
        // A head without an end: the connection is closed when the time for it is over.
        let Some(answer) = answer_of(stream) else {
            unanswered += 1;
            continue;
        };
        assert_ne!(answer.status, 500, "{}: {answer:?}", label());
        let is_head = bytes.starts_with(b"HEAD ");
        if answer.status >= 400 && !is_head {
            answer.code();
            refused += 1;
        }
    }
    println!("{requests} requests: {refused} refused, {unanswered} without an end of their head");
    assert!(refused > requests / 2, "{refused}");
    // It is as it was.
    server.until("all jobs have ended", || {
        ["receiving", "waiting", "running"]
            .iter()
            .all(|state| server.metric(&format!("spillproof_jobs{{state=\"{state}\"}}")) == 0.0)
    });
    assert_eq!(server.get("/readyz").status, 200, "seed {seed}");
    server.end();
}
