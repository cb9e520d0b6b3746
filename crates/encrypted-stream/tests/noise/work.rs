//! The work of a draw is that of any other: bytes taken, calls made.

use crate::laws::shares;
use crate::stream::{Stream, Stuck};
use alpheus_policy::budget::RowNoise;

const ALL: [RowNoise; 5] = [
    RowNoise::Laplace { above: 1, below: 5 },
    RowNoise::Laplace { above: 1, below: 1 << 40 },
    RowNoise::Skellam { above: 50, below: 3, granule: 1 },
    RowNoise::Skellam { above: 1000, below: 1, granule: 1001 },
    RowNoise::Gaussian { variance: 10_000 },
];

#[test]
fn every_draw_takes_the_same_randomness() {
    for noise in ALL {
        let shares = shares(noise, 4);
        let expected = shares.bytes_per_draw();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let mut stream = Stream::new(seed);
            seen.insert(shares.draw(&mut stream).expose()[0]);
            assert_eq!((stream.bytes, stream.calls), (expected, expected / 16), "{noise:?}");
        }
        assert!(seen.len() > 5, "{noise:?}");
    }
}

/// Also where every comparison falls to one side.
#[test]
fn extremes_take_the_same_randomness() {
    for noise in ALL {
        let shares = shares(noise, 4);
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut stuck = Stuck { byte, bytes: 0 };
            shares.draw(&mut stuck);
            assert_eq!(stuck.bytes, shares.bytes_per_draw(), "{noise:?} {byte}");
        }
    }
}

/// The bound on work: a share of a release's row is some thousands of
/// comparisons whatever the scale, and fewer the more controllers share it.
#[test]
fn work_is_bounded() {
    let laplace = |below, n| shares(RowNoise::Laplace { above: 1, below }, n);
    assert!(laplace(10, 10).bytes_per_draw() < 20_000);
    assert!(laplace(1 << 50, 100).bytes_per_draw() < 60_000);
    assert!(laplace(1 << 50, 10_000).bytes_per_draw() < laplace(1 << 50, 100).bytes_per_draw());
    let skellam = shares(RowNoise::Skellam { above: 1 << 21, below: 1, granule: 1 }, 1);
    assert!(skellam.comparisons_per_draw() < 60_000);
}
