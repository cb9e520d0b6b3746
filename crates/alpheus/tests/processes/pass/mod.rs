//! The access pass as processes over real sockets: issuer, verifiers, gateway,
//! clients; killed, wiped, stolen from, cut off.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod applications;
mod clocks;
mod crashes;
mod gates;
mod identities;
mod issuance;
mod long_runs;
mod nginx;
mod proxies;
mod service;
mod sessions;
mod strangers;
pub(crate) mod town;
