//! Fuzzes the decoder of sums that are sealed to a consumer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::sealed_sum(data));
