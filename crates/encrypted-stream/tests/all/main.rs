//! The integration tests of this crate. They are one binary, because each binary costs a link.

#[expect(clippy::unwrap_used, reason = "a test's way to fail")]
mod bounded;
mod certificates;
mod devices;
mod encoding_vectors;
mod encodings;
mod error_codes;
mod frames;
mod job_summaries;
mod job_vectors;
mod known_answers;
mod list_vectors;
mod mask_vectors;
mod masks;
mod neighbour_masks;
mod noise;
mod packing;
mod pads;
mod placement_vectors;
mod producer;
mod protocol;
mod receipt_vectors;
mod seal_vectors;
mod sealed_sums;
mod statistics;
mod summoned_borders;
mod tick_producer;
mod tick_streams;
mod ticks;
mod transformer;
mod vectors;
mod walkthrough;
mod window_sums;
