//! `alpheus server`: the service as a process. It holds ciphertext, public facts
//! and results, and no key to any data.
//!
//! - [`engine`]: policy manager and transformer, on a thread of their own,
//! - [`intake`]: frames of devices, into the log,
//! - [`outboxes`]: what waits for controllers,
//! - [`registry`]: controllers and streams, as they were introduced,
//! - [`api`]: the requests.

pub mod engine;
pub mod intake;
pub mod outboxes;
pub mod registry;
