//! The functions. Each catches what goes wrong, panics too, and gives a status: 0, or the number of a
//! [`Kind`] of error.
//!
//! Their common condition, in words of C: a pointer is null or points to as much as the function takes or
//! writes, a handle is null or came from the function that makes it and is not closed, and nothing else
//! writes to the caller's buffers meanwhile.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use spillproof_bindings::bytes::{self, POINT_BYTES, SCALAR_BYTES, Scalars};
use spillproof_bindings::column::{self, CallerColumn};
use spillproof_bindings::plan::Job;
use spillproof_bindings::pointers::{Null, caught, close, give, hand_out, held, path, room, text};
use spillproof_bindings::work::{self, Opening, Settings, Values};
use spillproof_bindings::{Error, Result, pointers};
use spillproof_engine::budget::ByteSize;

use crate::types::{
    Column, Domain, Plan, Points, Session, Srs, SrsInfo, basis, job_name, message, needed_bytes, say,
};

#[cfg(doc)]
use spillproof_bindings::Kind;

/// Does the work of a call.
fn status(work: impl FnOnce() -> Result<()>) -> c_int {
    let error = match caught(work) {
        Some(Ok(())) => return 0,
        Some(Err(error)) => error,
        None => Error::Internal,
    };
    let _ = caught(|| say(&error));
    error.kind() as c_int
}

/// The budget that C means: 0 is the engine's own choice.
fn memory(bytes: u64) -> ByteSize {
    match bytes {
        0 => ByteSize::Auto,
        bytes => ByteSize::Bytes(bytes),
    }
}

/// `count` elements of `N` bytes.
///
/// # Safety
/// As [`pointers::bytes()`].
unsafe fn elements<'a, const N: usize>(
    what: &'static str,
    pointer: *const u8,
    count: u64,
) -> Result<&'a [u8], Null> {
    let bytes = count.checked_mul(N as u64).ok_or(Null(what))?;
    // SAFETY: by this function's own condition.
    unsafe { pointers::bytes(what, pointer, bytes) }
}

/// # Safety
/// As [`pointers::bytes()`].
unsafe fn scalars<'a>(pointer: *const u8, count: u64) -> Result<Scalars<'a>> {
    // SAFETY: by this function's own condition.
    Scalars::new("scalars", unsafe {
        elements::<SCALAR_BYTES>("scalars", pointer, count)
    }?)
}

/// # Safety
/// As [`pointers::bytes()`].
unsafe fn scalar(what: &'static str, pointer: *const u8) -> Result<spillproof_commit::Scalar> {
    // SAFETY: by this function's own condition.
    bytes::scalar(what, unsafe { elements::<SCALAR_BYTES>(what, pointer, 1) }?)
}

/// # Safety
/// As [`room`].
unsafe fn give_points(place: *mut u8, points: &[[u8; POINT_BYTES]]) -> Result<(), Null> {
    let bytes = points.as_flattened();
    // SAFETY: by this function's own condition.
    let room = unsafe { room("room for points", place, bytes.len() as u64) }?;
    room.copy_from_slice(bytes);
    Ok(())
}

/// The release of the library.
#[unsafe(no_mangle)]
pub extern "C" fn spillproof_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What this thread's last call that failed has to say. It stays until the thread's next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn spillproof_error_message() -> *const c_char {
    message()
}

/// The smallest memory budget with which this thread's last call that failed would have gone on; 0 if it
/// failed for another reason.
#[unsafe(no_mangle)]
pub extern "C" fn spillproof_error_needed_bytes() -> u64 {
    needed_bytes()
}

/// Makes a session.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_session_open(
    memory_bytes: u64,
    dir: *const c_char,
    threads: u32,
    session: *mut *mut Session,
) -> c_int {
    status(|| {
        let dir = match dir.is_null() {
            true => None,
            // SAFETY: the common condition.
            false => Some(path(unsafe { text("the folder", dir) }?).to_owned()),
        };
        let settings = Settings {
            memory: memory(memory_bytes),
            dir,
            threads: threads as usize,
        };
        let made = Session(settings.session()?);
        // SAFETY: the common condition.
        Ok(unsafe { hand_out("room for a session", session, made) }?)
    })
}

/// Ends a session. What was made in it stays.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_session_close(session: *mut Session) {
    // SAFETY: the common condition.
    unsafe { close(session) }
}

/// Makes an insecure SRS.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_generate(
    session: *const Session,
    srs_path: *const c_char,
    k: u32,
    secret: *const u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, target, secret) = unsafe {
            (
                held("a session", session)?,
                text("the path of the SRS", srs_path)?,
                scalar("the secret", secret)?,
            )
        };
        work::generate_srs(&session.0, path(target), k, secret)
    })
}

/// Imports halo2's parameters.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_import(
    session: *const Session,
    params_path: *const c_char,
    srs_path: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, source, target) = unsafe {
            (
                held("a session", session)?,
                text("the path of the parameters", params_path)?,
                text("the path of the SRS", srs_path)?,
            )
        };
        work::import_srs(&session.0, path(source), path(target))?;
        Ok(())
    })
}

/// Reads all of an SRS and checks it.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_verify(session: *const Session, srs_path: *const c_char) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, srs_path) = unsafe {
            (
                held("a session", session)?,
                text("the path of the SRS", srs_path)?,
            )
        };
        work::check_srs(&session.0, path(srs_path))?;
        Ok(())
    })
}

/// Opens an SRS.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_open(
    session: *const Session,
    srs_path: *const c_char,
    srs: *mut *mut Srs,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, srs_path) = unsafe {
            (
                held("a session", session)?,
                text("the path of the SRS", srs_path)?,
            )
        };
        let opened = Srs(spillproof_commit::Srs::open_container(
            session.0.workspace(),
            path(srs_path),
        )?);
        // SAFETY: the common condition.
        Ok(unsafe { hand_out("room for an SRS", srs, opened) }?)
    })
}

/// Says what an SRS is.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_inspect(srs: *const Srs, info: *mut SrsInfo) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let srs = unsafe { held("an SRS", srs) }?;
        // SAFETY: the common condition.
        Ok(unsafe { give("room for what an SRS is", info, work::inspect(&srs.0).into()) }?)
    })
}

/// Closes an SRS.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_srs_close(srs: *mut Srs) {
    // SAFETY: the common condition.
    unsafe { close(srs) }
}

/// Begins a column of scalars.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_column_begin(
    session: *const Session,
    count: u64,
    column: *mut *mut Column,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let session = unsafe { held("a session", session) }?;
        let begun = Column(CallerColumn::of_scalars(session.0.workspace(), count)?);
        // SAFETY: the common condition.
        Ok(unsafe { hand_out("room for a column", column, begun) }?)
    })
}

/// Appends scalars.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_column_push(
    column: *const Column,
    values: *const u8,
    count: u64,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (column, values) = unsafe {
            (
                held("a column", column)?,
                elements::<SCALAR_BYTES>("scalars", values, count)?,
            )
        };
        column.0.push(values)
    })
}

/// Reads scalars of a column.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_column_read(
    column: *const Column,
    start: u64,
    count: u64,
    values: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let column = unsafe { held("a column", column) }?;
        let what = "room for scalars";
        let bytes = count.checked_mul(SCALAR_BYTES as u64).ok_or(Null(what))?;
        // SAFETY: the common condition.
        column::read(column.0.full()?, start, unsafe { room(what, values, bytes) }?)
    })
}

/// Closes a column: its room on the disk is free.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_column_close(column: *mut Column) {
    // SAFETY: the common condition.
    unsafe { close(column) }
}

/// Begins points on disk.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_points_begin(
    session: *const Session,
    count: u64,
    points: *mut *mut Points,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let session = unsafe { held("a session", session) }?;
        let begun = Points(CallerColumn::of_points(session.0.workspace(), count)?);
        // SAFETY: the common condition.
        Ok(unsafe { hand_out("room for points", points, begun) }?)
    })
}

/// Appends points.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_points_push(
    points: *const Points,
    values: *const u8,
    count: u64,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (points, values) = unsafe {
            (
                held("points", points)?,
                elements::<POINT_BYTES>("points", values, count)?,
            )
        };
        points.0.push(values)
    })
}

/// The sum of a column's scalars times points on disk.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_points_msm(
    points: *const Points,
    column: *const Column,
    sum: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (points, column) = unsafe { (held("points", points)?, held("a column", column)?) };
        let found = work::msm_over(points.0.full()?, &Values::Column(column.0.full()?))?;
        // SAFETY: the common condition.
        Ok(unsafe { give_points(sum, &[found]) }?)
    })
}

/// Closes points: their room on the disk is free.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_points_close(points: *mut Points) {
    // SAFETY: the common condition.
    unsafe { close(points) }
}

/// Commits to a polynomial in memory.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_commit(
    srs: *const Srs,
    basis_number: u32,
    values: *const u8,
    count: u64,
    commitment: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (srs, values) = unsafe { (held("an SRS", srs)?, scalars(values, count)?) };
        let found = work::commit(&srs.0, basis(basis_number)?, &[Values::Bytes(values)])?;
        // SAFETY: the common condition.
        Ok(unsafe { give_points(commitment, &found) }?)
    })
}

/// Commits to polynomials on disk, in one pass over the SRS for as many as memory takes.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_commit_columns(
    srs: *const Srs,
    basis_number: u32,
    columns: *const *const Column,
    count: u32,
    commitments: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let srs = unsafe { held("an SRS", srs) }?;
        if columns.is_null() && count > 0 {
            return Err(Null("columns").into());
        }
        let column = |at: u32| {
            // SAFETY: the common condition: there are `count` pointers.
            let column = unsafe { held("a column", *columns.add(at as usize)) }?;
            Ok(Values::Column(column.0.full()?))
        };
        let values = (0..count).map(column).collect::<Result<Vec<_>>>()?;
        let found = work::commit(&srs.0, basis(basis_number)?, &values)?;
        // SAFETY: the common condition.
        Ok(unsafe { give_points(commitments, &found) }?)
    })
}

/// Opens a polynomial in memory.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_open(
    srs: *const Srs,
    coefficients: *const u8,
    count: u64,
    point: *const u8,
    value: *mut u8,
    proof: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (srs, coefficients, point) = unsafe {
            (
                held("an SRS", srs)?,
                scalars(coefficients, count)?,
                scalar("the point", point)?,
            )
        };
        let opening = work::open(&srs.0, &Values::Bytes(coefficients), point)?;
        // SAFETY: the common condition.
        Ok(unsafe { give_opening(&opening, value, proof) }?)
    })
}

/// Opens a polynomial on disk.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_open_column(
    srs: *const Srs,
    column: *const Column,
    point: *const u8,
    value: *mut u8,
    proof: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (srs, column, point) = unsafe {
            (
                held("an SRS", srs)?,
                held("a column", column)?,
                scalar("the point", point)?,
            )
        };
        let opening = work::open(&srs.0, &Values::Column(column.0.full()?), point)?;
        // SAFETY: the common condition.
        Ok(unsafe { give_opening(&opening, value, proof) }?)
    })
}

/// # Safety
/// As [`give`], of both.
unsafe fn give_opening(opening: &Opening, value: *mut u8, proof: *mut u8) -> Result<(), Null> {
    // SAFETY: by this function's own condition.
    unsafe {
        give("room for a value", value.cast(), opening.value)?;
        give_points(proof, &[opening.proof])
    }
}

/// Checks an opening.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_check_opening(
    srs: *const Srs,
    commitment: *const u8,
    point: *const u8,
    value: *const u8,
    proof: *const u8,
    is_right: *mut u32,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (srs, commitment, point, opening) = unsafe {
            (
                held("an SRS", srs)?,
                held("the commitment", commitment.cast())?,
                scalar("the point", point)?,
                Opening {
                    value: *held("the value", value.cast())?,
                    proof: *held("the proof", proof.cast())?,
                },
            )
        };
        let found = work::check_opening(&srs.0, commitment, point, &opening)?;
        // SAFETY: the common condition.
        Ok(unsafe { give("room for the result", is_right, found.into()) }?)
    })
}

/// The sum of scalars times points in memory.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_msm(
    session: *const Session,
    points: *const u8,
    values: *const u8,
    count: u64,
    sum: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, points, values) = unsafe {
            (
                held("a session", session)?,
                elements::<POINT_BYTES>("points", points, count)?,
                scalars(values, count)?,
            )
        };
        let found = work::msm(&session.0, points, &Values::Bytes(values))?;
        // SAFETY: the common condition.
        Ok(unsafe { give_points(sum, &[found]) }?)
    })
}

/// Transforms values in memory.
///
/// # Safety
/// The common condition, but `out` may be `values`: these were read before anything is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_ntt(
    session: *const Session,
    domain: *const Domain,
    values: *const u8,
    count: u64,
    out: *mut u8,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (session, domain) = unsafe { (held("a session", session)?, held("a domain", domain)?.read()?) };
        let bytes = domain.values()?.saturating_mul(SCALAR_BYTES as u64);
        if out.is_null() {
            return Err(Null("room for the values").into());
        }
        // SAFETY: the common condition. The values are not used after this line.
        let transformed = work::ntt_of(&session.0, &unsafe { scalars(values, count) }?, &domain)?;
        // SAFETY: the common condition.
        column::read_all(&transformed, unsafe { room("room for the values", out, bytes) }?)
    })
}

/// Transforms a column.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_column_ntt(
    column: *const Column,
    domain: *const Domain,
    transformed: *mut *mut Column,
) -> c_int {
    status(|| {
        // SAFETY: the common condition.
        let (column, domain) = unsafe { (held("a column", column)?, held("a domain", domain)?.read()?) };
        let found = Column(work::ntt(column.0.full()?, &domain)?.into());
        // SAFETY: the common condition.
        Ok(unsafe { hand_out("room for a column", transformed, found) }?)
    })
}

/// Says what work will take.
///
/// # Safety
/// The common condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spillproof_plan_job(
    job: u32,
    count: u64,
    memory_bytes: u64,
    threads: u32,
    plan: *mut Plan,
) -> c_int {
    status(|| {
        let job = Job::named(job_name(job)?)?;
        let found = job.plan(count, memory(memory_bytes), threads as usize)?;
        // SAFETY: the common condition.
        Ok(unsafe { give("room for a plan", plan, Plan::from(found)) }?)
    })
}
