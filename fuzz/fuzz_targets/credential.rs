//! Fuzzes the decoder of every message between holder, issuer, verifier and store.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::credential(data));
