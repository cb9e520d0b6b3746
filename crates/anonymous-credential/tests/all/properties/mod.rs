//! The rules of the credential, each with a test that tries to break it, and what must hold for
//! any order of events.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod batches;
mod codes;
mod guards;
mod holders;
mod issuance;
mod joint;
mod logins;
mod random_histories;
mod re_ups;
mod scans;
mod subjects;
mod town;
mod types;
mod unlinkable;
