//! The roles of encrypted streams over a durable log: here the protocol meets storage, clocks and
//! randomness, but no network. Processes run one role each; [`embedded_deployment`] runs all of them in one.
//!
//! - [`manager`], [`service`], [`query_planner`], [`bin_widths`], [`results`]: the service: queries, plans, windows, rows,
//! - [`plane`]: who sums: the service itself, or a job beside it,
//! - [`controller_host`], [`membership_setup`], [`fences`]: controllers, their keys and what they promised,
//! - [`stream_producer`], [`devices`]: a device's streams,
//! - [`storage`], [`keys`], [`receipts`], [`ended_plans`]: what is stored, and for how long,
//! - [`counters`], [`refused_frames`], [`refusal_ids`]: what is counted and refused.

pub mod bin_widths;
pub mod controller_host;
pub mod counters;
pub mod devices;
pub mod embedded_deployment;
pub mod ended_plans;
pub mod engine_kind;
pub mod error;
mod exactness;
pub mod fences;
pub mod keys;
pub mod manager;
pub mod membership_setup;
mod owners;
pub mod plane;
pub mod query_planner;
mod readers;
pub mod receipts;
pub mod refusal_ids;
pub mod refused_frames;
pub mod results;
pub mod service;
mod service_error;
pub mod storage;
pub mod stream_producer;
