//! Schemas, policies, queries and plans: what may be learnt, and by whom.
//!
//! This crate never sees a key, a ciphertext or a person's value. It defines how
//! a schema is laid out in words ([`layout`]), what a query releases ([`plan`]),
//! and whether a policy allows it.

pub mod bounded_terms;
pub mod budget;
pub mod catalog;
pub mod columns;
pub mod comply;
pub mod decimal;
pub mod document;
pub mod editor;
#[cfg(feature = "query")]
#[cfg(feature = "query")]
pub mod explain;
mod fraction;
pub mod guarantee;
pub mod ids;
pub mod locks;
pub mod membership;
pub mod plan;
mod plan_noise;
#[cfg(feature = "query")]
pub mod planner;
pub mod policy;
pub mod privacy;
#[cfg(feature = "query")]
pub mod query;
pub mod quorum;
mod release;
pub mod schema;
pub mod select;
pub mod selection;
#[cfg(feature = "query")]
pub mod show;
pub mod sketch;
#[cfg(feature = "query")]
pub mod window_loss;

pub use schema::layout;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
