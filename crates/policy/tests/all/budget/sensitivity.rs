//! How far one unit of protection moves each row, compared with all pairs of events.

use alpheus_policy::budget::{
    Change, NoiseShares, RowNoise, RunningNoise, SensitivityError, check_noise_fits, events_of,
    groups, windows_of,
};
use alpheus_policy::layout::{FieldStatistic, Layout};
use alpheus_policy::plan::Release;
use alpheus_policy::schema::{PrivacyUnit, Schema};
use alpheus_time::Span;

pub(crate) const SCHEMA: &str = "
name: Rides
capacity: { population: 1000, events: 20 }
streamAttributes:
  - { name: pulse, type: integer, min: 40, max: 200, aggregations: [var, { histogram: { lo: 40, width: 20, bins: 8 } }] }
  - { name: grade, type: [decimal, optional], scale: 1, min: -30, max: 20, aggregations: [var, { threshold: 0 }] }
  - { name: tired, type: boolean, aggregations: [any, count] }
  - { name: word, type: [string, optional], maxBytes: 8, aggregations: [{ sketch: { depth: 3, width: 16 } }] }
streamPolicyOptions:
  - { name: noisy, option: dp-aggregate, budget: { perWindow: 1, total: 10, delta: 1e-9, unit: event } }
";

pub(crate) fn schema() -> (Schema, Layout) {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    let layout = Layout::of(&schema).unwrap();
    (schema, layout)
}

/// A row for each word of these statistics, and the check row.
pub(crate) fn release(layout: &Layout, statistics: &[FieldStatistic]) -> Release {
    let mut rows = Vec::new();
    for statistic in statistics {
        let field = layout.field(*statistic).unwrap();
        rows.extend((0..field.words()).map(|offset| vec![field.first + offset]));
    }
    rows.push(vec![layout.check_word()]);
    Release { rows }
}

fn change(statistic: FieldStatistic) -> Option<(u128, u128)> {
    let (schema, layout) = schema();
    let found = groups(&release(&layout, &[statistic]), &schema, &layout).unwrap();
    assert!(found.len() <= 1);
    found.first().map(|group| (group.event.l1, group.event.l2_squared))
}

#[test]
fn each_statistic_moves_by_what_its_bounds_allow() {
    assert_eq!(change(FieldStatistic::Sum(0)), Some((160, 160 * 160)));
    let squares = 200 * 200 - 40 * 40;
    assert_eq!(change(FieldStatistic::SumOfSquares(0)), Some((squares, squares * squares)));
    // Absent or present, from −300 to 200 tenths; squares from 0.
    assert_eq!(change(FieldStatistic::Sum(1)), Some((500, 250_000)));
    assert_eq!(change(FieldStatistic::SumOfSquares(1)), Some((90_000, 90_000 * 90_000)));
    assert_eq!(change(FieldStatistic::Count(1)), Some((1, 1)));
    assert_eq!(change(FieldStatistic::Histogram(0, 1)), Some((2, 2)));
    assert_eq!(change(FieldStatistic::Sketch(3, 0)), Some((6, 6)));
}

/// Boundary events reveal them anyway, so they need no noise.
#[test]
fn event_counts_are_public() {
    assert_eq!(change(FieldStatistic::EventCount), None);
}

#[test]
fn rows_that_noise_cannot_protect_are_refused() {
    let (schema, layout) = schema();
    let refused = |release: &Release| groups(release, &schema, &layout).unwrap_err();
    let any = release(&layout, &[FieldStatistic::Sum(0), FieldStatistic::Any(2)]);
    assert_eq!(refused(&any), SensitivityError::RandomWords { row: 1 });
    // Otherwise the service could average away the noise of a value.
    let sum = layout.field(FieldStatistic::Sum(0)).unwrap().first;
    let bins = layout.field(FieldStatistic::Histogram(0, 1)).unwrap().first;
    let twice = Release { rows: vec![vec![sum], vec![sum]] };
    assert_eq!(refused(&twice), SensitivityError::Repeated { row: 1 });
    let overlap = Release { rows: vec![vec![bins, bins + 1], vec![bins + 1, bins + 2]] };
    assert_eq!(refused(&overlap), SensitivityError::Repeated { row: 1 });
    let mixed = Release { rows: vec![vec![sum, bins]] };
    assert_eq!(refused(&mixed), SensitivityError::NoField { row: 0 });
    let backwards = Release { rows: vec![vec![bins, sum]] };
    assert_eq!(refused(&backwards), SensitivityError::NoField { row: 0 });
    let beyond = Release { rows: vec![vec![9999]] };
    assert_eq!(refused(&beyond), SensitivityError::NoField { row: 0 });
}

#[test]
fn packed_rows_are_refused() {
    let text = SCHEMA.replace(
        "option: dp-aggregate, budget: { perWindow: 1, total: 10, delta: 1e-9, unit: event }",
        "option: aggregate",
    );
    let schema = Schema::from_yaml(&text).unwrap();
    let layout = Layout::of(&schema).unwrap();
    let packed = release(&layout, &[FieldStatistic::Histogram(0, 1)]);
    let refused = groups(&packed, &schema, &layout).unwrap_err();
    assert_eq!(refused, SensitivityError::Packed { row: 0 });
}

#[test]
fn a_person_contributes_all_events_of_all_streams() {
    let (schema, _) = schema();
    assert_eq!(events_of(PrivacyUnit::Event, &schema, 7), 1);
    assert_eq!(events_of(PrivacyUnit::PersonPerWindow, &schema, 3), 60);
    assert_eq!(events_of(PrivacyUnit::PersonPerPeriod(Span::seconds(9)), &schema, 0), 20);
    let moved = Change { l1: 2, l2_squared: 2 }.times(20).unwrap();
    assert_eq!((moved.l1, moved.l2_squared), (40, 800));
    assert_eq!(Change { l1: 1 << 100, l2_squared: 1 }.times(1 << 30), None);
}

#[test]
fn a_period_spans_all_windows_that_overlap_it() {
    let windows = |period, window| {
        windows_of(PrivacyUnit::PersonPerPeriod(Span::seconds(period)), Span::seconds(window))
    };
    assert_eq!((windows(60, 10), windows(10, 60), windows(65, 10)), (6, 2, 8));
    assert_eq!(windows_of(PrivacyUnit::PersonPerWindow, Span::seconds(10)), 1);
    assert_eq!(windows_of(PrivacyUnit::Event, Span::seconds(10)), 1);
}

/// Sums of 20,000 events of at most 200 and the noise must stay below 2^63.
#[test]
fn rows_that_cannot_hold_their_noise_are_refused() {
    let (schema, layout) = schema();
    let release = release(&layout, &[FieldStatistic::Sum(0)]);
    let wide = |below| {
        let noise = [RowNoise::Laplace { above: 1, below }, RowNoise::None];
        let shared = NoiseShares { honest: 5, members: 7, windows: 1, lost: 0 };
        check_noise_fits(&release, &noise, &schema, &layout, shared)
    };
    // Twice 46 scales, since 7 shares sized for 5 may be two sums.
    let room = ((1u128 << 63) - 20_000 * 200) / 2 / 46;
    assert_eq!(wide(room - 1), Ok(()));
    assert_eq!(wide(room + 1), Err(SensitivityError::TooWide { row: 0 }));
    // Totals hold all their windows, f bits finer.
    let totals = |windows, fraction_bits| {
        let own = RunningNoise { seed_scale: 6 << 96, fraction_bits, fine_bits: 96 };
        let noise = [RowNoise::Running(own), RowNoise::None];
        let shared = NoiseShares { honest: 5, members: 7, windows, lost: 0 };
        check_noise_fits(&release, &noise, &schema, &layout, shared)
    };
    assert_eq!(totals(1 << 17, 24), Ok(()));
    assert_eq!(totals(1 << 17, 25), Err(SensitivityError::TooWide { row: 0 }));
}

/// No pair of values of a small attribute moves the rows further than the bound, and one pair
/// reaches it.
#[test]
fn bounds_are_tight() {
    for (least, most, optional) in
        [(-3i128, 2i128, false), (-3, 2, true), (2, 5, false), (2, 5, true)]
    {
        let kind = if optional { "[integer, optional]" } else { "integer" };
        let text = format!(
            "name: T\ncapacity: {{ population: 10, events: 5 }}\nstreamAttributes:\n  - {{ name: a, type: {kind}, min: {least}, max: {most}, aggregations: [var, {{ threshold: 1 }}] }}\nstreamPolicyOptions:\n  - {{ name: n, option: dp-aggregate, budget: {{ perWindow: 1, total: 1, unit: event }} }}\n"
        );
        let schema = Schema::from_yaml(&text).unwrap();
        let layout = Layout::of(&schema).unwrap();
        let rows: [fn(i128) -> Vec<i128>; 3] =
            [|x| vec![x], |x| vec![x * x], |x| if x >= 1 { vec![x, 0] } else { vec![0, x] }];
        let threshold = FieldStatistic::Threshold { of: 0, aggregation: 1, order: 1 };
        let statistics = [FieldStatistic::Sum(0), FieldStatistic::SumOfSquares(0), threshold];
        for (row, statistic) in rows.into_iter().zip(statistics) {
            let found = groups(&release(&layout, &[statistic]), &schema, &layout).unwrap();
            let bound = found[0].event;
            let absent = optional.then(|| vec![0; row(least).len()]);
            let inputs: Vec<_> = (least..=most).map(row).chain(absent).collect();
            let moves = inputs.iter().flat_map(|one| inputs.iter().map(move |other| (one, other)));
            let (mut l1, mut l2) = (0, 0);
            for (one, other) in moves {
                let distances = one.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
                l1 = l1.max(distances.clone().sum());
                l2 = l2.max(distances.map(|d| d * d).sum());
            }
            assert!(l1 <= bound.l1 && l2 <= bound.l2_squared, "{statistic:?} {least} {most}");
            if statistic != threshold {
                assert_eq!((l1, l2), (bound.l1, bound.l2_squared), "{statistic:?} {least} {most}");
            }
        }
    }
}
