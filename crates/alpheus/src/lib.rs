//! The command line of Alpheus, as a library so that tests can run it in their own process.
//!
//! - [`backup`], [`restore`]: a process's state and identity, in one locked file, and back,
//! - [`check`]: whether files that people wrote are valid,
//! - [`commands`]: which commands there are,
//! - [`console`]: a deployment in a browser,
//! - [`demo`], [`generate`]: made-up owners in the whole system, and their data in files,
//! - [`doctor`]: what is wrong, and what fixes it,
//! - [`errors`]: what failures mean,
//! - [`evidence`]: what a service states for an impact assessment, with what proves it,
//! - [`import`]: schemas and policies from data contracts of other standards,
//! - [`init`]: schemas, policies and a first answer from an unknown file of readings,
//! - [`sql`]: a prompt,
//! - [`suggest`]: the smallest change with which a refused query is answered,
//! - [`up`]: a whole deployment on one machine,
//! - [`verify`]: rows against what controllers have signed.

pub mod backup;
pub mod ca;
pub mod check;
pub mod commands;
pub mod console;
pub mod demo;
pub mod doctor;
pub mod errors;
pub mod evidence;
mod folder;
pub mod generate;
pub mod import;
pub mod init;
pub mod restore;
#[cfg(feature = "sql")]
pub mod sql;
pub mod suggest;
pub mod up;
pub mod verify;
