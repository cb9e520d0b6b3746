//! The integration tests of this crate. They are one binary, because each binary costs a link.

mod attacks;
mod properties;
#[expect(clippy::duplicate_mod, reason = "the walkthrough is a program with a copy of its own")]
#[path = "../../examples/support/mod.rs"]
mod support;
mod vectors;
mod walkthrough;
