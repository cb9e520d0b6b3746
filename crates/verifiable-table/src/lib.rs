//! An encrypted table on a server that is not trusted: the owner keeps 32 bytes and a
//! small index, asks for sums over any rows, and checks each answer in a time that does
//! not depend on how many there are, only on how often the owner was started to append.
//!
//! After Fiore, Gennaro, Pastro, *Efficiently Verifiable Computation on Encrypted Data*
//! (CCS 2014), for a designated verifier and without pairings; `docs/protocol.md` has
//! the equations and says where it departs.
//!
//! | role | module |
//! | --- | --- |
//! | owner | [`owner`]: appends, corrects, plans, puts sums together |
//! | server | [`server`]: adds up what it stores, without a key |
//! | verifier | [`verifier`]: what was checked, and only then opened |
//! | shared | [`messages`], [`parameters`], [`label`], [`layout`], [`planner`], [`ledger`], [`error`] |

mod arithmetic;
mod cipher;
pub mod error;
#[cfg(test)]
mod forgery;
mod hash;
mod keys;
pub mod label;
pub mod layout;
pub mod ledger;
mod mask;
#[cfg(feature = "measure")]
pub mod measure;
pub mod messages;
pub mod owner;
mod packing;
#[cfg(feature = "pairing")]
pub mod pairing;
pub mod parameters;
pub mod planner;
pub mod ring;
mod sampling;
pub mod server;
mod tag;
#[cfg(test)]
mod vectors;
pub mod verifier;

pub use keys::TableKey;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
