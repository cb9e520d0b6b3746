//! Plans and refusals, from the text of a query to the checks of controllers.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod accepted_queries;
mod accurate;
mod bounded_queries;
mod examples;
mod fixture;
mod noise;
mod populations;
mod refusals;
mod releases;
mod suggested_noise;
mod suggested_world;
mod suggestions;
mod totals;
mod verified_queries;
