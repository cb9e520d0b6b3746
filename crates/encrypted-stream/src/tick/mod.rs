//! One frame a tick: a device adds up its tick itself, and sends one authentic frame at its
//! end. `docs/protocol.md` has the protocol.
//!
//! A schema says whether its devices do that, or send the frames of [`frame`](crate::frame).
//!
//! - [`claim`]: what a frame states to the controller, under the stream's master secret.
//! - [`sums`]: the sum since the last anchor, and its Merkle root.
//! - [`frame`]: the bytes, and the MAC that the service checks.
//! - [`opening`]: the first frame of a session, signed by the device.
//! - [`ingest`]: the service's check that a frame is its device's.
//! - [`parts`]: the parts of a sum that a plan needs, and what connects them to the root.
//! - [`segment`]: a window's claims, and the key part and number of events that follow.

pub mod claim;
pub mod frame;
pub mod ingest;
pub mod opening;
pub mod parts;
pub mod segment;
pub mod sums;
