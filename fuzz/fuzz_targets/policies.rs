//! Fuzzes the reader of owners' policies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::policies(data));
