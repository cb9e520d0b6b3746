//! What processes of a deployment share when they are on different machines:
//! who they are, how they reach each other, and what crosses the wire.
//!
//! - [`identity`]: the folder that makes a process somebody: TLS certificate and
//!   key, the authority's certificate, the deployment,
//! - [`role`]: what a certificate lets its holder do,
//! - [`answer`]: answers to requests, and refusals,
//! - [`door`]: who may ask what, and how much at a time,
//! - [`client`]: requests over mutual TLS 1.3,
//! - [`tls`]: whom a client takes for whom,
//! - [`wire`]: the bodies of requests and answers.
//!
//! The service listens; devices, controllers and consumers connect to it, so
//! that they can be anywhere. A controller listens for its owners and their
//! devices.

pub mod answer;
pub mod client;
pub mod door;
pub mod identity;
pub mod role;
pub mod tls;
pub mod wire;
