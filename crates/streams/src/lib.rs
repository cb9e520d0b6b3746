//! Encrypted streams as processes and commands. Here, and in the other service crates, a
//! protocol meets storage, the network, clocks and randomness. The roles without network are in
//! `stream-runtime`.
//!
//! - [`deployment`], [`wire`]: the deployment file and the messages between processes,
//! - [`ingest_keys`]: the keys by which the service accepts frames of ticks,
//! - [`quota`](mod@quota): how much of a stream is taken in a day,
//! - [`server`]: the service; [`controller`]: a host of privacy controllers,
//! - [`assumed_owners`], `statement`: who is planned for without a service, and what is asked,
//! - [`owner`], [`produce`], [`query`], [`read`]: the commands of owners, devices and consumers,
//! - [`replay`]: recorded data in the whole system,
//! - [`ca`]: what an authority for trials signs,
//! - [`error_ids`]: the ids of errors.

pub mod assumed_owners;
pub mod ca;
pub mod controller;
pub mod deployment;
pub mod error_ids;
pub mod ingest_keys;
pub mod links;
pub mod owner;
pub mod policy_refusal;
pub mod produce;
pub mod query;
pub mod quota;
pub mod read;
pub mod replay;
pub mod server;
pub mod settings;
pub mod statement;
pub mod wire;
