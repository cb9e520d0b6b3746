//! The proofs of a tuple: linear equations by `statement`, the interval by `range`.
//!
//! The range proof is bound to the proof of the equations, and both to the terms and the binding:
//! no part is valid in another tuple.

pub(crate) mod range;
pub(crate) mod statement;
