//! Verifiable tables as processes: owner and server over TLS, honest, lying and killed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod crashes;
mod guide;
mod lies;
mod merges;
#[cfg(feature = "object-store")]
mod objects;
mod real;
mod recordings;
mod recover;
mod rekeys;
mod requests;
mod verify;
pub(crate) mod world;
