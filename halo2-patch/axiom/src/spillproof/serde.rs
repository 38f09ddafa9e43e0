//! Polynomials to and from bytes in a session: through fixed buffers, in stock's bytes.
//!
//! Layout: the number of values as a big-endian `u32`, then 32 bytes a value. In the raw formats these are a
//! column's own bytes. Memory: [`CHUNK_VALUES`] values, leased, and the engine's buffers.
//!
//! Stock's signatures have no errors: what the reader or the writer can't do is a panic there, and so it is
//! here.

use std::any::TypeId;
use std::fmt::Debug;
use std::io;

use ff::PrimeField;
use halo2curves::bn256::Fr;
use spillproof_commit::Scalar;
use spillproof_engine::column::{Column, Element, Placement, Writer};
use spillproof_engine::Session;

use super::convert::scalar;
use super::engine::session;
use super::or_panic;
use super::values::from_column;
use crate::helpers::SerdePrimeField;
use crate::poly::Polynomial;
use crate::SerdeFormat;

/// Values that are read at a time.
const CHUNK_VALUES: usize = if cfg!(test) { 8 } else { 1 << 13 };
/// Bytes of a value in every format.
const VALUE_BYTES: usize = 32;

/// Values that go to a column at a time.
const SCALARS_TOGETHER: usize = if cfg!(test) { 8 } else { 512 };

/// A value's bytes, as the engine keeps them.
type Raw = [u8; VALUE_BYTES];

/// Reads a polynomial into a column of the current session; `None`, with nothing read, if there is none for
/// this field.
///
/// Panics if the reader fails, if no domain has so many values, if a value is no field element (in the formats
/// that check), or if disk or budget have no room.
pub(crate) fn read<F: SerdePrimeField, B, R: io::Read>(
    reader: &mut R,
    format: SerdeFormat,
) -> Option<Polynomial<F, B>> {
    if TypeId::of::<F>() != TypeId::of::<Fr>() {
        return None;
    }
    let session = or_panic(session())?;
    let mut len = [0u8; 4];
    or_stocks_panic(reader.read_exact(&mut len));
    let len = u32::from_be_bytes(len) as usize;
    // Bytes of another format, taken for a length, would ask the disk for a hundred gigabytes.
    if !len.is_power_of_two() || len.trailing_zeros() > Fr::S {
        panic!(
            "spillproof: a polynomial of {len} values, which no domain has: the key may be in another format"
        );
    }
    let column = match format {
        SerdeFormat::Processed => read_processed::<F>(&session, reader, len),
        SerdeFormat::RawBytes => read_raw(&session, reader, len, |value| F::from_raw_bytes(value).is_some()),
        SerdeFormat::RawBytesUnchecked => read_raw(&session, reader, len, |_| true),
    };
    Some(from_column(or_panic(column.map_err(io::Error::other))))
}

fn read_processed<F: SerdePrimeField>(
    session: &Session,
    reader: &mut impl io::Read,
    len: usize,
) -> spillproof_engine::Result<Column<Scalar>> {
    let mut writer = Writer::scratch(session.workspace(), "polynomial", len as u64, Placement::Auto)?;
    let mut tile = Vec::with_capacity(SCALARS_TOGETHER);
    for index in 0..len {
        let value: F = or_stocks_panic(F::read(reader, SerdeFormat::Processed));
        tile.push(scalar(&value));
        if tile.len() == tile.capacity() || index + 1 == len {
            writer.push(&tile)?;
            tile.clear();
        }
    }
    writer.finish()
}

fn read_raw(
    session: &Session,
    reader: &mut impl io::Read,
    len: usize,
    is_valid: impl Fn(&Raw) -> bool,
) -> spillproof_engine::Result<Column<Scalar>> {
    let workspace = session.workspace();
    let mut writer = Writer::scratch(workspace, "polynomial", len as u64, Placement::Auto)?;
    let mut tile = Vec::with_capacity(SCALARS_TOGETHER);
    let mut chunk = workspace
        .budget
        .vec(len.min(CHUNK_VALUES), [0; VALUE_BYTES], "values being read")?;
    let mut left = len;
    while left > 0 {
        let values = &mut chunk[..left.min(CHUNK_VALUES)];
        or_stocks_panic(reader.read_exact(values.as_flattened_mut()));
        assert!(
            values.iter().all(&is_valid),
            "invalid field element: not less than modulus"
        );
        left -= values.len();
        // As scalars, whose frames carry their digests.
        for part in values.chunks(tile.capacity()) {
            tile.clear();
            tile.extend(part.iter().map(|value| Scalar::decode(value)));
            writer.push(&tile)?;
        }
    }
    writer.finish()
}

/// Writes what [`read`] reads: stock's bytes, from wherever the values are.
///
/// Panics if the writer fails, or if a column can't be read.
pub(crate) fn write<F: SerdePrimeField, B, W: io::Write>(
    poly: &Polynomial<F, B>,
    writer: &mut W,
    format: SerdeFormat,
) {
    let values = poly.backing();
    or_stocks_panic(writer.write_all(&(values.len() as u32).to_be_bytes()));
    let written = match (format, values.on_disk()) {
        (SerdeFormat::RawBytes | SerdeFormat::RawBytesUnchecked, Some(on_disk)) => on_disk
            .for_each_chunk_as::<Raw>([0; VALUE_BYTES], &mut |values| {
                or_stocks_panic(writer.write_all(values.as_flattened()));
                Ok(())
            })
            .map_err(io::Error::from),
        _ => values.for_each_chunk(&mut |values| {
            values
                .iter()
                .for_each(|value| or_stocks_panic(value.write(writer, format)));
            Ok(())
        }),
    };
    or_panic(written);
}

/// The value, where stock unwraps.
fn or_stocks_panic<T, E: Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("called `Result::unwrap()` on an `Err` value: {error:?}"),
    }
}
