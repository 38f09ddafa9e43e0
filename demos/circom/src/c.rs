//! The functions of iden3's rapidsnark (`prover.h`, `verifier.h`) by name, arguments and results, so that a
//! program that calls these proves within a budget once it is linked to this library.
//! `include/spillproof_groth16.h` declares them for C.
//!
//! All calls share one session: that of `SPILLPROOF_MEMORY` and `SPILLPROOF_DIR`, or, without a budget, one
//! of nearly all memory; with the feature `gpu`, and the GPU that `SPILLPROOF_GPU` asks for. A witness is read
//! where it lies, into scratch that is sealed as that of every session. A key in a buffer, which is public, is
//! copied to an unnamed file of the session's folder.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_ulonglong, c_void};
use std::path::Path;
use std::sync::Arc;

use spillproof_bindings::error::explain;
use spillproof_bindings::pointers::{self, Null, caught, close, held, path};
use spillproof_engine::Session;
use spillproof_engine::error::Invalid;
use spillproof_engine::session::OpenAccelerator;
#[cfg(not(feature = "gpu"))]
use spillproof_engine::session::no_device;
use spillproof_format::Curve;

use crate::json;
use crate::prove::{Key, WITHOUT_CONTRIBUTION, verify};
use crate::unnamed::Unnamed;
use crate::{Error, Result};

/// The call did as asked; the proof verifies.
const OK: c_int = 0;
/// The call failed: the message says why. [`groth16_verify`] returns this number for a proof that does not
/// verify.
const ERROR: c_int = 1;
/// A buffer is shorter than the longest texts of a key: the call has written the sizes of these, and made no
/// proof. [`groth16_verify`] returns
/// this number when it fails.
const SHORT_BUFFER: c_int = 2;
/// The witness has another number of values than the key has signals.
const INVALID_WITNESS_LENGTH: c_int = 3;

/// A failure of a call.
enum Failed {
    /// Buffers that are too short.
    Short,
    Witness(String),
    Other(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let text = explain(&error);
        match error {
            Error::Engine(spillproof_engine::Error::Invalid(Invalid::Length { what, .. }))
                if what == "values of a witness" =>
            {
                Self::Witness(text)
            }
            _ => Self::Other(text),
        }
    }
}

impl From<Null> for Failed {
    fn from(null: Null) -> Self {
        Self::Other(null.to_string())
    }
}

/// A key, and the session that it lives in.
struct Prover {
    session: Arc<Session>,
    key: Key,
    /// Of a key that was given as bytes.
    _copy: Option<Unnamed>,
}

/// Opens the GPUs of the environment.
#[cfg(feature = "gpu")]
const OPEN: OpenAccelerator = spillproof_gpu::accelerator::of_environment;
#[cfg(not(feature = "gpu"))]
const OPEN: OpenAccelerator = no_device;

/// The session of all calls.
fn session() -> Result<Arc<Session>> {
    Ok(Session::current_or_shared(OPEN)?)
}

impl Prover {
    fn of_file(key: &Path) -> Result<Self> {
        let session = session()?;
        let key = Key::open(&session, key, &mut |_| ())?;
        Ok(Self {
            session,
            key,
            _copy: None,
        })
    }

    fn of_bytes(key: &[u8]) -> Result<Self> {
        let session = session()?;
        let mut copy = Unnamed::new(&session)?;
        copy.push(key)?;
        let prover = Self::of_file(&copy.path())?;
        Ok(Self {
            _copy: Some(copy),
            ..prover
        })
    }

    /// Proves, if the longest texts that the key can have fit.
    fn prove(&self, witness: &[u8], proof: &Buffer, public: &Buffer) -> std::result::Result<c_int, Failed> {
        let needed = [proof_bytes(self.key.curve())?, self.public_bytes()];
        // Both sizes are written, whichever is too short.
        if proof.room() < needed[0] || public.room() < needed[1] {
            proof.set_size(needed[0]);
            public.set_size(needed[1]);
            return Err(Failed::Short);
        }
        let name = Path::new("the witness");
        let witness = self.key.witness_of(&self.session, name, witness)?;
        let proved = self.key.prove(&self.session, &witness)?;
        let texts = [compact(&proved.proof)?, compact(&proved.public)?];
        proof.put(&texts[0]);
        public.put(&texts[1]);
        Ok(OK)
    }

    /// The bytes of the longest text of the key's public signals, with a zero.
    fn public_bytes(&self) -> u64 {
        // A number has quotation marks and, but for the last, a comma; around all are brackets.
        let each = json::signal_digits(self.key.curve()) + 3;
        (self.key.shape().public * each + 2).max(3)
    }
}

/// The bytes of the longest text of a proof over a curve, with a zero.
fn proof_bytes(curve: Curve) -> std::result::Result<u64, Failed> {
    Ok(compact(&json::longest_proof(curve)?)?.len() as u64 + 1)
}

/// Where an error's text goes.
struct Message {
    text: *mut c_char,
    bytes: c_ulonglong,
}

impl Message {
    fn new(text: *mut c_char, bytes: c_ulonglong) -> Self {
        Self { text, bytes }
    }

    /// Writes as much as there is room for, and a zero.
    fn put(&self, text: &str) {
        let Some(room) = (self.bytes as usize)
            .checked_sub(1)
            .filter(|_| !self.text.is_null())
        else {
            return;
        };
        let count = text.len().min(room);
        // SAFETY: the caller of the C function gives a pointer to so many bytes; `count` and the zero fit.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.text.cast(), count);
            *self.text.add(count) = 0;
        }
    }

    /// Does the work of a call: a panic of it does not cross into C.
    fn run(&self, work: impl FnOnce() -> std::result::Result<c_int, Failed>) -> c_int {
        match caught(work) {
            Some(Ok(code)) => code,
            Some(Err(Failed::Short)) => {
                self.put("a buffer is too short: the sizes that will do were written");
                SHORT_BUFFER
            }
            Some(Err(Failed::Witness(text))) => {
                self.put(&text);
                INVALID_WITNESS_LENGTH
            }
            Some(Err(Failed::Other(text))) => {
                self.put(&text);
                ERROR
            }
            None => {
                self.put("an internal error of spillproof: please report it");
                ERROR
            }
        }
    }
}

/// A buffer of the caller's, and the place of its size.
struct Buffer {
    bytes: *mut c_char,
    size: *mut c_ulonglong,
}

impl Buffer {
    fn check(&self) -> std::result::Result<(), Failed> {
        match self.bytes.is_null() || self.size.is_null() {
            true => Err(Null("a buffer or its size").into()),
            false => Ok(()),
        }
    }

    /// The bytes that the caller has room for.
    fn room(&self) -> c_ulonglong {
        // SAFETY: not null ([`Self::check`]); the caller of the C function gives a pointer to a size.
        unsafe { *self.size }
    }

    fn set_size(&self, bytes: c_ulonglong) {
        // SAFETY: as in [`Self::room`].
        unsafe { *self.size = bytes };
    }

    /// Writes `text`, a zero, and the size of the text. A text that does not fit is cut.
    fn put(&self, text: &[u8]) {
        let text = &text[..text.len().min((self.room() as usize).saturating_sub(1))];
        // SAFETY: the caller of the C function gives a pointer to as many bytes as the size says; the text
        // and the zero are no more.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.bytes.cast(), text.len());
            *self.bytes.add(text.len()) = 0;
        }
        self.set_size(text.len() as c_ulonglong);
    }
}

/// Bytes of the caller's.
///
/// # Safety
/// As [`pointers::bytes()`].
unsafe fn given<'a>(bytes: *const c_void, size: c_ulonglong) -> std::result::Result<&'a [u8], Null> {
    // SAFETY: by this function's own condition.
    unsafe { pointers::bytes("a buffer", bytes.cast(), size) }
}

/// A text of the caller's.
///
/// # Safety
/// As [`pointers::text()`].
unsafe fn text<'a>(text: *const c_char) -> std::result::Result<&'a [u8], Null> {
    // SAFETY: by this function's own condition.
    unsafe { pointers::text("a text", text) }
}

/// JSON without white space, as rapidsnark writes it.
fn compact(json: &[u8]) -> std::result::Result<Vec<u8>, Failed> {
    let value: serde_json::Value =
        serde_json::from_slice(json).map_err(|error| Failed::from(Error::from(error)))?;
    serde_json::to_vec(&value).map_err(|error| Failed::from(Error::from(error)))
}

/// Writes the bytes that a proof in JSON takes at most.
///
/// # Safety
/// `proof_size` is null or points to a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_proof_size(proof_size: *mut c_ulonglong) {
    // A point of BLS12-381 is the longer one. No text of a proof fails to be made.
    let bytes = caught(|| proof_bytes(Curve::Bls12381)).and_then(std::result::Result::ok);
    // SAFETY: by this function's own condition.
    if let (Some(size), Some(bytes)) = (unsafe { proof_size.as_mut() }, bytes) {
        *size = bytes;
    }
}

/// Writes the bytes that the public signals of a key in memory take at most, in JSON.
///
/// # Safety
/// Pointers are null or point to as many bytes as the size after them says, or to a size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_public_size_for_zkey_buf(
    zkey_buffer: *const c_void,
    zkey_size: c_ulonglong,
    public_size: *mut c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    message.run(|| {
        // SAFETY: by this function's own condition.
        let key = unsafe { given(zkey_buffer, zkey_size) }?;
        let bytes = Prover::of_bytes(key)?.public_bytes();
        // SAFETY: by this function's own condition.
        if let Some(size) = unsafe { public_size.as_mut() } {
            *size = bytes;
        }
        Ok(OK)
    })
}

/// Writes the bytes that the public signals of a key's file take at most, in JSON.
///
/// # Safety
/// Pointers are null or point to a text with a zero at its end, to a size, or to as many bytes as the size
/// after them says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_public_size_for_zkey_file(
    zkey_fname: *const c_char,
    public_size: *mut c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    message.run(|| {
        // SAFETY: by this function's own condition.
        let name = unsafe { text(zkey_fname) }?;
        let bytes = Prover::of_file(path(name))?.public_bytes();
        // SAFETY: by this function's own condition.
        if let Some(size) = unsafe { public_size.as_mut() } {
            *size = bytes;
        }
        Ok(OK)
    })
}

/// Opens a prover with a key in memory, which is copied to a file.
///
/// # Safety
/// `prover_object` points to a pointer; other pointers are null or point to as many bytes as the size after
/// them says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover_create(
    prover_object: *mut *mut c_void,
    zkey_buffer: *const c_void,
    zkey_size: c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    message.run(|| {
        // SAFETY: by this function's own condition.
        let key = unsafe { given(zkey_buffer, zkey_size) }?;
        let prover = Prover::of_bytes(key)?;
        // SAFETY: by this function's own condition.
        unsafe { pointers::hand_out("a prover", prover_object.cast(), prover) }?;
        Ok(OK)
    })
}

/// Opens a prover with a key's file, which has to stay as it is while the prover lives.
///
/// # Safety
/// `prover_object` points to a pointer; `zkey_file_path` is null or a text with a zero at its end;
/// `error_msg` is null or points to as many bytes as the size after it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover_create_zkey_file(
    prover_object: *mut *mut c_void,
    zkey_file_path: *const c_char,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    message.run(|| {
        // SAFETY: by this function's own condition.
        let name = unsafe { text(zkey_file_path) }?;
        let prover = Prover::of_file(path(name))?;
        // SAFETY: by this function's own condition.
        unsafe { pointers::hand_out("a prover", prover_object.cast(), prover) }?;
        Ok(OK)
    })
}

/// Proves with an open prover. Several threads may do so at a time.
///
/// # Safety
/// `prover_object` is null or was opened and is not destroyed; other pointers are null or point to as many
/// bytes as the size after them says, or, of a buffer's size, to that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover_prove(
    prover_object: *mut c_void,
    wtns_buffer: *const c_void,
    wtns_size: c_ulonglong,
    proof_buffer: *mut c_char,
    proof_size: *mut c_ulonglong,
    public_buffer: *mut c_char,
    public_size: *mut c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    let [proof, public] = [(proof_buffer, proof_size), (public_buffer, public_size)]
        .map(|(bytes, size)| Buffer { bytes, size });
    message.run(|| {
        // SAFETY: by this function's own condition.
        let prover = unsafe { held::<Prover>("a prover", prover_object.cast()) }?;
        proof.check()?;
        public.check()?;
        // SAFETY: by this function's own condition.
        let witness = unsafe { given(wtns_buffer, wtns_size) }?;
        prover.prove(witness, &proof, &public)
    })
}

/// Closes a prover.
///
/// # Safety
/// `prover_object` is null or was opened, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover_destroy(prover_object: *mut c_void) {
    // SAFETY: by this function's own condition.
    unsafe { close(prover_object.cast::<Prover>()) }
}

/// Proves once, with a key in memory.
///
/// # Safety
/// Pointers are null or point to as many bytes as the size after them says, or, of a buffer's size, to that
/// size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover(
    zkey_buffer: *const c_void,
    zkey_size: c_ulonglong,
    wtns_buffer: *const c_void,
    wtns_size: c_ulonglong,
    proof_buffer: *mut c_char,
    proof_size: *mut c_ulonglong,
    public_buffer: *mut c_char,
    public_size: *mut c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    let [proof, public] = [(proof_buffer, proof_size), (public_buffer, public_size)]
        .map(|(bytes, size)| Buffer { bytes, size });
    message.run(|| {
        proof.check()?;
        public.check()?;
        // SAFETY: by this function's own condition.
        let (key, witness) = unsafe { (given(zkey_buffer, zkey_size)?, given(wtns_buffer, wtns_size)?) };
        Prover::of_bytes(key)?.prove(witness, &proof, &public)
    })
}

/// Proves once, with a key's file.
///
/// # Safety
/// `zkey_file_path` is null or a text with a zero at its end; other pointers are null or point to as many
/// bytes as the size after them says, or, of a buffer's size, to that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_prover_zkey_file(
    zkey_file_path: *const c_char,
    wtns_buffer: *const c_void,
    wtns_size: c_ulonglong,
    proof_buffer: *mut c_char,
    proof_size: *mut c_ulonglong,
    public_buffer: *mut c_char,
    public_size: *mut c_ulonglong,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    let [proof, public] = [(proof_buffer, proof_size), (public_buffer, public_size)]
        .map(|(bytes, size)| Buffer { bytes, size });
    message.run(|| {
        proof.check()?;
        public.check()?;
        // SAFETY: by this function's own condition.
        let (name, witness) = unsafe { (text(zkey_file_path)?, given(wtns_buffer, wtns_size)?) };
        Prover::of_file(path(name))?.prove(witness, &proof, &public)
    })
}

/// Verifies texts in JSON: 0 if the proof verifies, 1 if it does not, 2 for texts that are none, and for a
/// key without a contribution, with which anyone can forge proofs.
///
/// # Safety
/// `proof`, `inputs` and `verification_key` are null or texts with a zero at their end; `error_msg` is null
/// or points to as many bytes as the size after it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groth16_verify(
    proof: *const c_char,
    inputs: *const c_char,
    verification_key: *const c_char,
    error_msg: *mut c_char,
    error_msg_maxsize: c_ulonglong,
) -> c_int {
    let message = Message::new(error_msg, error_msg_maxsize);
    let mut is_invalid = false;
    let code = message.run(|| {
        // SAFETY: by this function's own condition.
        let texts = unsafe { [text(verification_key)?, text(inputs)?, text(proof)?] };
        let names = ["the verification key", "the public signals", "the proof"].map(Path::new);
        let [key, public, proof] = [0, 1, 2].map(|at| (names[at], texts[at]));
        let verified = verify(&*session()?, [key, public, proof])?;
        if verified.is_without_contribution {
            return Err(Failed::Other(WITHOUT_CONTRIBUTION.to_owned()));
        }
        is_invalid = !verified.verifies;
        Ok(OK)
    });
    match (code, is_invalid) {
        (OK, false) => OK,
        (OK, true) => ERROR,
        // In this function's numbers, a failure.
        _ => SHORT_BUFFER,
    }
}
