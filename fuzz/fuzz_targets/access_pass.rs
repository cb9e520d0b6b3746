//! Fuzzes the decoders of clients' and gates' messages, of stamps and of pass files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::access_pass(data));
