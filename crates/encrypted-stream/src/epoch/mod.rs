//! Membership epochs: a plan states who may take part, and a list who does, for some windows
//! only (`docs/next.md`, *Epochs*).
//!
//! | file | contents |
//! | --- | --- |
//! | [`list`] | the plan of an epoch, and the digest of its list |
//! | [`caller`] | the service's side: the call, the attendances, the list |
//!
//! The controller's side is in `controller/epochs.rs`. From a list follows one plan, whose
//! roster it is. Its windows run as those of any plan, and its id binds every message, mask and
//! opening of the epoch to the list.

pub mod caller;
pub mod list;

pub use caller::{Caller, EpochOutput, VerifiedAttendance};
pub use list::{MAX_WINDOWS, check_terms, list_digest, plan_of};
