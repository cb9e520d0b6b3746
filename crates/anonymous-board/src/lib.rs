//! An anonymous board: a table that each member may write to once per epoch and that everybody
//! reads when the epoch ends. No server learns who wrote what. After Riposte (Corrigan-Gibbs,
//! Boneh, Mazières, IEEE S&P 2015), with tree DPFs (distributed point functions, see [`dpf`]) and
//! an audit that compares digests.
//!
//! Mode 1: two databases and an auditor, run by three operators. Secure while no two of them
//! collude. Mode 2: three to six equal servers. Secure while one of them follows the protocol.
//!
//! Sans-IO: no module does I/O, reads a clock or draws randomness. Servers share three verbs:
//! `handle_…(message, now)` for input, `poll(now)` for the passing of time, and `deadline()` for
//! when to poll next. Writers and readers have no timers: they evaluate a [`transcript`].
//! `docs/protocol.md` has the notation, the equations and the departures from the paper.
//!
//! | role | module |
//! | --- | --- |
//! | writer | [`writer`]: makes a write, checks that it counts, complains |
//! | database, equal server | [`database`]: takes writes, audits them, releases its share once |
//! | auditor | [`auditor`]: keeps the transcript, judges complaints, settles the set |
//! | reader | [`reader`]: checks a table and decodes it |
//! | who may write | [`admission`] |
//! | the distributed point function | [`dpf`], which stands alone |
//! | keys and audit of mode 2 | [`coalition`] |
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
mod secrets;
pub mod transcript;
pub mod writer;

pub use envelope::EnvelopeError;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
