//! What the tests of several crates share.

pub mod skip;
pub mod vectors;
