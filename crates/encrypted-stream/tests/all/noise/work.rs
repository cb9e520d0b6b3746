//! Every draw does the same work: bytes used and calls made.

use crate::noise::laws::shares;
use crate::noise::stream::{Stream, Stuck};
use alpheus_policy::budget::RowNoise;

const ALL: [RowNoise; 5] = [
    RowNoise::Laplace { above: 1, below: 5 },
    RowNoise::Laplace { above: 1, below: 1 << 40 },
    RowNoise::Skellam { above: 50, below: 3, granule: 1 },
    RowNoise::Skellam { above: 1000, below: 1, granule: 1001 },
    RowNoise::Gaussian { variance: 10_000 },
];

#[test]
fn every_draw_uses_the_same_amount_of_randomness() {
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

/// Even where every comparison has the same outcome.
#[test]
fn extreme_draws_use_the_same_amount_of_randomness() {
    for noise in ALL {
        let shares = shares(noise, 4);
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut stuck = Stuck { byte, bytes: 0 };
            shares.draw(&mut stuck);
            assert_eq!(stuck.bytes, shares.bytes_per_draw(), "{noise:?} {byte}");
        }
    }
}

/// A share of a row takes some thousands of comparisons whatever the scale, and fewer
/// with more controllers.
#[test]
fn work_is_bounded() {
    let laplace = |below, n| shares(RowNoise::Laplace { above: 1, below }, n);
    assert!(laplace(10, 10).bytes_per_draw() < 20_000);
    assert!(laplace(1 << 50, 100).bytes_per_draw() < 60_000);
    assert!(laplace(1 << 50, 10_000).bytes_per_draw() < laplace(1 << 50, 100).bytes_per_draw());
    let skellam = shares(RowNoise::Skellam { above: 1 << 21, below: 1, granule: 1 }, 1);
    assert!(skellam.comparisons_per_draw() < 60_000);
}

/// One draw of the noise and seed named in the environment. The test below counts its
/// instructions.
#[test]
fn one_draw() {
    let named = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let noise = ALL[named("ALPHEUS_NOISE").unwrap_or(0) as usize];
    let mut stream = Stream::new(named("ALPHEUS_NOISE_SEED").unwrap_or(1));
    let words = shares(noise, 4).draw(&mut stream);
    println!("drawn: {}", words.expose()[0] as i64);
}

/// The number of machine instructions in a sampler, including the generator's, is the same
/// for every result. Counted with Valgrind's callgrind.
#[test]
#[ignore = "needs valgrind; cargo test -p alpheus-encrypted-stream --test all -- --ignored instructions"]
fn every_draw_takes_the_same_instructions() {
    for (number, noise) in ALL.iter().enumerate() {
        let mut drawn = std::collections::BTreeSet::new();
        let mut counts = std::collections::BTreeSet::new();
        for seed in 1..=6 {
            let (value, count) = instructions(number, seed);
            drawn.insert(value);
            counts.insert(count);
        }
        assert!(drawn.len() > 1, "{number}: {drawn:?}");
        assert_eq!(counts.len(), 1, "{number}: {drawn:?} {counts:?}");
        println!("{noise:?}: {counts:?} instructions, drawn {drawn:?}");
    }
}

fn instructions(noise: usize, seed: u64) -> (String, u64) {
    let output = std::process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*Sampler*draw*")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "noise::work::one_draw", "--nocapture", "--test-threads=1"])
        .env("ALPHEUS_NOISE", noise.to_string())
        .env("ALPHEUS_NOISE_SEED", seed.to_string())
        .output()
        .unwrap();
    let after = |text: &[u8], mark: &str| {
        let text = String::from_utf8_lossy(text).into_owned();
        let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("{mark}: {text}"));
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let collected = after(&output.stderr, "Collected :");
    (after(&output.stdout, "drawn:"), collected.parse().unwrap())
}
