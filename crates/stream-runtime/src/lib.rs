//! The roles of encrypted streams over a durable log: here the protocol meets storage, clocks and
//! randomness, but no network. Processes run one role each; [`embedded`] runs all of them in one.
//!
//! - [`manager`], [`service`], [`planning`], [`results`]: the service: queries, plans, windows, rows,
//! - [`plane`]: who sums: the service itself, or a job beside it,
//! - [`controller_host`], [`membership_setup`], [`fences`]: controllers, their keys and what they promised,
//! - [`producing`], [`devices`]: a device's streams,
//! - [`storage`], [`keys`], [`receipts`], [`ended`]: what is stored, and for how long,
//! - [`counters`], [`refused`], [`refusal_ids`]: what is counted and refused.

pub mod controller_host;
pub mod counters;
pub mod devices;
pub mod embedded;
pub mod ended;
pub mod engine_kind;
pub mod error;
mod exactness;
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
mod service_error;
pub mod storage;
