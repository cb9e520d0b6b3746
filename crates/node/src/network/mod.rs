//! What processes of a deployment share when they are on different machines:
//! who they are, how they reach each other, and what crosses the wire.
//!
//! - [`role`]: what a certificate lets its holder do,
//! - [`identity`]: the folder that makes a process somebody: TLS certificate and
//!   key, the authority's certificate, the deployment,
//! - [`error`], [`answer`]: answers to requests, and refusals,
//! - [`door`]: who may ask what, and how much at a time,
//! - [`revoked_certificates`]: certificates that are no longer let in,
//! - [`base`]: the address of a server,
//! - [`peer`]: who a client expects at the other end,
//! - [`client`], [`blocking_client`]: requests, for tasks and for threads,
//! - [`request_metrics`]: requests in metrics, and the form of refusals,
//! - [`probe`]: why there is no answer.
//!
//! The service listens; devices, controllers and consumers connect to it, so
//! that they can be anywhere. A controller listens for its owners and their
//! devices.

pub mod answer;
pub mod base;
pub mod blocking_client;
pub mod client;
mod connector;
pub mod door;
pub mod error;
pub mod identity;
pub mod peer;
pub mod probe;
pub mod request_metrics;
pub mod revocation_list;
pub mod revocations;
pub mod revoked_certificates;
pub mod role;
