//! Buffers of Python: arrays of numpy, `bytes`, `bytearray`, `memoryview`.
#![allow(unsafe_code)]

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;

/// Elements of `N` bytes each, in order: unsigned integers of one or of eight bytes, in rows of `N` bytes or
/// in one row.
pub struct Buffer<const N: usize>(PyUntypedBuffer);

impl<const N: usize> Buffer<N> {
    /// Looks at an object.
    ///
    /// # Errors
    /// `TypeError` for other elements or rows, `BufferError` for memory that is not in one piece.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        let bytes = buffer.item_size();
        let is_integer = matches!(
            ElementType::from_format(buffer.format()),
            ElementType::UnsignedInteger { .. }
        );
        let row_bytes = match *buffer.shape() {
            [_] if bytes == 1 => N,
            [_, columns] => columns.saturating_mul(bytes),
            _ => 0,
        };
        if !is_integer || ![1, 8].contains(&bytes) || row_bytes != N {
            return Err(PyTypeError::new_err(format!(
                "expected an array of uint8 of shape (n, {N}), of uint64 of shape (n, {}), or bytes",
                N / 8
            )));
        }
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err(
                "the array is not in one piece: use numpy.ascontiguousarray",
            ));
        }
        Ok(Self(buffer))
    }

    /// Its bytes. On a little-endian machine, the only kind that the engine is for, limbs of eight bytes are
    /// the same.
    pub fn bytes(&self) -> &[u8] {
        let len = self.0.len_bytes();
        if len == 0 {
            return &[];
        }
        // SAFETY: the buffer is in one piece, and stays while this holds it. That another thread of Python
        // does not write to it during a call is the caller's to see to, as for every function that works
        // without the interpreter's lock.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), len) }
    }

    /// Its bytes, to be written.
    ///
    /// # Errors
    /// `BufferError` for memory that is read-only.
    pub fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
        if self.0.readonly() {
            return Err(PyBufferError::new_err("the array is read-only"));
        }
        let len = self.0.len_bytes();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `bytes`; it may be written to.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), len) })
    }
}
