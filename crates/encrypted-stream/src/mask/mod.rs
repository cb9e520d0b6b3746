//! Masks that hide each controller's token from the service and cancel in the
//! sum over those that open together (Zeph §3.4).
//!
//! A planner [`params::choose`]s a strategy and every controller
//! [`params::check`]s it. A controller agrees on [`PairKeys`] with the roster;
//! its [`Masker`] masks the token of a window for a membership M and later opens
//! it for one set S. The equations stand in `docs/protocol.md`, "Masks".

pub mod clique;
pub mod cuts;
pub mod dream;
pub mod epoch;
mod lnsum;
pub mod neighbours;
mod pads;
mod pairs;
pub mod params;
pub mod quorum;
pub mod set;
mod strategy;

pub use pads::{Among, MaskRefusal, Masker, NoMasks, Round, Terms};
pub use pairs::{NoPairKeys, OwnKey, PairKeys, Storage};
pub use strategy::{Strategy, of_plan};
