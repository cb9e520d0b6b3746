//! Every encoding, tested through the real cipher. Events of several streams are encoded
//! in the schema's own layout, encrypted, summed by the transformer and opened by tokens.
//! The result must equal that of the plaintexts.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test's way to fail, and numbers it made itself"
)]

use crate::summoned_borders::segments;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::decode::{DecodeError, cells};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start};
use alpheus_encrypted_stream::sums::add;
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::layout::{Field, FieldStatistic as Of, Layout, Packing, PairMoment};
use alpheus_policy::plan::Integrity;
use alpheus_policy::plan::{
    Fraction, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::schema::{
    Aggregation, Attribute, AttributeKind, Capacity, Edges, Frames, Schema,
};
use alpheus_policy::select::{ReleasePlan, SumLocation};
use alpheus_policy::selection::Selection;
use alpheus_policy::sketch::SketchHash;
use alpheus_time::{Span, Timestamp, Window};
use chacha20::ChaCha20Rng;
use proptest::prelude::*;
use rand_core::SeedableRng;

const STREAMS: u32 = 3;
const EVENTS: u64 = 4;
const TICK: u64 = 1000;
const START: u64 = 1_700_000_000_000_000;

/// An event's values: two numbers, a huge one, a flag, a page.
type Row = (Option<i64>, i64, Option<i64>, Option<bool>, Option<u8>);

fn attribute(name: &str, kind: AttributeKind, aggregations: Vec<Aggregation>) -> Attribute {
    let optional = name != "y";
    Attribute { name: name.into(), kind, unit: String::new(), optional, aggregations }
}

fn number(min: i64, max: i64) -> AttributeKind {
    AttributeKind::Number { scale: 1, min, max }
}

fn schema() -> Schema {
    let fives = Edges::Uniform { lo: -20, width: 5, bins: 9 };
    let odd = Edges::Explicit(vec![-7, 0, 1, 30]);
    let x = vec![
        Aggregation::Variance,
        Aggregation::Histogram(fives.clone()),
        Aggregation::By { attribute: 1, edges: odd.clone(), order: 2 },
        Aggregation::Regression { x: 1, r_squared: true },
        Aggregation::Threshold { at: 0 },
    ];
    Schema {
        name: "Test".into(),
        version: 1,
        tick: Span(TICK),
        capacity: Capacity { population: STREAMS.into(), events: EVENTS, micro_rate: 0 },
        shared_count: true,
        frames: Frames::Events,
        metadata: vec![],
        attributes: vec![
            attribute("x", number(-25, 40), x),
            attribute("y", number(-9, 90), vec![Aggregation::Mean, Aggregation::Histogram(odd)]),
            attribute("huge", number(-(1 << 45), 1 << 44), vec![Aggregation::Variance]),
            attribute("flag", AttributeKind::Boolean, vec![Aggregation::Any, Aggregation::All]),
            attribute(
                "page",
                AttributeKind::Text { max_bytes: 1 },
                vec![Aggregation::Sketch { depth: 5, width: 7 }],
            ),
        ],
        options: vec![],
    }
}

/// Numbers, often at their bounds.
fn between(min: i64, max: i64) -> impl Strategy<Value = i64> {
    prop_oneof![Just(min), Just(max), min..=max]
}

fn row() -> impl Strategy<Value = Row> {
    let huge = between(-(1 << 45), 1 << 44);
    (
        proptest::option::of(between(-25, 40)),
        between(-9, 90),
        proptest::option::of(huge),
        proptest::option::of(any::<bool>()),
        proptest::option::of(0u8..5),
    )
}

fn product(moment: PairMoment, y: i128, x: i128) -> i128 {
    match moment {
        PairMoment::Count => 1,
        PairMoment::X => x,
        PairMoment::Y => y,
        PairMoment::Xx => x * x,
        PairMoment::Xy => x * y,
        PairMoment::Yy => y * y,
    }
}

/// The expected sum of a cell; for `any` and `all`, the number of random words in it.
fn expected(schema: &Schema, of: Of, cell: u16, rows: &[Row]) -> i128 {
    let value = |row: &Row, attribute: u16| match attribute {
        0 => row.0,
        1 => Some(row.1),
        _ => row.2,
    };
    let edges = |of: u16, aggregation: u16| match &schema.attributes[usize::from(of)].aggregations
        [usize::from(aggregation)]
    {
        Aggregation::Histogram(edges) | Aggregation::By { edges, .. } => edges.clone(),
        other => panic!("{other:?}"),
    };
    let power = |x: i64, order: u8| i128::from(x).pow(order.into());
    let of_row = |row: &Row| -> i128 {
        match of {
            Of::EventCount => 1,
            Of::Count(a) => value(row, a).map_or(0, |_| 1),
            Of::Sum(a) => value(row, a).map_or(0, |x| power(x, 1)),
            Of::SumOfSquares(a) => value(row, a).map_or(0, |x| power(x, 2)),
            Of::Histogram(a, i) => value(row, a).map_or(0, |x| (edges(a, i).bin(x) == cell).into()),
            Of::By { of, by, aggregation, order } => {
                let both = value(row, of).zip(value(row, by));
                let hit = both.filter(|(_, by)| edges(of, aggregation).bin(*by) == cell);
                hit.map_or(0, |(x, _)| power(x, order))
            }
            Of::Threshold { of, order, .. } => {
                let hit = value(row, of).filter(|x| (*x >= 0) == (cell == 0));
                hit.map_or(0, |x| power(x, order))
            }
            Of::Pair { y, x, moment } => {
                let both = value(row, y).zip(value(row, x));
                both.map_or(0, |(y, x)| product(moment, y.into(), x.into()))
            }
            Of::Any(_) => (row.3 == Some(true)).into(),
            Of::All(_) => (row.3 == Some(false)).into(),
            Of::Sketch(a, i) => row.4.map_or(0, |page| {
                let mut hit = 0;
                SketchHash::new(&schema.id(), a, i).columns(&[page], 5, 7, |row, column| {
                    hit += i128::from(u16::from(row) * 7 + column == cell);
                });
                hit
            }),
        }
    };
    rows.iter().map(of_row).sum()
}

/// The location of a cell if each word is a separate row.
fn place(field: &Field, cell: u16) -> SumLocation {
    let place = field.place(cell).unwrap();
    match field.packing {
        Packing::Whole => SumLocation::Whole { row: place.word },
        Packing::Digits { bits, .. } => {
            SumLocation::Digit { row: place.word, bits, digit: place.digit }
        }
        Packing::Limbs => SumLocation::Limbs { low: place.word, high: place.word + 1 },
    }
}

fn plan(schema: &Schema, layout: &Layout, streams: u32) -> Plan {
    let planned = |i: u32| PlannedStream {
        stream: StreamId([i as u8; 16]),
        owner: OwnerId([i as u8; 32]),
        controller: 0,
    };
    let select =
        |field: &Field| (0..field.cells).map(|cell| place(field, cell)).collect::<Vec<_>>();
    Plan {
        nonce: [1; 16],
        name: "all".into(),
        consumer: "test".into(),
        sealed_to: None,
        schema: schema.id(),
        group: vec![],
        window: Span(2 * TICK),
        grace: Span(0),
        from: Timestamp(START),
        release: Release { rows: (0..layout.words).map(|word| vec![word]).collect() },
        select: ReleasePlan {
            cells: layout.fields.iter().flat_map(select).collect(),
            items: vec![],
        },
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![0, 1, 2, 3, 4],
        population: PopulationBounds { min: 1, max: 100 },
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::ZERO,
        delta_exponent: 9,
        masks: MaskStrategy::Single,
        epoch: None,
        roster: vec![ControllerId([0; 32])],
        streams: (0..streams).map(planned).collect(),
    }
}

fn master(stream: u32) -> MasterSecret {
    MasterSecret::new(Secret::from_bytes([stream as u8 ^ 0x55; 32]))
}

/// Encrypts the rows of one stream over two ticks.
fn produce(schema: &Schema, layout: &Layout, stream: u32, rows: &[Row]) -> Vec<Vec<u8>> {
    let encoder = Encoder::new(schema, layout).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(stream.into());
    let mut frames = Vec::new();
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let id = StreamId([stream as u8; 16]);
    let producer = Producer::new(&master(stream), id, schema.id(), schema.tick, layout.words);
    let open = producer.unwrap().open(Start::First, Timestamp(START), &mut rng, &mut sink);
    let Ok(mut session) = open else { panic!("cannot open") };
    for (i, row) in rows.iter().enumerate() {
        let optional = |x: Option<i64>| x.map_or(Value::Absent, Value::Number);
        let page = row.4.map(|page| [page]);
        let values = [
            optional(row.0),
            Value::Number(row.1),
            optional(row.2),
            row.3.map_or(Value::Absent, Value::Boolean),
            page.as_ref().map_or(Value::Absent, |page| Value::Text(page)),
        ];
        let t = Timestamp(START + 1 + 450 * i as u64);
        let encode = |vector: &mut EventVector<'_>| {
            encoder.encode(&values, &mut rng, |word, addend| vector.add(word, addend))
        };
        session.event(t, encode, &mut sink).unwrap();
    }
    assert!(session.close(Timestamp(START + 2 * TICK), &mut sink).is_ok());
    frames
}

/// The opened rows of the only window.
fn open(schema: &Schema, layout: &Layout, plan: &Plan, streams: &[Vec<Row>]) -> Vec<u64> {
    let mut transformer = Transformer::new(Shape::of(schema, layout, Span(0)), 1);
    let id = transformer.register(plan).unwrap();
    for (i, rows) in (0..).zip(streams) {
        for frame in produce(schema, layout, i, rows) {
            let stream = StreamId([i as u8; 16]);
            transformer.handle(0, stream, &frame, Timestamp(1 << 51)).unwrap();
        }
    }
    let window = Window { start: Timestamp(START), end: Timestamp(START + 2 * TICK) };
    let report = transformer.close(&id, window, 0).unwrap();
    let positions: Vec<u32> = report.complete().map(|stream| stream.position).collect();
    assert_eq!(positions.len(), streams.len());
    let mut rows = transformer.sum(&id, window, &positions).unwrap();
    for summoned in report.complete() {
        let stream = StreamId([summoned.position as u8; 16]);
        let mut keys = StreamKeys::new(&master(summoned.position), stream, schema.id());
        for segment in segments(summoned) {
            let release = &plan.release;
            add(
                &mut rows,
                &keys.key_sum(release, segment.session, segment.from, segment.to()).unwrap(),
            );
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sums_of_ciphertexts_open_to_sums_of_values(
        streams in proptest::collection::vec(proptest::collection::vec(row(), 0..=EVENTS as usize), STREAMS as usize)
    ) {
        let schema = schema();
        let layout = Layout::of(&schema).unwrap();
        let plan = plan(&schema, &layout, STREAMS);
        let rows = open(&schema, &layout, &plan, &streams);
        let sums = cells(&plan.select, &rows).unwrap();
        let all: Vec<Row> = streams.into_iter().flatten().collect();
        let mut sums = sums.into_iter();
        for field in &layout.fields {
            for cell in 0..field.cells {
                let (sum, expected) =
                    (sums.next().unwrap(), expected(&schema, field.statistic, cell, &all));
                match field.statistic {
                    Of::Any(_) | Of::All(_) => prop_assert_eq!(sum != 0, expected != 0),
                    _ => prop_assert_eq!(sum, expected, "{:?} {}", field, cell),
                }
            }
        }
    }
}

/// The layout must use all three packings, or the test would prove little.
#[test]
fn the_test_schema_uses_every_packing() {
    let layout = Layout::of(&schema()).unwrap();
    let packed =
        |like: fn(&Packing) -> bool| layout.fields.iter().any(|field| like(&field.packing));
    assert!(packed(|packing| matches!(packing, Packing::Whole)));
    assert!(packed(|packing| matches!(packing, Packing::Digits { .. })));
    assert!(packed(|packing| matches!(packing, Packing::Limbs)));
}

/// Bins and sums at the bounds that sized the digits do not affect their neighbours.
#[test]
fn bins_filled_to_their_bound_do_not_overflow() {
    let schema = schema();
    let layout = Layout::of(&schema).unwrap();
    let plan = plan(&schema, &layout, STREAMS);
    for (x, y) in [(-25, -9), (40, 90), (-25, 90), (40, -9)] {
        let row: Row = (Some(x), y, Some(-(1 << 45)), None, None);
        let streams = vec![vec![row; EVENTS as usize]; STREAMS as usize];
        let rows = open(&schema, &layout, &plan, &streams);
        let sums = cells(&plan.select, &rows).unwrap();
        let all = vec![row; EVENTS as usize * STREAMS as usize];
        let fields = layout.fields.iter();
        let wanted =
            fields.flat_map(|f| (0..f.cells).map(|c| expected(&schema, f.statistic, c, &all)));
        assert_eq!(sums, wanted.collect::<Vec<_>>());
    }
}

/// One stream with a wrong key invalidates a window, and the check word shows it.
#[test]
fn a_wrong_key_is_detected_by_the_check_word() {
    let schema = schema();
    let layout = Layout::of(&schema).unwrap();
    let plan = plan(&schema, &layout, 1);
    let mut rows = open(&schema, &layout, &plan, &[vec![]]);
    assert!(cells(&plan.select, &rows).is_ok());
    let (from, to) = (Timestamp(START), Timestamp(START + 2 * TICK));
    let mut other = StreamKeys::new(&master(9), StreamId([0; 16]), schema.id());
    add(&mut rows, &other.key_sum(&plan.release, 7, from, to).unwrap());
    assert_eq!(cells(&plan.select, &rows), Err(DecodeError::CheckWordNotZero));
}

/// Layout and encoder are separate code. They must agree on every shipped schema, in
/// particular on what fits in a digit.
#[test]
fn every_example_has_an_encoder() {
    macro_rules! example {
        ($name:literal) => {
            ($name, include_str!(concat!("../../../../examples/", $name, "/schema.yaml")))
        };
    }
    let examples = [
        example!("fitness"),
        example!("web-analytics"),
        example!("car-maintenance"),
        example!("real/fitness"),
        example!("real/cars"),
        example!("real/smartmeter"),
        example!("real/traffic_speed"),
        example!("real/weblog_apache"),
    ];
    for (name, text) in examples {
        let schema = Schema::from_yaml(text).unwrap();
        let layout = Layout::of(&schema).unwrap();
        let encoder = Encoder::new(&schema, &layout).map_err(|error| format!("{name}: {error}"));
        assert_eq!(encoder.unwrap().words(), layout.words, "{name}");
    }
}
