//! To be filled: sums.
