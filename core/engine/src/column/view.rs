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
use spillproof_kernels::curve::Jacobian;
use spillproof_kernels::parallel::Parallel;

use super::frames::{Run, Slice};
use super::reader::JOB_ELEMENTS;
use super::{Column, Element};
use crate::Error;
use crate::Result;
use crate::budget::PAGE_BYTES;
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

// SAFETY: three coordinates, x, y and z in this order, of limbs, lowest first, which is what `encode` writes.
unsafe impl<T: MontConfig<N>, const N: usize> Plain for Jacobian<Fp<MontBackend<T, N>, N>> where Self: Element {}

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
        is_mappable::<E>()?;
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

impl<E: Element> Column<E> {
    /// What each element becomes, as a slice: for programs that hold their elements in another form, which
    /// may have any length. Reads the column once.
    ///
    /// # Errors
    /// As [`Column::map`].
    pub fn map_with<T: Plain>(&self, make: impl Fn(&E) -> T + Send + Sync) -> Result<MappedColumn<T>> {
        is_mappable::<T>()?;
        let file = self.workspace.run(|| self.converted(&make))?;
        let map = FileMap::new(file, self.len * T::BYTES as u64)?;
        let start = match self.is_empty() {
            true => std::ptr::NonNull::dangling().as_ptr(),
            false => map.as_ptr().cast::<T>(),
        };
        Ok(MappedColumn {
            start,
            len: self.len as usize,
            owner: Owner::File(map),
        })
    }

    /// A file of what the elements become. It has no digests, so each piece is read back and compared as soon
    /// as it is there.
    fn converted<T: Plain>(&self, make: &(impl Fn(&E) -> T + Send + Sync)) -> Result<File> {
        let what = "copy of a column to map";
        let budget = &self.workspace.budget;
        // So many fill pages.
        let step = PAGE_BYTES >> T::BYTES.trailing_zeros().min(PAGE_BYTES.trailing_zeros());
        let chunk = self.sequential_chunk().next_multiple_of(step as u64);
        let held = chunk.min(self.len) as usize;
        let piece_bytes = (held * T::BYTES).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let file = self.workspace.storage.scratch(what, self.len * T::BYTES as u64)?;
        let mut tile = budget.vec(held, E::decode(&vec![0; E::BYTES]), what)?;
        let mut buffer = budget.buffer_to_fill(piece_bytes, what)?;
        let mut copy = budget.buffer_to_fill(piece_bytes, what)?;
        let mut reader = self.read_ascending(chunk)?;
        let mut file_offset = 0;
        while let Some(region) = reader.next_into(&mut tile)? {
            let elements = &tile[..region.len() as usize];
            let (filled, rest) = buffer.split_at_mut(elements.len() * T::BYTES);
            let jobs = elements
                .chunks(JOB_ELEMENTS)
                .zip(filled.chunks_mut(JOB_ELEMENTS * T::BYTES));
            jobs.parallel().for_each(|(elements, bytes)| {
                for (element, bytes) in elements.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
                    make(element).encode(bytes);
                }
            });
            rest.fill(0);
            let bytes = (elements.len() * T::BYTES).next_multiple_of(PAGE_BYTES);
            let segment = Segment {
                file_offset,
                buffer_offset: 0,
                bytes,
            };
            buffer = file.write(buffer, vec![segment]).wait()?;
            copy = file.read(copy, vec![segment]).wait()?;
            let mut pairs = (0..).zip(buffer[..bytes].iter().zip(&copy[..bytes]));
            if let Some((at, _)) = pairs.find(|(_, (written, read))| written != read) {
                return Err(Error::Damaged {
                    file: what.to_owned(),
                    frame: (file_offset + at) / PAGE_BYTES as u64,
                    offset: file_offset + at,
                });
            }
            file_offset += bytes as u64;
        }
        Ok(file)
    }
}

/// Refuses elements that do not lie in memory as in a file.
fn is_mappable<T: Plain>() -> Result<()> {
    let matches = size_of::<T>() == T::BYTES && align_of::<T>() <= 4096;
    match matches && cfg!(target_endian = "little") {
        true => Ok(()),
        false => Err(Invalid::Unmappable {
            memory_bytes: size_of::<T>(),
            file_bytes: T::BYTES,
        }
        .into()),
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
