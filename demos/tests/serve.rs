//! `spillproof serve` as a process: it is killed in the middle of jobs, and serves again; signals let it end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::BINARY;
use crate::of_program::{SRS_SEED, program};
use crate::runs::{run, succeeds};
use spillproof_circuits::Kind;
use spillproof_cli::signals::is_ignored;
use spillproof_fake_driver::FakeDevice;

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether the program has the server; else a line that says so.
fn is_built() -> bool {
    if !cfg!(feature = "serve") {
        spillproof_testing::skipped("the program was built without the server (--features serve)");
    }
    cfg!(feature = "serve")
}

struct Server {
    process: Child,
    /// Read up to the address.
    said: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    /// Over the keys in `dir/keys`, with scratch in `dir/scratch`.
    fn start(dir: &Path, options: &str) -> Self {
        Self::start_by(Command::new(BINARY), dir, options)
    }

    fn start_by(mut command: Command, dir: &Path, options: &str) -> Self {
        let mut process = command
            .args(
                "serve --keys keys --dir scratch --memory 32MiB --listen 127.0.0.1:0 --threads 2".split(' '),
            )
            .args(options.split_whitespace())
            .current_dir(dir)
            .env_remove("SPILLPROOF_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut said = BufReader::new(process.stdout.take().expect("standard output"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        let server = Self {
            process,
            said,
            address,
        };
        server.until("it is ready", |server| {
            server.get("/readyz").starts_with("HTTP/1.1 200")
        });
        server
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            assert!(since.elapsed() < PATIENCE, "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn get(&self, path: &str) -> String {
        self.answer(
            &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
            &[],
        )
    }

    /// A witness for the key `c`.
    fn post(&self, witness: &[u8], header: &str) -> String {
        self.post_to("c", witness, header)
    }

    fn post_to(&self, key: &str, witness: &[u8], header: &str) -> String {
        let head = format!(
            "POST /v1/keys/{key}/proofs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/octet-stream\r\n{header}content-length: {}\r\n\r\n",
            witness.len()
        );
        self.answer(&head, witness)
    }

    fn answer(&self, head: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(head.as_bytes()).expect("a head");
        stream.write_all(body).expect("a body");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Whether a job runs, or was done before anyone looked.
    fn has_begun(&self) -> bool {
        let metrics = self.get("/metrics");
        [
            "spillproof_jobs{state=\"running\"} ",
            "spillproof_jobs_ended_total{state=\"done\"} ",
        ]
        .iter()
        .any(|name| metrics.contains(name) && !metrics.contains(&format!("{name}0\n")))
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill")
            .args([signal, &id])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for its end; its exit status, and what it said.
    fn ended(mut self) -> (Option<i32>, String) {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("an end") {
                break status;
            }
            if since.elapsed() > PATIENCE {
                self.process.kill().expect("an end");
                panic!("the server does not end");
            }
            thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        let mut errors = self.process.stderr.take().expect("standard error");
        errors.read_to_string(&mut said).expect("text");
        (status.code(), said)
    }
}

fn files_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).expect("the folder").count()
}

/// Keys and a witness in `dir`.
fn prepare(dir: &Path, k: u32) -> Vec<u8> {
    for folder in ["keys", "scratch"] {
        std::fs::create_dir(dir.join(folder)).expect("a folder");
    }
    succeeds(dir, &format!("groth16 example keys/c.zkey c.wtns --k {k}"));
    std::fs::read(dir.join("c.wtns")).expect("a witness")
}

#[test]
fn a_server_that_is_killed_leaves_nothing_and_serves_again() {
    if !is_built() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let witness = prepare(dir, 14);
    for round in 0..2 {
        let server = Server::start(dir, "");
        for _ in 0..6 {
            let job = server.post(&witness, "prefer: respond-async\r\n");
            assert!(job.starts_with("HTTP/1.1 202"), "{job}");
        }
        server.until("one is under way", Server::has_begun);
        // And one whose witness is on its way.
        let mut half = TcpStream::connect(&server.address).expect("a connection");
        let head = format!(
            "POST /v1/keys/c/proofs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
            witness.len()
        );
        half.write_all(head.as_bytes()).expect("a head");
        half.write_all(&witness[..witness.len() / 2]).expect("a half");
        server.signal("-KILL");
        assert_eq!(server.ended().0, None, "round {round}");
        assert_eq!(
            files_in(&dir.join("scratch")),
            0,
            "round {round}: scratch is left"
        );
    }
    let server = Server::start(dir, "");
    let proof = server.post(&witness, "");
    assert!(
        proof.starts_with("HTTP/1.1 200") && proof.contains("\"pi_a\""),
        "{proof}"
    );
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(files_in(&dir.join("scratch")), 0);
}

#[test]
fn signals_let_jobs_end() {
    if !is_built() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let witness = prepare(dir, 12);
    for (signal, number) in [("-TERM", 15), ("-INT", 2)] {
        if is_ignored(number) {
            spillproof_testing::skipped(format_args!(
                "signal {number} was ignored when the tests were started"
            ));
            continue;
        }
        let server = Server::start(dir, "");
        let answer = thread::scope(|scope| {
            let waiting = scope.spawn(|| server.post(&witness, ""));
            server.until("it runs", Server::has_begun);
            server.signal(signal);
            waiting.join().expect("an answer")
        });
        assert!(answer.starts_with("HTTP/1.1 200"), "{signal}: {answer}");
        let (code, said) = server.ended();
        assert_eq!(code, Some(0), "{signal}: {said}");
        assert!(said.contains("all jobs have ended"), "{signal}: {said}");
    }
    // Without patience, they are stopped.
    let server = Server::start(dir, "--drain 0s");
    let answer = thread::scope(|scope| {
        let waiting = scope.spawn(|| server.post(&witness, ""));
        server.until("it runs", Server::has_begun);
        server.signal("-TERM");
        waiting.join().expect("an answer")
    });
    // Where the proof was quicker than the signal, it is there.
    assert!(
        answer.contains("\"draining\"") || answer.starts_with("HTTP/1.1 200"),
        "{answer}"
    );
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(files_in(&dir.join("scratch")), 0);
}

/// With a GPU: the second proof's sums are made over points that are there.
#[test]
fn a_server_with_a_gpu() {
    if !is_built() {
        return;
    }
    let Some(device) = FakeDevice::new() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let witness = prepare(dir, 8);
    let server = Server::start_by(
        device.command(BINARY),
        dir,
        "--gpu 0 --offload always --pinned 1MiB",
    );
    for _ in 0..2 {
        let proof = server.post(&witness, "");
        assert!(proof.starts_with("HTTP/1.1 200"), "{proof}");
    }
    server.signal("-TERM");
    let (code, said) = server.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("gpu: 10 sums, 2 constraint quotients"), "{said}");
    assert_eq!(files_in(&dir.join("scratch")), 0);
}

/// The server proves a program's circuit from what the program saved; the unmodified crate accepts the proof.
#[test]
fn a_programs_own_circuit() {
    if !is_built() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    prepare(dir, 6);
    program(dir, "sums", Kind::Chain, 7);
    std::fs::copy(dir.join("sums.key"), dir.join("keys/own.key")).expect("a key");
    succeeds(dir, "srs import sums.params --out sums.srs --memory 32MiB");
    let refused = run(dir, "serve --keys keys --memory 32MiB --listen 127.0.0.1:0");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("--srs"), "{said}");
    let server = Server::start(dir, "--srs sums.srs");
    let witness = std::fs::read(dir.join("sums.witness")).expect("a witness");
    let answer = server.post_to("own", &witness, "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let result: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let proof = hex::decode(result["proof"].as_str().expect("digits")).expect("digits");
    std::fs::write(dir.join("proof"), proof).expect("a file");
    std::fs::write(dir.join("public"), result["publicInputs"].to_string()).expect("a file");
    succeeds(
        dir,
        &format!("verify --key sums.key --public public --srs-seed {SRS_SEED} proof"),
    );
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(files_in(&dir.join("scratch")), 0);
}

/// What it does not start with is an error of the command line, with the flag that helps.
#[test]
fn a_server_that_does_not_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let failed = |line: &str| {
        let output = Command::new(BINARY)
            .args(line.split_whitespace())
            .current_dir(dir)
            .output();
        let output = output.expect("the binary runs");
        assert!(!output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    if !cfg!(feature = "serve") {
        let said = failed("serve --keys nowhere");
        assert!(said.contains("--features serve"), "{said}");
        return;
    }
    succeeds(dir, "groth16 example c.zkey c.wtns --k 6");
    std::fs::write(dir.join("token"), "0123456789abcdef").expect("a file");
    for (line, words) in [
        ("serve --keys nowhere --memory 32MiB", "nowhere"),
        (
            "serve --keys c.wtns --memory 32MiB --listen 127.0.0.1:0",
            "c.wtns",
        ),
        (
            "serve --keys c.zkey --memory 32MiB --listen 0.0.0.0:0",
            "--token-file",
        ),
        (
            "serve --keys c.zkey --memory 32MiB --listen 127.0.0.1:0 --token-file token",
            "chmod o-rwx",
        ),
        (
            "serve --keys c.zkey --memory 32MiB --listen 127.0.0.1:0 --drain 1d",
            "unit of time",
        ),
    ] {
        let said = failed(line);
        assert!(said.contains(words), "{line}: {said}");
    }
}
