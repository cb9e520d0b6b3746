//! From captured metrics to a schema, and from requests to events, over a store that restarts.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_otlp::capture::{CaptureError, Survey, requests};
use alpheus_otlp::draft::{Draft, DraftError, draft};
use alpheus_otlp::intake::{Intake, Outcome};
use alpheus_otlp::mapping::{Compiled, Shape};
use alpheus_otlp::message::ExportRequest;
use alpheus_policy::schema::Schema;
use alpheus_transport::Store;
use alpheus_transport::simulated::Machine;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const CAPTURED: &str = include_str!("../../../../fuzz/seeds/metrics/all_kinds.json");

fn drafted(text: &str) -> Result<Draft, DraftError> {
    let mut seen = Survey::default();
    requests(text.as_bytes()).unwrap().iter().for_each(|request| seen.look(request));
    draft(&seen, "Shop")
}

/// An intake over this store, and the names of the schema's attributes.
fn open(store: &Arc<dyn Store>) -> (Intake, Vec<String>) {
    let draft = drafted(CAPTURED).unwrap();
    let schema = Schema::from_yaml(&draft.schema).unwrap();
    let compiled = Compiled::of(&draft.mapping, &schema).unwrap();
    let names = schema.attributes.iter().map(|own| own.name.clone()).collect();
    (Intake::open(Arc::clone(store), compiled).unwrap(), names)
}

/// What all waiting events add up to.
fn totals(intake: &Intake, names: &[String]) -> BTreeMap<String, i64> {
    let mut totals = BTreeMap::new();
    for (_, event) in intake.after(0, Duration::ZERO).unwrap() {
        for (position, value) in event {
            *totals.entry(names[usize::from(position)].clone()).or_default() += value;
        }
    }
    totals
}

fn request(metric: &str) -> ExportRequest {
    let text =
        format!(r#"{{"resourceMetrics": [{{"scopeMetrics": [{{"metrics": [{metric}]}}]}}]}}"#);
    serde_json::from_str(&text).unwrap()
}

fn orders(start: u64, time: u64, kind: &str, value: i64) -> ExportRequest {
    request(&format!(
        r#"{{"name": "orders", "sum": {{"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{{"startTimeUnixNano": "{start}", "timeUnixNano": "{time}", "asInt": "{value}", "attributes": [{{"key": "kind", "value": {{"stringValue": "{kind}"}}}}]}}]}}}}"#
    ))
}

#[test]
fn every_kind_becomes_attributes_and_the_rest_is_listed() {
    let draft = drafted(CAPTURED).unwrap();
    let schema = Schema::from_yaml(&draft.schema).unwrap();
    for name in [
        "orders_book",
        "orders_other",
        "load",
        "latency_count",
        "latency_sum",
        "latency_to_2_5",
        "latency_over_2_5",
        "latency_unplaced",
        "size_zero",
        "size_at_minus_1",
        "size_unplaced",
    ] {
        assert!(schema.position(name).is_some(), "{name}:\n{}", draft.schema);
    }
    let shapes: Vec<_> =
        draft.mapping.metrics.iter().map(|own| (own.name.as_str(), &own.shape)).collect();
    assert!(shapes.contains(&("latency", &Shape::Histogram { bounds: vec![2.5] })));
    let left: Vec<_> = draft.not_carried.iter().map(|entry| entry.path.as_str()).collect();
    assert!(left.contains(&r#"metrics["old"]"#), "{left:?}");
    let carried: Vec<_> = draft.carried.iter().map(|entry| &entry.path).collect();
    assert!(draft.not_carried.iter().all(|entry| !carried.contains(&&entry.path)));
}

#[test]
fn a_key_with_many_values_is_added_up_over() {
    let points: Vec<String> = (0..20)
        .map(|n| format!(r#"{{"asInt": "1", "attributes": [{{"key": "user", "value": {{"intValue": "{n}"}}}}]}}"#))
        .collect();
    let text = format!(
        r#"{{"resourceMetrics": [{{"scopeMetrics": [{{"metrics": [{{"name": "n", "sum": {{"aggregationTemporality": 1, "dataPoints": [{}]}}}}]}}]}}]}}"#,
        points.join(",")
    );
    let draft = drafted(&text).unwrap();
    assert!(draft.mapping.metrics[0].series.is_empty() && draft.mapping.metrics[0].other == "n");
    assert!(draft.not_carried[0].why.contains("more than 8 values"));
    assert!(!draft.schema.contains("19"));
}

#[test]
fn a_captured_file_is_json_or_protobuf() {
    let parsed = requests(CAPTURED.as_bytes()).unwrap();
    assert_eq!(requests(&parsed[0].encode_to_vec()).unwrap(), parsed);
    let lines = format!("{}\n{}\n", CAPTURED.replace('\n', ""), CAPTURED.replace('\n', ""));
    assert_eq!(requests(lines.as_bytes()).unwrap().len(), 2);
    assert_eq!(requests(b"\xff\xff"), Err(CaptureError::Malformed));
    assert_eq!(requests(b"{}"), Err(CaptureError::Empty));
    assert_eq!(requests(b""), Err(CaptureError::Empty));
}

#[test]
fn what_comes_again_adds_nothing_also_after_a_restart() {
    let machine = Machine::new();
    let store = machine.open().unwrap();
    let (intake, names) = open(&store);
    let all = requests(CAPTURED.as_bytes()).unwrap();
    let first = intake.take(&all[0]).unwrap();
    assert_eq!((first.taken, first.refused), (4, 1), "a summary is refused: {first:?}");
    let expected = [
        ("latency_count", 3),
        ("latency_over_2_5", 2),
        ("latency_sum", 7500),
        ("latency_to_2_5", 1),
        ("load", 250),
        ("orders_book", 5),
        ("size_at_minus_1", 2),
        ("size_count", 3),
        ("size_sum", 7000),
        ("size_zero", 1),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(totals(&intake, &names), expected);
    drop(intake);
    let (intake, names) = open(&store);
    assert_eq!(intake.take(&all[0]).unwrap().taken, 4);
    assert_eq!(totals(&intake, &names), expected);
}

#[test]
fn totals_become_differences_by_series_and_start() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let take = |request: ExportRequest| intake.take(&request).unwrap();
    for (start, time, kind, value) in [
        (1, 10, "book", 5),
        (1, 20, "book", 9),
        (1, 20, "tape", 2),
        // Another start: it counts from nothing.
        (30, 40, "book", 3),
        (30, 50, "book", 4),
        // The first program goes on beside it.
        (1, 60, "book", 10),
        (1, 60, "vinyl", 1),
    ] {
        assert_eq!(take(orders(start, time, kind, value)).refused, 0);
    }
    let expected: BTreeMap<_, _> =
        [("orders_book".to_owned(), 14), ("orders_other".to_owned(), 3)].into();
    assert_eq!(totals(&intake, &names), expected);
}

#[test]
fn what_cannot_be_counted_is_refused_with_the_reason() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let take = |metric: &str| intake.take(&request(metric)).unwrap();
    for (metric, why) in [
        (r#"{"name": "new", "gauge": {"dataPoints": [{"asInt": "1"}]}}"#, "no such metric"),
        (r#"{"name": "orders", "gauge": {"dataPoints": [{"asInt": "1"}]}}"#, "another kind"),
        (r#"{"name": "orders", "sum": {"dataPoints": [{"asInt": "1"}]}}"#, "cumulative"),
        (r#"{"name": "load", "gauge": {"dataPoints": [{"asDouble": "NaN"}]}}"#, "not finite"),
        (
            r#"{"name": "load", "gauge": {"dataPoints": [{"asDouble": 1e12}]}}"#,
            "outside the bounds",
        ),
        (
            r#"{"name": "latency", "histogram": {"aggregationTemporality": 1, "dataPoints": [{"count": "3", "bucketCounts": ["1", "1"], "explicitBounds": [2.5]}]}}"#,
            "do not fit each other",
        ),
    ] {
        let Outcome { taken, refused, message } = take(metric);
        assert_eq!((taken, refused), (0, 1), "{metric}");
        assert!(message.contains(why), "{message}");
    }
    assert!(totals(&intake, &names).is_empty());
    // A point that says that it has no value is no point.
    let none = take(r#"{"name": "load", "gauge": {"dataPoints": [{"flags": 1}]}}"#);
    assert_eq!(none, Outcome::default());
}

#[test]
fn what_is_too_much_for_one_event_is_split() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    intake.take(&orders(1, 10, "book", 2_000_000_000_000)).unwrap();
    let events = intake.after(0, Duration::ZERO).unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(totals(&intake, &names)["orders_book"], 2_000_000_000_000);
}
