//! To be filled: logarithm.
