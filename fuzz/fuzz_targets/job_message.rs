//! Fuzzes the decoders of messages to and from the Flink job.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| alpheus_fuzz::job_message(data));
