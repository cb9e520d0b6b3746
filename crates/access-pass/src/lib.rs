//! The access pass: what subscribers and gateways do with an anonymous credential that is
//! presented once in each epoch. One pass gives one session at a time. The service cannot tell
//! whose session it is, nor link one login to another. After Anon-Pass (Lee et al., IEEE S&P
//! 2013).
//!
//! Sans-IO: no module does I/O, reads a clock or draws its own randomness. `docs/protocol.md`
//! has roles, messages, equations and departures.
//!
//! | role | module |
//! | --- | --- |
//! | a gateway's sessions: connections, requests, expiry | [`gateway`] |
//! | a client's connection, and when it re-ups | [`client`] |
//! | requests: their authentication, and the window against replay | [`request`], [`window`] |
//! | the pass file | [`mod@file`] |
//! | login codes for gates | [`code`] |
//! | the pass in the terms of Privacy Pass | [`private_token`] |
//! | shared | [`messages`], [`error`] |

pub mod client;
pub mod code;
pub mod error;
pub mod file;
pub mod gateway;
pub mod messages;
pub mod private_token;
pub mod request;
#[cfg(test)]
mod vectors;
pub mod window;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
