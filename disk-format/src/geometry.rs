//! Where everything in a container is, from the frame length and the sections alone.
//!
//! ```text
//! [header 4096][frame 0][frame 1]...[frame F-1][digests: 32 F bytes, zero-padded to a multiple of 4096]
//! ```
//!
//! Element lengths divide the frame length, so elements never straddle frames; the last frame of each section
//! is zero-padded. Offsets and lengths are in bytes.

use std::ops::Range;

use crate::error::FormatError;
use crate::header::{Curve, FILE_BYTES_MAX, HEADER_BYTES, SECTIONS_MAX, Section, SectionSpec};

/// Length of a frame's digest in bytes.
pub const DIGEST_BYTES: u64 = 32;
/// The digest table is padded to a multiple of this many bytes.
pub const ALIGNMENT_BYTES: u64 = 4096;

/// Frames and their places. All sums were checked when it was made, so the accessors cannot overflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    frame_bytes: u32,
    frames: u64,
    file_bytes: u64,
    sections: Vec<Section>,
}

impl Geometry {
    /// Places the sections one after the other.
    ///
    /// # Errors
    /// [`FormatError::Field`], as in [`crate::Header::new`].
    pub fn new(curve: Curve, frame_bytes: u32, sections: &[SectionSpec]) -> Result<Self, FormatError> {
        let refuse = |remedy| FormatError::Field {
            what: "frame length",
            offset: 20,
            value: frame_bytes.to_string(),
            remedy,
        };
        if !curve.allows_frames_of(frame_bytes) {
            return Err(refuse(
                "a power of two from 4096 to 16777216, for BLS12-381 three times one as well",
            ));
        }
        if sections.is_empty() || sections.len() > SECTIONS_MAX {
            return Err(FormatError::Field {
                what: "number of sections",
                offset: 24,
                value: sections.len().to_string(),
                remedy: "a container has 1 to 64 sections",
            });
        }
        let mut placed = Vec::with_capacity(sections.len());
        let mut frames = 0u64;
        for spec in sections {
            let element_bytes = spec.content.element_bytes(curve);
            if !frame_bytes.is_multiple_of(element_bytes) {
                return Err(refuse("a multiple of every section's element length"));
            }
            let elements_per_frame = u64::from(frame_bytes / element_bytes);
            placed.push(Section {
                content: spec.content,
                basis: spec.basis,
                element_bytes,
                elements: spec.elements,
                first_frame: frames,
                label: spec.label,
            });
            let section_frames = spec.elements.div_ceil(elements_per_frame);
            frames = match frames.checked_add(section_frames) {
                // Keeps every later product below 2^63.
                Some(sum) if sum <= FILE_BYTES_MAX / u64::from(frame_bytes) => sum,
                _ => return Err(too_long(spec.elements)),
            };
        }
        let file_bytes = HEADER_BYTES as u64
            + frames * u64::from(frame_bytes)
            + (frames * DIGEST_BYTES).next_multiple_of(ALIGNMENT_BYTES);
        if file_bytes > FILE_BYTES_MAX {
            return Err(too_long(frames));
        }
        Ok(Self {
            frame_bytes,
            frames,
            file_bytes,
            sections: placed,
        })
    }

    /// The sections in file order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Length of a frame in bytes.
    pub const fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// Number of frames.
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Offset of a frame in bytes; `frame` may be the number of frames, which gives the end.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`].
    pub fn frame_offset(&self, frame: u64) -> Result<u64, FormatError> {
        if frame > self.frames {
            return Err(FormatError::OutOfRange {
                what: "frame",
                index: frame,
                count: self.frames,
            });
        }
        Ok(HEADER_BYTES as u64 + frame * u64::from(self.frame_bytes))
    }

    /// Offset of the digest table in bytes: where the last frame ends.
    pub const fn digest_table_offset(&self) -> u64 {
        HEADER_BYTES as u64 + self.frames * self.frame_bytes as u64
    }

    /// Length of the digest table in bytes, padding included.
    pub const fn digest_table_bytes(&self) -> u64 {
        self.file_bytes - self.digest_table_offset()
    }

    /// Length of the whole file in bytes.
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Number of a section's elements in one full frame.
    pub const fn elements_per_frame(&self, section: &Section) -> u64 {
        (self.frame_bytes / section.element_bytes()) as u64
    }

    /// The frames of a section, numbered through the whole file.
    pub const fn section_frames(&self, section: &Section) -> Range<u64> {
        let frames = section.elements.div_ceil(self.elements_per_frame(section));
        section.first_frame..section.first_frame.saturating_add(frames)
    }

    /// The section that a frame belongs to.
    pub fn section_of(&self, frame: u64) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| self.section_frames(section).contains(&frame))
    }

    /// How many bytes of a frame are elements; the rest, in the last frame of a section, is zero padding.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`].
    pub fn payload_bytes(&self, frame: u64) -> Result<u32, FormatError> {
        let Some(section) = self.section_of(frame) else {
            return Err(FormatError::OutOfRange {
                what: "frame",
                index: frame,
                count: self.frames,
            });
        };
        let per_frame = self.elements_per_frame(section);
        let before = (frame - section.first_frame) * per_frame;
        // At most per_frame elements, so at most frame_bytes.
        Ok((section.elements - before).min(per_frame) as u32 * section.element_bytes())
    }

    /// Offset of an element of a section in bytes.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`].
    pub fn element_offset(&self, section: &Section, index: u64) -> Result<u64, FormatError> {
        if index >= section.elements {
            return Err(FormatError::OutOfRange {
                what: "element",
                index,
                count: section.elements,
            });
        }
        // Element lengths divide frame lengths, so a section's elements are contiguous.
        let bytes = index.saturating_mul(u64::from(section.element_bytes()));
        Ok(self.frame_offset(section.first_frame)?.saturating_add(bytes))
    }

    /// Whether a file of this length is whole.
    ///
    /// # Errors
    /// [`FormatError::Length`] when it is not.
    pub fn check_file_bytes(&self, actual_bytes: u64) -> Result<(), FormatError> {
        if actual_bytes == self.file_bytes {
            return Ok(());
        }
        Err(FormatError::Length {
            what: "the container",
            expected_bytes: self.file_bytes,
            actual_bytes,
            remedy: "the file is cut short or has something appended; restore it, or import it again",
        })
    }

    /// Whether the bytes after the last digest, to the end of the file, are zero: the root does not cover
    /// them.
    ///
    /// # Errors
    /// [`FormatError::Length`] unless they are all there; [`FormatError::Field`] for a byte that is not zero.
    pub fn check_table_padding(&self, padding: &[u8]) -> Result<(), FormatError> {
        let expected_bytes = self.digest_table_bytes() - self.frames * DIGEST_BYTES;
        if padding.len() as u64 != expected_bytes {
            return Err(FormatError::Length {
                what: "the padding of the digest table",
                expected_bytes,
                actual_bytes: padding.len() as u64,
                remedy: "give the bytes from the last digest to the end of the file",
            });
        }
        match padding.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(i) => Err(FormatError::Field {
                what: "a byte of the digest table's padding",
                offset: self.file_bytes - expected_bytes + i as u64,
                value: padding[i].to_string(),
                remedy: "it is zero; the file is damaged, restore it, or import it again",
            }),
        }
    }
}

fn too_long(elements: u64) -> FormatError {
    FormatError::Field {
        what: "number of elements",
        offset: 256,
        value: elements.to_string(),
        remedy: "a container is at most 2^48 bytes long",
    }
}
