//! Values that are made when they are first asked for.

use std::sync::OnceLock;

/// The value of the cell; else makes it. Two callers may both make it, and one of the two results is then
/// dropped: to wait for each other, on threads that steal work, they would have to hold a lock while they
/// compute.
///
/// # Errors
/// Those of `make`.
pub fn once<T, E>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    match make() {
        Ok(value) => Ok(cell.get_or_init(|| value)),
        // There was no room for two, perhaps.
        Err(error) => cell.get().ok_or(error),
    }
}
