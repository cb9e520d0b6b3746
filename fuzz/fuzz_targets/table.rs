//! Fuzzes the decoders of tables' blocks, requests and answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::table(data));
