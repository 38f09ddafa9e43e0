//! Requests that get no proof, and what they leave behind: nothing.

use std::io::Write as _;

use flate2::write::GzEncoder;
use flate2::Compression;
use midnight_serialize::Serializable as _;
use midnight_transient_crypto::curve::Fr;

use super::circuits::{self, request};
use super::harness::Server;

/// A value that no text of the server may hold, and forms that it might take there.
const SECRET: u64 = 0x5ec2_e75e_c2e7_5ec2;

fn forms_of_the_secret() -> [String; 3] {
    let little: String = SECRET
        .to_le_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    [SECRET.to_string(), format!("{SECRET:x}"), little]
}

#[test]
fn bodies_that_are_no_requests_are_refused_by_name() {
    let server = Server::start(&["--memory", "64MiB"]);
    let circuit = circuits::small();
    let whole = circuit.request(5.into());
    let half = &whole[..whole.len() / 2];
    let longer = [&whole[..], b"x"].concat();
    for path in ["/k", "/check", "/prove", "/prove-tx"] {
        for junk in [&b""[..], b"junk", half, &longer, &[0xff; 50_000]] {
            let answer = server.ask("POST", path, junk);
            let message = answer.json()["message"].to_string();
            assert_eq!(answer.status, 400, "{path}: {message}");
            assert!(!message.contains("junk"), "{message}");
        }
    }
    // A length that is a lie: 4 GiB of inputs.
    let tag = whole.iter().position(|byte| *byte == b')').unwrap();
    let mut lie = whole[..tag + 200].to_vec();
    lie.extend([0xff; 64]);
    assert_eq!(server.ask("POST", "/prove", &lie).status, 400);
    server.wait_until_idle();
    assert!(circuit.verifies(&server.ask("POST", "/prove", &whole).proof(), 5.into(), 7.into()));
}

#[test]
fn keys_that_are_none_are_refused_and_inflate_nothing() {
    let server = Server::start(&["--memory", "64MiB"]);
    let circuit = circuits::small();
    let preimage = || circuit.preimage(5.into(), 7.into(), "mine");
    let key = &circuit.material.prover_key;
    let tag = key.iter().position(|byte| *byte == b':').unwrap() + 1;
    let tag = tag + key[tag..].iter().position(|byte| *byte == b':').unwrap() + 1;
    let packed = |content: &[u8]| {
        let mut bytes = key[..tag].to_vec();
        (content.len() as u32).serialize(&mut bytes).unwrap();
        bytes.extend(content);
        bytes
    };
    let gzip = |content: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        packed(&encoder.finish().unwrap())
    };
    let bomb = vec![0; 64 << 20];
    let of_k = |k: u8| [&[8, k][..], &bomb].concat();
    let mut damaged = key.clone();
    let at = damaged.len() / 2;
    damaged[at] ^= 0xff;
    for (name, bytes) in [
        ("nothing", Vec::new()),
        ("no gzip", packed(b"no gzip")),
        ("a bomb of k = 0", gzip(&of_k(0))),
        ("a bomb of k = 9", gzip(&of_k(9))),
        ("a bomb of k = 200", gzip(&of_k(200))),
        ("a damaged key", damaged),
        ("half a key", packed(&key[tag + 4..key.len() / 2])),
        (
            "another circuit's key",
            circuits::middle().material.prover_key.clone(),
        ),
    ] {
        let mut material = circuit.material.clone();
        material.prover_key = bytes;
        let answer = server.ask("POST", "/prove", &request(preimage(), Some(material)));
        // Parameters of k = 0 are not there.
        let expected = if name.ends_with("k = 0") {
            (503, "no-parameters")
        } else {
            (400, "key")
        };
        assert_eq!(
            (answer.status, answer.word().as_str()),
            expected,
            "{name}: {}",
            answer.json()
        );
    }
    let mut material = circuit.material.clone();
    material.verifier_key = b"no key".to_vec();
    let answer = server.ask("POST", "/prove", &request(preimage(), Some(material)));
    assert_eq!((answer.status, answer.word().as_str()), (400, "key"));
    let mut material = circuit.material.clone();
    material
        .verifier_key
        .clone_from(&circuits::middle().material.verifier_key);
    let answer = server.ask("POST", "/prove", &request(preimage(), Some(material)));
    assert_eq!((answer.status, answer.word().as_str()), (500, "not-verified"));
    assert_eq!(server.wait_until_idle()["keys"]["held"], 1);
    let proof = server.ask("POST", "/prove", &circuit.request(5.into())).proof();
    assert!(circuit.verifies(&proof, 5.into(), 7.into()));
    assert!(server.peak_mib() < 64 + 64, "{} MiB", server.peak_mib());
}

#[test]
fn a_witness_is_in_no_text() {
    let variables = [
        ("SPILLPROOF_PROGRESS", "1"),
        ("RUST_LOG", "trace"),
        ("RUST_BACKTRACE", "1"),
    ];
    let server = Server::start_with(&["--memory", "64MiB"], &variables);
    let circuit = circuits::small();
    let mut texts = String::new();
    let mut wrong = circuit.preimage(SECRET.into(), 7.into(), "mine");
    wrong.public_transcript_inputs = vec![Fr::from(SECRET + 1)];
    let mut more = circuit.preimage(SECRET.into(), 7.into(), "mine");
    more.private_transcript = vec![SECRET.into(), SECRET.into()];
    let mut fewer = circuit.preimage(SECRET.into(), 7.into(), "mine");
    fewer.inputs.clear();
    for preimage in [wrong, more, fewer] {
        let answer = server.ask("POST", "/prove", &circuit.request_of(preimage));
        assert_eq!((answer.status, answer.word().as_str()), (400, "unsatisfied"));
        texts += &String::from_utf8(answer.body).unwrap();
    }
    // The tag is cut off: the witness comes where a tag should be.
    let whole = circuit.request(SECRET.into());
    let at = whole
        .windows(8)
        .position(|bytes| bytes == SECRET.to_le_bytes())
        .unwrap();
    for path in ["/prove", "/check", "/k", "/prove-tx"] {
        let answer = server.ask("POST", path, &whole[at..]);
        texts += &String::from_utf8(answer.body).unwrap();
    }
    let proof = server.ask("POST", "/prove", &whole).proof();
    assert!(circuit.verifies(&proof, SECRET.into(), 7.into()));
    server.terminate();
    let (status, said) = server.end();
    assert_eq!(status, Some(0));
    assert!(said.contains("POST /prove 400 unsatisfied"), "{said}");
    texts += &said;
    for form in forms_of_the_secret() {
        assert!(!texts.to_lowercase().contains(&form), "{form}");
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_there() {
    let server = Server::start(&["--memory", "64MiB", "--body-limit", "1MiB"]);
    let declared = server.send_raw("POST /prove HTTP/1.1\r\ncontent-length: 99999999999\r\n", b"");
    let answer = declared.answer();
    assert_eq!((answer.status, answer.word().as_str()), (413, "body-too-large"));
    // Without a length: too much comes.
    let mut chunked = server.send_raw("POST /prove HTTP/1.1\r\ntransfer-encoding: chunked\r\n", b"");
    let taken = server.wait_until("reading", |ready| ready["bodies"]["takenBytes"] != 0);
    assert_eq!(taken["bodies"]["takenBytes"], 1 << 20);
    let piece = [b"40000\r\n".to_vec(), vec![7; 0x40000], b"\r\n".to_vec()].concat();
    (0..5).for_each(|_| chunked.push(&piece));
    let answer = chunked.answer();
    assert_eq!((answer.status, answer.word().as_str()), (413, "body-too-large"));
    // Without a length, and small.
    let circuit = circuits::small();
    let body = circuit.request(5.into());
    let pieces = body
        .chunks(10_000)
        .map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    let body = [pieces.collect::<Vec<_>>().concat(), b"0\r\n\r\n".to_vec()].concat();
    let sent = server.send_raw("POST /prove HTTP/1.1\r\ntransfer-encoding: chunked\r\n", &body);
    assert!(circuit.verifies(&sent.answer().proof(), 5.into(), 7.into()));
    server.wait_until_idle();
}

#[test]
fn other_routes_say_what_they_are() {
    let server = Server::start(&["--memory", "16MiB"]);
    for path in ["/", "/health"] {
        let answer = server.ask("GET", path, b"");
        assert_eq!(
            (answer.status, answer.json()["status"].as_str()),
            (200, Some("ok"))
        );
    }
    assert_eq!(server.ask("GET", "/proof-versions", b"").body, br#"["V2"]"#);
    assert_eq!(server.ask("GET", "/version", b"").body, b"8.1.3");
    for (path, status) in [
        ("/fetch-params/14", 200),
        ("/fetch-params/25", 404),
        ("/fetch-params/26", 404),
    ] {
        assert_eq!(server.ask("GET", path, b"").status, status, "{path}");
    }
    for (method, path, status) in [
        ("GET", "/prove", 405),
        ("POST", "/ready", 405),
        ("DELETE", "/", 405),
        ("GET", "/fetch-params/many", 404),
        ("GET", "/elsewhere", 404),
        ("OPTIONS", "/prove", 204),
    ] {
        assert_eq!(server.ask(method, path, b"").status, status, "{method} {path}");
    }
    let ready = server.ready();
    assert_eq!(
        (ready["status"].as_str(), ready["budget"]["limitBytes"].as_u64()),
        (Some("ok"), Some(16 << 20))
    );
}
