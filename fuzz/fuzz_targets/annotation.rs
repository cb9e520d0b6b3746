//! Fuzzes the reader of annotations.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::annotation(data));
