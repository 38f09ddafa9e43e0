//! The server as a process, and a client that may misbehave.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use midnight_ledger::structure::ProofVersioned;
use midnight_serialize::tagged_deserialize;
use midnight_transient_crypto::proofs::Proof;
use serde_json::Value;
use tempfile::TempDir;

use super::circuits;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(300);

/// A server on a port of its own.
pub struct Server {
    process: Child,
    address: SocketAddr,
    said: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    _scratch: TempDir,
}

/// The program, within a limit if there is one.
fn command() -> Command {
    let program = env!("CARGO_BIN_EXE_midnight-server");
    let Ok(under) = std::env::var("SPILLPROOF_TEST_UNDER") else {
        return Command::new(program);
    };
    let mut words = under.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(program);
    command
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Answer {
    /// The proof.
    pub fn proof(&self) -> Proof {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let ProofVersioned::V2(proof) = tagged_deserialize(&mut &self.body[..]).unwrap() else {
            panic!("a proof of another version");
        };
        proof
    }

    /// JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The word of a failure.
    pub fn word(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

impl Server {
    /// Starts one with these arguments beside those of folders and the port.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// The same with variables.
    pub fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut process = command()
            .args(["--port", "0", "-v", "--params"])
            .arg(circuits::params())
            .arg("--dir")
            .arg(scratch.path())
            .args(arguments)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let stderr = process.stderr.take().unwrap();
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let line = line.unwrap();
                eprintln!("  {line}");
                *heard.lock().unwrap() += &(line + "\n");
            }
        });
        let address = first
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("it did not start: {first}"));
        Self {
            address: address.parse().unwrap(),
            process,
            said,
            reader: Some(reader),
            _scratch: scratch,
        }
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A request whose answer is not read yet.
    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> Request {
        let length = body.len();
        self.send_raw(
            &format!("{method} {path} HTTP/1.1\r\ncontent-length: {length}\r\n"),
            body,
        )
    }

    /// The same with other lines at the head.
    pub fn send_raw(&self, head: &str, body: &[u8]) -> Request {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(stream, "{head}host: here\r\nconnection: close\r\n\r\n").unwrap();
        // A refused body may not be read to its end.
        let _ = stream.write_all(body);
        Request { stream }
    }

    /// A request and its answer.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        self.send(method, path, body).answer()
    }

    /// What `/ready` says.
    pub fn ready(&self) -> Value {
        self.ask("GET", "/ready", b"").json()
    }

    /// Waits until `/ready` says so.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let ready = self.ready();
            if is_so(&ready) {
                return ready;
            }
            assert!(start.elapsed() < LONG, "never {what}: {ready}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no job waits and none is worked on, and no memory is held but by the share for bodies and
    /// by keys.
    pub fn wait_until_idle(&self) -> Value {
        self.wait_until("idle", |ready| {
            ready["jobsProcessing"] == 0 && ready["jobsPending"] == 0 && ready["bodies"]["takenBytes"] == 0
        })
    }

    /// The number of its process, which a limit's command may have started.
    pub fn pid(&self) -> u32 {
        let id = self.process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children
            .split_whitespace()
            .next()
            .map_or(id, |child| child.parse().unwrap())
    }

    /// What is resident of it now.
    pub fn resident_mib(&self) -> u64 {
        self.status_mib("VmRSS")
    }

    /// What was resident of it at most.
    pub fn peak_mib(&self) -> u64 {
        self.status_mib("VmHWM")
    }

    fn status_mib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1024
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
    }

    /// Waits for its end; its status, and all that it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = self.process.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        let said = self.said.lock().unwrap().clone();
        (status, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let pid = self.pid().to_string();
            let _ = Command::new("kill").args(["-9", &pid]).status();
            let _ = self.process.wait();
        }
    }
}

/// A request whose answer is awaited; dropped, its client has gone.
pub struct Request {
    stream: TcpStream,
}

impl Request {
    /// Sends more of the body.
    pub fn push(&mut self, data: &[u8]) {
        self.stream.write_all(data).unwrap();
    }

    /// The answer.
    pub fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).unwrap();
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .expect("an answer");
        let head = String::from_utf8_lossy(&bytes[..end]);
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: bytes[end + 4..].to_vec(),
        }
    }
}
