//! Arrays in files of other programs, as columns that are read where they are.
//!
//! There are no digests in such a file: each element is checked whenever it is read, on all cores.

pub(super) mod elements;

use std::marker::PhantomData;
use std::sync::Arc;

pub use self::elements::Check;
use self::elements::Elements;
use super::frames::Frames;
use super::{Column, Element, Workspace, scratch_frame_bytes};
use crate::storage::File;

/// An array in a file of another program.
pub struct Array {
    /// From [`crate::storage::Storage::open_unaligned`].
    pub file: File,
    /// Of its first element.
    pub offset: u64,
    /// Elements.
    pub len: u64,
    /// Elements of zero bytes that the column has before the array's, and after them.
    pub zeros: [u64; 2],
    /// Refuses an element that is not in range. If it changes bytes, the column has the changed ones.
    pub check: Check,
}

impl<E: Element> Column<E> {
    /// `array` as a column, between its zeros. A reader's errors are also those of the check.
    pub fn foreign(workspace: &Workspace, array: Array) -> Self {
        let frame_bytes = scratch_frame_bytes::<E>();
        let [lead, tail] = array.zeros;
        let end = lead + array.len;
        let len = end + tail;
        let frames = len.div_ceil((frame_bytes / E::BYTES) as u64);
        let elements = Elements {
            bytes: E::BYTES,
            in_file: lead..end,
            check: array.check,
        };
        let place = (array.file, array.offset);
        let frames = Frames::foreign(workspace, place, (frames, frame_bytes), elements);
        Self {
            frames: Arc::new(frames),
            first_frame: 0,
            len,
            workspace: workspace.clone(),
            element: PhantomData,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use spillproof_format::FormatError;

    use super::*;
    use crate::Error;
    use crate::accelerator::Arrivals;
    use crate::budget::{Budget, Lender};
    use crate::column::{InPlace, Region};
    use crate::storage::Storage;

    type Value = [u8; 32];

    fn value(index: u64) -> Value {
        let mut value = [7; 32];
        value[..8].copy_from_slice(&index.to_le_bytes());
        value
    }

    /// A column over `len` values behind `before` other bytes of a file, of which the last is refused if it
    /// `is_damaged`.
    fn column(before: u64, len: u64, [lead, tail]: [u64; 2], is_damaged: bool) -> Column<Value> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("array");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![1; before as usize]).unwrap();
        for index in 0..len {
            file.write_all(&value(index)).unwrap();
        }
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(1 << 20));
        let check = move |index, bytes: &mut [u8]| {
            assert_eq!(bytes, value(index), "{index}");
            match is_damaged && index + 1 == len {
                true => Err(FormatError::OutOfRange {
                    what: "value",
                    index,
                    count: len,
                }),
                false => Ok(()),
            }
        };
        let array = Array {
            file: workspace.storage.open_unaligned(&path).unwrap(),
            offset: before,
            len,
            zeros: [lead, tail],
            check: Arc::new(check),
        };
        Column::foreign(&workspace, array)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn values_are_those_of_the_file(before in 0u64..5000, len in 0u64..2000, lead in 0u64..2000, tail in 0u64..2000, log_chunk in 4u32..12) {
            let column = column(before, len, [lead, tail], false);
            let mut all = vec![[9; 32]; (lead + len + tail) as usize];
            let chunk = 1 << log_chunk;
            let mut reader = column.read_ascending(chunk).unwrap();
            for part in all.chunks_mut(chunk as usize) {
                reader.next_into(part).unwrap();
            }
            let expected = (0..lead).map(|_| [0; 32]).chain((0..len).map(value)).chain((0..tail).map(|_| [0; 32]));
            prop_assert!(all.into_iter().eq(expected));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn values_land_where_a_caller_has_them(before in 0u64..5000, len in 0u64..4000, lead in 0u64..2000, tail in 0u64..2000, log_part in 9u32..12) {
            let column = column(before, len, [lead, tail], false);
            let workspace = column.workspace().clone();
            let part = 1usize << log_part;
            let mut memory = Lender::new(workspace.budget.buffer(part * 32, "of a test").unwrap());
            let mut ends = InPlace::of(&column, &memory.lend(part * 32).unwrap()).unwrap();
            let expected = |index: u64| match index.checked_sub(lead) {
                Some(of_file) if of_file < len => value(of_file),
                _ => [0; 32],
            };
            for first in (0..column.len()).step_by(part) {
                memory.memory().unwrap().fill(9);
                let mut arrivals = Arrivals::default();
                let left = ends.begin(first, memory.lend(part * 32).unwrap(), &mut arrivals).unwrap();
                prop_assert!(left.is_none());
                arrivals.settle().unwrap();
                for (index, element) in (first..).zip(memory.memory().unwrap().as_chunks::<32>().0) {
                    prop_assert_eq!(*element, expected(index), "{}", index);
                }
            }
        }
    }

    #[test]
    fn elements_of_another_form_are_brought_to_the_columns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("array");
        let numbers: Vec<u8> = (0..5000u32).flat_map(u32::to_be_bytes).collect();
        std::fs::write(&path, [&[1, 2, 3], &numbers[..]].concat()).unwrap();
        let storage = Storage::builder().dir(dir.path()).build().unwrap();
        let workspace = Workspace::new(storage, Budget::new(1 << 20));
        let array = Array {
            file: workspace.storage.open_unaligned(&path).unwrap(),
            offset: 3,
            len: 5000,
            zeros: [2, 1],
            check: Arc::new(|_, bytes: &mut [u8]| {
                bytes.reverse();
                Ok(())
            }),
        };
        let column = Column::<u32>::foreign(&workspace, array);
        let expected: Vec<u32> = [0, 0].into_iter().chain(0..5000).chain([0]).collect();
        assert_eq!(column.to_vec().unwrap(), expected);
        // The file is as it was, and so is what is read again.
        assert_eq!(column.to_vec().unwrap(), expected);
        assert_eq!(std::fs::read(&path).unwrap()[3..], numbers);
    }

    #[test]
    fn a_refused_element_is_an_error_of_its_file() {
        let column = column(13, 1000, [700, 300], true);
        let mut out = [[0; 32]; 10];
        column.read(Region::Span { start: 0, len: 10 }, &mut out).unwrap();
        assert_eq!(out, [[0; 32]; 10]);
        let last = Region::Span { start: 1695, len: 5 };
        let error = column.read(last, &mut out).unwrap_err();
        let is_named = |error: &Error| matches!(error, Error::Format { file, .. } if file.ends_with("array"));
        assert!(is_named(&error), "{error:?}");
    }
}
