//! Noise: each share and each total to its distribution, honest shares alone to
//! the promised ε, and work that does not depend on what is drawn.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test's way to fail, and numbers it knows"
)]

mod laws;
mod pmf;
mod privacy;
mod stream;
mod totals;
mod vectors;
mod work;
