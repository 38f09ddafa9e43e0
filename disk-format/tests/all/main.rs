//! The format, seen from outside: one program, since its parts take longer to link than to run.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod big_endian;
mod fixtures_v1;
mod header;
mod iden3;
mod params_kzg;
mod parsers;
mod properties;
mod read_back;
mod reader_from_format_md;
mod shared;
