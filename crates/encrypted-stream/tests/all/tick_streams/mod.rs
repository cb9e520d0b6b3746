//! Streams with one frame a tick at the service: what counts, what ends nothing, what is kept,
//! and that sums are those of the plaintext and of a schema with a frame for each event.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests may panic, and use numbers that they made themselves"
)]

mod authentic;
mod device;
mod equal;
mod retention;
mod sessions;
