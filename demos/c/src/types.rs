//! Arguments and results of the functions, as C has them; the names in `include/spillproof.h` are these, with
//! `spillproof_` before them.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use spillproof_bindings::bytes::{self, G2_BYTES, SCALAR_BYTES};
use spillproof_bindings::column::CallerColumn;
use spillproof_bindings::error::{Error, explain};
use spillproof_bindings::work::{self, Basis, Roots};
use spillproof_commit::{G1, Scalar};

/// A session.
#[derive(Debug)]
pub struct Session(pub(crate) spillproof_engine::Session);

/// An open SRS.
#[derive(Debug)]
pub struct Srs(pub(crate) spillproof_commit::Srs);

/// Scalars on disk.
#[derive(Debug)]
pub struct Column(pub(crate) CallerColumn<Scalar>);

/// Points on disk.
#[derive(Debug)]
pub struct Points(pub(crate) CallerColumn<G1>);

/// The domain of a transform, and its direction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// log2 of the number of values.
    pub log_n: u32,
    /// Whose root of unity.
    pub roots: u32,
    /// 0: from coefficients to values; else back.
    pub is_inverse: u32,
    /// The shift of a coset, or 1.
    pub shift: [u8; SCALAR_BYTES],
}

/// What an SRS is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SrsInfo {
    /// log2 of the number of points.
    pub k: u32,
    /// Whether it has the monomial form.
    pub has_monomial: u32,
    /// Whether it has the Lagrange form.
    pub has_lagrange: u32,
    /// The name of the file's content.
    pub root: [u8; 32],
    /// The generator of G2.
    pub g2: [u8; G2_BYTES],
    /// The secret times that.
    pub s_g2: [u8; G2_BYTES],
}

/// What work will take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The memory budget.
    pub budget_bytes: u64,
    /// The smallest one that works.
    pub smallest_budget_bytes: u64,
    /// The most that is held of it.
    pub peak_bytes: u64,
    /// The most that files take, with the input's.
    pub disk_bytes: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// How long it takes, roughly.
    pub seconds: f64,
}

/// The names that C has for numbers.
pub(crate) fn basis(number: u32) -> Result<Basis, Error> {
    match number {
        0 => Ok(Basis::Monomial),
        1 => Ok(Basis::Lagrange),
        _ => Err(unknown("the basis", number, "0 (monomial), 1 (Lagrange)")),
    }
}

pub(crate) fn job_name(number: u32) -> Result<&'static str, Error> {
    let names = ["commit", "open", "msm", "ntt"];
    let known = "0 (commit), 1 (open), 2 (msm), 3 (ntt)";
    let name = names.get(number as usize).copied();
    name.ok_or_else(|| unknown("the job of a plan", number, known))
}

fn unknown(what: &'static str, number: u32, known: &'static str) -> Error {
    Error::Unknown {
        what,
        given: number.to_string(),
        known,
    }
}

impl Domain {
    pub(crate) fn read(&self) -> Result<work::Domain, Error> {
        Ok(work::Domain {
            log_n: self.log_n,
            roots: match self.roots {
                0 => Roots::Halo2,
                1 => Roots::Arkworks,
                given => return Err(unknown("the root of unity", given, "0 (halo2), 1 (arkworks)")),
            },
            shift: bytes::scalar("the shift of a coset", &self.shift)?,
            is_inverse: self.is_inverse != 0,
        })
    }
}

impl From<work::SrsInfo> for SrsInfo {
    fn from(info: work::SrsInfo) -> Self {
        let [g2, s_g2] = info.pair;
        Self {
            k: info.k,
            has_monomial: info.has_monomial.into(),
            has_lagrange: info.has_lagrange.into(),
            root: info.root,
            g2,
            s_g2,
        }
    }
}

impl From<spillproof_engine::plan::Plan> for Plan {
    fn from(plan: spillproof_engine::plan::Plan) -> Self {
        let total = plan.of(None);
        Self {
            budget_bytes: plan.budget_bytes,
            smallest_budget_bytes: plan.smallest_budget_bytes,
            peak_bytes: total.peak_bytes,
            disk_bytes: plan.disk_bytes,
            bytes_read: total.bytes_read,
            bytes_written: total.bytes_written,
            seconds: total.seconds,
        }
    }
}

/// What a thread's last call that failed has to say.
#[derive(Default)]
struct Said {
    message: CString,
    needed_bytes: u64,
}

thread_local! {
    static SAID: RefCell<Said> = RefCell::default();
}

/// Keeps an error for the thread.
pub(crate) fn say(error: &Error) {
    let text = explain(error).replace('\0', " ");
    let said = Said {
        message: CString::new(text).unwrap_or_default(),
        needed_bytes: error.needed_bytes().unwrap_or(0),
    };
    // The thread may be at its end.
    let _ = SAID.try_with(|place| place.replace(said));
}

/// The thread's message: it stays until the thread's next error.
pub(crate) fn message() -> *const c_char {
    SAID.try_with(|said| said.borrow().message.as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// The bytes that go with the message.
pub(crate) fn needed_bytes() -> u64 {
    SAID.try_with(|said| said.borrow().needed_bytes).unwrap_or(0)
}
