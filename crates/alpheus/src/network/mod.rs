//! What processes of a deployment share when they are on different machines:
//! who they are, how they reach each other, and what crosses the wire.
//!
//! - [`identity`]: the folder that makes a process somebody: TLS certificate and
//!   key, the authority's certificate, the deployment,
//! - [`role`]: what a certificate lets its holder do,
//! - [`answer`]: answers to requests, and refusals,
//! - [`client`]: requests over mutual TLS 1.3,
//! - [`wire`]: the bodies of requests and answers.
//!
//! The service listens; devices, controllers and consumers connect to it, so
//! that they can be anywhere. A controller listens for its owners and their
//! devices.

pub mod answer;
pub mod client;
pub mod identity;
pub mod role;
pub mod wire;
