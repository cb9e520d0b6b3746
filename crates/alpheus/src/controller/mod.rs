//! `alpheus controller`: a host of privacy controllers as a process.

pub mod guard;
pub mod keystore;
