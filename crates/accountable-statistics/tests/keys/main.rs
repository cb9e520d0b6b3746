//! A key is made though fewer than t members are away, silent, lie or crash; and never two.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod away;
mod crashes;
mod lies;
mod net;
