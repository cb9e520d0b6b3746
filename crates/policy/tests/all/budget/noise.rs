//! The noise for a loss is exact, minimal, and never too small.

use crate::budget::sensitivity::{release, schema};
use alpheus_policy::budget::{
    Calibration, CalibrationError, Cost, Epsilon, Mechanism, NoiseRequest, Rho, RowNoise,
    calibrate, calibrate_running, fits, groups,
};
use alpheus_policy::layout::FieldStatistic;
use std::num::NonZeroU32;

const STATISTICS: [FieldStatistic; 3] =
    [FieldStatistic::Sum(0), FieldStatistic::Histogram(0, 1), FieldStatistic::Sum(1)];

fn request(mechanism: Mechanism, micro_epsilon: u64) -> NoiseRequest {
    NoiseRequest { mechanism, micro_epsilon, atto_delta: 1_000_000_000, events: 20 }
}

fn calibration(request: &NoiseRequest) -> Result<Calibration, CalibrationError> {
    let (schema, layout) = schema();
    let release = release(&layout, &STATISTICS);
    let groups = groups(&release, &schema, &layout).unwrap();
    calibrate(request, &groups, release.outputs())
}

#[test]
fn laplace_noise_is_exact_and_split_evenly() {
    let noise = calibration(&request(Mechanism::Laplace, 500_000)).unwrap();
    // ε/3 over sensitivities of 20 · 160, 20 · 2 and 20 · 500.
    let laplace = |below| RowNoise::Laplace { above: 1, below };
    assert_eq!(noise.rows[0], laplace(2 * 3 * 3200));
    assert!(noise.rows[1..9].iter().all(|row| *row == laplace(2 * 3 * 40)));
    assert_eq!(noise.rows[9], laplace(2 * 3 * 10_000));
    assert_eq!(noise.rows[10..], [RowNoise::None]);
    assert_eq!(noise.cost, Cost::Pure(Epsilon::from_micro(500_000)));
    let third = 166_666_666_666_666_667;
    let charges = [(0, Cost::Pure(Epsilon(2 * third))), (1, Cost::Pure(Epsilon(third)))];
    assert_eq!(noise.charges, charges);
}

#[test]
fn gaussian_noise_is_the_smallest_that_is_enough() {
    let noise = calibration(&request(Mechanism::Gaussian, 500_000)).unwrap();
    let (Cost::Concentrated(all), Cost::Concentrated(share)) = (noise.cost, noise.charges[1].1)
    else {
        panic!("{noise:?}");
    };
    let epsilon = Epsilon::from_micro(500_000);
    assert!(fits(all, epsilon, 1_000_000_000) && all.0 == 3 * share.0);
    assert!(!fits(Rho(all.0 + 3), epsilon, 1_000_000_000));
    let RowNoise::Gaussian { variance } = noise.rows[0] else { panic!("{noise:?}") };
    let (squared, unit) = (3200.0f64.powi(2), 1e-24);
    let exact = squared / (2.0 * share.0 as f64 * unit);
    assert!(variance as f64 >= exact * (1.0 - 1e-12) && variance as f64 <= exact + 1.5);
}

#[test]
fn skellam_noise_is_the_smallest_that_is_enough() {
    let noise = calibration(&request(Mechanism::Skellam, 500_000)).unwrap();
    let Cost::Concentrated(share) = noise.charges[1].1 else { panic!("{noise:?}") };
    for (row, l1, l2_squared) in [(0, 3200.0f64, 3200.0f64.powi(2)), (1, 40.0, 800.0)] {
        let RowNoise::Skellam { above, below: 1, granule } = noise.rows[row] else {
            panic!("{noise:?}");
        };
        let g = granule as f64;
        let (l1, l2) = if row == 0 {
            ((l1 / g).ceil(), (l1 / g).ceil().powi(2))
        } else {
            assert_eq!(granule, 1);
            (l1, l2_squared)
        };
        let rho = |v: f64| l2 / (2.0 * v) * (1.0 + 1.0 / v) + 1.5 * l1 / (v * v);
        let (v, share) = (above as f64, share.0 as f64 * 1e-24);
        assert!(rho(v) <= share && rho(v - 1.0) > share, "{row} {v}");
        assert!(above <= 1 << 21);
    }
    // Large sensitivities use granules, which barely widen the noise.
    let RowNoise::Skellam { granule, above, .. } = noise.rows[9] else { panic!("{noise:?}") };
    assert!(granule > 1 && granule % 2 == 1);
    let width = (above as f64).sqrt() * granule as f64;
    let least = 10_000.0 / (2.0 * share.0 as f64 * 1e-24).sqrt();
    assert!(width < 1.01 * least, "{width} {least}");
}

#[test]
fn requests_without_a_solution_have_specific_errors() {
    let refused = |request: NoiseRequest| calibration(&request).unwrap_err();
    assert_eq!(refused(request(Mechanism::Laplace, 0)), CalibrationError::NoEpsilon);
    let pure = |mechanism| NoiseRequest { atto_delta: 0, ..request(mechanism, 500_000) };
    assert_eq!(refused(pure(Mechanism::Gaussian)), CalibrationError::NoDelta);
    assert_eq!(refused(pure(Mechanism::Skellam)), CalibrationError::NoDelta);
    assert!(calibration(&pure(Mechanism::Laplace)).is_ok());
    let wide = NoiseRequest { events: 1 << 60, ..request(Mechanism::Laplace, 1) };
    assert_eq!(refused(wide), CalibrationError::TooWide);
    assert_eq!(refused(NoiseRequest { events: u128::MAX, ..wide }), CalibrationError::TooWide);
}

#[test]
fn running_totals_are_sized_for_the_minimum_population() {
    let (schema, layout) = schema();
    let release = release(&layout, &STATISTICS);
    let groups = groups(&release, &schema, &layout).unwrap();
    let request = request(Mechanism::Gaussian, 1_000_000);
    let sized = |honest: u32, touched| {
        let honest = NonZeroU32::new(honest).unwrap();
        calibrate_running(&request, &groups, release.outputs(), 8760, touched, honest).unwrap()
    };
    let noise = sized(10, 1);
    let row = noise.rows[0].unwrap();
    let Cost::Concentrated(share) = noise.charges[1].1 else { panic!("{noise:?}") };
    let rho = share.0 as f64 * 1e-24;
    let exact = (3200.0f64.powi(2) * 3.955_5 / (2.0 * rho) / 10.0).sqrt();
    let bits = i32::from(row.fraction_bits) + i32::from(row.fine_bits);
    let scale = row.seed_scale as f64 / 2f64.powi(bits);
    assert!((scale / exact - 1.0).abs() < 1e-3, "{scale} {exact}");
    assert!(noise.rows[10].is_none() && noise.slack_bits > 40, "{}", noise.slack_bits);
    // Four times the members halve the scale. Twice the windows double it.
    let quarter = sized(40, 1).rows[0].unwrap();
    let ratio = row.seed_scale as f64 / quarter.seed_scale as f64
        * 2f64.powi(i32::from(quarter.fine_bits) - i32::from(row.fine_bits));
    assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
    let twice = sized(10, 2).rows[0].unwrap();
    let ratio = twice.seed_scale as f64 / row.seed_scale as f64
        * 2f64.powi(i32::from(row.fine_bits) - i32::from(twice.fine_bits));
    assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
}
