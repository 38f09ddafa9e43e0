//! Rank-1 constraint systems (`.r1cs`, version 1).
//!
//! | section | content |
//! |---:|---|
//! | 1 | the header ([`Header`]) |
//! | 2 | the constraints, one after the other |
//! | 3 | for each wire a `u64`: its label in the program; or nothing |
//! | 4, 5 | custom gates and their uses: not for Groth16, refused unless there are none |
//!
//! The header holds the prime of the scalars (a `u32` for its length, then its bytes), then as `u32` the
//! numbers of wires, public outputs, public inputs and private inputs, the number of labels as `u64`, and the
//! number of constraints as `u32`.
//!
//! A constraint is three linear combinations, of A, B and C: the number of terms as `u32`, then for each term
//! the wire as `u32` and the coefficient, 32 bytes, a canonical integer (**not** Montgomery) below the prime.
//! Wire 0 is the constant one; public outputs, then public inputs follow it.
//!
//! Constraints have no length of their own, so the section is read from its start: [`Constraints`] takes it
//! in pieces of any length, and holds at most one term of 36 bytes between them.

use super::bytes::{
    Fields, PRIME_BYTES_MAX, Prime, check_section_bytes, check_section_bytes_max, write_prime,
};
use super::{ByteRange, FileKind, Matrix, SCALAR_BYTES, Sections, check_scalar};
use crate::error::FormatError;
use crate::header::Curve;

/// Id of the header's section.
pub const HEADER: u32 = 1;
/// Id of the section of constraints.
pub const CONSTRAINTS: u32 = 2;
/// Id of the section of wires' labels.
pub const LABELS: u32 = 3;
/// Id of the section of custom gates.
pub const CUSTOM_GATES: u32 = 4;
/// Id of the section of custom gates' uses.
pub const CUSTOM_GATE_USES: u32 = 5;

/// Most bytes of a header, over whatever field. (Over curves that are read it has 64.)
pub const HEADER_BYTES_MAX: usize = 4 + PRIME_BYTES_MAX + 28;
/// Length of a term in bytes.
pub const TERM_BYTES: usize = 4 + SCALAR_BYTES;
/// Length of the number of terms in bytes.
const COUNT_BYTES: usize = 4;
/// The shortest constraint: three linear combinations without a term.
const CONSTRAINT_BYTES_MIN: u64 = 3 * COUNT_BYTES as u64;

/// What a constraint system says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The curve whose scalars the coefficients are.
    pub curve: Curve,
    /// Wires, the constant one (the first) included.
    pub wires: u32,
    /// Public outputs: the wires after the constant one.
    pub public_outputs: u32,
    /// Public inputs: the wires after the public outputs.
    pub public_inputs: u32,
    /// Private inputs of the program. A private input that no constraint names may have no wire.
    pub private_inputs: u32,
    /// Signals of the program that the constraints came from.
    pub labels: u64,
    /// Constraints.
    pub constraints: u32,
}

impl Header {
    /// The bytes to read for [`Self::parse`].
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section of more than
    /// [`HEADER_BYTES_MAX`].
    pub fn range(sections: &Sections) -> Result<ByteRange, FormatError> {
        sections.check_kind(FileKind::R1cs)?;
        let range = sections.range(HEADER)?;
        check_section_bytes_max(FileKind::R1cs, HEADER, range, HEADER_BYTES_MAX)?;
        Ok(range)
    }

    /// Reads the header from the bytes of [`Self::range`].
    ///
    /// # Errors
    /// As [`Self::range`]; [`FormatError::Length`] for another number of bytes; [`FormatError::Field`] for
    /// another prime than BN254's and BLS12-381's, and for fewer wires than the constant one and the public
    /// ones are.
    pub fn parse(sections: &Sections, bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = Fields::new("the header of the .r1cs file", Self::range(sections)?, bytes)?;
        let curve = fields.curve(Prime::Scalar)?;
        let wires_offset = fields.offset();
        let header = Self {
            curve,
            wires: fields.u32()?,
            public_outputs: fields.u32()?,
            public_inputs: fields.u32()?,
            private_inputs: fields.u32()?,
            labels: fields.u64()?,
            constraints: fields.u32()?,
        };
        fields.finish()?;
        if u64::from(header.wires) <= header.public() {
            return Err(FormatError::Field {
                what: "number of wires",
                offset: wires_offset,
                value: header.wires.to_string(),
                remedy: "the constant one and the public ones are more: the file is damaged, get it again",
            });
        }
        Ok(header)
    }

    /// Public wires, without the constant one: what a key calls public signals.
    #[must_use]
    pub const fn public(&self) -> u64 {
        self.public_outputs as u64 + self.public_inputs as u64
    }

    /// log2 of the rows of a Groth16 key's domain: the smallest power of two above the constraints and the
    /// public wires, which is at least 2 for snarkjs.
    #[must_use]
    pub const fn log_domain(&self) -> u32 {
        let rows = self.constraints as u64 + self.public() + 1;
        match rows {
            1 => 1,
            rows => rows.next_power_of_two().ilog2(),
        }
    }

    /// Appends the content of section 1.
    pub fn encode(&self, out: &mut Vec<u8>) {
        write_prime(self.curve, Prime::Scalar, out);
        for number in [
            self.wires,
            self.public_outputs,
            self.public_inputs,
            self.private_inputs,
        ] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.labels.to_le_bytes());
        out.extend(self.constraints.to_le_bytes());
    }
}

/// Where everything in one constraint system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The constraints, for [`Constraints`].
    pub constraints: ByteRange,
    /// A `u64` for each wire, if the file has them.
    pub labels: Option<ByteRange>,
}

impl Layout {
    /// Finds everything.
    ///
    /// # Errors
    /// [`FormatError::MissingSection`]; [`FormatError::SectionLength`] for a section of constraints that is
    /// too short for their number, or labels that are neither none nor one for each wire;
    /// [`FormatError::Field`] for
    /// custom gates.
    pub fn new(sections: &Sections, header: &Header) -> Result<Self, FormatError> {
        sections.check_kind(FileKind::R1cs)?;
        for section in [CUSTOM_GATES, CUSTOM_GATE_USES] {
            // Their number alone takes 4 bytes.
            if let Some(range) = sections.find(section)
                && range.bytes > COUNT_BYTES as u64
            {
                return Err(FormatError::Field {
                    what: "the section of custom gates",
                    offset: range.offset,
                    value: format!("section {section} with {} bytes", range.bytes),
                    remedy: "Groth16 has no custom gates: compile the circuit without custom templates",
                });
            }
        }
        let constraints = sections.range(CONSTRAINTS)?;
        let constraints_bytes_min = u64::from(header.constraints) * CONSTRAINT_BYTES_MIN;
        check_section_bytes(
            FileKind::R1cs,
            CONSTRAINTS,
            constraints,
            constraints.bytes.max(constraints_bytes_min),
        )?;
        // Some compilers leave the section empty.
        let labels = sections.find(LABELS).filter(|range| range.bytes > 0);
        if let Some(range) = labels {
            check_section_bytes(FileKind::R1cs, LABELS, range, 8 * u64::from(header.wires))?;
        }
        Ok(Self { constraints, labels })
    }
}

/// A coefficient of a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Term {
    /// The linear combination that it is in.
    pub matrix: Matrix,
    /// The row.
    pub constraint: u32,
    /// The column.
    pub wire: u32,
    /// The coefficient: a canonical integer below the modulus, little-endian.
    pub value: [u8; SCALAR_BYTES],
}

/// What the next bytes of the section are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The number of terms of a linear combination.
    Count,
    /// A term; so many are left in the linear combination, this one included.
    Term { left: u32 },
}

/// Reads constraints from the bytes of [`Layout::constraints`], given from the start in pieces of any length.
#[derive(Debug, Clone)]
pub struct Constraints {
    header: Header,
    range: ByteRange,
    /// How many bytes were taken.
    taken: u64,
    matrix: Matrix,
    constraint: u32,
    next: Next,
    /// How many terms were read, for errors.
    terms: u64,
    /// The start of a number or a term whose end is in the next piece.
    carry: [u8; TERM_BYTES],
    carry_bytes: usize,
}

impl Constraints {
    /// A reader at the start of the constraints.
    #[must_use]
    pub const fn new(header: &Header, layout: &Layout) -> Self {
        Self {
            header: *header,
            range: layout.constraints,
            taken: 0,
            matrix: Matrix::A,
            constraint: 0,
            next: Next::Count,
            terms: 0,
            carry: [0; TERM_BYTES],
            carry_bytes: 0,
        }
    }

    /// Takes the next bytes of the section, and calls `each` with every term that they complete: by ascending
    /// constraint, A before B before C, in the order of the file. After an error, this reader is of no more
    /// use.
    ///
    /// # Errors
    /// [`FormatError::Field`] for more terms than the section has room for, and for bytes after the last
    /// constraint; [`FormatError::Coefficient`] for a wire past the end; [`FormatError::Element`] for a
    /// coefficient that is not below the modulus; what `each` returns.
    pub fn give<E: From<FormatError>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Term) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.constraint == self.header.constraints {
                return Err(self.refuse_rest().into());
            }
            let unit_bytes = match self.next {
                Next::Count => COUNT_BYTES,
                Next::Term { .. } => TERM_BYTES,
            };
            if let (0, Some((unit, rest))) = (self.carry_bytes, bytes.split_at_checked(unit_bytes)) {
                bytes = rest;
                self.step(unit, &mut each)?;
                continue;
            }
            let missing_bytes = unit_bytes.saturating_sub(self.carry_bytes);
            let (start, rest) = bytes.split_at(missing_bytes.min(bytes.len()));
            self.carry[self.carry_bytes..][..start.len()].copy_from_slice(start);
            self.carry_bytes += start.len();
            bytes = rest;
            if self.carry_bytes == unit_bytes {
                let unit = self.carry;
                self.carry_bytes = 0;
                self.step(&unit[..unit_bytes], &mut each)?;
            }
        }
        Ok(())
    }

    /// That all constraints were read.
    ///
    /// # Errors
    /// [`FormatError::Field`] when the section ended, or the caller stopped, before the last one.
    pub fn finish(self) -> Result<(), FormatError> {
        if self.constraint == self.header.constraints {
            return Ok(());
        }
        Err(FormatError::Field {
            what: "number of whole constraints",
            offset: self.offset(),
            value: self.constraint.to_string(),
            remedy: "the header announces more: the file is cut short, or not all of the section was given",
        })
    }

    /// Offset in the file of the next number or term.
    const fn offset(&self) -> u64 {
        self.range.offset.saturating_add(self.taken)
    }

    fn step<E: From<FormatError>>(
        &mut self,
        unit: &[u8],
        each: &mut impl FnMut(Term) -> Result<(), E>,
    ) -> Result<(), E> {
        let left = match self.next {
            Next::Count => self.count(unit)?,
            Next::Term { left } => {
                each(self.term(unit)?)?;
                self.terms = self.terms.saturating_add(1);
                left.saturating_sub(1)
            }
        };
        self.taken = self.taken.saturating_add(unit.len() as u64);
        self.next = match left {
            0 => Next::Count,
            left => Next::Term { left },
        };
        if left == 0 {
            self.matrix = match self.matrix {
                Matrix::A => Matrix::B,
                Matrix::B => Matrix::C,
                Matrix::C => {
                    self.constraint = self.constraint.saturating_add(1);
                    Matrix::A
                }
            };
        }
        Ok(())
    }

    /// The number of terms in a linear combination.
    fn count(&self, unit: &[u8]) -> Result<u32, FormatError> {
        let count = u32_of(unit);
        let rest_bytes = self
            .range
            .end()
            .saturating_sub(self.offset())
            .saturating_sub(COUNT_BYTES as u64);
        if u64::from(count) * TERM_BYTES as u64 > rest_bytes {
            return Err(FormatError::Field {
                what: "number of terms of a linear combination",
                offset: self.offset(),
                value: count.to_string(),
                remedy: "the section of constraints has no room for them: the file is damaged, get it again",
            });
        }
        Ok(count)
    }

    fn term(&self, unit: &[u8]) -> Result<Term, FormatError> {
        let (wire, value) = unit.split_at(4);
        let wire = u32_of(wire);
        if wire >= self.header.wires {
            return Err(FormatError::Coefficient {
                what: "wire",
                index: self.terms,
                offset: self.offset(),
                value: u64::from(wire),
                limit: u64::from(self.header.wires),
            });
        }
        let mut scalar = [0; SCALAR_BYTES];
        scalar.copy_from_slice(value);
        let value_offset = self.offset().saturating_add(4);
        check_scalar(
            self.header.curve,
            "the constraints' terms",
            self.terms,
            value_offset,
            &scalar,
        )?;
        Ok(Term {
            matrix: self.matrix,
            constraint: self.constraint,
            wire,
            value: scalar,
        })
    }

    fn refuse_rest(&self) -> FormatError {
        FormatError::Field {
            what: "end of the last constraint",
            offset: self.offset(),
            value: format!(
                "{} bytes before the section's end",
                self.range.end().saturating_sub(self.offset())
            ),
            remedy: "the section ends with its last constraint: the file is damaged, get it again",
        }
    }
}

/// `bytes` has four: it is cut from a count or a term.
fn u32_of(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(bytes);
    u32::from_le_bytes(word)
}

/// Appends a linear combination to the content of section 2: wires and canonical coefficients. A constraint
/// is three of them.
///
/// # Errors
/// [`FormatError::Field`] for more than 2^32 - 1 terms.
pub fn write_linear_combination(
    terms: &[(u32, [u8; SCALAR_BYTES])],
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let count = u32::try_from(terms.len()).map_err(|_| FormatError::Field {
        what: "number of terms of a linear combination",
        offset: out.len() as u64,
        value: terms.len().to_string(),
        remedy: "a .r1cs file has at most 2^32 - 1 in each",
    })?;
    out.extend(count.to_le_bytes());
    for (wire, value) in terms {
        out.extend(wire.to_le_bytes());
        out.extend(value);
    }
    Ok(())
}
