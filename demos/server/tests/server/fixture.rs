//! Keys, witnesses, and a server over them.

use std::fs::{self, File};
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use spillproof_circom::example::{Circuit, Values};
use spillproof_circom::prove::{Key, import, verify};
use spillproof_engine::Session;
use spillproof_format::Curve;
use spillproof_server::{Handle, Result, Server, Settings};
use tempfile::TempDir;

use crate::client::{Answer, Request};

/// A key and its witness.
pub struct Files {
    pub name: &'static str,
    pub witness: Vec<u8>,
}

/// Keys that all tests share: over both curves, as files of snarkjs and as a container.
pub struct Keys {
    dir: TempDir,
    pub all: Vec<Files>,
}

pub static KEYS: LazyLock<Keys> = LazyLock::new(Keys::make);

impl Keys {
    fn make() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let mut all = Vec::new();
        for (name, k, curve) in [
            ("small", 6, Curve::Bn254),
            ("medium", 10, Curve::Bn254),
            ("other-curve", 7, Curve::Bls12381),
        ] {
            let circuit = Circuit {
                k,
                values: Values::Full,
                seed: 7,
            };
            let file = dir.path().join(name).with_extension("zkey");
            let mut out = BufWriter::new(File::create(file).expect("a file"));
            circuit.write_key(curve, &mut out).expect("a key");
            let mut witness = Vec::new();
            circuit.write_witness(curve, &mut witness).expect("a witness");
            all.push(Files { name, witness });
        }
        let scratch = tempfile::tempdir().expect("a folder");
        let session = session("32MiB", &scratch);
        let container = dir.path().join("imported.key");
        import(&session, &dir.path().join("medium.zkey"), &container, &mut |_| ()).expect("a container");
        let witness = all[1].witness.clone();
        all.push(Files {
            name: "imported",
            witness,
        });
        // Not a key.
        fs::write(dir.path().join("README"), "keys").expect("a file");
        Self { dir, all }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        let file = self.dir().join(name).with_extension("zkey");
        match file.exists() {
            true => file,
            false => file.with_extension("key"),
        }
    }

    pub fn witness(&self, name: &str) -> &[u8] {
        let found = self.all.iter().find(|files| files.name == name);
        &found.expect("a key").witness
    }
}

pub fn session(memory: &str, scratch: &TempDir) -> Arc<Session> {
    let session = Session::builder().memory(memory).dir(scratch.path()).threads(2);
    Arc::new(session.build().expect("a session"))
}

/// A server that runs until it is dropped, or [ended](Self::end).
pub struct Running {
    pub address: SocketAddr,
    pub session: Arc<Session>,
    pub handle: Handle,
    pub scratch: Arc<TempDir>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Running {
    /// Over all keys, in 64 MiB.
    pub fn start() -> Self {
        Self::with("64MiB", |_| ())
    }

    pub fn with(memory: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let scratch = Arc::new(tempfile::tempdir().expect("a folder"));
        let session = session(memory, &scratch);
        let mut settings = Settings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            ..Settings::new(vec![KEYS.dir().to_owned()])
        };
        change(&mut settings);
        let server = Server::bind(Arc::clone(&session), settings).expect("a server");
        let (address, handle) = (server.address(), server.handle());
        let thread = thread::spawn(move || server.run());
        let running = Self {
            address,
            session,
            handle,
            scratch,
            thread: Some(thread),
        };
        running.until("it is ready", || running.get("/readyz").status == 200);
        running
    }

    pub fn get(&self, path: &str) -> Answer {
        Request::get(path).send(self.address)
    }

    /// A job that is not waited for.
    pub fn begin(&self, key: &str) -> String {
        let answer = Request::post(&proofs(key), KEYS.witness(key))
            .with("prefer", "respond-async")
            .send(self.address);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.header("location").expect("a place").to_owned()
    }

    pub fn state(&self, job: &str) -> String {
        self.get(job).json()["state"]
            .as_str()
            .expect("a state")
            .to_owned()
    }

    /// Waits for something that comes.
    pub fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// A line of the metrics.
    pub fn metric(&self, name: &str) -> f64 {
        let text = String::from_utf8(self.get("/metrics").body).expect("text");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Keeps the session's turn: jobs stand still until the guard goes.
    pub fn hold(&self) -> Held {
        let session = Arc::clone(&self.session);
        let (held, is_held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            session.run(move || {
                held.send(()).expect("it is waited for");
                let _released = released.recv();
            });
        });
        is_held.recv().expect("the turn");
        Held {
            release: Some(release),
            thread: Some(thread),
        }
    }

    /// Ends it: no job, no scratch and no lease may be left.
    pub fn end(mut self) {
        self.handle.drain();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic").expect("a good end");
        let left = fs::read_dir(self.scratch.path()).expect("the folder").count();
        assert_eq!(left, 0, "scratch is left");
        assert_eq!(
            self.session.budget().held_bytes(),
            0,
            "{:?}",
            self.session.budget().report()
        );
    }

    /// Waits until it has ended by itself.
    pub fn ended(mut self) -> Result<()> {
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.drain();
        self.handle.drain();
    }
}

/// The session's turn.
pub struct Held {
    release: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            let _it_is_over = thread.join();
        }
    }
}

pub fn proofs(key: &str) -> String {
    format!("/v1/keys/{key}/proofs")
}

/// Checks a result, `{proof, publicSignals}`, with the verification key that the key's own file has.
pub fn check(key: &str, result: &serde_json::Value) {
    let scratch = tempfile::tempdir().expect("a folder");
    let session = session("32MiB", &scratch);
    let opened = Key::open(&session, &KEYS.file(key), &mut |_| ()).expect("a key");
    let verification_key = opened.verification_key().expect("a verification key");
    let [proof, public] = ["proof", "publicSignals"].map(|part| result[part].to_string());
    let verified = verify(
        &session,
        [
            ("vk".as_ref(), &verification_key),
            ("public".as_ref(), public.as_bytes()),
            ("proof".as_ref(), proof.as_bytes()),
        ],
    );
    assert!(verified.expect("a proof").verifies, "{key}: {result}");
}
