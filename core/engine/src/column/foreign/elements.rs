//! Where the elements of a foreign array are in the frames of its column, and the check of each.

use std::ops::Range;
use std::sync::Arc;

use spillproof_format::FormatError;

use crate::storage::Segment;

/// What looks at the bytes of the element at an index of the array, and brings those of another form to the
/// one that the column's elements have.
pub type Check = Arc<dyn Fn(u64, &mut [u8]) -> Result<(), FormatError> + Send + Sync>;

/// The elements of a column's frames that are in the file.
pub struct Elements {
    pub bytes: usize,
    pub in_file: Range<u64>,
    pub check: Check,
}

impl Elements {
    /// The elements of `frames` that are in the file.
    fn of(&self, frames: Range<u64>, frame_bytes: usize) -> Range<u64> {
        let frame_elements = (frame_bytes / self.bytes) as u64;
        let all = frames.start * frame_elements..frames.end * frame_elements;
        let [start, end] =
            [self.in_file.start, self.in_file.end].map(|index| index.clamp(all.start, all.end));
        start..end
    }

    /// Bytes of the zeros before the array.
    pub fn lead_bytes(&self) -> u64 {
        self.in_file.start * self.bytes as u64
    }

    /// Where the elements of neighbouring frames are in the file, and in the buffer from `buffer_offset` on,
    /// if there are any. `offset` is that of the array.
    pub fn segment(
        &self,
        frames: Range<u64>,
        buffer_offset: usize,
        frame_bytes: usize,
        offset: u64,
    ) -> Option<Segment> {
        let before = frames.start * (frame_bytes / self.bytes) as u64;
        let elements = self.of(frames, frame_bytes);
        let before = elements.start - before;
        // Of frames that are in the lead as a whole, there is nothing to read.
        (!elements.is_empty()).then(|| Segment {
            file_offset: offset + (elements.start - self.in_file.start) * self.bytes as u64,
            buffer_offset: buffer_offset + before as usize * self.bytes,
            bytes: (elements.end - elements.start) as usize * self.bytes,
        })
    }

    /// Clears what of a frame is not in the file, and checks the rest.
    pub fn check(&self, frame: u64, bytes: &mut [u8]) -> Result<(), FormatError> {
        let elements = self.of(frame..frame + 1, bytes.len());
        let first = frame * (bytes.len() / self.bytes) as u64;
        let [start, end] = [elements.start, elements.end].map(|index| (index - first) as usize * self.bytes);
        bytes[..start].fill(0);
        bytes[end..].fill(0);
        let indices = elements.start.saturating_sub(self.in_file.start)..;
        (indices.zip(bytes[start..end].chunks_exact_mut(self.bytes)))
            .try_for_each(|(index, element)| (self.check)(index, element))
    }
}
