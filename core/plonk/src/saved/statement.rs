//! What a witness says beside its columns, and what a key asks of a witness.
//!
//! The section `statement`, little-endian: version (`u32`), key (32 bytes, as in
//! [`CircuitDescription`](crate::CircuitDescription)), k, numbers of advice and of instance columns (`u32`
//! each), the number of values of each instance column (`u64` each), then these values (32 bytes each,
//! canonical).

use std::io::{self, Read};
use std::path::Path;

use spillproof_engine::budget::{Budget, LeasedVec};
use spillproof_engine::column::{BundleKind, Column, Kind, bundle_bytes};
use spillproof_format::{Curve, hex};

use super::bytes::ColumnReader;
use super::{SavedError, check_k};
use crate::description::{Element, FieldError};

/// The section's name.
pub(super) const STATEMENT: &str = "statement";
const VERSION: u32 = 1;
/// Bytes before the lengths of instance columns.
pub(super) const STATEMENT_HEAD_BYTES: usize = 4 + 32 + 3 * 4;
/// Bytes of an instance column's length.
pub(super) const LENGTH_BYTES: usize = 8;
/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 32;

/// What a witness belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementHead {
    /// The key, as in its description.
    pub key: Element,
    /// `2^k` rows.
    pub k: u32,
    /// Advice columns.
    pub advice_columns: u32,
    /// Instance columns.
    pub instance_columns: u32,
}

impl StatementHead {
    /// As bytes.
    pub fn encode(&self) -> [u8; STATEMENT_HEAD_BYTES] {
        let mut bytes = [0; STATEMENT_HEAD_BYTES];
        bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[4..36].copy_from_slice(&self.key);
        let numbers = [self.k, self.advice_columns, self.instance_columns];
        for (to, number) in bytes[36..].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`FieldError`] for another version, and for rows that no circuit has.
    pub fn decode(bytes: &[u8; STATEMENT_HEAD_BYTES]) -> Result<Self, FieldError> {
        let number = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        let version = number(0);
        if version != VERSION {
            return Err(FieldError {
                what: "version",
                offset: 0,
                value: version.to_string(),
                remedy: "1 is known: read the file with a newer spillproof",
            });
        }
        let k = check_k(number(36), 36)?;
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[4..36]);
        Ok(Self {
            key,
            k,
            advice_columns: number(40),
            instance_columns: number(44),
        })
    }
}

/// Values of a halo2's field, as bytes and back.
#[derive(Clone, Copy)]
pub struct Foreign<T> {
    /// Any value.
    pub zero: T,
    /// Its bytes.
    pub to_element: fn(&T) -> Element,
    /// The value of these bytes; none for a number that is not below the modulus.
    pub of_element: fn(&Element) -> Option<T>,
}

/// What every witness of a key is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessShape {
    /// What it says of the key.
    pub head: StatementHead,
    /// The most values that an instance column has.
    pub usable_rows: u64,
    /// The curve whose scalars it has.
    pub curve: Curve,
}

impl WitnessShape {
    /// What the file of one is.
    pub(super) fn kind(&self) -> BundleKind {
        kind_over(self.curve)
    }

    /// Whether columns and instances have the key's shape. `whose` they are is for errors.
    ///
    /// # Errors
    /// [`SavedError::Shape`].
    pub fn fits(
        &self,
        whose: &str,
        found: &StatementHead,
        lengths: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), SavedError> {
        let check = |what, found: u64, expected: u64, is_fine: bool| match is_fine {
            true => Ok(()),
            false => Err(SavedError::Shape {
                whose: whose.to_owned(),
                what,
                found,
                expected,
            }),
        };
        let equal = |what, found: u64, expected: u64| check(what, found, expected, found == expected);
        let expected = &self.head;
        equal("rows (as their logarithm)", found.k.into(), expected.k.into())?;
        equal(
            "advice columns",
            found.advice_columns.into(),
            expected.advice_columns.into(),
        )?;
        equal(
            "instance columns",
            lengths.len() as u64,
            expected.instance_columns.into(),
        )?;
        for length in lengths {
            let length = length as u64;
            check(
                "values in an instance column",
                length,
                self.usable_rows,
                length <= self.usable_rows,
            )?;
        }
        Ok(())
    }

    /// Whether the witness of a file is one of the key.
    ///
    /// # Errors
    /// [`SavedError::AnotherKey`], [`SavedError::Shape`].
    pub(super) fn is_of(
        &self,
        file: &Path,
        found: &StatementHead,
        lengths: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), SavedError> {
        if found.key != self.head.key {
            return Err(SavedError::AnotherKey {
                file: file.to_owned(),
                found: hex(&found.key),
                expected: hex(&self.head.key),
            });
        }
        self.fits(&file.display().to_string(), found, lengths)
    }

    /// The most bytes that the file of a witness has: that of public inputs in all rows.
    pub fn bytes_max(&self) -> u64 {
        let (rows, instance_columns) = (1 << self.head.k, u64::from(self.head.instance_columns));
        let values_bytes = LENGTH_BYTES as u64 + rows * VALUE_BYTES as u64;
        let statement_bytes = STATEMENT_HEAD_BYTES as u64 + instance_columns * values_bytes;
        bundle_bytes(statement_bytes, self.head.advice_columns.into(), rows)
    }
}

/// The file of a witness.
pub(super) const fn kind_over(curve: Curve) -> BundleKind {
    let kind = Kind::Witness;
    BundleKind { kind, curve }
}

/// The section `statement`.
pub(super) struct StatementReader<'p> {
    reader: ColumnReader,
    left_bytes: u64,
    path: &'p Path,
    at: u64,
}

impl<'p> StatementReader<'p> {
    pub(super) fn new(statement: &Column<[u8; 1]>, path: &'p Path) -> io::Result<Self> {
        Ok(Self {
            reader: ColumnReader::new(statement).map_err(io::Error::other)?,
            left_bytes: statement.len(),
            path,
            at: 0,
        })
    }

    fn refused(&self, what: &'static str, value: impl ToString, remedy: &'static str) -> io::Error {
        let value = value.to_string();
        let source = FieldError {
            what,
            offset: self.at,
            value,
            remedy,
        };
        self.field(source)
    }

    fn field(&self, source: FieldError) -> io::Error {
        SavedError::Field {
            file: self.path.to_owned(),
            section: STATEMENT,
            source,
        }
        .into()
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> io::Result<[u8; N]> {
        let Some(left_bytes) = self.left_bytes.checked_sub(N as u64) else {
            let value = format!("{} bytes long", self.left_bytes);
            return Err(self.refused(what, value, "the section is cut short: save the witness again"));
        };
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.left_bytes = left_bytes;
        self.at += N as u64;
        Ok(bytes)
    }

    pub(super) fn head(&mut self) -> io::Result<StatementHead> {
        StatementHead::decode(&self.take("the head")?).map_err(|source| self.field(source))
    }

    /// How many values instance columns have, which nothing has compared with the section's length.
    pub(super) fn lengths(&mut self, columns: u32) -> io::Result<Vec<usize>> {
        let mut lengths = Vec::new();
        for _ in 0..columns {
            let length = u64::from_le_bytes(self.take("the length of an instance column")?);
            lengths.push(length as usize);
        }
        Ok(lengths)
    }

    /// The values of instance columns, and the end of the section.
    pub(super) fn instances<T: Copy + Send + Sync>(
        &mut self,
        budget: &Budget,
        columns: u32,
        foreign: &Foreign<T>,
    ) -> io::Result<Vec<LeasedVec<T>>> {
        let mut instances = Vec::new();
        // The file alone says how many columns there are.
        let bytes = u64::from(columns) * size_of::<(usize, LeasedVec<T>)>() as u64;
        let lease = budget.lease(bytes, "lengths of instance columns");
        let _lengths = lease.map_err(io::Error::other)?;
        for length in self.lengths(columns)? {
            if length as u64 > self.left_bytes / VALUE_BYTES as u64 {
                return Err(self.refused(
                    "the length of an instance column",
                    length,
                    "more than the section has: save the witness again",
                ));
            }
            let values = budget.vec(length, foreign.zero, "public inputs");
            let mut values = values.map_err(io::Error::other)?;
            for value in values.iter_mut() {
                let repr = self.take("a public input")?;
                *value = (foreign.of_element)(&repr).ok_or_else(|| {
                    self.refused(
                        "a public input",
                        "not below the modulus",
                        "save the witness again",
                    )
                })?;
            }
            instances.push(values);
        }
        match self.left_bytes {
            0 => Ok(instances),
            more => Err(self.refused("the end", format!("{more} bytes more"), "save the witness again")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = StatementHead {
            key: [7; 32],
            k: 12,
            advice_columns: 3,
            instance_columns: 1,
        };
        let bytes = head.encode();
        assert_eq!(StatementHead::decode(&bytes), Ok(head));
        for (at, what) in [(0, "version"), (36, "k at offset 36")] {
            let mut bytes = bytes;
            bytes[at] = 200;
            let refused = StatementHead::decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains(what), "{refused}");
        }
    }
}
