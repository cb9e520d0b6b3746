//! Mode 2: s equal servers keep a table, and any s − 1 of them may collude.
//!
//! | module | holds |
//! | --- | --- |
//! | [`parity`] | keys for s servers from a pseudorandom generator alone |
//! | [`group`] | the paper's keys from a group, and the proofs that it left out: slow, for comparison |
//! | [`engine`] | the common interface of both |
//! | [`audit`] | a write's parts, and the openings of servers |
//! | [`gate`], [`field`] | a proof that a shared vector has at most one nonzero entry, and its arithmetic |
//!
//! Epochs, servers, writers and readers are those of mode 1.

pub mod audit;
pub mod engine;
pub mod field;
pub mod gate;
pub mod group;
pub mod parity;
