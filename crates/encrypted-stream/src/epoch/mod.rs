//! Membership epochs: a plan states who may take part, and a list who does, for some windows
//! only (`docs/protocol.md`, *Membership epochs*).
//!
//! | file | contents |
//! | --- | --- |
//! | [`caller`] | the service's side: the call, the attendances |
//! | [`listing`] | the list |
//! | [`records`] | what the service's store has of epochs |
//!
//! The plan that follows from a list is in [`epoch_list`](crate::epoch_list), the controller's
//! side in `controller/epochs.rs`. From a list follows one plan, whose
//! roster it is. Its windows run as those of any plan, and its id binds every message, mask and
//! opening of the epoch to the list.

pub mod caller;
mod listing;
mod records;

pub use caller::{Caller, EpochOutput, VerifiedAttendance};
pub use records::EpochProgress;
