//! Plans and refusals, from the text of a query to what controllers check.
#![cfg(feature = "query")]

mod accepted;
mod examples;
mod fixture;
mod populations;
mod refused;
mod releases;
