//! How far the passes over a large file are, for a person who waits.

/// Hears of the passes over all rows.
pub trait Watch {
    /// So many bytes more will be passed over.
    fn expects(&mut self, _bytes: u64) {}

    /// So many more were passed over.
    fn passed(&mut self, _bytes: u64) {}
}

/// Nobody waits.
impl Watch for () {}
