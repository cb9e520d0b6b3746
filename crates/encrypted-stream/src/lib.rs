//! Encrypted streams with policy-checked continuous queries, after Zeph
//! (OSDI 2021), sans-IO: no module does I/O, reads a clock or draws randomness
//! of its own.
//!
//! `docs/protocol.md` has the notation, the equations and the departures from
//! the paper.

pub mod frame;
pub mod keys;
pub mod mask;
pub mod producer;
