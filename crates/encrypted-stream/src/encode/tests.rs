//! Tests of each encoding, its errors, and the requirements on a layout.

use super::*;
use alpheus_policy::layout::{Field, FieldStatistic as Of, Packing, PairMoment};
use alpheus_policy::schema::{Aggregation, Attribute, Capacity, Edges, Frames};
use alpheus_policy::sketch::SketchHash;
use alpheus_time::Span;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

const X: u16 = 0;
const Y: u16 = 1;
const FLAG: u16 = 2;
const PAGE: u16 = 3;

fn attribute(name: &str, kind: AttributeKind, aggregations: Vec<Aggregation>) -> Attribute {
    let optional = name != "x";
    Attribute { name: name.into(), kind, unit: String::new(), optional, aggregations }
}

/// x in −100.0..=200.0, y in 0..=50, a flag and a page; all but x optional.
fn schema() -> Schema {
    let tens = Edges::Uniform { lo: -1000, width: 100, bins: 10 };
    let odd = Edges::Explicit(vec![0, 1, 10, 40]);
    Schema {
        name: "Test".into(),
        version: 1,
        tick: Span::seconds(10),
        capacity: Capacity { population: 100, events: 100, micro_rate: 0 },
        shared_count: true,
        frames: Frames::Events,
        metadata: vec![],
        attributes: vec![
            attribute(
                "x",
                AttributeKind::Number { scale: 1, min: -1000, max: 2000 },
                vec![
                    Aggregation::Histogram(tens),
                    Aggregation::By { attribute: Y, edges: odd.clone(), order: 2 },
                    Aggregation::Threshold { at: 0 },
                ],
            ),
            attribute(
                "y",
                AttributeKind::Number { scale: 0, min: 0, max: 50 },
                vec![Aggregation::Histogram(odd)],
            ),
            attribute("flag", AttributeKind::Boolean, vec![Aggregation::Any, Aggregation::All]),
            attribute(
                "page",
                AttributeKind::Text { max_bytes: 8 },
                vec![Aggregation::Sketch { depth: 3, width: 5 }],
            ),
        ],
        options: vec![],
    }
}

fn layout(statistic: Of, cells: u16, packing: Packing) -> Layout {
    let words = match packing {
        Packing::Whole => cells,
        Packing::Limbs => 2 * cells,
        Packing::Digits { per_word, .. } => cells.div_ceil(per_word.into()),
    };
    let field = Field { statistic, first: 0, cells, packing };
    Layout { fields: vec![field], words: words + 1 }
}

fn run(encoder: &Encoder, values: &[Value<'_>]) -> Result<Vec<u64>, EncodeError> {
    let mut words = vec![0u64; usize::from(encoder.words())];
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    encoder.encode(values, &mut rng, |word, addend| {
        let word = &mut words[usize::from(word)];
        *word = word.wrapping_add(addend);
    })?;
    Ok(words)
}

/// The words without the check word, which must be zero.
fn words(statistic: Of, cells: u16, packing: Packing, values: [Value<'_>; 4]) -> Vec<u64> {
    let encoder = Encoder::new(&schema(), &layout(statistic, cells, packing)).unwrap();
    let mut words = run(&encoder, &values).unwrap();
    assert_eq!(words.pop(), Some(0));
    words
}

fn number(x: i64) -> [Value<'static>; 4] {
    [Value::Number(x), Value::Absent, Value::Absent, Value::Absent]
}

fn both(x: i64, y: i64) -> [Value<'static>; 4] {
    [Value::Number(x), Value::Number(y), Value::Absent, Value::Absent]
}

fn flag(flag: bool) -> [Value<'static>; 4] {
    [Value::Number(0), Value::Absent, Value::Boolean(flag), Value::Absent]
}

#[test]
fn counts_sums_and_squares_add_the_powers_of_present_values() {
    let whole = Packing::Whole;
    assert_eq!(words(Of::EventCount, 1, whole, number(5)), [1]);
    assert_eq!(words(Of::Count(X), 1, whole, number(5)), [1]);
    assert_eq!(words(Of::Count(Y), 1, whole, number(5)), [0]);
    assert_eq!(words(Of::Sum(X), 1, whole, number(-5)), [5u64.wrapping_neg()]);
    assert_eq!(words(Of::SumOfSquares(X), 1, whole, number(-5)), [25]);
    assert_eq!(words(Of::Sum(Y), 1, whole, number(5)), [0]);
    assert_eq!(words(Of::Sum(FLAG), 1, whole, flag(true)), [1]);
}

#[test]
fn limbs_hold_the_low_32_bits_and_the_signed_rest() {
    assert_eq!(words(Of::Sum(X), 1, Packing::Limbs, number(7)), [7, 0]);
    assert_eq!(words(Of::Sum(X), 1, Packing::Limbs, number(-1)), [0xffff_ffff, u64::MAX]);
}

#[test]
fn a_histogram_is_one_hot_with_open_ends() {
    let bin = |x, cells, of| {
        let words = words(of, cells, Packing::Whole, both(x, x.clamp(0, 50)));
        assert_eq!(words.iter().sum::<u64>(), 1);
        words.iter().position(|word| *word == 1).unwrap()
    };
    let tens = |x| bin(x, 10, Of::Histogram(X, 0));
    assert_eq!([-1000, -901, -900, -1, 0, 2000].map(tens), [0, 0, 1, 9, 9, 9]);
    let odd = |y| bin(y, 4, Of::Histogram(Y, 0));
    assert_eq!([0, 1, 9, 10, 39, 40, 50].map(odd), [0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn digits_are_where_the_layout_puts_them() {
    let digits = Packing::Digits { bits: 12, per_word: 5 };
    assert_eq!(words(Of::Histogram(X, 0), 10, digits, number(-1000)), [1, 0]);
    assert_eq!(words(Of::Histogram(X, 0), 10, digits, number(-600)), [1 << 48, 0]);
    assert_eq!(words(Of::Histogram(X, 0), 10, digits, number(0)), [0, 1 << 48]);
    // A negative digit borrows from higher digits.
    let by = Of::By { of: X, by: Y, aggregation: 1, order: 1 };
    let digits = Packing::Digits { bits: 16, per_word: 4 };
    assert_eq!(words(by, 4, digits, both(-3, 1)), [(3u64 << 16).wrapping_neg()]);
}

#[test]
fn pairs_and_buckets_need_both_values() {
    let pair = |moment| Of::Pair { y: Y, x: X, moment };
    let whole = Packing::Whole;
    let moments = [
        (PairMoment::Count, 1),
        (PairMoment::X, -6),
        (PairMoment::Y, 7),
        (PairMoment::Xx, 36),
        (PairMoment::Xy, -42),
        (PairMoment::Yy, 49),
    ];
    for (moment, expected) in moments {
        assert_eq!(words(pair(moment), 1, whole, both(-6, 7)), [i64::cast_unsigned(expected)]);
        assert_eq!(words(pair(moment), 1, whole, number(-6)), [0]);
    }
    for (order, expected) in [(0, 1), (1, 6), (2, 36)] {
        let by = Of::By { of: X, by: Y, aggregation: 1, order };
        assert_eq!(words(by, 4, whole, both(6, 12)), [0, 0, expected, 0]);
        assert_eq!(words(by, 4, whole, number(6)), [0; 4]);
    }
}

#[test]
fn a_threshold_splits_values_into_two_cells() {
    let split = |order, x| {
        words(Of::Threshold { of: X, aggregation: 2, order }, 2, Packing::Whole, number(x))
    };
    assert_eq!(split(0, 0), [1, 0]);
    assert_eq!(split(0, -1), [0, 1]);
    assert_eq!(split(1, 8), [8, 0]);
    assert_eq!(split(1, -8), [0, 8u64.wrapping_neg()]);
}

#[test]
fn any_and_all_add_a_random_word_or_nothing() {
    let one = |of, value| words(of, 1, Packing::Whole, flag(value))[0];
    assert_ne!(one(Of::Any(FLAG), true), 0);
    assert_eq!(one(Of::Any(FLAG), false), 0);
    assert_ne!(one(Of::All(FLAG), false), 0);
    assert_eq!(one(Of::All(FLAG), true), 0);
    assert_eq!(words(Of::All(FLAG), 1, Packing::Whole, number(0)), [0]);
}

#[test]
fn a_sketch_adds_one_in_each_row() {
    let page = [Value::Number(0), Value::Absent, Value::Absent, Value::Text(b"/a")];
    let cells = words(Of::Sketch(PAGE, 0), 15, Packing::Whole, page);
    let mut expected = vec![0; 15];
    SketchHash::new(&schema().id(), PAGE, 0).columns(b"/a", 3, 5, |row, column| {
        expected[usize::from(row) * 5 + usize::from(column)] += 1;
    });
    assert_eq!(cells, expected);
    assert_eq!(cells.iter().sum::<u64>(), 3);
    let digits = Packing::Digits { bits: 8, per_word: 8 };
    assert_eq!(words(Of::Sketch(PAGE, 0), 15, digits, number(0)), [0, 0]);
}

/// The sink is never called, and the error does not reveal the value.
#[test]
fn an_invalid_event_is_rejected_before_anything_is_added() {
    let encoder = Encoder::new(&schema(), &layout(Of::Sum(X), 1, Packing::Whole)).unwrap();
    let text = Value::Text(b"too long!");
    let cases = [
        (vec![Value::Number(4_217)], "the event has 1 values, the schema 4 attributes"),
        (number(4_217).to_vec(), "`x` lies outside its bounds -1000..=2000 (in units of 10^-1)"),
        (number(-1_001).to_vec(), "`x` lies outside its bounds"),
        (vec![Value::Absent; 4], "`x` is missing"),
        (vec![Value::Boolean(true); 4], "`x` takes a number"),
        (vec![Value::Number(0), text, Value::Absent, Value::Absent], "`y` takes a number"),
        (vec![Value::Number(0), Value::Absent, text, Value::Absent], "`flag` takes a truth"),
        (vec![Value::Number(0), Value::Absent, Value::Absent, text], "`page` is longer than 8"),
        (vec![Value::Number(0); 4], "`flag` takes a truth value"),
    ];
    for (values, expected) in cases {
        let sink = |_, _| panic!("partly encoded");
        let error = encoder.encode(&values, &mut ChaCha20Rng::seed_from_u64(0), sink).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(!error.to_string().contains("4217") && !format!("{error:?}").contains("4217"));
    }
}

#[test]
fn values_at_the_bounds_are_allowed() {
    let encoder = Encoder::new(&schema(), &layout(Of::Sum(X), 1, Packing::Whole)).unwrap();
    assert_eq!(run(&encoder, &number(2000)).unwrap()[0], 2000);
    assert_eq!(run(&encoder, &number(-1000)).unwrap()[0], 1000u64.wrapping_neg());
}

#[test]
fn a_layout_of_another_schema_is_rejected() {
    let error = |statistic, cells, packing| {
        Encoder::new(&schema(), &layout(statistic, cells, packing)).map(|_| ()).unwrap_err()
    };
    let undeclared = LayoutMismatchError::Undeclared { field: 0 };
    let whole = Packing::Whole;
    assert_eq!(error(Of::Sum(9), 1, whole), undeclared);
    assert_eq!(error(Of::Sum(PAGE), 1, whole), undeclared);
    assert_eq!(error(Of::Histogram(X, 1), 10, whole), undeclared);
    assert_eq!(error(Of::By { of: X, by: FLAG, aggregation: 1, order: 0 }, 4, whole), undeclared);
    assert_eq!(error(Of::By { of: X, by: Y, aggregation: 1, order: 3 }, 4, whole), undeclared);
    assert_eq!(error(Of::Any(X), 1, whole), undeclared);
    assert_eq!(
        error(Of::Histogram(X, 0), 9, whole),
        LayoutMismatchError::Cells { field: 0, expected: 10, found: 9 }
    );
    let overflow = LayoutMismatchError::Overflow { field: 0 };
    // With its sign, 2000 needs 12 bits and 1 needs two.
    assert_eq!(error(Of::Sum(X), 1, Packing::Digits { bits: 11, per_word: 5 }), overflow);
    assert_eq!(error(Of::Count(X), 1, Packing::Digits { bits: 1, per_word: 5 }), overflow);
    assert_eq!(error(Of::Any(FLAG), 1, Packing::Digits { bits: 8, per_word: 8 }), overflow);
    let digits = LayoutMismatchError::Digits { field: 0 };
    assert_eq!(error(Of::Sum(X), 1, Packing::Digits { bits: 13, per_word: 5 }), digits);
    let mut short = layout(Of::Histogram(X, 0), 10, whole);
    short.words -= 1;
    assert_eq!(
        Encoder::new(&schema(), &short).map(|_| ()).unwrap_err(),
        LayoutMismatchError::BeyondVector { field: 0 }
    );
}

proptest::proptest! {
    /// The fast encoder for complete events agrees with the general one.
    #[test]
    fn complete_events_have_the_same_encoding_either_way(
        x in -1100_i64..2100, y in -5_i64..56, flag: bool, page in "[a-z]{0,9}",
    ) {
        let schema = schema();
        let general = Encoder::new(&schema, &Layout::of(&schema).unwrap()).unwrap();
        proptest::prop_assert!(general.complete.is_some());
        let general = Encoder { complete: None, ..general };
        let short = Encoder::new(&schema, &Layout::of(&schema).unwrap()).unwrap();
        let page = Value::Text(page.as_bytes());
        let event = [Value::Number(x), Value::Number(y), Value::Boolean(flag), page];
        proptest::prop_assert_eq!(run(&short, &event), run(&general, &event));
    }
}
