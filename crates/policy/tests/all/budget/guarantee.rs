//! The guarantee and expected errors that are reported before a query runs.

use alpheus_policy::budget::{
    Calibration, Cost, Epsilon, NoiseShares, OutputError, RowNoise, RunningNoise, Spread,
    expected_errors, max_rho, max_share_variance, row_spread, share_variance,
};
use alpheus_policy::guarantee::Guarantee;
use alpheus_policy::ids::{ControllerId, SchemaId};
use alpheus_policy::plan::Integrity;
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan, PopulationBounds, Release};
use alpheus_policy::schema::PrivacyUnit;
use alpheus_policy::select::{
    Bins, HistogramOutput, MomentOutput, ReleasePlan, SelectItem, Statistic, SumLocation,
};
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp};

fn close(one: f64, other: f64, by: f64) {
    assert!((one / other - 1.0).abs() < by, "{one} {other}");
}

/// Standard deviation and the smallest 95 % bound, from the exact distribution of the sum of
/// `members` Pólya shares of shape 1/n.
fn exact(x: f64, shape: f64) -> (f64, f64) {
    let q = (-x).exp();
    let mut one = vec![(1.0 - q).powf(shape)];
    let reach = (40.0 / x) as usize;
    for k in 1..reach {
        one.push(one[k - 1] * q * (shape + k as f64 - 1.0) / k as f64);
    }
    let at = |d: usize| (d..reach).map(|i| one[i] * one[i - d]).sum::<f64>();
    let sizes: Vec<f64> = (0..reach).map(|d| if d == 0 { at(0) } else { 2.0 * at(d) }).collect();
    let variance: f64 = sizes.iter().enumerate().map(|(d, p)| (d * d) as f64 * p).sum();
    let mut sum = 0.0;
    let within = sizes
        .iter()
        .take_while(|p| {
            sum += **p;
            sum < 0.95
        })
        .count();
    (variance.sqrt(), within as f64)
}

fn of(honest: u32, members: u32) -> NoiseShares {
    NoiseShares { honest, members, windows: 1, lost: 0 }
}

#[test]
fn spreads_match_the_exact_distributions() {
    for (honest, members) in [(10, 10), (10, 15), (10, 30)] {
        let noise = RowNoise::Laplace { above: 1, below: 20 };
        let spread = row_spread(&noise, of(honest, members));
        let (deviation, within) = exact(0.05, f64::from(members) / f64::from(honest));
        close(spread.deviation, deviation, 1e-6);
        assert!(spread.within >= within - 1.0 && spread.within < 1.12 * within, "{within}");
    }
    let skellam = RowNoise::Skellam { above: 9, below: 1, granule: 3 };
    close(
        row_spread(&skellam, of(4, 8)).deviation,
        (81.0 * 2.0 + 8.0 * 8.0 / 12.0f64).sqrt(),
        1e-12,
    );
    let gaussian = RowNoise::Gaussian { variance: 100 };
    close(row_spread(&gaussian, of(4, 4)).deviation, 10.0, 1e-12);
    assert_eq!(row_spread(&RowNoise::None, of(1, 1)), Spread::default());
}

#[test]
fn the_spread_of_running_totals_grows_with_the_logarithm() {
    let noise = RunningNoise { seed_scale: 8 << 96, fraction_bits: 2, fine_bits: 96 };
    let spread = |windows, lost| {
        row_spread(&RowNoise::Running(noise), NoiseShares { windows, lost, ..of(9, 9) }).deviation
    };
    close(spread(1, 0), 3.0 * (4.0 + 1.0 / 192.0f64).sqrt(), 1e-9);
    close(spread(8760, 0), 6.0 * 3.9555f64.sqrt(), 0.001);
    // Nine lost shares with the variance of four seeds each, plus the nine totals.
    close(spread(8760, 36_000), 2.0 * (9.0 * 3.9555f64 + 36.0).sqrt(), 0.001);
}

/// Lost shares add at most their own variances to that of the total. This adds up the
/// weights of each seed.
#[test]
fn lost_shares_add_no_more_than_the_reported_variance() {
    let b = |k: u32| (0..k).fold(1.0, |own, k| own * f64::from(2 * k + 1) / f64::from(2 * k + 2));
    let weight = |place: Option<u32>, seed: u32| {
        place.and_then(|place| place.checked_sub(seed)).map_or(0.0, b)
    };
    let share =
        |(place, last): (u32, Option<u32>), seed| weight(Some(place), seed) - weight(last, seed);
    let variance = |of: &dyn Fn(u32) -> f64| (0..400).map(|seed| of(seed).powi(2)).sum::<f64>();
    let reported = |(place, last)| share_variance(place, last) as f64 / 1000.0;
    for lost in [(1, Some(0)), (100, Some(99)), (100, None), (200, Some(100)), (399, Some(9))] {
        let exact = variance(&|seed| share(lost, seed));
        assert!(exact <= reported(lost) && reported(lost) < exact + 0.002, "{lost:?} {exact}");
        assert!(share_variance(lost.0, lost.1) <= max_share_variance(lost.0));
    }
    let runs: [&[(u32, Option<u32>)]; 4] = [
        &[(5, Some(4)), (6, Some(5)), (7, Some(6))],
        &[(0, None), (40, Some(0)), (41, Some(40)), (200, Some(41))],
        &[(100, Some(20)), (150, Some(120)), (151, Some(150))],
        &[(200, Some(100))],
    ];
    for lost in runs {
        for total in [200, 201, 230, 399] {
            let left = |seed| {
                let lost: f64 = lost.iter().map(|own| share(*own, seed)).sum();
                weight(Some(total), seed) - lost
            };
            let max = reported((total, None)) + lost.iter().map(|own| reported(*own)).sum::<f64>();
            assert!(variance(&left) <= max, "{lost:?} {total}");
        }
    }
}

fn plan() -> ReleasePlan {
    let item = |alias: &str, statistic| SelectItem { alias: alias.to_owned(), statistic };
    let mean = |count| Statistic::Moments {
        output: MomentOutput::Mean,
        count,
        sum: 0,
        squares: None,
        scale: 1,
    };
    let bins = |output| Statistic::Histogram {
        output,
        bins: Bins {
            edges: vec![0, 1],
            cells: vec![vec![2], vec![2, 3]],
            min: 0,
            max: 9,
            scale: 0,
        },
    };
    ReleasePlan {
        cells: (0..4)
            .map(|row| SumLocation::Whole { row })
            .chain([SumLocation::Limbs { low: 2, high: 3 }])
            .collect(),
        items: vec![
            item("total", Statistic::Sum { sum: 0, count: None, scale: 1 }),
            item("mean", mean(1)),
            item("noisy_mean", mean(2)),
            item("bins", bins(HistogramOutput::Counts)),
            item("mode", bins(HistogramOutput::Mode)),
            item("wide", Statistic::Count { count: 4, of: None }),
        ],
    }
}

#[test]
fn errors_are_in_the_units_of_the_columns() {
    let gaussian = |variance| RowNoise::Gaussian { variance };
    let noise = Calibration {
        rows: vec![gaussian(10_000), RowNoise::None, gaussian(4), gaussian(12)],
        cost: Cost::Pure(Epsilon(1)),
        charges: Vec::new(),
    };
    let five = NoiseShares { honest: 5, members: 5, windows: 1, lost: 0 };
    let errors = expected_errors(&plan(), &noise.rows, five, &[f64::NAN, 50.0]);
    let deviation = |at: usize| errors[at].spread.map(|spread| spread.deviation);
    let expected =
        [Some(10.0), Some(0.2), None, Some(4.0), None, Some((4.0 + 12.0 * 2f64.powi(64)).sqrt())];
    for (at, expected) in expected.into_iter().enumerate() {
        match (deviation(at), expected) {
            (Some(one), Some(other)) => close(one, other, 1e-9),
            (one, other) => assert_eq!(one, other, "{at}"),
        }
    }
}

fn guarantee(cost: Cost, unit: PrivacyUnit) -> Guarantee {
    let spread = Some(Spread { deviation: 0.123_41, within: 12_345.6 });
    Guarantee {
        unit,
        window: Span::seconds(3600),
        cost,
        atto_delta: 1_000_000_000,
        running: false,
        controllers: 30,
        tolerated: 10,
        members: 28,
        errors: vec![
            OutputError { alias: "avg".to_owned(), spread, at_most: false },
            OutputError { alias: "mode".to_owned(), spread: None, at_most: false },
        ],
    }
}

#[test]
fn the_guarantee_is_followed_by_the_expected_errors() {
    let half = Cost::Pure(Epsilon::from_micro(500_000));
    let text = guarantee(half, PrivacyUnit::PersonPerWindow).to_string();
    let expected = "  privacy: Any conclusion drawn from a result is at most 1.65 times as likely, plus 1e-18 for sampling, as with any other values of everything one person sends in a window of 1h, whatever else is known (ε = 0.5), as long as at most 10 of 30 controllers collude with the service. This does not hide who takes part, when and with how many events, or what follows from that alone: populations, exclusions, and which windows open.
  expected error of each window, with 28 controllers:
    avg: within ±12400 in 95 of 100 cases (standard deviation 0.124)
    mode: depends on the data
";
    assert_eq!(text, expected);
}

/// A plan with 9 controllers, of which 3 may collude and 8 open.
#[test]
fn guarantees_are_computed_from_plans() {
    let plan = Plan {
        nonce: [0; 16],
        name: "rides".to_owned(),
        consumer: "service".to_owned(),
        sealed_to: None,
        schema: SchemaId([0; 32]),
        group: Vec::new(),
        window: Span::seconds(60),
        grace: Span(0),
        from: Timestamp(0),
        release: Release { rows: (0..4).map(|word| vec![word]).collect() },
        select: plan(),
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![0],
        population: PopulationBounds { min: 1, max: 9 },
        alpha: Fraction::THIRD,
        colluders: 1,
        dropout: Fraction::FIFTH,
        delta_exponent: 9,
        masks: MaskStrategy::Clique,
        epoch: None,
        roster: (0..9).map(|id| ControllerId([id; 32])).collect(),
        streams: Vec::new(),
    };
    let noise = Calibration {
        rows: vec![RowNoise::Gaussian { variance: 1000 }; 4],
        cost: Cost::Pure(Epsilon::from_micro(1)),
        charges: Vec::new(),
    };
    let guarantee = Guarantee::of(&plan, &noise, PrivacyUnit::Event, 0, 8, &[]);
    assert_eq!((guarantee.controllers, guarantee.tolerated, guarantee.members), (9, 3, 8));
    close(
        guarantee.errors[0].spread.unwrap().deviation,
        (1000.0 * 8.0 / 5.0f64).sqrt() / 10.0,
        1e-9,
    );
    assert!(guarantee.to_string().contains("at most 3 of 9 controllers"), "{guarantee}");
}

#[test]
fn concentrated_losses_are_reported_with_their_delta() {
    let epsilon = Epsilon::from_micro(500_000);
    let with_delta =
        guarantee(Cost::Concentrated(max_rho(epsilon, 1_000_000_000)), PrivacyUnit::Event);
    let reported = with_delta.epsilon().unwrap();
    assert!(reported <= epsilon && reported.0 > epsilon.0 - 1000);
    let text = with_delta.sentence();
    assert!(text.contains("any one event") && text.contains("plus δ = 1e-9"), "{text}");
    let nothing = Guarantee { atto_delta: 0, ..with_delta };
    assert!(nothing.sentence().starts_with("There is no guarantee"));
}

/// The number after these words.
fn number(text: &str, after: &str) -> f64 {
    let rest = text.split_once(after).unwrap().1;
    let end = rest.find([' ', ',']).unwrap();
    rest[..end].parse().unwrap()
}

/// With Gaussian noise of this ρ, the guarantee holds for every set of results. (It does not
/// claim that a result exceeds ε with probability below δ, which would be false.)
#[test]
fn the_reported_numbers_satisfy_the_guarantee() {
    for (micro, atto) in [(500_000, 1_000_000_000), (1_000_000, 1_499_999_999_999), (5_300_000, 7)]
    {
        let cost = Cost::Concentrated(max_rho(Epsilon::from_micro(micro), atto));
        let Cost::Concentrated(rho) = cost else { unreachable!() };
        let guarantee = Guarantee { atto_delta: atto, ..guarantee(cost, PrivacyUnit::Event) };
        let text = guarantee.sentence();
        let (factor, delta) = (number(&text, "at most "), number(&text, "plus δ = "));
        assert!(factor >= (micro as f64 * 1e-6 - 1e-9).exp() && delta >= atto as f64 * 1e-18);
        let (shift, step) = ((2.0 * rho.0 as f64 * 1e-24).sqrt(), 1e-4);
        let law = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * step;
        let (mut beyond, mut chance) = (0.0, 0.0);
        for x in (-100_000..200_000).map(|x| f64::from(x) * step) {
            let (one, other) = (law(x - shift), law(x));
            if one > factor * other {
                beyond += one - factor * other;
                chance += one;
            }
        }
        assert!(beyond <= delta, "{text}: {beyond}");
        assert!(chance > beyond, "{text}: {chance}");
    }
    let pure = guarantee(Cost::Pure(Epsilon::from_micro(7_000_000)), PrivacyUnit::Event);
    assert!(number(&pure.sentence(), "at most ") >= 7f64.exp());
}

/// With narrow noise integers matter: the reported interval is the smallest that contains
/// 95 %.
#[test]
fn narrow_noise_has_the_exact_interval() {
    for (above, below) in [(5, 2), (3, 2), (4, 1), (1, 1), (1, 2)] {
        for (honest, members) in [(1, 1), (3, 4), (10, 30)] {
            let spread = row_spread(&RowNoise::Laplace { above, below }, of(honest, members));
            let shape = f64::from(members) / f64::from(honest);
            let (_, smallest) = exact(above as f64 / below as f64, shape);
            assert_eq!(spread.within, smallest, "{above}/{below} {shape}");
        }
    }
    // 2q^(w + 1)/(1 + q) is beyond w.
    let q = (-2.5f64).exp();
    assert!(2.0 * q / (1.0 + q) > 0.05 && 2.0 * q * q / (1.0 + q) < 0.05);
    let one = row_spread(&RowNoise::Laplace { above: 5, below: 2 }, of(1, 1));
    assert_eq!(one.within, 1.0);
}

#[test]
fn the_guarantee_names_the_unit_of_protection() {
    let cost = Cost::Pure(Epsilon::from_micro(1));
    let period = guarantee(cost, PrivacyUnit::PersonPerPeriod(Span::seconds(86_400)));
    assert!(period.sentence().contains("in a window of 1h (windows add up to the budget of 1d)"));
    let running = Guarantee { running: true, tolerated: 0, ..period };
    let text = running.sentence();
    assert!(text.contains("drawn from all results") && text.contains("sends in 1d"), "{text}");
    assert!(text.contains("as long as no controller colludes"), "{text}");
}

/// Tails bound the exact distributions closely.
#[test]
fn tails_bound_the_noise() {
    let laplace = RowNoise::Laplace { above: 1, below: 100 };
    // P(|x| > T) = 2q^(T+1)/(1 + q), and 2^−64 = e^−44.36.
    let tail = laplace.tail(10, 10) as f64;
    assert!(tail / 100.0 > 44.36 + 2f64.ln() && tail / 100.0 < 48.0, "{tail}");
    assert_eq!(laplace.tail(10, 11), 2 * laplace.tail(10, 10));
    for variance in [1u64, 20, 1000] {
        let noise = RowNoise::Skellam { above: variance, below: 1, granule: 1 };
        let tail = (noise.tail(5, 5) - 5) as usize;
        let mean = variance as f64 / 2.0;
        let mut poisson = vec![(-mean).exp()];
        for k in 1..2000 {
            poisson.push(poisson[k - 1] * mean / k as f64);
        }
        let beyond = |t: usize| -> f64 {
            let own = |x: usize| poisson[x] * poisson[..x.saturating_sub(t)].iter().sum::<f64>();
            2.0 * (t..2000).map(own).sum::<f64>()
        };
        assert!(beyond(tail) < 2f64.powi(-62), "{variance} {tail}");
        assert!(beyond(tail / 4) > 1e-16, "{variance} {tail}");
    }
    assert_eq!(RowNoise::Gaussian { variance: 1 << 40 }.tail(1, 1), 31 + (92u128 << 40).isqrt());
    assert_eq!(RowNoise::None.tail(1, 9), 0);
}
