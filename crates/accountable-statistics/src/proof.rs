//! To be filled: proof.
