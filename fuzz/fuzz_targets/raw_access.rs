//! Fuzzes the decoders of grants, of days' keys, and of events that are read with them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::raw_access(data));
