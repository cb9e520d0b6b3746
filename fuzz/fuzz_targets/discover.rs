//! Fuzzes the reader of unknown files of readings.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::discover(data));
