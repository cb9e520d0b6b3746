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

/// One draw of the noise and seed that the environment names; by itself, that
/// anything is drawn at all. The test below counts its instructions.
#[test]
fn one_draw() {
    let named = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let noise = ALL[named("ALPHEUS_NOISE").unwrap_or(0) as usize];
    let mut stream = Stream::new(named("ALPHEUS_NOISE_SEED").unwrap_or(1));
    let words = shares(noise, 4).draw(&mut stream);
    println!("drawn: {}", words.expose()[0] as i64);
}

/// Machine instructions between entering and leaving a sampler, the generator's
/// included, are the same whatever is drawn. By Valgrind's callgrind.
#[test]
#[ignore = "needs valgrind; cargo test --test noise -- --ignored"]
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
        .args(["--exact", "work::one_draw", "--nocapture", "--test-threads=1"])
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
