//! The command line of Alpheus, as a library so that tests can run it in their own process.
//!
//! - [`commands`]: which commands there are,
//! - [`console`]: a deployment in a browser.

pub mod commands;
pub mod console;
