//! What is refused, and how.

use std::fs::{self, Permissions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use spillproof_server::{Error, Server, Settings};

use crate::client::{Answer, Request, answer_of, connect, exchange};
use crate::fixture::{KEYS, Running, proofs, session};

const TOKEN: &str = "0123456789abcdef-token";

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{answer:?}"
    );
}

#[test]
fn requests() {
    let server = Running::start();
    let (path, witness) = (proofs("small"), KEYS.witness("small"));
    let post = |body: &[u8]| Request::post(&path, body).send(server.address);
    is(&server.get("/nowhere"), 404, "no_such_route");
    is(&server.get("/v1/keys/none"), 404, "no_such_key");
    is(&server.get("/v1/keys/%ff"), 400, "bad_path");
    is(&server.get("/v1/jobs/0"), 404, "no_such_job");
    is(&server.get(&path), 405, "method_not_allowed");
    is(
        &Request::post(&proofs("none"), witness).send(server.address),
        404,
        "no_such_key",
    );
    let form = Request {
        headers: vec![("content-type", "application/x-www-form-urlencoded".into())],
        ..Request::post(&path, witness)
    };
    is(&form.send(server.address), 415, "content_type");
    for (header, value) in [
        ("prefer", "wait=soon"),
        ("spillproof-deadline", "-1"),
        ("spillproof-deadline", "nan"),
        ("spillproof-scheme", "kzg"),
        // Of a key of Groth16.
        ("spillproof-scheme", "gwc"),
        ("idempotency-key", " "),
        ("idempotency-key", &"k".repeat(256)),
    ] {
        let answer = Request::post(&path, witness)
            .with(header, value)
            .send(server.address);
        is(&answer, 400, "bad_header");
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|detail| detail.to_lowercase().contains(header))
        );
    }
    let twice = Request::post(&path, witness)
        .with("idempotency-key", 1)
        .with("idempotency-key", 2);
    is(&twice.send(server.address), 400, "bad_header");
    // Bodies.
    is(&post(&[witness, &[0]].concat()), 413, "witness_too_large");
    is(&post(&witness[1..]), 422, "witness_length");
    is(&post(b""), 422, "witness_length");
    is(&post(KEYS.witness("medium")), 413, "witness_too_large");
    is(&post(&vec![7; witness.len()]), 422, "witness_invalid");
    let changed = |at: usize, byte: u8| {
        let mut body = witness.to_vec();
        body[at] = byte;
        post(&body)
    };
    // Its kind, its version, the prime of its field, its number of values, its first value, a value above the prime.
    for at in [0, 4, 30, 60, 76, witness.len() - 1] {
        let answer = changed(at, 0xff);
        is(&answer, 422, "witness_invalid");
        // No value of the witness is in it: the longest number is an offset.
        let detail = answer.json()["detail"].to_string();
        let digits = detail.split(|c: char| !c.is_ascii_hexdigit());
        assert!(digits.into_iter().all(|digits| digits.len() < 16), "{detail}");
    }
    is(
        &changed(witness.len() - 32, witness[witness.len() - 32] ^ 1),
        422,
        "witness_unsatisfied",
    );
    // Of a curve that is not the key's, of the same length.
    let signals = (witness.len() - 76) / 32;
    let mut other = KEYS.witness("other-curve")[..witness.len()].to_vec();
    other[60..64].copy_from_slice(&(signals as u32).to_le_bytes());
    other[68..76].copy_from_slice(&((witness.len() - 76) as u64).to_le_bytes());
    is(&post(&other), 422, "witness_invalid");
    assert_eq!(server.metric("spillproof_jobs_ended_total{state=\"done\"}"), 0.0);
    server.end();
}

/// Heads that are too long, too many, or none; hyper's own answers are problems, too.
#[test]
fn heads() {
    let server = Running::start();
    let send = |bytes: &str| exchange(server.address, bytes.as_bytes(), true).expect("an answer");
    is(&send("HELLO\r\n\r\n"), 400, "malformed_request");
    is(&send("GET /healthz HTTP/9.9\r\n\r\n"), 400, "malformed_request");
    is(
        &send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n"),
        400,
        "malformed_request",
    );
    is(
        &send(
            "POST /v1/keys/small/proofs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        ),
        400,
        "malformed_request",
    );
    let many: String = (0..100).map(|number| format!("x-{number}: 1\r\n")).collect();
    is(
        &send(&format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n")),
        431,
        "head_too_large",
    );
    let long = "x".repeat(100 << 10);
    is(
        &send(&format!(
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"
        )),
        431,
        "head_too_large",
    );
    let path = "x".repeat(65 << 10);
    let answer = send(&format!("GET /{path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    assert!(
        ["uri_too_long", "head_too_large"].contains(&answer.code().as_str()),
        "{answer:?}"
    );
    assert!(server.metric("spillproof_refusals_total{code=\"malformed_request\"}") >= 4.0);
    server.end();
}

#[test]
fn slow_clients() {
    let server = Running::with("64MiB", |settings| {
        settings.head_timeout = Duration::from_millis(300);
        settings.body_timeout = Duration::from_millis(300);
    });
    // Half a head, and nothing at all: closed without an answer.
    for begun in ["GET /healthz HTTP/1.1\r\nhost:", ""] {
        let mut stream = connect(server.address);
        stream.write_all(begun.as_bytes()).expect("a part");
        assert!(answer_of(stream).is_none());
    }
    let request = Request::post("/v1/keys/small/proofs", KEYS.witness("small"));
    let mut stream = connect(server.address);
    stream
        .write_all(request.head(server.address).as_bytes())
        .expect("a head");
    stream.write_all(&KEYS.witness("small")[..1000]).expect("a part");
    is(&answer_of(stream).expect("an answer"), 408, "body_timeout");
    // One that never stands still, and takes for ever.
    let mut stream = connect(server.address);
    stream
        .write_all(request.head(server.address).as_bytes())
        .expect("a head");
    for byte in KEYS.witness("small").chunks(1).take(15) {
        let _it_may_be_given_up = stream.write_all(byte);
        std::thread::sleep(Duration::from_millis(50));
    }
    is(&answer_of(stream).expect("an answer"), 408, "body_timeout");
    server.end();
}

/// Uploads have places: the next one waits for its own, and a client that goes gives it back.
#[test]
fn places_of_uploads() {
    let server = Running::with("64MiB", |settings| settings.uploads = 1);
    let request = Request::post("/v1/keys/small/proofs", KEYS.witness("small"));
    let mut first = connect(server.address);
    first
        .write_all(request.head(server.address).as_bytes())
        .expect("a head");
    server.until("it has the place", || {
        server.metric("spillproof_jobs{state=\"receiving\"}") == 1.0
    });
    let second = request.begin(server.address);
    server.until("it waits", || {
        server.metric("spillproof_jobs{state=\"receiving\"}") == 2.0
    });
    drop(first);
    assert_eq!(answer_of(second).expect("an answer").status, 200);
    server.end();
}

#[test]
fn tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    fs::write(&file, format!("{TOKEN}\n")).expect("a file");
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("a mode");
    let scratch = tempfile::tempdir().expect("a folder");
    let server = Server::bind(
        session("64MiB", &scratch),
        Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token_file: Some(file.clone()),
            ..Settings::new(vec![KEYS.file("small")])
        },
    );
    let server = server.expect("a server");
    let (address, handle) = (server.address(), server.handle());
    let thread = std::thread::spawn(move || server.run());
    while Request::get("/readyz").send(address).status != 200 {}
    assert_eq!(Request::get("/healthz").send(address).status, 200);
    let keys = |authorization: Option<&str>| {
        let request = Request::get("/v1/keys");
        match authorization {
            None => request,
            Some(value) => request.with("authorization", value),
        }
        .send(address)
    };
    for wrong in [
        None,
        Some(TOKEN),
        Some("Bearer"),
        Some("Bearer "),
        Some(&format!("Bearer {TOKEN}x")),
        Some(&format!("Basic {TOKEN}")),
    ] {
        let answer = keys(wrong);
        is(&answer, 401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    for right in [format!("Bearer {TOKEN}"), format!("bearer  {TOKEN}")] {
        assert_eq!(keys(Some(&right)).status, 200);
    }
    // Without it, nothing is said of what there is.
    for path in ["/metrics", "/openapi.json", "/nowhere", "/v1/jobs/0"] {
        is(&Request::get(path).send(address), 401, "unauthorized");
    }
    // With a token, a host may have a name.
    let named = format!(
        "GET /v1/keys HTTP/1.1\r\nhost: prover.example\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    assert_eq!(
        exchange(address, named.as_bytes(), false)
            .expect("an answer")
            .status,
        200
    );
    handle.drain();
    thread.join().expect("no panic").expect("a good end");
}

/// A page of another site could have its name lead here.
#[test]
fn hosts() {
    let server = Running::start();
    for (host, status) in [
        ("localhost", 200),
        ("localhost:8080", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8080", 200),
        ("::1", 421),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8080", 421),
        ("", 421),
    ] {
        let request = format!("GET /v1/keys HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = exchange(server.address, request.as_bytes(), false).expect("an answer");
        assert_eq!(answer.status, status, "{host}: {answer:?}");
    }
    server.end();
}

#[test]
fn budgets_that_never_fit() {
    // In more than 8 MiB, copies of a key stay in memory, and what they hold is needed beside a proof.
    let ample = Running::with("7MiB", |settings| settings.keys = vec![KEYS.file("medium")]);
    let needed = ample.get("/v1/keys/medium").json()["neededBytes"]
        .as_u64()
        .expect("bytes");
    ample.end();
    let small = Running::with(&(needed - 1).to_string(), |settings| {
        settings.keys = vec![KEYS.file("medium")]
    });
    let post =
        |server: &Running| Request::post(&proofs("medium"), KEYS.witness("medium")).send(server.address);
    let refused = post(&small);
    is(&refused, 422, "budget_too_small");
    let said = refused.json();
    assert_eq!(said["limitBytes"], needed - 1);
    assert_eq!(said["neededBytes"], needed);
    assert!(
        said["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains(&needed.to_string()))
    );
    small.end();
    let enough = Running::with(&needed.to_string(), |settings| {
        settings.keys = vec![KEYS.file("medium")]
    });
    let answer = post(&enough);
    assert_eq!(answer.status, 200, "{answer:?}");
    enough.end();
}

/// What a server does not start with.
#[test]
fn settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let scratch = tempfile::tempdir().expect("a folder");
    let bound = |change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..Settings::new(vec![KEYS.file("small")])
        };
        change(&mut settings);
        Server::bind(session("64MiB", &scratch), settings).map(drop)
    };
    bound(&|_| ()).expect("a server");
    fs::create_dir(at("empty")).expect("a folder");
    assert!(matches!(
        bound(&|it| it.keys = vec![at("empty")]),
        Err(Error::NoKeys { .. })
    ));
    assert!(matches!(
        bound(&|it| it.keys = vec![at("nowhere")]),
        Err(Error::File { .. })
    ));
    let copied = |name: &str| {
        fs::copy(KEYS.file("small"), at(name)).expect("a copy");
    };
    copied("small.key");
    let same = bound(&|it| it.keys.push(at("small.key")));
    assert!(matches!(same, Err(Error::SameName { name, .. }) if name == "small"));
    copied("a name.zkey");
    assert!(matches!(
        bound(&|it| it.keys = vec![at("a name.zkey")]),
        Err(Error::Name { .. })
    ));
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    assert!(matches!(
        bound(&|it| it.listen = everywhere),
        Err(Error::Open { .. })
    ));
    bound(&|it| (it.listen, it.allows_anyone) = (everywhere, true)).expect("a server");
    assert!(matches!(bound(&|it| it.proofs = 0), Err(Error::Count { .. })));
    let token = |text: &str, mode: u32| {
        fs::write(at("token"), text).expect("a file");
        fs::set_permissions(at("token"), Permissions::from_mode(mode)).expect("a mode");
        bound(&|it| it.token_file = Some(at("token")))
    };
    token(TOKEN, 0o600).expect("a server");
    let for_all = token(TOKEN, 0o644).expect_err("everyone can read it");
    assert!(
        matches!(for_all, Error::TokenForAll { mode: 0o644, .. })
            && for_all.to_string().contains("chmod o-rwx")
    );
    for text in ["", "short", "with a space in the middle", &"x".repeat(1025)] {
        let refused = token(text, 0o600).expect_err("no token");
        assert!(matches!(refused, Error::Token { .. }), "{refused}");
        assert!(
            text.is_empty() || !refused.to_string().contains(text),
            "{refused}"
        );
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    assert!(matches!(
        bound(&|it| it.listen = address),
        Err(Error::Listen { .. })
    ));
    let little = Server::bind(session("1MiB", &scratch), Settings::new(vec![KEYS.file("small")]));
    assert!(matches!(little, Err(Error::Engine(_))));
}

/// A key that is none ends the server, which says which one.
#[test]
fn keys_that_do_not_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = folder.path().join("bad.zkey");
    let whole = fs::read(KEYS.file("small")).expect("a key");
    fs::write(&bad, &whole[..whole.len() / 2]).expect("a file");
    let run = |keys: Vec<&Path>| {
        let scratch = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..Settings::new(keys.into_iter().map(Path::to_owned).collect())
        };
        Server::bind(session("64MiB", &scratch), settings)
            .expect("a server")
            .run()
    };
    let refused = run(vec![&KEYS.file("small"), &bad]).expect_err("a bad key");
    assert!(
        matches!(&refused, Error::Key { file, .. } if *file == bad),
        "{refused}"
    );
}
