//! Fuzzes the decoder of encrypted events.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::frame(data));
