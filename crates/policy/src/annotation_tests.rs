//! Annotations in force and not.
