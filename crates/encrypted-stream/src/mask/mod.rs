//! Masks that hide each controller's token from the service and cancel in the
//! sum over the opening set (Zeph §3.4).
//!
//! A planner calls [`params::choose`] for a strategy, and every controller calls
//! [`params::check`] on it. A controller agrees on [`PairKeys`] with the roster.
//! Its [`Masker`] masks a window's token for a membership M and later opens it for
//! one set S. `docs/protocol.md`, "Masks", has the equations.

pub mod clique;
pub mod cuts;
pub mod dream;
pub mod epoch;
pub mod generation;
mod log_sum;
pub mod neighbours;
mod pads;
mod pairs;
pub mod params;
pub mod quorum;
pub mod set;
mod strategy;

pub use pads::{MaskError, MaskSetupError, Masker, MemberSet, Terms, WindowMembers};
pub use pairs::{OwnKey, PairKeyError, PairKeys, Storage};
pub use strategy::{Strategy, of_plan};
