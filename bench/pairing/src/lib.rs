//! The paper's own scheme (section 5), on BLS12-381. It is a baseline for benchmarks. It also
//! suits functions over many data sets, because it prepares their check once.
//!
//! Ciphertexts are the paper's, over the ring modulo the order q of the groups. They are
//! hashed to their value at a secret point. Tags hold the hash in the exponent, and pairings
//! check products. `docs/protocol.md` has the equations. This scheme is much slower than the
//! main one: `alpheus-bench tables` measures both.
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
