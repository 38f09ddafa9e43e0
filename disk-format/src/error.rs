//! What is wrong with bytes that should have been a container or an importable file: what, where, which
//! value, and what to do about it.

/// What is wrong with bytes that should have been a container or an importable file.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The first bytes are not a container's.
    #[error(
        "not a spillproof container: the file begins with {value} where 89 53 50 49 4c 4c 0d 0a is expected; \
         a halo2 parameter file is read by `spillproof srs import`"
    )]
    NotAContainer {
        /// The bytes found, in hex.
        value: String,
    },
    /// A version, kind, curve, content or basis that this build does not know.
    #[error("unknown {what} {value} at offset {offset}: {remedy}")]
    Unknown {
        /// `version`, `kind`, `curve`, `content`, `basis`.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The number found.
        value: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A header field that no writer of this version produces.
    #[error("{what} at offset {offset} is {value}: {remedy}")]
    Field {
        /// The field.
        what: &'static str,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The value found.
        value: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A first phase for fewer rows than are needed.
    #[error(
        "log2 of the rows at offset {offset} is {power}, and 2^{needed} rows are needed: take a first phase of power {needed} or more"
    )]
    TooFewPowers {
        /// Offset in the file, in bytes.
        offset: u64,
        /// log2 of the rows that the file is for.
        power: u32,
        /// log2 of the rows that are needed.
        needed: u32,
    },
    /// The header's checksum differs: a byte of it was changed.
    #[error(
        "the header's checksum at offset {offset} is {value}, its bytes give {computed}: the header is damaged; \
         restore the file, or import it again"
    )]
    HeaderDamaged {
        /// Offset of the checksum in bytes.
        offset: u64,
        /// The checksum in the file, in hex.
        value: String,
        /// The checksum of the bytes, in hex.
        computed: String,
    },
    /// The root over header and frame digests differs from the one in the header.
    #[error(
        "the root at offset {offset} is {value}, header and digest table give {computed}: the digest table or the \
         header is damaged; restore the file, or import it again"
    )]
    RootDiffers {
        /// Offset of the root in the header, in bytes.
        offset: u64,
        /// The root in the header, in hex.
        value: String,
        /// The root of the bytes, in hex.
        computed: String,
    },
    /// A share of a dealt key that is not the one that the key names.
    #[error(
        "the root at offset {offset} is {value}, and the dealt key names the share {expected}: the share is of another import, \
         or the key is; import the key again on all ranks"
    )]
    OtherShare {
        /// Offset of the root in the share's header, in bytes.
        offset: u64,
        /// The root in the header, in hex.
        value: String,
        /// The root that the key names, in hex.
        expected: String,
    },
    /// The bytes are too many or too few.
    #[error("{what} is {actual_bytes} bytes long, {expected_bytes} are expected: {remedy}")]
    Length {
        /// What was measured.
        what: &'static str,
        /// How long it should be.
        expected_bytes: u64,
        /// How long it is.
        actual_bytes: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// No layout of the asked kind has this many bytes.
    #[error("{what} cannot be {actual_bytes} bytes long: {remedy}")]
    NoSuchLength {
        /// What the bytes were taken for.
        what: &'static str,
        /// How long they are.
        actual_bytes: u64,
        /// Which lengths there are.
        remedy: &'static str,
    },
    /// An index past the end.
    #[error("{what} {index} does not exist: there are {count}")]
    OutOfRange {
        /// `frame`, `section`, `point`.
        what: &'static str,
        /// The index asked for.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A point that is not one.
    #[error(
        "point {index} of {what} at offset {offset} {fault}: {value}; get the file again from its source"
    )]
    Point {
        /// The array it is in: `g`, `g_lagrange`, `g2`, `s_g2`.
        what: &'static str,
        /// Its index in the array.
        index: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// What is wrong with it.
        fault: PointFault,
        /// Its bytes, in hex.
        value: String,
    },
    /// Parts that are points each, but do not belong together.
    #[error("{what}: {remedy}")]
    Inconsistent {
        /// Which parts.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A field element that is not one.
    #[error(
        "element {index} of {what} at offset {offset} is not below the modulus: {value}; the file is damaged"
    )]
    Element {
        /// The array it is in.
        what: &'static str,
        /// Its index in the array.
        index: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// Its bytes, in hex.
        value: String,
    },
    /// A coefficient of a matrix with a number past the end.
    #[error(
        "{what} of coefficient {index} at offset {offset} is {value}, and there are {limit}: the file is damaged, get it again"
    )]
    Coefficient {
        /// `matrix`, `row`, `signal`, `value`.
        what: &'static str,
        /// The coefficient's index.
        index: u64,
        /// Offset of the number in the file, in bytes.
        offset: u64,
        /// The number.
        value: u64,
        /// How many there are: the number is below it.
        limit: u64,
    },
    /// A contribution to a key that does not follow from the ones before it.
    #[error(
        "contribution {number} at offset {offset}: {fault}; the file is damaged, or was not made by the contributions that it lists: \
         do not use it"
    )]
    Contribution {
        /// The contribution's number, counted from 1.
        number: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A part that does not follow from the files that it has to follow from.
    #[error(
        "{what} at offset {offset} of the file do not follow from the circuit, the powers of tau and the contributions: \
         the key is of other files, or was tampered with; do not use it"
    )]
    NotDerived {
        /// Which part.
        what: &'static str,
        /// Offset of the part in the file, in bytes.
        offset: u64,
    },
    /// A file of iden3's container format without a section that is needed.
    #[error(
        "the .{file} file has no section {section} ({name}): get the whole file again, or make it with a tool that writes the section"
    )]
    MissingSection {
        /// The kind of file, by its extension.
        file: &'static str,
        /// The section's id.
        section: u32,
        /// What it holds.
        name: &'static str,
    },
    /// A file of iden3's container format with two sections of one id.
    #[error(
        "section {section} ({name}) of the .{file} file is there twice, at offsets {first_offset} and {offset}: \
         the file is damaged, get it again"
    )]
    DuplicateSection {
        /// The kind of file, by its extension.
        file: &'static str,
        /// The sections' id.
        section: u32,
        /// What it holds.
        name: &'static str,
        /// Offset of the first one's content, in bytes.
        first_offset: u64,
        /// Offset of the second one's content, in bytes.
        offset: u64,
    },
    /// A section that goes past the end of its file.
    #[error(
        "section {section} ({name}) of the .{file} file has {bytes} bytes from offset {offset} on, and the file ends at \
         {file_bytes}: it is cut short, get it again"
    )]
    SectionOverrun {
        /// The kind of file, by its extension.
        file: &'static str,
        /// The section's id.
        section: u32,
        /// What it holds.
        name: &'static str,
        /// Offset of its content in bytes.
        offset: u64,
        /// Its length in bytes, as the file says.
        bytes: u64,
        /// The file's length in bytes.
        file_bytes: u64,
    },
    /// A file with fewer sections than it announces.
    #[error(
        "the .{file} file announces {announced} sections and ends at {file_bytes}, in the prefix at offset {offset} of section \
         number {found}, counted from 0: the program that wrote it was stopped, or it is cut short; make it or get it again"
    )]
    SectionCount {
        /// The kind of file, by its extension.
        file: &'static str,
        /// How many it announces.
        announced: u32,
        /// How many are there.
        found: u32,
        /// Offset of the first missing one in bytes.
        offset: u64,
        /// The file's length in bytes.
        file_bytes: u64,
    },
    /// A section whose length is not the one that the file's header gives.
    #[error(
        "section {section} ({name}) of the .{file} file at offset {offset} is {actual_bytes} bytes long, {expected_bytes} are expected: \
         {remedy}"
    )]
    SectionLength {
        /// The kind of file, by its extension.
        file: &'static str,
        /// The section's id.
        section: u32,
        /// What it holds.
        name: &'static str,
        /// Offset of its content in bytes.
        offset: u64,
        /// How long it should be.
        expected_bytes: u64,
        /// How long it is.
        actual_bytes: u64,
        /// What to do.
        remedy: &'static str,
    },
}

/// Why bytes are not a point.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointFault {
    /// A coordinate is not below the modulus.
    #[error("has a coordinate that is not below the modulus")]
    NotReduced,
    /// The curve equation does not hold, or no point has this x.
    #[error("is not on the curve")]
    NotOnCurve,
    /// On the curve, but outside the subgroup of prime order.
    #[error("is not in the subgroup of prime order")]
    NotInSubgroup,
    /// Flag bits of a compressed point that no writer sets together.
    #[error("has contradictory flag bits")]
    Flags,
    /// The point at infinity where there can be none.
    #[error("is the point at infinity")]
    Infinity,
}

/// Bytes as hex, for messages.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
