//! Floors: independent kernels that do only the unavoidable work. None uses our
//! crates.

#![expect(
    clippy::cast_possible_truncation,
    reason = "kernels over fixed small sizes, in which every cast fits"
)]

pub(crate) mod encrypt;
pub(crate) mod epoch;
pub(crate) mod log;
pub(crate) mod masks;
pub(crate) mod sums;
