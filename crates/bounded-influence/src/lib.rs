//! Bounded windows: one owner moves a row by no more than its bounds, and a controller by no more
//! than those of the owners that it is listed with, and the range of its noise.
//!
//! Shares, masks and rows are scalars. With its share a controller commits to each owner's values
//! and proves that they are in bounds. The row must be what the commitments open to. If it is not,
//! one round of messages names those that lied, or shows which pairs of controllers disagree.
//! `docs/protocol.md` has messages, equations and the argument.
//!
//! | file | contents |
//! | --- | --- |
//! | [`terms`] | cells, bounds, relations; what is refused |
//! | [`messages`] | what controllers sign |
//! | [`commit`] | commitments to owners' values and to noise, and their proofs |
//! | [`share`] | shares, and the pads that hide them |
//! | [`check`] | the checks of commitments, and of a row |
//! | [`blame`] | who made a row fail |
//!
//! The crate knows no streams and no plans: a plan's id and windows are bytes and numbers here. It
//! does no I/O, reads no clock and draws no randomness.

pub mod blame;
pub mod check;
pub mod commit;
mod form;
pub mod messages;
pub mod share;
pub mod terms;

#[cfg(test)]
mod toy;
