//! Masks that hide each controller's token from the service and cancel in the
//! sum over those that open together (Zeph §3.4).

pub mod params;
pub mod quorum;
pub mod set;
