//! A column as a slice, for callers that must have one (`get_g()`, indexing a polynomial).
//!
//! All frames are checked once, by streaming, and their elements copied to a scratch file, which is mapped:
//! no other process can cut it off, as it could a file with a name. It is as long as the column and goes with
//! the map. A column in memory gives its buffer, all of whose frames were written, and stays there until the
//! slice is dropped. What is touched of a map is page cache, clean, which the kernel takes back when a
//! control group is full; [`MappedColumn::release`] gives it back at once.
#![allow(unsafe_code)]

use std::ops::Deref;

use ark_ff::{Fp, FpConfig, MontBackend, MontConfig};

use super::frames::{Run, Slice};
use super::{Column, Element};
use crate::Error;
use crate::Result;
use crate::error::Invalid;
use crate::storage::{File, FileMap, Segment};

/// An [`Element`] that lies in memory as its bytes do in a column.
///
/// # Safety
/// `size_of::<Self>()` is [`Element::BYTES`], the alignment is at most 4096, the bytes that
/// [`Element::encode`] writes are those of the value in memory (on a little-endian machine), and any bytes
/// are a value.
pub unsafe trait Plain: Element {}

// SAFETY: an array of bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}
// SAFETY: the only field with a size is four limbs, lowest first, which is what `encode` writes.
unsafe impl<T: MontConfig<4>> Plain for Fp<MontBackend<T, 4>, 4> where MontBackend<T, 4>: FpConfig<4> {}

#[cfg(feature = "halo2curves")]
mod with_halo2curves {
    use std::mem::offset_of;

    use halo2curves::bn256::{Fq, Fr, G1Affine};

    // SAFETY: four limbs, lowest first.
    unsafe impl super::Plain for Fr {}
    // SAFETY: four limbs, lowest first.
    unsafe impl super::Plain for Fq {}
    const _: () = assert!(offset_of!(G1Affine, x) == 0 && offset_of!(G1Affine, y) == 32);
    // SAFETY: two coordinates of four limbs, x first, as just asserted.
    unsafe impl super::Plain for G1Affine {}
}

#[cfg(feature = "halo2curves-axiom")]
mod with_halo2curves_axiom {
    use std::mem::offset_of;

    use halo2curves_axiom::bn256::{Fq, Fr, G1Affine};

    // SAFETY: four limbs, lowest first.
    unsafe impl super::Plain for Fr {}
    // SAFETY: four limbs, lowest first.
    unsafe impl super::Plain for Fq {}
    const _: () = assert!(offset_of!(G1Affine, x) == 0 && offset_of!(G1Affine, y) == 32);
    // SAFETY: two coordinates of four limbs, x first, as just asserted.
    unsafe impl super::Plain for G1Affine {}
}

/// A column's elements as a slice. Its frames were good when it was made.
pub struct MappedColumn<E> {
    start: *const E,
    len: usize,
    /// What keeps the elements where they are.
    owner: Owner,
}

enum Owner {
    File(FileMap),
    Memory(#[allow(dead_code)] Slice),
}

// SAFETY: shared, read-only elements and what owns them, as an `Arc<[E]>` would be.
unsafe impl<E: Plain> Send for MappedColumn<E> {}
// SAFETY: as above.
unsafe impl<E: Plain> Sync for MappedColumn<E> {}

impl<E: Plain> Column<E> {
    /// The column as a slice. Reads a column on disk once, to check its frames and to copy it.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`], [`crate::Error::Io`], [`crate::Error::OverBudget`] from the reading and the
    /// copy; [`crate::Error::File`] if it cannot be mapped;
    /// [`Invalid::Unmappable`] where elements do not lie in memory as in the file (a big-endian machine).
    pub fn map(&self) -> Result<MappedColumn<E>> {
        let matches = size_of::<E>() == E::BYTES && align_of::<E>() <= 4096;
        if !matches || cfg!(target_endian = "big") {
            return Err(Invalid::Unmappable {
                memory_bytes: size_of::<E>(),
                file_bytes: E::BYTES,
            }
            .into());
        }
        let len = self.len as usize;
        let frame_bytes = self.frames.frame_bytes();
        let skipped_bytes = self.first_frame * frame_bytes as u64;
        let column_bytes = self.len * E::BYTES as u64;
        let frames = self.len.div_ceil(self.frame_elements());
        let (start, owner) = if let Some(slice) = self.frames.slice(self.first_frame, frames)? {
            // A column's frames are not written any more, so the buffer stays as it is while the slice is
            // lent.
            let start = slice.start().wrapping_add(skipped_bytes as usize);
            (start.cast::<E>(), Owner::Memory(slice))
        } else {
            let copy = self.workspace.run(|| self.copy_without_tags())?;
            let map = FileMap::new(copy, column_bytes)?;
            (map.as_ptr().cast::<E>(), Owner::File(map))
        };
        let start = if len == 0 {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            start
        };
        Ok(MappedColumn { start, len, owner })
    }

    /// A file of the elements alone. It has no digests, so each piece is read back and compared as soon as it
    /// is there.
    fn copy_without_tags(&self) -> Result<File> {
        let frame_bytes = self.frames.frame_bytes();
        let frames = self.len.div_ceil(self.frame_elements());
        let what = "copy of a column to map";
        let file = self
            .workspace
            .storage
            .scratch(what, frames * frame_bytes as u64)?;
        let chunk_frames = self.workspace.sequential_bytes(frame_bytes) / frame_bytes;
        let buffer = || (self.workspace.budget).buffer_to_fill(chunk_frames * frame_bytes, what);
        let (mut buffer, mut copy) = (buffer()?, buffer()?);
        for first in (0..frames).step_by(chunk_frames) {
            let run = Run {
                frame: self.first_frame + first,
                frames: (frames - first).min(chunk_frames as u64),
                buffer_offset: 0,
            };
            let offset = first * frame_bytes as u64;
            let segment = Segment {
                file_offset: offset,
                buffer_offset: 0,
                bytes: run.frames as usize * frame_bytes,
            };
            buffer = self.frames.read(buffer, vec![run]).wait()?;
            buffer = file.write(buffer, vec![segment]).wait()?;
            copy = file.read(copy, vec![segment]).wait()?;
            let frames = buffer
                .chunks_exact(frame_bytes)
                .zip(copy.chunks_exact(frame_bytes));
            let mut frames = (0..run.frames).zip(frames);
            if let Some((frame, _)) = frames.find(|(_, (written, read))| written != read) {
                return Err(Error::Damaged {
                    file: what.to_owned(),
                    frame: first + frame,
                    offset: offset + frame * frame_bytes as u64,
                });
            }
        }
        Ok(file)
    }
}

impl<E: Plain> MappedColumn<E> {
    /// Lets what was touched leave memory; it comes back when it is touched again.
    pub fn release(&self) {
        if let Owner::File(map) = &self.owner {
            map.release();
        }
    }
}

impl<E: Plain> Deref for MappedColumn<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: `len` elements that `owner` keeps in place and no thread writes; `Plain` says that their
        // bytes are values. The start is a page's, plus whole frames, so it is aligned.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<E> std::fmt::Debug for MappedColumn<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = match &self.owner {
            Owner::File(_) => "file",
            Owner::Memory(_) => "memory",
        };
        f.debug_struct("MappedColumn")
            .field("len", &self.len)
            .field("in", &place)
            .finish()
    }
}
