//! Noise that nobody knows. Each controller draws a share once the opening set is
//! fixed. The samplers use exact integers, and their work does not depend on the
//! result.
//!
//! A share is sized for the *honest floor* n: the shares of any n controllers sum to
//! the promised noise, and further shares only add to it. `docs/noise.md` has the
//! equations and the error bounds of each sampler.
//!
//! Once S is fixed, a controller does this with `noise` from the plan:
//!
//! ```
//! use alpheus_encrypted_stream::noise::Shares;
//! use alpheus_policy::budget::RowNoise;
//! use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
//! use std::num::NonZeroU32;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Δ/ε = 40 for one row; the check row has no noise.
//! let noise = [RowNoise::Laplace { above: 1, below: 40 }, RowNoise::None];
//! let (opening_set, tolerated) = (9u32, 3);
//! let floor = opening_set.checked_sub(tolerated).and_then(NonZeroU32::new);
//! // Public tables: keep them while plan and floor stay the same.
//! let shares = Shares::new(&noise, floor.ok_or("nobody honest is in S")?)?;
//!
//! # let mut opening = vec![0u64; 2]; // b_p and the pads of the opening
//! let mut rng = ChaCha20Rng::from_seed([7; 32]); // for tests; seed real ones from the system
//! shares.draw(&mut rng).add_to(&mut opening); // make it durable, send it, never draw again
//! # assert_eq!(opening[1], 0);
//! # Ok(())
//! # }
//! ```

mod coins;
mod exponent;
mod gaussian;
mod generators;
mod polya;
mod running_totals;
mod share;
mod skellam;
mod table;
mod words;

pub use generators::{generator, seed_generator};
pub use running_totals::{Coefficients, SeedTables, Seeds};
pub use share::Shares;
pub use words::NoiseWords;

/// The samplers' error, as −log2. Every table, block and padded loop of a share is cut
/// where less than 2^−112 is left. Every comparison is within 2^−128, and at most 2^12 of
/// them decide one share. So a share's distribution is within 2^−110 of the exact one,
/// and the noise that n controllers add to r rows within `n · r · 2^−110`. δ includes this.
pub const SHARE_SLACK_BITS: u32 = 110;

/// −log2 of the probability that each part of a sampler may leave out.
const CUT: u32 = 112;

/// Why noise cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// A scale, variance or granule of 0.
    #[error("the noise has no scale; check the plan's noise for zeros")]
    Zero,
    /// The noise exceeds the range of words or tables.
    #[error("the noise is too wide for its words; raise ε or the granule, or lower the bounds")]
    TooWide,
    /// Discrete Gaussians this narrow do not sum to a discrete Gaussian.
    #[error("the Gaussian shares are too narrow to be summed; use Skellam noise")]
    TooNarrow,
    /// Running totals have seeds instead of a share for each window.
    #[error("noise of running totals is not noise of one window; draw it from seeds")]
    Running,
    /// The window lies beyond the horizon of the running totals.
    #[error(
        "window {window} is beyond the {windows} windows of the running totals; make a new plan"
    )]
    BeyondHorizon {
        /// Number of the window, from 0.
        window: u32,
        /// Number of windows.
        windows: u32,
    },
    /// The window's seeds were not drawn yet, or windows are not in ascending order.
    #[error(
        "window {window} of running totals has no share: {seeded} windows have seeds; proceed in order"
    )]
    NoSeeds {
        /// Number of the window, from 0.
        window: u32,
        /// Number of windows with seeds.
        seeded: u32,
    },
}
