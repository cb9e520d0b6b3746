//! A lying server: every wrong answer gets the same error, and nothing is decrypted.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod answers;
mod blocks;
mod words;
mod world;
