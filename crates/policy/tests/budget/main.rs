//! Budgets: sensitivity from schemas, noise from losses, and accounts that never
//! let more be spent than was allowed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "a test's way to fail, and numbers it knows"
)]

mod accounts;
mod explained;
mod noise;
mod sensitivity;
mod vectors;
