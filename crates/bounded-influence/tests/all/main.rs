//! The integration tests of this crate. They are one binary, because each binary costs a link.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]

mod attacks;
mod blame;
mod forgeries;
mod honest;
mod simulation;
mod spread;
mod terms;
mod vectors;
mod world;
