//! Fuzzes the decoders of receipts, and of the parts of sums that they rest on.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::receipt(data));
