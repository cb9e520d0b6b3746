//! Fuzzes the reader of schemas in Avro's JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::schema_avsc(data));
