//! What must hold of tuples, sums and the key that opens them.

mod support;
mod tuples;
