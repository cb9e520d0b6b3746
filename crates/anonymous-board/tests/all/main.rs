//! The integration tests of this crate. They are one binary, because each binary costs a link.

mod coalition;
mod malice;
mod properties;
mod vectors;
mod walkthrough;
