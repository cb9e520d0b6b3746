//! An encrypted table on an untrusted server. The owner keeps 32 bytes and a small index,
//! asks for sums over any rows, and checks each answer. The time to check does not depend
//! on the number of rows, only on how many starts of the owner appended and how many blocks were
//! rewritten.
//!
//! After Fiore, Gennaro, Pastro, *Efficiently Verifiable Computation on Encrypted Data*
//! (CCS 2014), for a designated verifier and without pairings. `docs/protocol.md` has
//! the equations and lists the departures.
//!
//! | role | module |
//! | --- | --- |
//! | owner | [`owner`]: appends, corrects, plans, totals sums |
//! | server | [`server`]: adds up stored blocks, without a key |
//! | verifier | [`verifier`]: verified sums, which alone can be decrypted |
//! | recovery | [`saved_state`]: the owner's records, sealed for the server |
//! | shared | [`messages`], [`parameters`], [`label`], [`layout`], [`planner`], [`ledger`], [`error`] |

mod arithmetic;
#[cfg(feature = "measure")]
pub mod baseline;
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
pub mod parameters;
pub mod planner;
pub mod ring;
mod sampling;
pub mod saved_state;
pub mod server;
mod spec;
mod tag;
#[cfg(test)]
mod vectors;
pub mod verifier;

pub use keys::TableKey;

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
