//! A key that t of n hold.
