//! Budgets: sensitivity from schemas, noise from losses, and accounts that never exceed
//! their limits.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "tests fail by panicking, and their numbers fit"
)]

mod accounts;
mod guarantee;
mod noise;
mod sensitivity;
mod vectors;
