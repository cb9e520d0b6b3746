//! The C interface: a producer of encrypted streams, and a client of anonymous passes.
//!
//! Everything is sans-IO. The caller brings times and carries bytes; only randomness is the system's.
//! `abi` is what C sees, and the only module with `unsafe` code. Everything else is safe, and knows
//! the protocol crates alone.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`abi`] | the functions and structures of `include/alpheus.h`, and the caller's memory |
//! | [`constants`] | the numbers that C passes and gets |
//! | [`codes`], [`refusal`] | how a call fails |
//! | [`home`] | which process a handle belongs to |
//! | [`randomness`] | where random numbers come from |
//! | [`shape`], [`values`], [`device`] | a schema, an event's values, a device's files |
//! | [`session`], [`outbox`] | a session, and the frames that wait |
//! | [`pass`] | a client of anonymous passes |

#[cfg(not(panic = "unwind"))]
compile_error!("a panic must not cross into C: build with `panic = \"unwind\"`");

pub mod abi;
pub mod codes;
pub mod constants;
pub mod device;
pub mod home;
pub mod outbox;
pub mod pass;
pub mod randomness;
pub mod refusal;
pub mod session;
pub mod shape;
pub mod values;
