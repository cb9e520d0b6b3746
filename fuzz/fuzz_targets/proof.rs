//! Fuzzes the decoder and the check of proofs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::proof(data));
