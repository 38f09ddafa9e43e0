//! The property of `tests/all/parsers/iden3.rs`, over inputs that libFuzzer finds.
#![no_main]

#[path = "../../tests/all/parsers/iden3.rs"]
mod parser;
#[path = "../../tests/all/read_back.rs"]
mod read_back;

libfuzzer_sys::fuzz_target!(|input: &[u8]| parser::property(input));
