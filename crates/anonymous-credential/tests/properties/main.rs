//! The rules of the credential, each with a test that tries to break it, and
//! what must hold for any order of events.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod anything;
mod batches;
mod codes;
mod holders;
mod issuing;
mod logins;
mod re_ups;
mod scans;
mod subjects;
#[path = "../../examples/support/mod.rs"]
mod support;
mod together;
mod town;
mod types;
mod unlinkable;
