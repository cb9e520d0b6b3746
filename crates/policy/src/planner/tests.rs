//! Plans and refusals.
