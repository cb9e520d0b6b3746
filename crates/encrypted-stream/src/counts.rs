//! Counts and positions as messages hold them.

/// A count as 32 bits. Plans and rosters are bounded so that it fits.
pub(crate) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
