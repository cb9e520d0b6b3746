//! Fuzzes the messages of statistics' roles.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::statistics(data));
