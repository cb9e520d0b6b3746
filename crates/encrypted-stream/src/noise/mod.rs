//! Noise that nobody knows: shares of it, drawn by each controller once the
//! opening set is fixed, exact in integers and in work that does not depend on
//! what is drawn.
//!
//! A share is sized for the *honest floor* n: the shares of any n controllers
//! sum to the noise that was promised, and the rest only add to it.
//! `docs/noise.md` has the equations and what each sampler leaves out.
//!
//! What a controller does once S is fixed, with `noise` from the plan:
//!
//! ```
//! use alpheus_encrypted_stream::noise::Shares;
//! use alpheus_policy::budget::RowNoise;
//! use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! use std::num::NonZeroU32;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Δ/ε = 40 for the one row, and the check row, which takes none.
//! let noise = [RowNoise::Laplace { above: 1, below: 40 }, RowNoise::None];
//! let (opening_set, tolerated) = (9u32, 3);
//! let floor = opening_set.checked_sub(tolerated).and_then(NonZeroU32::new);
//! // Public tables: keep them for as long as plan and floor are the same.
//! let shares = Shares::new(&noise, floor.ok_or("nobody honest is in S")?)?;
//!
//! # let mut opening = vec![0u64; 2]; // b_p and the pads of the opening
//! let mut rng = ChaCha20Rng::from_seed([7; 32]); // a test's; real ones are seeded by the system
//! shares.draw(&mut rng).add_to(&mut opening); // then durable, then sent, never again
//! # assert_eq!(opening[1], 0);
//! # Ok(())
//! # }
//! ```

mod coins;
mod exponent;
mod gaussian;
mod keyed;
mod polya;
mod running;
mod share;
mod skellam;
mod table;
mod words;

pub use keyed::{generator, seed_generator};
pub use running::{Coefficients, Running, Seeds};
pub use share::Shares;
pub use words::NoiseWords;

/// What samplers leave out: every table, block and padded loop of a share is
/// cut where less than 2^−112 is left, and every comparison is within 2^−128
/// (at most 2^12 of them decide one share). A share's distribution is within
/// 2^−110 of the exact one, and what n controllers add to r rows within
/// `n · r · 2^−110`: this goes into δ.
pub const SHARE_SLACK_BITS: u32 = 110;

/// −log2 of what each part of a sampler may leave out.
const CUT: u32 = 112;

/// Noise that cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A scale, variance or granule of 0.
    #[error("noise without scale; check the plan's noise for zeros")]
    Zero,
    /// Beyond what words or tables hold.
    #[error("noise too wide for its words; raise ε or the granule, or lower the bounds")]
    TooWide,
    /// Discrete Gaussians this narrow do not sum to one.
    #[error("Gaussian shares too narrow to be summed; use Skellam noise")]
    TooNarrow,
    /// Running totals have seeds, not shares of each window's own.
    #[error("running totals are no noise of one window; draw them from seeds")]
    Running,
    /// A window beyond those that the running totals were sized for.
    #[error("window {asked} of running totals sized for {windows}; plan anew")]
    BeyondHorizon {
        /// Number of the window, from 0.
        asked: u32,
        /// How many there are.
        windows: u32,
    },
    /// Seeds of the window were not drawn yet, or not those of the one before.
    #[error("window {asked} of running totals whose seeds reach {drawn}; draw them in order")]
    NoSeeds {
        /// Number of the window, from 0.
        asked: u32,
        /// How many have seeds.
        drawn: u32,
    },
}
