//! Fuzzes the reader of YAML documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::document_yaml(data));
