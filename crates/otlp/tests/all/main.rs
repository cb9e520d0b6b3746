//! From captured metrics to a schema, and from requests to events, over a store that restarts.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

mod recorded_requests;

use alpheus_otlp::capture::{CaptureError, Survey, requests};
use alpheus_otlp::draft::{Draft, DraftError, draft};
use alpheus_otlp::intake::{Intake, Outcome};
use alpheus_otlp::mapping::{CompiledMapping, Shape};
use alpheus_otlp::message::ExportRequest;
use alpheus_policy::schema::Schema;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::Machine;
use alpheus_transport::{Space, Store};
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// After all that was captured.
const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
const CAPTURED: &str = include_str!("../../../../fuzz/seeds/metrics/all_kinds.json");

fn drafted(text: &str) -> Result<Draft, DraftError> {
    let mut seen = Survey::default();
    requests(text.as_bytes()).unwrap().iter().for_each(|request| seen.look(request));
    draft(&seen, "Shop")
}

/// An intake over this store, and the names of the schema's attributes.
fn open(store: &Arc<dyn Store>) -> (Intake, Vec<String>) {
    open_for(store, &drafted(CAPTURED).unwrap())
}

fn open_for(store: &Arc<dyn Store>, draft: &Draft) -> (Intake, Vec<String>) {
    let schema = Schema::from_yaml(&draft.schema).unwrap();
    let compiled = CompiledMapping::of(&draft.mapping, &schema).unwrap();
    let names = schema.attributes.iter().map(|own| own.name.clone()).collect();
    (Intake::open(Arc::clone(store), compiled, Timestamp(0)).unwrap(), names)
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
fn values_that_may_name_persons_do_not_stand_in_the_schema() {
    for (key, value) in
        [("user.id", "alice"), ("customerId", "alice"), ("who", "alice@example.com")]
    {
        let text = CAPTURED.replace(r#""kind""#, &format!(r#""{key}""#)).replace("book", value);
        let draft = drafted(&text).unwrap();
        assert!(!draft.schema.contains("alice"), "{key}: {}", draft.schema);
        assert!(draft.not_carried.iter().any(|own| own.why.contains("may name persons")), "{key}");
    }
}

#[test]
fn values_of_other_types_with_the_same_text_are_other_series() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let values = [
        r#"{"stringValue": "1"}"#,
        r#"{"intValue": "1"}"#,
        r#"{"doubleValue": 1}"#,
        r#"{"arrayValue": {"values": [{"intValue": "1"}]}}"#,
        r#"{"arrayValue": {"values": [{"intValue": "2"}]}}"#,
        r#"{"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "1"}}]}}"#,
        r#"{"bytesValue": "AQ=="}"#,
        r#"{"bytesValue": "Ag=="}"#,
    ];
    for value in values {
        let taken = intake.take(&request(&format!(
            r#"{{"name": "orders", "sum": {{"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{{"startTimeUnixNano": "1", "timeUnixNano": "10", "asInt": "1", "attributes": [{{"key": "kind", "value": {value}}}]}}]}}}}"#
        )), NOW);
        assert_eq!(taken.unwrap().refused, 0, "{value}");
    }
    assert_eq!(totals(&intake, &names)["orders_other"], 8);
}

#[test]
fn a_total_that_was_refused_does_not_silence_its_series() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let take = |time, value| intake.take(&orders(1, time, "book", value), NOW).unwrap().refused;
    assert_eq!(take(10, i64::MAX), 1);
    assert_eq!((take(20, i64::MAX), totals(&intake, &names).is_empty()), (0, true));
    assert_eq!(take(30, 5), 0);
    assert_eq!(totals(&intake, &names)["orders_book"], 5);
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
    let first = intake.take(&all[0], NOW).unwrap();
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
    assert_eq!(intake.take(&all[0], NOW).unwrap().taken, 4);
    assert_eq!(totals(&intake, &names), expected);
}

#[test]
fn totals_become_differences_by_series_and_start() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let take = |request: ExportRequest| intake.take(&request, NOW).unwrap();
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
    let take = |metric: &str| intake.take(&request(metric), NOW).unwrap();
    for (metric, why) in [
        (r#"{"name": "new", "gauge": {"dataPoints": [{"asInt": "1"}]}}"#, "no such metric"),
        (r#"{"name": "orders", "gauge": {"dataPoints": [{"asInt": "1"}]}}"#, "another kind"),
        (r#"{"name": "orders", "sum": {"dataPoints": [{"asInt": "1"}]}}"#, "cumulative"),
        (r#"{"name": "load", "gauge": {"dataPoints": [{"asDouble": 1}]}}"#, "no time"),
        (
            r#"{"name": "load", "gauge": {"dataPoints": [{"timeUnixNano": "1", "asDouble": "NaN"}]}}"#,
            "not finite",
        ),
        (
            r#"{"name": "load", "gauge": {"dataPoints": [{"timeUnixNano": "1", "asDouble": 1e12}]}}"#,
            "outside the bounds",
        ),
        (
            r#"{"name": "latency", "histogram": {"aggregationTemporality": 1, "dataPoints": [{"count": "3", "bucketCounts": ["1", "1"], "explicitBounds": [2.5]}]}}"#,
            "do not match",
        ),
    ] {
        let Outcome { taken, refused, message, .. } = take(metric);
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
    intake.take(&orders(1, 10, "book", 2_000_000_000_000), NOW).unwrap();
    let events = intake.after(0, Duration::ZERO).unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(totals(&intake, &names)["orders_book"], 2_000_000_000_000);
}

#[test]
fn a_program_that_ran_before_the_receiver_counts_from_then_on() {
    let store = Machine::new().open().unwrap();
    let draft = drafted(CAPTURED).unwrap();
    let schema = Schema::from_yaml(&draft.schema).unwrap();
    let names: Vec<_> = schema.attributes.iter().map(|own| own.name.clone()).collect();
    let open = |now| {
        let compiled = CompiledMapping::of(&draft.mapping, &schema).unwrap();
        Intake::open(Arc::clone(&store), compiled, now).unwrap()
    };
    let second = |seconds: u64| seconds * 1_000_000_000;
    let intake = open(Timestamp(100_000_000));
    for (start, time, value) in [(50, 110, 1000), (50, 120, 1003), (105, 120, 20)] {
        intake.take(&orders(second(start), second(time), "book", value), NOW).unwrap();
    }
    assert_eq!(totals(&intake, &names)["orders_book"], 23);
    // When it began, is known after a restart.
    let intake = open(Timestamp(500_000_000));
    intake.take(&orders(second(200), second(510), "book", 7), NOW).unwrap();
    assert_eq!(totals(&intake, &names)["orders_book"], 30);
}

#[test]
fn series_without_points_are_forgotten_and_not_counted_again() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let day = |day: u64| Timestamp(day * Span::DAY.0);
    let nano = |day: u64| day * Span::DAY.0 * 1000;
    let take = |at, start, time, kind, value| {
        intake.take(&orders(nano(start), nano(time), kind, value), day(at)).unwrap();
    };
    let series = || {
        let space = Space::new("otlp").unwrap();
        store.scan(&space, b"series/", std::ops::Bound::Unbounded, 100).unwrap().len()
    };
    take(1, 1, 1, "tape", 2);
    // A total needs its time to be after its start.
    take(2, 1, 2, "book", 5);
    assert_eq!(series(), 2);
    take(30, 1, 30, "tape", 3);
    assert_eq!(series(), 2);
    take(33, 1, 33, "tape", 4);
    assert_eq!(series(), 1, "books had no point for more than a month");
    let before = totals(&intake, &names);
    assert_eq!((before["orders_book"], before["orders_other"]), (5, 4));
    // The same request again, and the next total: what was counted is not counted again.
    take(34, 1, 2, "book", 5);
    take(34, 1, 34, "book", 9);
    take(35, 1, 35, "book", 10);
    assert_eq!(totals(&intake, &names)["orders_book"], 6);
}

/// A delta of `orders`, from a program whose resource has this.
fn delta(resource: &str, (start, time): (u64, u64), value: i64) -> ExportRequest {
    let text = format!(
        r#"{{"resourceMetrics": [{{"resource": {{"attributes": [{resource}]}}, "scopeMetrics": [{{"metrics": [{{"name": "orders", "sum": {{"aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [{{"startTimeUnixNano": "{start}", "timeUnixNano": "{time}", "asInt": "{value}"}}]}}}}]}}]}}]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn deltas_of_two_programs_of_one_resource_are_all_counted_and_the_operator_hears_of_it() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let take = |times, value| intake.take(&delta("", times, value), NOW).unwrap();
    // The other program's point comes once the first one's chain is around it.
    let points = [((1, 11), 5), ((11, 21), 3), ((4, 14), 7)];
    let said = points.map(|(times, value)| take(times, value));
    assert_eq!(totals(&intake, &names)["orders_other"], 15);
    let overlapping = said.map(|outcome| outcome.overlapping.get("orders").copied());
    assert_eq!(overlapping, [None, None, Some(1)]);
    // Each of them may come again.
    for (times, value) in points {
        assert_eq!(take(times, value).repeated, 1);
    }
    assert_eq!(totals(&intake, &names)["orders_other"], 15);
    // With names of their own, they do not overlap.
    let named = |name: &str, times, value| {
        let resource =
            format!(r#"{{"key": "service.instance.id", "value": {{"stringValue": "{name}"}}}}"#);
        intake.take(&delta(&resource, times, value), NOW).unwrap()
    };
    let all = [named("a", (1, 11), 5), named("a", (11, 21), 3), named("b", (4, 14), 7)];
    assert!(all.iter().all(|own| own.overlapping.is_empty() && own.repeated == 0), "{all:?}");
    assert_eq!(totals(&intake, &names)["orders_other"], 30);
}

#[test]
fn values_beyond_the_captured_buckets_have_parts_of_their_own_and_are_reported() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let outcome = intake.take(&request(
        r#"{"name": "size", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [{"startTimeUnixNano": "1", "timeUnixNano": "2", "count": "9", "scale": 0, "positive": {"offset": 40, "bucketCounts": ["6"]}, "negative": {"offset": 0, "bucketCounts": ["1"]}, "zeroCount": "2"}]}}"#,
    ), NOW).unwrap();
    assert_eq!(outcome.beyond, [("size".to_owned(), 6)].into());
    let expected = [("size_above", 6), ("size_count", 9), ("size_negative", 1), ("size_zero", 2)];
    let expected: BTreeMap<_, _> = expected.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(totals(&intake, &names), expected);
    let outcome = intake.take(&request(
        r#"{"name": "size", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [{"startTimeUnixNano": "2", "timeUnixNano": "3", "count": "3", "scale": 0, "positive": {"offset": -40, "bucketCounts": ["3"]}}]}}"#,
    ), NOW).unwrap();
    assert_eq!(outcome.beyond, [("size".to_owned(), 3)].into());
    assert_eq!(totals(&intake, &names)["size_below"], 3);
}

#[test]
fn few_requests_are_in_memory_at_once() {
    let store = Machine::new().open().unwrap();
    let (intake, _) = open(&store);
    let doors: Vec<_> = (0..10).map(|_| intake.door()).collect();
    assert_eq!(doors.iter().flatten().count(), 4);
    drop(doors);
    assert!(intake.door().is_some());
}

#[test]
fn a_point_of_a_wrong_clock_does_not_silence_its_series() {
    let store = Machine::new().open().unwrap();
    let (intake, names) = open(&store);
    let now = NOW.0 * 1000;
    let hour = 3_600_000_000_000;
    let take = |time, value| intake.take(&orders(1, time, "book", value), NOW).unwrap();
    let refused = take(now + hour + 1, 5);
    assert_eq!((refused.refused, refused.message.contains("an hour ahead")), (1, true));
    assert_eq!((take(now, 7).refused, take(now + hour, 8).refused), (0, 0));
    assert_eq!(totals(&intake, &names)["orders_book"], 8);
}
