//! Complying and refusing.
