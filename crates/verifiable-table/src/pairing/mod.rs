//! The paper's own scheme (section 5), on BLS12-381: to compare with, and for functions
//! that are asked of many data sets, since what checking one takes is computed once.
//!
//! Ciphertexts are the paper's, over the ring modulo the order q of the groups, hashed to
//! their value at a secret point; tags stand in the exponent, and a product of two is
//! checked with pairings. `docs/protocol.md` has the equations. It is much slower than all
//! else in this crate: `alpheus bench tables` measures both.
//!
//! | role | module |
//! | --- | --- |
//! | owner | [`owner`]: seals one data set, block by block |
//! | server | [`server`]: evaluates a function over it, without a key |
//! | verifier | [`verifier`]: prepares a function once, checks it over any data set |
//! | shared | [`messages`], [`parameters`] |

#[cfg(test)]
mod edges;
mod elements;
mod keys;
#[cfg(feature = "measure")]
pub mod measure;
pub mod messages;
pub mod owner;
pub mod parameters;
mod planner;
mod ring;
mod scalars;
pub mod server;
mod tag;
#[cfg(test)]
mod tests;
pub mod verifier;
