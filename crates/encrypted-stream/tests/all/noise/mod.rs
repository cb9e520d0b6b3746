//! Noise: the distributions of each share and each total, the promised ε from honest
//! shares alone, and work that does not depend on the result.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test's way to fail, and numbers it knows"
)]

mod errors;
mod laws;
pub(crate) mod pmf;
mod privacy;
mod stream;
mod totals;
mod vectors;
mod work;
