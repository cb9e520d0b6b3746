//! The command line of Alpheus, as a library so that tests can run it in their own process.
//!
//! - [`check`]: whether files that people wrote are valid,
//! - [`commands`]: which commands there are,
//! - [`console`]: a deployment in a browser,
//! - [`errors`]: what failures mean,
//! - [`import`]: schemas and policies from data contracts of other standards,
//! - [`init`]: schemas, policies and a first answer from an unknown file of readings,
//! - [`sql`]: a prompt,
//! - [`up`]: a whole deployment on one machine.

pub mod check;
pub mod commands;
pub mod console;
pub mod errors;
pub mod import;
pub mod init;
pub mod sql;
pub mod up;
