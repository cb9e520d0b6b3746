//! To be filled: interval.
