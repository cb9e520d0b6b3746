//! Tests of the crate from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod bounds;
mod common;
mod completeness;
mod contracts;
mod evidence;
mod limits;
mod readers;
mod references;
mod refusals;
mod roles;
mod versions;
