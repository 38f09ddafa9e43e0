//! The header: the first 4096 bytes of a container, which say what the rest is.
//!
//! A container is a list of sections (arrays of equal elements), each starting on a frame boundary; frames
//! are numbered through the whole file. The byte layout is in `FORMAT.md`; integers are little-endian. The
//! header ends with a BLAKE3 checksum of itself, so that a flipped bit in it is told apart from a file of
//! another kind.
//!
//! Memory: one `Vec` of at most [`SECTIONS_MAX`] sections.

use crate::error::{FormatError, hex};
use crate::geometry::Geometry;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 4096;
/// The first eight bytes: not text, and broken by any conversion of line ends.
pub const MAGIC: [u8; 8] = *b"\x89SPILL\r\n";
/// The version that this build writes and reads.
pub const VERSION: u32 = 1;
/// Most sections in one container.
pub const SECTIONS_MAX: usize = 64;
/// Longest frame in bytes.
pub const FRAME_BYTES_MAX: u32 = 1 << 24;
/// Shortest frame in bytes; every frame length is a multiple of it.
pub const FRAME_BYTES_MIN: u32 = 4096;
/// Longest container in bytes: 256 TiB.
pub const FILE_BYTES_MAX: u64 = 1 << 48;

const VERSION_AT: usize = 8;
const KIND_AT: usize = 12;
const CURVE_AT: usize = 16;
const FRAME_BYTES_AT: usize = 20;
const SECTION_COUNT_AT: usize = 24;
const FLAGS_AT: usize = 28;
const EPOCH_AT: usize = 32;
const FILE_ID_AT: usize = 40;
const PARENT_AT: usize = 64;
pub(crate) const ROOT_AT: usize = 96;
const SECTIONS_AT: usize = 256;
const SECTION_BYTES: usize = 48;
pub(crate) const CHECKSUM_AT: usize = HEADER_BYTES - 32;

/// The bit of the flags that says [`Header::is_insecure`].
const INSECURE: u32 = 1;

/// An enum of numbers on disk, with its name for errors.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident: $integer:ty, $what:literal, $remedy:literal { $($(#[$item_doc:meta])* $item:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$item_doc])* $item,)* }

        impl $name {
            /// The number that stands for it on disk.
            pub const fn code(self) -> $integer {
                match self { $(Self::$item => $code,)* }
            }

            fn decode(code: $integer, offset: usize) -> Result<Self, FormatError> {
                match code {
                    $($code => Ok(Self::$item),)*
                    _ => Err(FormatError::Unknown {
                        what: $what,
                        offset: offset as u64,
                        value: u64::from(code),
                        remedy: $remedy,
                    }),
                }
            }
        }
    };
}

coded! {
    /// What a container is for.
    Kind: u32, "kind", "a newer spillproof wrote this file; read it with that one" {
        /// One column of field elements.
        FieldColumn = 1,
        /// One column of points.
        PointColumn = 2,
        /// A KZG SRS: sections of G1 points in monomial and/or Lagrange form, then the G2 pair (g2, s·g2).
        Srs = 3,
        /// A proving key: sections of field elements and bytes, told apart by label.
        ProvingKeyBundle = 4,
        /// Parameters of inner-product commitments: G1 points in monomial and in Lagrange form, then w and u.
        IpaParams = 5,
        /// A Groth16 proving key: points of G1 and G2, and the matrices A and B ([`crate::groth16`]).
        Groth16Key = 6,
        /// The witness of a halo2 circuit: columns of advice, and bytes with its public inputs.
        Witness = 7,
        /// A Groth16 proving key that is dealt to ranks: what all of them have, and the names of their shares
        /// ([`crate::groth16_dealt`]).
        Groth16Dealt = 8,
        /// One rank's share of such a key.
        Groth16Share = 9,
    }
}

coded! {
    /// The curve whose scalars and points are in the container.
    Curve: u32, "curve", "a newer spillproof wrote this file; read it with that one" {
        /// BN254 (alt_bn128, bn256).
        Bn254 = 1,
        /// Pallas.
        Pallas = 2,
        /// Vesta.
        Vesta = 3,
        /// BLS12-381.
        Bls12381 = 4,
    }
}

coded! {
    /// What a section's elements are.
    Content: u16, "content of a section", "a newer spillproof wrote this file; read it with that one" {
        /// Elements of the scalar field, 32 bytes.
        Scalars = 1,
        /// Points of G1: two coordinates.
        G1 = 2,
        /// Points of G2: two coordinates in the quadratic extension.
        G2 = 3,
        /// Bytes without a meaning of their own.
        Bytes = 4,
        /// Coefficients of the matrices of a rank-1 constraint system, 16 bytes
        /// ([`crate::groth16::Coefficient`]).
        Coefficients = 5,
    }
}

coded! {
    /// The basis that a section's elements are in.
    Basis: u16, "basis of a section", "a newer spillproof wrote this file; read it with that one" {
        /// No basis: bytes, G2 points.
        None = 0,
        /// Coefficients, or powers of the secret: s^i·g.
        Monomial = 1,
        /// Values at the powers of the root of unity, or L_i(s)·g.
        Lagrange = 2,
    }
}

impl Curve {
    /// Length of a coordinate of G1 in bytes.
    pub const fn coordinate_bytes(self) -> u32 {
        match self {
            Self::Bn254 | Self::Pallas | Self::Vesta => 32,
            Self::Bls12381 => 48,
        }
    }

    /// Whether a container of this curve may have frames of this length: a power of two, or, if coordinates
    /// of the curve are three times one, three times a power of two.
    pub const fn allows_frames_of(self, frame_bytes: u32) -> bool {
        let in_range = frame_bytes >= FRAME_BYTES_MIN && frame_bytes <= FRAME_BYTES_MAX;
        let by_three = self.coordinate_bytes().is_multiple_of(3)
            && frame_bytes.is_multiple_of(3 * FRAME_BYTES_MIN)
            && (frame_bytes / 3).is_power_of_two();
        in_range && (frame_bytes.is_power_of_two() || by_three)
    }
}

impl Content {
    /// Length of one element in bytes.
    pub const fn element_bytes(self, curve: Curve) -> u32 {
        match self {
            Self::Scalars => 32,
            Self::G1 => 2 * curve.coordinate_bytes(),
            Self::G2 => 4 * curve.coordinate_bytes(),
            Self::Bytes => 1,
            Self::Coefficients => 16,
        }
    }
}

/// The shortest frame of at least `frame_bytes` (a power of two from 4096 on) that elements of this length
/// fill: `frame_bytes` itself, or three halves of it for lengths of three times a power of two.
pub const fn frame_bytes_for(element_bytes: usize, frame_bytes: usize) -> usize {
    match frame_bytes.is_multiple_of(element_bytes) {
        true => frame_bytes,
        false => frame_bytes / 2 * 3,
    }
}

/// The name of a section: at most 16 bytes of printable ASCII, padded with zero bytes on disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label([u8; 16]);

impl Label {
    /// A label from text.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the text is longer than 16 bytes or is not printable ASCII.
    pub fn new(text: &str) -> Result<Self, FormatError> {
        let mut bytes = [0u8; 16];
        match bytes.get_mut(..text.len()) {
            Some(place) => place.copy_from_slice(text.as_bytes()),
            None => return Err(Self::refuse(text.as_bytes(), 0)),
        }
        Self::decode(bytes, 0)
    }

    fn decode(bytes: [u8; 16], offset: usize) -> Result<Self, FormatError> {
        let text_bytes = bytes.iter().position(|&byte| byte == 0).unwrap_or(16);
        let (text, padding) = bytes.split_at(text_bytes);
        if text.iter().all(|byte| (0x20..0x7f).contains(byte)) && padding.iter().all(|&byte| byte == 0) {
            Ok(Self(bytes))
        } else {
            Err(Self::refuse(&bytes, offset))
        }
    }

    fn refuse(bytes: &[u8], offset: usize) -> FormatError {
        FormatError::Field {
            what: "label of a section",
            offset: offset as u64,
            value: hex(bytes.get(..32).unwrap_or(bytes)),
            remedy: "at most 16 bytes of printable ASCII, then zero bytes",
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let text_bytes = self.0.iter().position(|&byte| byte == 0).unwrap_or(16);
        // Checked to be ASCII when it was made.
        std::str::from_utf8(&self.0[..text_bytes]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a writer says about a section; its place follows from the sections before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionSpec {
    /// What the elements are.
    pub content: Content,
    /// The basis that they are in.
    pub basis: Basis,
    /// How many there are.
    pub elements: u64,
    /// The section's name.
    pub label: Label,
}

/// One array of equal elements, starting on a frame boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// What the elements are.
    pub content: Content,
    /// The basis that they are in.
    pub basis: Basis,
    /// Length of one of them in bytes.
    pub element_bytes: u32,
    /// How many there are.
    pub elements: u64,
    /// The frame, counted through the whole file, that the first element is in.
    pub first_frame: u64,
    /// The section's name.
    pub label: Label,
}

impl Section {
    /// Length of one element in bytes.
    pub const fn element_bytes(&self) -> u32 {
        self.element_bytes
    }
}

/// What a container says about itself. Made by [`Header::new`] or [`Header::decode`], so it always fits the
/// limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    kind: Kind,
    curve: Curve,
    geometry: Geometry,
    file_id: [u8; 16],
    epoch: u64,
    /// Whether a secret behind the content is known, as that of parameters for tests: proofs can be forged.
    pub is_insecure: bool,
    /// Root of the container that this one was made from, or zero bytes.
    pub parent: [u8; 32],
    /// Root over header and frame digests; zero bytes until the file is sealed.
    pub root: [u8; 32],
}

impl Header {
    /// A header for a new container, which is not marked as insecure; `root` and `parent` are zero.
    /// `frame_bytes` is a power of two from 4096 to 2^24, see [`crate::FRAME_BYTES_DEFAULT`], or what
    /// [`frame_bytes_for`] makes of it.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the frame length is not allowed or elements do not fill frames, there are
    /// no or more than [`SECTIONS_MAX`] sections, or the file would be longer than [`FILE_BYTES_MAX`].
    pub fn new(
        kind: Kind,
        curve: Curve,
        frame_bytes: u32,
        file_id: [u8; 16],
        epoch: u64,
        sections: &[SectionSpec],
    ) -> Result<Self, FormatError> {
        let geometry = Geometry::new(curve, frame_bytes, sections)?;
        Ok(Self {
            kind,
            curve,
            geometry,
            file_id,
            epoch,
            is_insecure: false,
            parent: [0; 32],
            root: [0; 32],
        })
    }

    /// What the container is for.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The curve.
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// Random or derived name of the file; part of the key of its frame digests.
    pub const fn file_id(&self) -> [u8; 16] {
        self.file_id
    }

    /// Counts rewrites of one file; part of the key of its frame digests.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where everything is.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The sections in file order.
    pub fn sections(&self) -> &[Section] {
        self.geometry.sections()
    }

    /// The first section with this content and basis.
    pub fn find(&self, content: Content, basis: Basis) -> Option<&Section> {
        self.sections()
            .iter()
            .find(|section| section.content == content && section.basis == basis)
    }

    /// The first section with this label.
    pub fn find_label(&self, label: &str) -> Option<&Section> {
        self.sections()
            .iter()
            .find(|section| section.label.as_str() == label)
    }

    /// Length of a frame in bytes.
    pub const fn frame_bytes(&self) -> u32 {
        self.geometry.frame_bytes()
    }

    /// Number of frames in the file.
    pub const fn frames(&self) -> u64 {
        self.geometry.frames()
    }

    /// Length of the whole file in bytes.
    pub const fn file_bytes(&self) -> u64 {
        self.geometry.file_bytes()
    }

    /// The 4096 bytes on disk.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0u8; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(KIND_AT, &self.kind.code().to_le_bytes());
        put(CURVE_AT, &self.curve.code().to_le_bytes());
        put(FRAME_BYTES_AT, &self.frame_bytes().to_le_bytes());
        put(SECTION_COUNT_AT, &(self.sections().len() as u32).to_le_bytes());
        let flags = if self.is_insecure { INSECURE } else { 0 };
        put(FLAGS_AT, &flags.to_le_bytes());
        put(EPOCH_AT, &self.epoch.to_le_bytes());
        put(FILE_ID_AT, &self.file_id);
        put(PARENT_AT, &self.parent);
        put(ROOT_AT, &self.root);
        for (i, section) in self.sections().iter().enumerate() {
            let at = SECTIONS_AT + i * SECTION_BYTES;
            put(at, &section.content.code().to_le_bytes());
            put(at + 2, &section.basis.code().to_le_bytes());
            put(at + 4, &section.element_bytes().to_le_bytes());
            put(at + 8, &section.elements.to_le_bytes());
            put(at + 16, &section.first_frame.to_le_bytes());
            put(at + 24, &section.label.0);
        }
        let checksum = blake3::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(checksum.as_bytes());
        bytes
    }

    /// Reads a header. Whether the file is as long as [`Header::file_bytes`] says is
    /// [`Geometry::check_file_bytes`].
    ///
    /// # Errors
    /// [`FormatError::NotAContainer`]; [`FormatError::Unknown`] for a version (before anything else is looked
    /// at), kind, curve, content or basis of a later build; [`FormatError::HeaderDamaged`];
    /// [`FormatError::Field`] for a header that is intact but that no writer makes.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, FormatError> {
        if bytes[..8] != MAGIC {
            return Err(FormatError::NotAContainer {
                value: hex(&bytes[..8]),
            });
        }
        let version = u32_at(bytes, VERSION_AT);
        if version != VERSION {
            return Err(FormatError::Unknown {
                what: "version",
                offset: VERSION_AT as u64,
                value: u64::from(version),
                remedy: "this build reads version 1; a newer spillproof wrote this file, read it with that one",
            });
        }
        let computed = blake3::hash(&bytes[..CHECKSUM_AT]);
        if bytes[CHECKSUM_AT..] != computed.as_bytes()[..] {
            return Err(FormatError::HeaderDamaged {
                offset: CHECKSUM_AT as u64,
                value: hex(&bytes[CHECKSUM_AT..]),
                computed: hex(computed.as_bytes()),
            });
        }
        let kind = Kind::decode(u32_at(bytes, KIND_AT), KIND_AT)?;
        let curve = Curve::decode(u32_at(bytes, CURVE_AT), CURVE_AT)?;
        let section_count = u32_at(bytes, SECTION_COUNT_AT) as usize;
        if section_count == 0 || section_count > SECTIONS_MAX {
            return Err(FormatError::Field {
                what: "number of sections",
                offset: SECTION_COUNT_AT as u64,
                value: section_count.to_string(),
                remedy: "a container has 1 to 64 sections",
            });
        }
        let mut specs = Vec::with_capacity(section_count);
        for i in 0..section_count {
            specs.push(decode_section(curve, bytes, SECTIONS_AT + i * SECTION_BYTES)?);
        }
        let geometry = Geometry::new(curve, u32_at(bytes, FRAME_BYTES_AT), &specs)?;
        for (i, section) in geometry.sections().iter().enumerate() {
            let at = SECTIONS_AT + i * SECTION_BYTES + 16;
            let first_frame = u64_at(bytes, at);
            if first_frame != section.first_frame {
                return Err(FormatError::Field {
                    what: "first frame of a section",
                    offset: at as u64,
                    value: first_frame.to_string(),
                    remedy: "sections follow each other without a gap",
                });
            }
        }
        let header = Self {
            kind,
            curve,
            geometry,
            file_id: array_at(bytes, FILE_ID_AT),
            epoch: u64_at(bytes, EPOCH_AT),
            is_insecure: u32_at(bytes, FLAGS_AT) & INSECURE != 0,
            parent: array_at(bytes, PARENT_AT),
            root: array_at(bytes, ROOT_AT),
        };
        // Reserved bytes are zero in this version: what encodes to other bytes was not written by it.
        let canonical = header.encode();
        match canonical.iter().zip(bytes).position(|(a, b)| a != b) {
            None => Ok(header),
            Some(at) => Err(FormatError::Field {
                what: "a reserved byte",
                offset: at as u64,
                value: bytes[at].to_string(),
                remedy: "it is zero in version 1; a newer spillproof may have written this file",
            }),
        }
    }

    /// Reads a header from the first bytes of a file.
    ///
    /// # Errors
    /// [`FormatError::Length`] when there are fewer than 4096, else as [`Header::decode`].
    pub fn decode_prefix(bytes: &[u8]) -> Result<Self, FormatError> {
        match bytes.first_chunk::<HEADER_BYTES>() {
            Some(header) => Self::decode(header),
            None => Err(FormatError::Length {
                what: "the header",
                expected_bytes: HEADER_BYTES as u64,
                actual_bytes: bytes.len() as u64,
                remedy: "the file is cut short, or is no container",
            }),
        }
    }
}

fn decode_section(curve: Curve, bytes: &[u8; HEADER_BYTES], at: usize) -> Result<SectionSpec, FormatError> {
    let content = Content::decode(u16_at(bytes, at), at)?;
    let basis = Basis::decode(u16_at(bytes, at + 2), at + 2)?;
    let element_bytes = u32_at(bytes, at + 4);
    if element_bytes != content.element_bytes(curve) {
        return Err(FormatError::Field {
            what: "element length of a section",
            offset: (at + 4) as u64,
            value: element_bytes.to_string(),
            remedy: "scalars have 32 bytes, points of G1 two coordinates of the curve, points of G2 four, bytes 1, \
                     coefficients 16",
        });
    }
    let label = Label::decode(array_at(bytes, at + 24), at + 24)?;
    Ok(SectionSpec {
        content,
        basis,
        elements: u64_at(bytes, at + 8),
        label,
    })
}

// The offsets are constants below HEADER_BYTES - N.
fn array_at<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut array = [0u8; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn u16_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
