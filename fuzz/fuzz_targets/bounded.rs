//! Fuzzes the decoders of bounded windows, and the check of contributions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::bounded(data));
