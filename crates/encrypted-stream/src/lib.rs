//! Being written.

pub mod mask;
