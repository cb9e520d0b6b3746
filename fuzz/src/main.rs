//! Fuzzes the target in `ALPHEUS_FUZZ_TARGET`; `make fuzz` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::named(data));
