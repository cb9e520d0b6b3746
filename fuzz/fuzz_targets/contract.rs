//! Fuzzes the reader of data contracts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::contract(data));
