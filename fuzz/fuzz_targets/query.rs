//! Fuzzes the reader of queries.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::query(data));
