//! Statistics over locations and times from samples that anyone may contribute. The server learns
//! each aggregate and nothing else: not who contributed, not a sample, and before an aggregate
//! closes not even how many samples there are. Still nobody can count more often than a quota or
//! with a value outside the interval. After PrivStats (Popa, Blumberg, Balakrishnan, Li, CCS
//! 2011), with lifted ElGamal in place of Paillier and a proof of everything.
//!
//! Sans-IO: no module does I/O, reads a clock or draws its own randomness. Roles share their
//! verbs: `handle…(message, now)` takes a message, `poll(now)` does what time demands,
//! `deadline()` says when to poll next. `docs/protocol.md` has the notation, the equations and the
//! departures.
//!
//! | what | module |
//! | --- | --- |
//! | which values are allowed | [`interval`] |
//! | one encrypted contribution, its binding and its proofs | [`tuple`](mod@tuple) |
//! | sums of contributions | [`sums`] |
//! | a key shared by t of n, and decryption with it | [`threshold`] |
//! | making such a key though some are absent or lie | [`keymaking`] |
//! | reading a decrypted sum | [`logarithm`] |
//! | what all parties agree on | [`configuration`], [`definition`], [`endorsement`] |
//! | credentials for clients | [`registrar`] |
//! | contributing | [`client`] |
//! | a smoother (an aggregation node): slots, checks, decryption | [`smoother`] |
//! | opening uploads, checking and publishing | [`aggregator`] |
//! | pure counts, without smoothers | [`tally`] |
//! | messages between parties | [`messages`], [`closing`], [`results`] |
//! | how a client decides how an aggregate ended | [`verdict`](mod@verdict) |
//! | uploads that do not count, with proof | [`disclosure`] |
//! | results that carry what smoothers have signed | [`publication`] |
//! | errors of the kernel and of the roles | [`error`], [`role_error`] |

pub mod aggregator;
pub mod client;
pub mod closing;
pub mod configuration;
pub mod definition;
pub mod disclosure;
pub mod endorsement;
pub mod error;
pub mod interval;
pub mod keymaking;
pub mod logarithm;
pub mod messages;
pub mod publication;
pub mod registrar;
pub mod results;
pub mod role_error;
mod slots;
pub mod smoother;
pub mod sums;
pub mod tally;
pub mod threshold;
pub mod tuple;
pub mod verdict;
