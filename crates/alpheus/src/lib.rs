//! Everything that the one binary is made of, as a library so that tests and
//! examples can run it in their own process.
//!
//! Here, and only here, the protocol crates meet storage, the network, clocks
//! and randomness. A room per command or service; `bench` and `pass` are features, on by
//! default, so that a first look need not wait for them:
//!
//! - [`mod@bench`]: our figures beside floors, in one run,
//! - [`ca`]: a PKI to try things with,
//! - [`commands`]: the command line,
//! - [`console`]: a deployment in a browser,
//! - [`controller`]: a host of privacy controllers,
//! - [`demo`]: the guided first minutes,
//! - [`failure`]: how a command fails, and with which exit code,
//! - [`generate`]: plausible data for examples,
//! - [`network`]: who processes are, and how they reach each other,
//! - [`owner`]: what a person does about their streams,
//! - [`pass`]: access passes: issuer, verifier, gateway, client, gates,
//! - [`produce`]: a device,
//! - [`query`]: what a query would reveal, before anything runs,
//! - [`replay`]: a recorded file through the whole system,
//! - [`runtime`]: every role in one process, over a durable log,
//! - [`server`]: the service,
//! - [`service`]: health, metrics, logs, TLS and an orderly stop, for all of them,
//! - [`stats`]: accountable statistics: registrar, smoothers, aggregator, clients,
//! - [`table`]: an encrypted table on a server that is not trusted.

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "board")]
pub mod board;
pub mod ca;
pub mod commands;
pub mod console;
pub mod controller;
pub mod demo;
mod entropy;
pub mod failure;
pub mod files;
pub mod generate;
pub mod network;
pub mod owner;
#[cfg(feature = "pass")]
pub mod pass;
pub mod produce;
pub mod query;
pub mod read;
pub mod replay;
pub mod runtime;
pub mod server;
pub mod service;
#[cfg(feature = "stats")]
pub mod stats;
#[cfg(feature = "table")]
pub mod table;
