//! The distribution of each share, and of each sum of shares.

use crate::noise::pmf::{Pmf, assert_follows, follows};
use crate::noise::samples;
use crate::noise::stream::Stream;
use alpheus_encrypted_stream::noise::{NoiseError, Shares};
use alpheus_policy::budget::RowNoise;
use std::num::NonZeroU32;

const LAPLACE: RowNoise = RowNoise::Laplace { above: 1, below: 5 };

pub(crate) fn shares(noise: RowNoise, honest: u32) -> Shares {
    Shares::new(&[noise], NonZeroU32::new(honest).unwrap()).unwrap()
}

fn draws(shares: &Shares, count: usize, seed: u64) -> Vec<i64> {
    let mut stream = Stream::new(seed);
    (0..count).map(|_| shares.draw(&mut stream).expose()[0] as i64).collect()
}

/// Sums of `members` shares each.
fn sums(shares: &Shares, members: usize, count: usize, seed: u64) -> Vec<i64> {
    draws(shares, count * members, seed).chunks(members).map(|own| own.iter().sum()).collect()
}

#[test]
fn a_polya_share_is_a_difference_of_negative_binomials() {
    let law = Pmf::polya(0.1, (-0.2f64).exp(), 300);
    assert_follows(&draws(&shares(LAPLACE, 10), samples(1_000_000), 1), &law);
}

#[test]
fn a_lone_share_is_discrete_laplace() {
    let law = Pmf::polya(1.0, (-0.2f64).exp(), 300);
    assert!((law.at(7) - (0.1f64).tanh() * (-1.4f64).exp()).abs() < 1e-12);
    assert_follows(&draws(&shares(LAPLACE, 1), samples(100_000), 2), &law);
}

#[test]
fn polya_shares_sum_to_discrete_laplace() {
    let law = Pmf::polya(1.0, (-0.2f64).exp(), 300);
    assert_follows(&sums(&shares(LAPLACE, 7), 7, samples(100_000), 3), &law);
}

/// For scales of billions, checks only the coarse shape: quantiles of |x|.
#[test]
fn wide_shares_sum_to_discrete_laplace() {
    let noise = RowNoise::Laplace { above: 1, below: 3_000_000_000 };
    let drawn = sums(&shares(noise, 5), 5, samples(6_000), 4);
    let mut sizes: Vec<f64> = drawn.iter().map(|x| x.unsigned_abs() as f64).collect();
    sizes.sort_by(f64::total_cmp);
    for share in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
        let count = sizes.len() as f64;
        let bound = -3e9 * (1.0f64 - share).ln();
        let within = sizes.partition_point(|size| *size < bound) as f64;
        let off = (within - share * count) / (count * share * (1.0 - share)).sqrt();
        assert!(off.abs() < 4.0, "{share}: {off}");
    }
    // The parity of wide noise is a fair coin, so it hides the data's parity.
    let odd = drawn.iter().filter(|x| *x % 2 != 0).count() as f64;
    let count = drawn.len() as f64;
    assert!((odd - count / 2.0).abs() < 4.0 * (count / 4.0).sqrt(), "{odd} of {count}");
}

#[test]
fn skellam_shares_are_skellam_and_so_is_their_sum() {
    let noise = RowNoise::Skellam { above: 50, below: 3, granule: 1 };
    let law = |variance| Pmf::skellam(variance, 120);
    assert_follows(&draws(&shares(noise, 10), samples(1_000_000), 6), &law(5.0 / 3.0));
    assert_follows(&sums(&shares(noise, 10), 10, samples(200_000), 7), &law(50.0 / 3.0));
}

#[test]
fn noise_with_a_granule_is_uniform_within_it() {
    let noise = RowNoise::Skellam { above: 4, below: 1, granule: 5 };
    let unit = Pmf::skellam(4.0, 60);
    let p = (-300..=300i64).map(|x| unit.at((x + 2).div_euclid(5)) / 5.0).collect();
    assert_follows(&draws(&shares(noise, 1), samples(500_000), 8), &Pmf { reach: 300, p });
    let even = RowNoise::Skellam { above: 4, below: 1, granule: 4 };
    assert_eq!(Shares::new(&[even], NonZeroU32::MIN).err(), Some(NoiseError::Zero));
}

#[test]
fn gaussian_shares_are_discrete_gaussians() {
    for variance in [1, 2, 36] {
        let law = Pmf::gaussian(variance as f64, 200);
        let noise = RowNoise::Gaussian { variance };
        let drawn = draws(&shares(noise, 1), samples(10_000), 9 + variance as u64);
        assert_follows(&drawn, &law);
    }
}

#[test]
fn wide_enough_gaussian_shares_sum_to_a_discrete_gaussian() {
    let noise = RowNoise::Gaussian { variance: 60 };
    assert_follows(&sums(&shares(noise, 3), 3, samples(8_000), 50), &Pmf::gaussian(60.0, 300));
    let narrow = Shares::new(&[noise], NonZeroU32::new(5).unwrap());
    assert_eq!(narrow.err(), Some(NoiseError::TooNarrow));
}

/// The tests above can fail. They detect shares for twice the members, by their sum, with
/// fewer samples. They also detect a scale that is 6 % off.
#[test]
fn a_wrong_shape_and_a_wrong_scale_are_detected() {
    let law = Pmf::polya(1.0, (-0.2f64).exp(), 300);
    let halved = sums(&shares(LAPLACE, 14), 7, 10_000, 3);
    assert!(follows(&halved, &law).unwrap_err().contains("variance"));
    let narrow = RowNoise::Laplace { above: 106, below: 500 };
    assert!(follows(&sums(&shares(narrow, 7), 7, 30_000, 3), &law).is_err());
}

#[test]
fn rows_have_independent_noise_and_check_rows_have_none() {
    let noise = [LAPLACE, RowNoise::None, LAPLACE, RowNoise::None];
    let shares = Shares::new(&noise, NonZeroU32::MIN).unwrap();
    let mut stream = Stream::new(60);
    let mut differ = 0;
    for _ in 0..50 {
        let words = shares.draw(&mut stream);
        assert_eq!((words.expose()[1], words.expose()[3], words.rows()), (0, 0, 4));
        differ += u32::from(words.expose()[0] != words.expose()[2]);
        let mut rows = [1u64, 2, 3, 4];
        let first = words.expose()[0];
        words.add_to(&mut rows);
        assert_eq!((rows[0], rows[1], rows[3]), (first.wrapping_add(1), 2, 4));
    }
    assert!(differ > 30);
}

#[test]
fn invalid_noise_is_rejected_with_a_specific_error() {
    let refused = |noise| Shares::new(&[noise], NonZeroU32::MIN).err();
    assert_eq!(refused(RowNoise::Laplace { above: 0, below: 1 }), Some(NoiseError::Zero));
    assert_eq!(refused(RowNoise::Laplace { above: 1, below: 0 }), Some(NoiseError::Zero));
    assert_eq!(refused(RowNoise::Laplace { above: 1, below: 1 << 60 }), Some(NoiseError::TooWide));
    assert_eq!(refused(RowNoise::Gaussian { variance: 0 }), Some(NoiseError::Zero));
    let skellam = |above, below| RowNoise::Skellam { above, below, granule: 1 };
    assert_eq!(refused(skellam(0, 1)), Some(NoiseError::Zero));
    assert_eq!(refused(skellam(1, 0)), Some(NoiseError::Zero));
    assert_eq!(refused(skellam(1 << 30, 1)), Some(NoiseError::TooWide));
}
