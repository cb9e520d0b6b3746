//! Fuzzes the decoder of every message between service and controllers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::messages(data));
