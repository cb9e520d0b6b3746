//! Service and privacy controllers, window by window: honest runs, attacks, and
//! seeded runs in which everything goes wrong.

#![expect(unreachable_pub, clippy::unwrap_used, clippy::panic, reason = "a test")]

mod honest;
mod net;
mod world;
