//! To be filled: threshold.
