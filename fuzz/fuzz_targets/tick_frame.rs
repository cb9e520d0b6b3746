//! Fuzzes the decoder of tick frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::tick_frame(data));
