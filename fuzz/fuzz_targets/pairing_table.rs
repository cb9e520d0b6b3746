//! Fuzzes the decoders of the paper's own tables: elements of groups, blocks, answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::pairing_table(data));
