//! Plans and refusals, from the text of a query to the checks of controllers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod accepted;
mod accurate;
mod bounded;
mod examples;
mod fixture;
mod noise;
mod populations;
mod refused;
mod releases;
mod suggested;
mod suggested_noise;
mod suggested_world;
mod totals;
mod verified;
