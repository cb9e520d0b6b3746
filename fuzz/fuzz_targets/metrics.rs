//! Fuzzes the reader of captured OpenTelemetry metrics.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::metrics(data));
