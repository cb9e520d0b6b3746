//! The rules of gateway, requests, pass file and codes, each with a test that tries to break it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod codes;
mod connections;
mod files;
mod linkage;
mod names;
mod requests;
mod town;
