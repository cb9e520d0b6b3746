//! Mode 2: a table kept by s equal servers, of which any s − 1 may work together.
//!
//! | module | gives |
//! | --- | --- |
//! | [`parity`] | keys for s servers from a pseudorandom generator alone |
//! | [`group`] | the paper's keys from a group, and the proofs that it left out: slow, for comparison |
//! | [`engine`] | what both have in common |
//! | [`audit`] | a write's parts, and what servers open of them |
//! | [`gate`], [`field`] | that a shared vector has one place that is not zero, and the numbers for it |
//!
//! Epochs, servers, writers and readers are those of mode 1.

pub mod audit;
pub mod engine;
pub mod field;
pub mod gate;
pub mod group;
pub mod parity;
