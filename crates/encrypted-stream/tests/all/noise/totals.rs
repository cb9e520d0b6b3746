//! Running totals by the square-root matrix mechanism.

use crate::noise::pmf::{Pmf, assert_follows, follows};
use crate::noise::samples;
use crate::noise::stream::{Stream, Stuck};
use alpheus_encrypted_stream::noise::{Coefficients, NoiseError, SeedTables, Seeds};
use alpheus_policy::budget::{RowNoise, RunningNoise};

/// σ_p·2^f = 6 ≥ 4·√2, the least that the grid allows. With f = 2, σ_p = 1.5.
const NARROW: Option<RunningNoise> =
    Some(RunningNoise { seed_scale: 6 << 96, fraction_bits: 2, fine_bits: 96 });

/// Seeds with none drawn yet.
pub(crate) fn fresh(noise: &[Option<RunningNoise>], windows: u32) -> Seeds {
    let row = |row: &Option<RunningNoise>| row.map_or(RowNoise::None, RowNoise::Running);
    SeedTables::new(&noise.iter().map(row).collect::<Vec<_>>(), windows).unwrap().seeds()
}

fn seeds(noise: &[Option<RunningNoise>], windows: u32, stream: &mut Stream) -> Seeds {
    let mut seeds = fresh(noise, windows);
    while seeds.windows() < windows {
        seeds.extend(stream).unwrap();
    }
    seeds
}

/// The noise in the totals at t = 0, 1, … where every share is sent.
fn totals(seeds: &Seeds, coefficients: &Coefficients, windows: u32) -> Vec<i64> {
    let mut sum = 0i64;
    let shares = (0..windows).map(|t| {
        let last = t.checked_sub(1);
        let share = seeds.share(coefficients, t, last).unwrap();
        sum = sum.wrapping_add(share.expose()[0] as i64);
        sum
    });
    shares.collect()
}

fn b(windows: u32) -> Vec<f64> {
    let units = Coefficients::new(windows);
    units.as_units().iter().map(|unit| *unit as f64 / 2f64.powi(127)).collect()
}

/// The number of runs of four windows: `ALPHEUS_TOTALS`, or 10,000, which is forty
/// thousand totals. A million take two minutes; `make totals` runs them.
fn run_count() -> usize {
    let configured = std::env::var("ALPHEUS_TOTALS").ok().and_then(|runs| runs.parse().ok());
    configured.unwrap_or(10_000)
}

const WINDOWS: usize = 4;
/// As `NARROW`, but with a coarser grid of seeds, so that a million draws are fast.
const QUICK: RunningNoise = RunningNoise { seed_scale: 6 << 8, fraction_bits: 2, fine_bits: 8 };

fn runs() -> Vec<[i64; WINDOWS]> {
    let some = |seed: u64| {
        let tables = SeedTables::new(&[RowNoise::Running(QUICK)], WINDOWS as u32).unwrap();
        let mut stream = Stream::new(seed);
        let run = |_| {
            let mut seeds = tables.seeds();
            (0..WINDOWS).for_each(|_| seeds.extend(&mut stream).unwrap());
            totals(&seeds, tables.coefficients(), WINDOWS as u32).try_into().unwrap()
        };
        (0..run_count() / 2).map(run).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let halves = [70, 71].map(|seed| scope.spawn(move || some(seed)));
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    })
}

/// Standard deviation of the total at t before rounding.
fn deviation(t: usize) -> f64 {
    6.0 * b(WINDOWS as u32)[..=t].iter().map(|b| b * b).sum::<f64>().sqrt()
}

/// A rounded normal variable: densities over unit cells, by Simpson's rule.
fn rounded_normal(deviation: f64) -> Pmf {
    let density = |x: f64| (-x * x / (2.0 * deviation * deviation)).exp();
    let scale = 1.0 / (deviation * std::f64::consts::TAU.sqrt());
    let cell = |k: i64| {
        let at = |i: i32| density(k as f64 - 0.5 + f64::from(i) / 8.0);
        let inner: f64 = (1..8).map(|i| if i % 2 == 0 { 2.0 } else { 4.0 } * at(i)).sum();
        (at(0) + inner + at(8)) / 24.0 * scale
    };
    Pmf { reach: 120, p: (-120..=120).map(cell).collect() }
}

/// Each total follows its law. Together they have the mechanism's covariance σ²·BBᵀ plus
/// a twelfth for rounding, and their low bits are uniform and independent.
#[test]
fn totals_follow_the_matrix_mechanism() {
    let (runs, b) = (runs(), b(WINDOWS as u32));
    for t in 0..WINDOWS {
        let at: Vec<i64> = runs.iter().map(|run| run[t]).collect();
        assert_follows(&at, &rounded_normal(deviation(t)));
    }
    let exact = |i: usize, j: usize| {
        let product: f64 = (0..=i.min(j)).map(|k| b[i - k] * b[j - k]).sum();
        36.0 * product + if i == j { 1.0 / 12.0 } else { 0.0 }
    };
    let count = runs.len() as f64;
    for (i, j) in (0..WINDOWS).flat_map(|i| (0..WINDOWS).map(move |j| (i, j))) {
        let sum: f64 = runs.iter().map(|run| (run[i] * run[j]) as f64).sum();
        let spread = (exact(i, i) * exact(j, j) + exact(i, j).powi(2)) / count;
        let off = (sum / count - exact(i, j)) / spread.sqrt();
        assert!(off.abs() < 4.0, "{i} {j}: {off}");
    }
    let mut bits = vec![0; 256];
    for run in &runs {
        bits[run.iter().fold(0, |joint, total| (joint << 2) | (total & 3) as usize)] += 1;
    }
    let off = (distance(&bits) - 255.0) / 510f64.sqrt();
    assert!(off.abs() < 4.0, "{off}");
}

/// That test can fail: with about as many samples it detects a deviation 3 % off.
#[test]
fn a_wrong_deviation_is_detected() {
    let tables = SeedTables::new(&[RowNoise::Running(QUICK)], 1).unwrap();
    let mut stream = Stream::new(73);
    let drawn = (0..50_000).map(|_| {
        let mut seeds = tables.seeds();
        seeds.extend(&mut stream).unwrap();
        totals(&seeds, tables.coefficients(), 1)[0]
    });
    let drawn: Vec<i64> = drawn.collect();
    assert!(follows(&drawn, &rounded_normal(6.0)).is_ok());
    assert!(follows(&drawn, &rounded_normal(6.18)).is_err());
}

/// Shares telescope: a controller that was left out catches up with its next share.
#[test]
fn the_next_share_makes_up_for_missed_ones() {
    let coefficients = Coefficients::new(9);
    let seeds = seeds(&[NARROW, NARROW, None], 9, &mut Stream::new(71));
    let share = |t, last| seeds.share(&coefficients, t, last).unwrap().expose().to_vec();
    let whole: Vec<u64> = share(8, None);
    for sent in [vec![0, 1, 2, 3, 4, 5, 6, 7, 8], vec![2, 8], vec![0, 5, 6, 8]] {
        let (mut sum, mut last) = (vec![0u64; 3], None);
        for t in sent {
            for (sum, own) in sum.iter_mut().zip(share(t, last)) {
                *sum = sum.wrapping_add(own);
            }
            last = Some(t);
        }
        assert_eq!(sum, whole);
    }
    assert_ne!(whole[0], whole[1]);
    assert_eq!(whole[2], 0);
}

/// The low bits of a row reveal nothing about the data or each other: the bits of
/// neighbouring totals below the unit are uniform and independent.
#[test]
fn low_bits_are_independent_of_the_data() {
    let off = (distance(&low_bits(NARROW, samples(4_000))) - 63.0) / 126f64.sqrt();
    assert!(off.abs() < 4.0, "{off}");
}

/// That test fails if the grid is too coarse for the noise.
#[test]
fn low_bits_reveal_a_coarse_grid() {
    let coarse = Some(RunningNoise { seed_scale: 1 << 94, fraction_bits: 0, fine_bits: 96 });
    assert!(distance(&low_bits(coarse, 500)) > 1000.0);
}

/// χ² to the uniform distribution.
fn distance(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum()
}

fn all_totals(noise: Option<RunningNoise>, windows: u32, runs: usize) -> Vec<Vec<i64>> {
    let (coefficients, mut stream) = (Coefficients::new(windows), Stream::new(72));
    let run = |_| totals(&seeds(&[noise], windows, &mut stream), &coefficients, windows);
    (0..runs).map(run).collect()
}

/// Joint counts of the two low bits of three neighbouring totals.
fn low_bits(noise: Option<RunningNoise>, runs: usize) -> Vec<u32> {
    let mut counts = vec![0; 64];
    for drawn in all_totals(noise, 3, runs) {
        let joint = drawn.iter().fold(0, |joint, total| (joint << 2) | (total & 3) as usize);
        counts[joint] += 1;
    }
    counts
}

/// λ_min of BBᵀ is above ½, so σ_p·2^f ≥ 4·√2 suffices. Computed by inverse iteration
/// with B⁻¹, whose coefficients are those of (1 − x)^½.
#[test]
fn the_least_eigenvalue_is_above_one_half() {
    let windows = 400;
    let mut inverse = vec![1.0f64];
    for k in 1..windows {
        let last = inverse[k - 1];
        inverse.push(last * (k as f64 - 1.5) / k as f64);
    }
    let lower = |v: &[f64]| -> Vec<f64> {
        (0..windows).map(|t| (0..=t).map(|i| inverse[t - i] * v[i]).sum()).collect()
    };
    let mut v: Vec<f64> = (0..windows).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let mut growth = 0.0;
    for _ in 0..60 {
        // The matrix is Toeplitz, so its transpose is the same map read backwards.
        let mut up: Vec<f64> = lower(&v);
        up.reverse();
        let mut next = lower(&up);
        next.reverse();
        growth = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = next.iter().map(|x| x / growth).collect();
    }
    let least = 1.0 / growth;
    assert!(least > 0.5 && least < 0.51, "{least}");
}

/// The design's figures for a year of hours, at ρ = 0.0244: 18 against 424.
#[test]
fn a_year_of_hours_has_noise_of_18_and_not_424() {
    let norm: f64 = b(8760).iter().map(|b| b * b).sum();
    let (square_root, fresh) = (norm, (8760f64).sqrt());
    assert!((fresh / square_root - 424.0 / 18.0).abs() < 0.2, "{}", fresh / square_root);
}

#[test]
fn seeds_are_drawn_in_order_up_to_the_horizon() {
    let coefficients = Coefficients::new(3);
    let mut seeds = fresh(&[NARROW], 3);
    let share = |seeds: &Seeds, t, last| seeds.share(&coefficients, t, last).err();
    assert_eq!(share(&seeds, 0, None), Some(NoiseError::NoSeeds { window: 0, seeded: 0 }));
    for _ in 0..3 {
        seeds.extend(&mut Stream::new(74)).unwrap();
    }
    let end = NoiseError::BeyondHorizon { window: 3, windows: 3 };
    assert_eq!(seeds.extend(&mut Stream::new(75)), Err(end));
    assert_eq!(share(&seeds, 2, Some(2)), Some(NoiseError::NoSeeds { window: 2, seeded: 3 }));
    assert_eq!(share(&seeds, 2, Some(0)), None);
    let short = Coefficients::new(2);
    let beyond = NoiseError::BeyondHorizon { window: 2, windows: 2 };
    assert_eq!(seeds.share(&short, 2, None).err(), Some(beyond));
}

#[test]
fn every_seed_uses_the_same_amount_of_randomness() {
    let mut stuck = Stuck { byte: 0xff, bytes: 0 };
    fresh(&[NARROW], 1).extend(&mut stuck).unwrap();
    let mut stream = Stream::new(76);
    for expected in [1, 2, 3] {
        fresh(&[NARROW], 1).extend(&mut stream).unwrap();
        assert_eq!(stream.bytes, expected * stuck.bytes);
    }
}
