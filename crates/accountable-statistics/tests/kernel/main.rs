//! What must hold of tuples, sums and the key that opens them.

mod batches;
mod sums;
mod support;
mod threshold;
mod tuples;
