//! Everything that the one binary is made of, as a library so that tests and
//! examples can run it in their own process.
//!
//! Here, and only here, the protocol crates meet storage, the network, clocks
//! and randomness. A room per command or service:
//!
//! - [`commands`]: the command line,
//! - [`failure`]: how a command fails, and with which exit code.

pub mod commands;
pub mod failure;
