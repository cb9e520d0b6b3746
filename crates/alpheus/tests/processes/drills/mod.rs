//! Drills of whole deployments that take minutes, by the machine's clock. `drills/` runs each alone: elsewhere
//! other tests would take the time that it measures.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

#[cfg(feature = "pass")]
mod alerts;
#[cfg(feature = "pass")]
mod faults;
mod memory;
mod memory_group;
