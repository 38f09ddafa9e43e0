//! The property of `tests/all/parsers/params_kzg.rs`, over inputs that libFuzzer finds.
#![no_main]

#[path = "../../tests/all/parsers/params_kzg.rs"]
mod parser;

libfuzzer_sys::fuzz_target!(|input: &[u8]| parser::property(input));
