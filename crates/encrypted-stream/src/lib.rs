//! Encrypted streams with policy-checked continuous queries, after Zeph (OSDI 2021).
//!
//! The crate is sans-IO: no module does I/O, reads a clock or draws its own randomness.
//! `docs/protocol.md` has the notation, the equations and the departures from the paper.
//!
//! - devices: [`producer`], [`encode`], [`frame`], [`tick`],
//! - sums: [`transformer`], [`sums`],
//! - opening of windows: [`controller`], [`coordinator`], [`mask`], [`noise`], [`bounded_terms`],
//! - who takes part: [`epoch`], [`epoch_list`], [`membership`], [`announced_plan`],
//! - what readers get: [`consumer`], [`decode`], [`receipt`], [`evidence`],
//! - signed statements: [`annotation`], [`certificate`], [`grant`], [`handover`], [`withdrawal`],
//! - what they share: [`messages`], [`inbox`], [`job`], [`keys`], [`ledger`], [`error`].

pub mod annotation;
pub mod announced_plan;
pub mod bounded_terms;
pub mod certificate;
pub mod consumer;
pub mod controller;
pub mod coordinator;
mod counts;
pub mod decode;
pub mod encode;
pub mod epoch;
pub mod epoch_list;
pub mod error;
pub mod evidence;
pub mod frame;
pub mod grant;
pub mod handover;
pub mod inbox;
pub mod job;
pub mod keys;
pub mod ledger;
pub mod mask;
pub mod membership;
pub mod messages;
pub mod noise;
pub mod producer;
pub mod receipt;
pub mod sums;
pub mod tick;
pub mod transformer;
pub mod withdrawal;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
