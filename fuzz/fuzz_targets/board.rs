//! Fuzzes the decoders of a board's messages and rows.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::board(data));
