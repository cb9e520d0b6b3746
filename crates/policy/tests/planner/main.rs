//! Plans and refusals, from the text of a query to what controllers check.
#![cfg(feature = "query")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod accepted;
mod examples;
mod fixture;
mod noise;
mod populations;
mod refused;
mod releases;
mod totals;
