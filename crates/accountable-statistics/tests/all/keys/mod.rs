//! A key is made while fewer than t members are absent, silent, lie or crash; and never two keys.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod absence;
mod crashes;
mod lies;
mod net;
