//! To be filled: tuple.
