//! A keyed-verification anonymous credential. Its holder can present it at most L times in each
//! epoch. Presentations cannot be linked, and the tag of any further use exposes it. For L = 1,
//! re-ups carry a session from one epoch to the next for a fraction of a login's cost. After
//! Anon-Pass (Lee et al., IEEE S&P 2013) and the IETF draft on anonymous rate-limited
//! credentials, over ristretto255.
//!
//! Sans-IO: no module does I/O, reads a clock or draws its own randomness. `docs/protocol.md`
//! has the notation, the equations and the departures.
//!
//! | role | module |
//! | --- | --- |
//! | issuer | [`issuer`]: one credential for each account and period |
//! | holder | [`holder`]: requests, presents, re-ups, resends |
//! | verifier | [`verifier`]: logins with the key, re-ups without |
//! | login codes: a login and its re-ups in one message | [`codes`] |
//! | store of spent tags and sessions | [`sessions`] |
//! | presentations that anybody can check, and the proof that one is invalid | [`refutation`] |
//! | presentations counted by subject, not by epoch | [`subjects`] |
//! | shared | [`configuration`], [`schedule`], [`limit`], [`keys`], [`messages`], [`ledger`], [`error`] |

pub mod codes;
pub mod configuration;
pub mod error;
pub mod holder;
pub mod issuer;
pub mod keys;
pub mod ledger;
pub mod limit;
mod lookups;
pub mod messages;
pub mod refutation;
pub mod schedule;
pub mod sessions;
mod statements;
pub mod subjects;
pub mod verifier;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
