//! Properties of tuples, sums and the key that opens them.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod batches;
mod ceremonies;
mod sums;
mod support;
mod threshold;
mod tuples;
