//! The chassis of every process: what services and commands share, and no protocol.
//!
//! Lowest layer first; a module knows only those above it in this list:
//!
//! - [`errors`]: the ids of failures, and what they mean,
//! - [`failure`]: how a command fails, and with which exit code,
//! - [`entropy`], [`clock`], [`files`]: the operating system's randomness, time and files,
//! - [`key_exchange`]: what TLS agrees on its keys by,
//! - [`slots`]: a file whose entries are overwritten in place, so that what is locked under them is gone,
//! - [`proxy`]: a SOCKS proxy for all connections of the process,
//! - [`card`]: the public, signed file that pins a deployment,
//! - [`backup`]: copies of a process's state and identity, encrypted,
//! - [`fence`], [`ledger`]: a durable ledger, and the file that exposes an older copy of it,
//! - [`settings`]: configuration from a file, the environment and flags,
//! - [`service`]: health, metrics, logs, TLS, listeners and an orderly stop,
//! - [`engine`]: a role on its own thread,
//! - [`network`]: who processes are, and how they reach each other,
//! - [`note`](mod@note): messages on standard error, in whole lines,
//! - [`local_time`]: times for people, and for programs,
//! - [`retry`]: when a failed attempt is repeated,
//! - [`start_clock`], [`state_owner`]: whether the clock can be right, and whose a state is, before a process touches it,
//! - [`globals`]: the options that every command understands,
//! - [`listeners`]: serves the routers of a process until it stops,
//! - [`pki`]: a small certificate authority for trials and tests,
//! - [`error_ids`](mod@error_ids): the ids of the errors of all of the above.

pub mod backup;
pub mod card;
pub mod clock;
pub mod engine;
pub mod entropy;
pub mod error_ids;
pub mod errors;
pub mod failure;
pub mod fence;
pub mod files;
pub mod globals;
pub mod key_exchange;
pub mod ledger;
pub mod listeners;
pub mod local_time;
pub mod network;
pub mod note;
pub mod pki;
pub mod proxy;
pub mod retry;
pub mod service;
pub mod settings;
pub mod slots;
pub mod start_clock;
pub mod state_owner;

/// This program, as processes of a deployment name it to each other and in backups.
pub const BUILD: &str = concat!("alpheus/", env!("CARGO_PKG_VERSION"));
