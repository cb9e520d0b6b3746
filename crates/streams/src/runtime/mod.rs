//! The roles of an encrypted-stream deployment as engines, and all of them in one process, over
//! a durable log.

pub mod controller_host;
pub mod counters;
pub mod devices;
pub mod embedded;
pub(crate) mod ended;
pub mod fences;
pub mod keys;
pub mod manager;
pub mod membership_setup;
mod owners;
pub mod plane;
pub mod planning;
pub mod producing;
mod readers;
pub mod receipts;
pub mod refusal_ids;
pub mod refused;
pub mod results;
pub mod service;
pub mod storage;
