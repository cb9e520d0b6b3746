//! Fuzzes the reader of schemas in YAML.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::schema_yaml(data));
