//! The embedded runtime: every role of an encrypted-stream deployment as a part
//! of one process, over a durable log.

pub mod devices;
pub mod embedded;
pub mod fence;
pub mod hosts;
pub mod keys;
pub mod manager;
mod owners;
pub mod plane;
pub mod planning;
mod readers;
pub mod results;
pub(crate) mod seats;
pub mod service;
pub mod storage;
pub mod watch;
