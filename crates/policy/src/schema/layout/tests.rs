//! Layouts of small schemas. No digit of a sum over a window ever carries.

use super::super::{FieldStatistic as S, *};
use super::LayoutError;
use crate::schema::{Aggregation, Edges, Schema};
use crate::schema::{Attribute, AttributeKind, Capacity, Frames};
use alpheus_time::Span;
use proptest::prelude::*;

fn number(aggregations: Vec<Aggregation>, min: i64, max: i64) -> Attribute {
    Attribute {
        name: "x".into(),
        kind: AttributeKind::Number { scale: 0, min, max },
        unit: String::new(),
        optional: false,
        aggregations,
    }
}

fn of(attributes: Vec<Attribute>, population: u64, events: u64) -> Schema {
    Schema {
        name: "Test".into(),
        version: 1,
        tick: Span::seconds(10),
        capacity: Capacity { population, events, micro_rate: 0 },
        shared_count: true,
        frames: Frames::Events,
        metadata: Vec::new(),
        attributes,
        options: Vec::new(),
    }
}

fn grid(bins: u16) -> Edges {
    Edges::Uniform { lo: 0, width: 1, bins }
}

fn statistics(schema: &Schema) -> Vec<FieldStatistic> {
    Layout::of(schema).unwrap().fields.iter().map(|field| field.statistic).collect()
}

fn with_option(mut schema: Schema, option: &str) -> Schema {
    let yaml = format!(
        "name: T\nstreamAttributes:\n  - {{name: x, type: integer, min: 0, max: 100, aggregations: [histogram: {{lo: 0, width: 1, bins: 100}}]}}\nstreamPolicyOptions:\n  - {option}\n"
    );
    schema.options = Schema::from_yaml(&yaml).unwrap().options;
    schema
}

#[test]
fn attributes_share_a_count_unless_they_may_be_absent() {
    use Aggregation::{Mean, Sum, Variance};
    let mut optional = number(vec![Variance, Sum], 0, 9);
    optional.optional = true;
    let schema = of(vec![number(vec![Mean, Sum], 0, 9), optional], 10, 10);
    let expected = [S::Sum(0), S::Sum(1), S::SumOfSquares(1), S::Count(1), S::EventCount];
    assert_eq!(statistics(&schema), expected);
    let mut apart = schema.clone();
    apart.shared_count = false;
    assert_eq!(statistics(&apart)[1], S::Count(0));
    // A sum alone needs no count where no event lacks the value.
    assert_eq!(statistics(&of(vec![number(vec![Sum], 0, 9)], 10, 10)), [S::Sum(0)]);
}

#[test]
fn regression_takes_the_papers_five_words_and_one_for_r_squared() {
    for (r_squared, words) in [(false, 6), (true, 7)] {
        let y = number(vec![Aggregation::Regression { x: 1, r_squared }], 0, 9);
        let schema = of(vec![y, number(vec![], 0, 9)], 10, 10);
        assert_eq!(Layout::of(&schema).unwrap().words, words);
    }
}

#[test]
fn bins_share_words_as_widely_as_their_sums_allow() {
    let packing = |bins, population, events| {
        let schema =
            of(vec![number(vec![Aggregation::Histogram(grid(bins))], 0, 9)], population, events);
        Layout::of(&schema).unwrap().fields[0].packing
    };
    // 10^6 and a sign take 21 bits: three to a word.
    assert_eq!(packing(30, 1000, 1000), Packing::Digits { bits: 21, per_word: 3 });
    // Ten bins then take four words, and three to a word is still needed.
    assert_eq!(packing(10, 1000, 1000), Packing::Digits { bits: 21, per_word: 3 });
    // Two bins of 7 bits take one word, so each gets half of it.
    assert_eq!(packing(2, 8, 7), Packing::Digits { bits: 32, per_word: 2 });
    assert_eq!(packing(64, 1, 1), Packing::Digits { bits: 2, per_word: 32 });
    assert_eq!(packing(5, 1 << 20, 1 << 12), Packing::Whole);
    assert_eq!(packing(1, 1, 1), Packing::Whole);
}

/// The largest sum that fits in 32 bits with its sign, and the next.
#[test]
fn the_widest_digit_is_exact() {
    let packing = |events| {
        let schema = of(vec![number(vec![Aggregation::Histogram(grid(2))], 0, 9)], 1, events);
        Layout::of(&schema).unwrap().fields[0].packing
    };
    assert_eq!(packing((1 << 31) - 1), Packing::Digits { bits: 32, per_word: 2 });
    assert_eq!(packing(1 << 31), Packing::Whole);
}

#[test]
fn bins_that_an_option_sums_or_adds_noise_to_are_not_packed() {
    let schema = || of(vec![number(vec![Aggregation::Histogram(grid(100))], 0, 100)], 10, 10);
    let packed = |option: &str| {
        let layout = Layout::of(&with_option(schema(), option)).unwrap();
        matches!(layout.fields[0].packing, Packing::Digits { .. })
    };
    assert!(packed("{name: a, option: aggregate}"));
    assert!(packed("{name: a, option: aggregate, generalise: {attribute: x, width: 1}}"));
    assert!(!packed("{name: a, option: aggregate, generalise: {attribute: x, width: 5}}"));
    let budget = "budget: {perWindow: 1, total: 1, unit: event}";
    assert!(!packed(&format!("{{name: a, option: dp-aggregate, {budget}}}")));
}

#[test]
fn a_sum_without_a_bound_in_one_word_takes_two() {
    let squares = |max, events| {
        let schema = of(vec![number(vec![Aggregation::Variance], 0, max)], 1000, events);
        Layout::of(&schema).map(|layout| layout.field(S::SumOfSquares(0)).unwrap().packing)
    };
    assert_eq!(squares(1000, 1000), Ok(Packing::Whole));
    assert_eq!(squares(1 << 32, 1000), Ok(Packing::Limbs));
    assert_eq!(squares(i64::MAX, 1000), Err(LayoutError::SumTooLarge { attribute: 0 }));
    // The low halves alone overflow beyond 2^31 events.
    assert_eq!(squares(1 << 32, 1 << 22), Err(LayoutError::SumTooLarge { attribute: 0 }));
}

#[test]
fn the_bound_includes_noise() {
    // 9.2·10^18 / (10^3 · 10^3 · 10^12) leaves 9 without noise, which at
    // ε = 0.001 is 45,000 times one person's thousandth of it.
    let schema = of(vec![number(vec![Aggregation::Sum], 0, 1_000_000_000_000)], 1000, 1000);
    assert_eq!(Layout::of(&schema).unwrap().fields[0].packing, Packing::Whole);
    let budget = "budget: {perWindow: 0.001, total: 1, unit: event}";
    let noisy = with_option(schema, &format!("{{name: a, option: dp-aggregate, {budget}}}"));
    assert_eq!(Layout::of(&noisy).unwrap().fields[0].packing, Packing::Limbs);
}

#[test]
fn vectors_are_limited_by_the_block_counter() {
    let cells = |bins| {
        let bins = Aggregation::Sketch { depth: 1, width: bins };
        Layout::of(&of(vec![number(vec![bins], 0, 9)], 10, 10)).map(|layout| layout.words)
    };
    assert_eq!(cells(8191), Ok(8192));
    assert_eq!(cells(8192), Err(LayoutError::TooManyWords { words: 8193 }));
    let wide = Aggregation::Sketch { depth: 255, width: u16::MAX };
    assert!(Layout::of(&of(vec![number(vec![wide], 0, 9)], 10, 10)).is_err());
}

/// Adds up the digits of a word as a window does: modulo 2^64, including neighbours.
fn pack(sums: &[i128], bits: u8) -> u64 {
    sums.iter().zip(0u32..).fold(0u64, |word, (sum, digit)| {
        let low = u64::try_from(sum.rem_euclid(1 << 64)).unwrap();
        word.wrapping_add(low.wrapping_shl(digit * u32::from(bits)))
    })
}

/// Reads signed digits back, lowest first.
fn unpack(mut word: u64, bits: u8, count: usize) -> Vec<i128> {
    (0..count)
        .map(|_| {
            let digit = (word << (64 - bits)).cast_signed() >> (64 - bits);
            word = word.wrapping_sub(digit.cast_unsigned()).wrapping_shr(u32::from(bits));
            i128::from(digit)
        })
        .collect()
}

fn aggregation() -> impl Strategy<Value = Aggregation> {
    let bins = 1u16..200;
    prop_oneof![
        Just(Aggregation::Count),
        Just(Aggregation::Sum),
        Just(Aggregation::Mean),
        Just(Aggregation::Variance),
        bins.clone().prop_map(|bins| Aggregation::Histogram(grid(bins))),
        (bins, 0u8..=2).prop_map(|(bins, order)| Aggregation::By {
            attribute: 1,
            edges: grid(bins),
            order
        }),
        any::<i64>().prop_map(|at| Aggregation::Threshold { at }),
        Just(Aggregation::Regression { x: 1, r_squared: true }),
        (1u8..4, 1u16..40).prop_map(|(depth, width)| Aggregation::Sketch { depth, width }),
    ]
}

prop_compose! {
    fn schemas()(
        aggregations in prop::collection::vec(aggregation(), 0..6),
        bound in 0u32..40, low in any::<bool>(), optional in any::<bool>(),
        population in 1u64..1_000_000, events in 1u64..100_000,
    ) -> Schema {
        let max = (1i64 << bound) - 1;
        let mut first = number(aggregations, if low { -max } else { 0 }, max);
        first.optional = optional;
        of(vec![first, number(vec![], -5, 5)], population, events)
    }
}

proptest! {
    /// Sums up to the declared extremes fit in a digit, and no digit overlaps the next.
    #[test]
    fn no_digit_overflows_at_the_declared_extremes(schema in schemas(), signs in any::<u64>()) {
        let Ok(layout) = Layout::of(&schema) else { return Ok(()) };
        let events = u128::from(schema.capacity.population) * u128::from(schema.capacity.events);
        for field in &layout.fields {
            let Some(bound) = crate::layout::bounds::cell(&schema, field.statistic) else { continue };
            let most = i128::try_from(bound.window(events).unwrap()).unwrap();
            match field.packing {
                Packing::Whole => prop_assert!(most < 1 << 63),
                Packing::Limbs => {
                    prop_assert!(events << 32 < 1 << 63);
                    prop_assert!((most >> 32) < 1 << 63);
                }
                Packing::Digits { bits, per_word } => {
                    prop_assert!(u32::from(bits) * u32::from(per_word) <= 64);
                    let sums: Vec<i128> = (0..per_word)
                        .map(|digit| if signs >> digit & 1 == 0 { most } else { -most })
                        .collect();
                    prop_assert_eq!(unpack(pack(&sums, bits), bits, sums.len()), sums);
                }
            }
        }
    }

    /// Fields tile the words before the check word, and cells and words map to each other.
    #[test]
    fn every_word_and_cell_is_found(schema in schemas()) {
        let Ok(layout) = Layout::of(&schema) else { return Ok(()) };
        let mut next = 0;
        for field in &layout.fields {
            prop_assert_eq!(field.first, next);
            next += field.words();
            prop_assert_eq!(layout.field(field.statistic), Some(field));
            for cell in 0..field.cells {
                let place = field.place(cell).unwrap();
                prop_assert!(field.cells_of(place.word).contains(&cell));
                prop_assert_eq!(layout.field_at(place.word), Some(field));
            }
            prop_assert_eq!(field.place(field.cells), None);
        }
        prop_assert_eq!(layout.check_word(), next);
        prop_assert_eq!(layout.field_at(next), None);
    }
}
