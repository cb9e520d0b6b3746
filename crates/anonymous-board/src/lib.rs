//! An anonymous board: a table of rows that each member may write once in an epoch
//! and everybody reads at its end, while no server learns who wrote what. After
//! Riposte (Corrigan-Gibbs, Boneh, Mazières, IEEE S&P 2015), with tree DPFs and an
//! audit by equality of digests.
//!
//! Mode 1: two databases and an auditor, run by three operators: secure while no two of
//! the three work together. Mode 2: three to six equal servers: secure while one of them
//! keeps to the protocol.
//!
//! Sans-IO: no module does I/O, reads a clock or draws randomness of its own.
//! `docs/protocol.md` has the notation, the equations and the departures.
//!
//! | role | module |
//! | --- | --- |
//! | writer | [`writer`]: makes a write, sees that it counts, complains |
//! | database, equal server | [`database`]: takes writes, audits them, gives its share once |
//! | auditor | [`auditor`]: keeps the transcript, hears complaints, settles the set |
//! | reader | [`reader`]: checks a table and reads it |
//! | who may write | [`admission`] |
//! | the distributed point function | [`dpf`], which stands alone |
//! | mode 2's keys and audit | [`coalition`] |
//! | rows and collisions | [`row`] |
//! | shared | [`configuration`], [`messages`], [`transcript`], [`error`] |

pub mod admission;
pub mod auditor;
pub mod coalition;
pub mod configuration;
pub mod database;
pub mod dpf;
mod envelope;
pub mod error;
pub mod messages;
pub mod reader;
pub mod row;
pub mod transcript;
pub mod writer;

pub use envelope::BadEnvelope;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
