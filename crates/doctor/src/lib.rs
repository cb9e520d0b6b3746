//! Names the cause of a fault from facts, with the command that fixes it.
//!
//! [`diagnose`] is a function of [`Facts`] alone. Callers collect only what they may see: their
//! own files, who answers at an address, and what the service tells their role.
//!
//! - [`fault`]: the faults that are distinguished,
//! - [`facts`]: what was seen,
//! - [`diagnosis`]: what it means.
//!
//! # Privacy
//! Facts and findings name files, addresses, processes and queries. They hold no key, no person's value and no
//! owner's name.

pub mod diagnosis;
pub mod facts;
pub mod fault;

pub use diagnosis::diagnose;
pub use facts::Facts;
pub use fault::{Fault, Finding};
