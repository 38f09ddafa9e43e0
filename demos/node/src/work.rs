//! What calls do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use napi_derive::napi;
use spillproof_circom::prove::{Key, Proved, Witness, WitnessBytes, verification_key_of, verify};
use spillproof_circom::unnamed::Unnamed;
use spillproof_engine::Session;

use crate::keys;
use crate::outcome::{Failed, Outcome, PROOF, SIGNALS};
use crate::pieces::Asks;
use crate::sessions::Settings;

/// Bytes of a key that are asked for at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A file of the program's: its path, or how many bytes the program is to be asked for.
#[napi(object)]
pub struct Given {
    /// The path.
    pub path: Option<String>,
    /// The number of bytes.
    pub bytes: Option<f64>,
}

/// A file of the program's, as one of both.
enum File {
    Path(PathBuf),
    Bytes(u64),
}

impl Given {
    fn file(&self) -> File {
        match (&self.path, self.bytes) {
            (Some(path), _) => File::Path(path.into()),
            (None, bytes) => File::Bytes(bytes.unwrap_or(0.0) as u64),
        }
    }
}

/// What errors call a key that came as bytes.
const KEY: &str = "the key";

/// An open key.
struct Opened {
    key: Arc<Key>,
    /// Of a key that came as bytes.
    copy: Option<Unnamed>,
}

impl Opened {
    /// Works with the key. Errors name it as the program knows it.
    fn with<T>(&self, work: impl FnOnce(&Key) -> Result<T, Failed>) -> Result<T, Failed> {
        work(&self.key).map_err(|failed| {
            if failed.is_of_disk() {
                keys::forget(&self.key);
            }
            match &self.copy {
                Some(copy) => failed.of_bytes(copy.path(), KEY),
                None => failed,
            }
        })
    }
}

fn opened(session: &Arc<Session>, given: &Given, asks: &Asks) -> Result<Opened, Failed> {
    let bytes = match given.file() {
        File::Path(path) => {
            let key = with_room(session, || keys::key(session, &path, asks.control()))?;
            return Ok(Opened { key, copy: None });
        }
        File::Bytes(bytes) => bytes,
    };
    let copy = copied(session, bytes, asks)?;
    let path = copy.path();
    let key = with_room(session, || Ok(Key::open(session, &path, &mut |_| ())?));
    Ok(Opened {
        key: Arc::new(key.map_err(|failed| failed.of_bytes(path, KEY))?),
        copy: Some(copy),
    })
}

/// The bytes of a key, in a file.
fn copied(session: &Arc<Session>, bytes: u64, asks: &Asks) -> Result<Unnamed, Failed> {
    let mut pieces = asks.bytes("key", bytes);
    let (mut copy, mut piece) = (Unnamed::new(session)?, vec![0; PIECE_BYTES]);
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let piece = &mut piece[..(bytes - offset).min(PIECE_BYTES as u64) as usize];
        pieces.read(offset, piece)?;
        copy.push(piece)?;
    }
    Ok(copy)
}

/// Works; where room is missing and keys that no call uses hold some, once more without these.
fn with_room<T>(session: &Arc<Session>, work: impl Fn() -> Result<T, Failed>) -> Result<T, Failed> {
    match work() {
        Err(failed) if failed.is_of_room() && keys::close_idle(session) => work(),
        ended => ended,
    }
}

/// A proof to be made.
pub struct Proof {
    pub key: Given,
    pub witness: Given,
}

impl Proof {
    /// Gives the proof and the public signals.
    pub fn make(&self, settings: &Settings, asks: &Asks) -> Result<Outcome, Failed> {
        let session = settings.session()?;
        let opened = opened(&session, &self.key, asks)?;
        let Proved { proof, public, .. } = opened.with(|key| {
            let witness = self.witness(&session, key, asks)?;
            asks.witness_read();
            with_room(&session, || Ok(key.prove(&session, &witness)?))
        })?;
        Ok(Outcome::of([proof, public]))
    }

    fn witness(&self, session: &Arc<Session>, key: &Key, asks: &Asks) -> Result<Witness, Failed> {
        match self.witness.file() {
            File::Path(path) => with_room(session, || Ok(key.witness(session, &path, &mut |_| ())?)),
            File::Bytes(bytes) => {
                let mut pieces = asks.bytes("witness", bytes);
                Ok(key.witness_from(session, Path::new("the witness"), &mut pieces)?)
            }
        }
    }
}

/// Texts in JSON that belong together.
#[napi(object)]
pub struct Verification {
    /// The verification key.
    pub key: String,
    /// The public signals.
    pub public_signals: String,
    /// The proof.
    pub proof: String,
    /// Whether a key is taken with which proofs can be forged.
    pub allow_insecure: bool,
}

impl Verification {
    /// Gives `true` or `false`.
    pub fn verify(&self, settings: &Settings) -> Result<Outcome, Failed> {
        let names = ["the verification key", SIGNALS, PROOF].map(Path::new);
        let texts = [&self.key, &self.public_signals, &self.proof].map(|text| text.as_bytes());
        let [key, public, proof] = [0, 1, 2].map(|at| (names[at], texts[at]));
        let session = settings.session()?;
        let verified = with_room(&session, || Ok(verify(&session, [key, public, proof])?))?;
        if verified.is_without_contribution && !self.allow_insecure {
            return Err(Failed::Insecure);
        }
        Ok(Outcome::of([verified.verifies.to_string().into_bytes()]))
    }
}

/// A verification key to be exported.
pub struct VerificationKey {
    pub key: Given,
}

impl VerificationKey {
    /// Gives the key. Whatever is not needed for it stays unread.
    pub fn export(&self, settings: &Settings, asks: &Asks) -> Result<Outcome, Failed> {
        let session = settings.session()?;
        let of_file = |path: &Path| {
            let exported = with_room(&session, || Ok(verification_key_of(&session, path, &mut |_| ())?));
            exported.map(|(text, _)| Outcome::of([text]))
        };
        match self.key.file() {
            File::Path(path) => of_file(&path),
            File::Bytes(bytes) => {
                let copy = copied(&session, bytes, asks)?;
                of_file(&copy.path()).map_err(|failed| failed.of_bytes(copy.path(), KEY))
            }
        }
    }
}
