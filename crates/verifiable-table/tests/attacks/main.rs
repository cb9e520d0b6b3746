//! A server that lies, in every way that the protocol note lists: each wrong answer
//! yields the one error, and nothing is decrypted.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "../../examples/support/mod.rs"]
mod support;

mod answers;
mod blocks;
mod words;
mod world;
