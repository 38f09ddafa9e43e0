//! What callers in C give: pointers to bytes, texts, handles; and the end of a panic.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A null pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a null pointer in place of {0}")]
pub struct Null(pub &'static str);

/// Does the work of a call: a panic of it does not cross into C, and is `None`.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Bytes of the caller's. None at all may be anywhere.
///
/// # Errors
/// [`Null`], for more bytes than memory can have, too.
///
/// # Safety
/// `bytes` is null or points to `len` bytes that nothing changes during `'a`.
pub unsafe fn bytes<'a>(what: &'static str, bytes: *const u8, len: u64) -> Result<&'a [u8], Null> {
    match usize::try_from(len) {
        Ok(0) => Ok(&[]),
        Ok(len) if !bytes.is_null() && isize::try_from(len).is_ok() => {
            // SAFETY: by this function's own condition; it is not null, and no longer than memory can be.
            Ok(unsafe { std::slice::from_raw_parts(bytes, len) })
        }
        _ => Err(Null(what)),
    }
}

/// Room of the caller's.
///
/// # Errors
/// As [`bytes()`].
///
/// # Safety
/// `bytes` is null or points to `len` bytes that belong to the call alone during `'a`.
pub unsafe fn room<'a>(what: &'static str, bytes: *mut u8, len: u64) -> Result<&'a mut [u8], Null> {
    match usize::try_from(len) {
        Ok(0) => Ok(&mut []),
        Ok(len) if !bytes.is_null() && isize::try_from(len).is_ok() => {
            // SAFETY: by this function's own condition; it is not null, and no longer than memory can be.
            Ok(unsafe { std::slice::from_raw_parts_mut(bytes, len) })
        }
        _ => Err(Null(what)),
    }
}

/// A text of the caller's.
///
/// # Errors
/// [`Null`].
///
/// # Safety
/// `text` is null or points to bytes with a zero after them, which nothing changes during `'a`.
pub unsafe fn text<'a>(what: &'static str, text: *const c_char) -> Result<&'a [u8], Null> {
    if text.is_null() {
        return Err(Null(what));
    }
    // SAFETY: by this function's own condition.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The path that a text names.
pub fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Writes a value to a place of the caller's.
///
/// # Errors
/// [`Null`].
///
/// # Safety
/// `place` is null or points to a place for a `T`, aligned, which belongs to the call alone.
pub unsafe fn give<T>(what: &'static str, place: *mut T, value: T) -> Result<(), Null> {
    if place.is_null() {
        return Err(Null(what));
    }
    // SAFETY: by this function's own condition. What is there was not initialised, and is not dropped.
    unsafe { place.write(value) };
    Ok(())
}

/// Hands a value to the caller, who lets [`close`] end it.
///
/// # Errors
/// [`Null`]; the value ends.
///
/// # Safety
/// As [`give`].
pub unsafe fn hand_out<T>(what: &'static str, place: *mut *mut T, value: T) -> Result<(), Null> {
    if place.is_null() {
        return Err(Null(what));
    }
    // SAFETY: by this function's own condition.
    unsafe { give(what, place, Box::into_raw(Box::new(value))) }
}

/// A value that was handed out.
///
/// # Errors
/// [`Null`].
///
/// # Safety
/// `handle` is null or came from [`hand_out`], and is not closed during `'a`.
pub unsafe fn held<'a, T>(what: &'static str, handle: *const T) -> Result<&'a T, Null> {
    // SAFETY: by this function's own condition.
    unsafe { handle.as_ref() }.ok_or(Null(what))
}

/// Ends a value that was handed out; nothing for null.
///
/// # Safety
/// `handle` is null or came from [`hand_out`], and is not used any more.
pub unsafe fn close<T>(handle: *mut T) {
    if handle.is_null() {
        return;
    }
    // SAFETY: by this function's own condition.
    let value = unsafe { Box::from_raw(handle) };
    // There is nothing to be said of a panic here.
    let _ = caught(|| drop(value));
}
