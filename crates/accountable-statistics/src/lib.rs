//! Statistics about places and times from samples that anyone may contribute: the
//! server learns each aggregate and nothing else, not who contributed, not a sample,
//! and before an aggregate closes not even how many there are; yet nobody counts
//! more often than a quota or with a value outside its interval. After PrivStats
//! (Popa, Blumberg, Balakrishnan, Li, CCS 2011), with lifted ElGamal in place of
//! Paillier and everything proven.
//!
//! Sans-IO: no module does I/O, reads a clock or draws randomness of its own.
//! `docs/protocol.md` has the notation, the equations and the departures.
//!
//! | what | module |
//! | --- | --- |
//! | what a value may be | [`interval`] |
//! | one encrypted contribution and what it is bound to | [`tuple`](mod@tuple) |
//! | that it is well-formed | [`proof`] |
//! | sums of contributions | [`sums`] |
//! | a key that t of n hold, and decryption by it | [`threshold`] |
//! | making such a key though some are away or lie | [`keymaking`] |
//! | reading a decrypted sum | [`logarithm`] |
//! | who and what all agree on | [`configuration`], [`definition`], [`endorsed`] |
//! | credentials for clients | [`registrar`] |
//! | who contributes | [`client`] |
//! | slots, and decryption of what is agreed on | [`smoother`] |
//! | opens, checks and publishes | [`aggregator`] |
//! | pure counts, without smoothers | [`tally`] |
//! | all that crosses between parties | [`messages`], [`closing`], [`results`] |
//! | what a client may believe of an aggregate's end | [`verdict`](mod@verdict) |
//! | refusals | [`error`], [`refused`] |

pub mod aggregator;
pub mod client;
pub mod closing;
pub mod configuration;
pub mod definition;
pub mod endorsed;
pub mod error;
pub mod interval;
pub mod keymaking;
pub mod logarithm;
pub mod messages;
pub mod proof;
pub mod refused;
pub mod registrar;
pub mod results;
mod slots;
pub mod smoother;
pub mod sums;
pub mod tally;
pub mod threshold;
pub mod tuple;
pub mod verdict;
