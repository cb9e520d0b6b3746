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

/// So many samples with `make totals`, which sets `ALPHEUS_TOTALS`, and a quarter otherwise: fewer
/// still detect what the tests of the tests get wrong.
fn samples(all: usize) -> usize {
    if std::env::var_os("ALPHEUS_TOTALS").is_some() { all } else { all / 4 }
}
