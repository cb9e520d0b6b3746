//! Requests that other projects keep as examples of what their exporters send, where the folder with
//! recorded data has them. Their sums were worked out by hand.

use crate::{NOW, drafted, open_for, totals};
use alpheus_otlp::capture::requests;
use alpheus_otlp::draft::DraftError;
use alpheus_test_support::skip;
use alpheus_transport::simulation::Machine;
use std::collections::BTreeMap;

/// Sums by attribute, in units of the last place.
type Sums = &'static [(&'static str, i64)];

/// Each file, how many points it has, and what these add up to. Values with a point have three places.
const EXPECTED: &[(&str, u64, Sums)] = &[
    ("gcp_gauge.json", 2, &[("simple_gauge_13", 1000), ("simple_gauge_1", 13_000)]),
    (
        "gcp_histogram.json",
        4,
        &[
            ("simple_float64_histogram_13_count", 1),
            ("simple_float64_histogram_13_sum", 2500),
            ("simple_float64_histogram_13_to_5", 1),
            ("simple_float64_histogram_10_count", 2),
            ("simple_float64_histogram_10_sum", 14_300),
            ("simple_float64_histogram_10_to_5", 1),
            ("simple_float64_histogram_10_to_20", 1),
            ("simple_int64_histogram_13_count", 1),
            ("simple_int64_histogram_13_sum", 2000),
            ("simple_int64_histogram_13_to_5", 1),
            ("simple_int64_histogram_10_count", 2),
            ("simple_int64_histogram_10_sum", 14_000),
            ("simple_int64_histogram_10_to_5", 1),
            ("simple_int64_histogram_10_to_20", 1),
        ],
    ),
    // It does not say since when it counts, so a first point adds nothing.
    ("gcp_nonmonotonic_counter.json", 1, &[]),
    (
        "proto_example.json",
        4,
        &[
            ("my_counter_some_value", 5000),
            ("my_gauge_some_value", 10_000),
            ("my_histogram_some_value_count", 2),
            ("my_histogram_some_value_sum", 2000),
            ("my_histogram_some_value_to_1", 1),
            ("my_histogram_some_value_over_1", 1),
            ("my_exponential_histogram_some_value_count", 3),
            ("my_exponential_histogram_some_value_sum", 10_000),
            ("my_exponential_histogram_some_value_zero", 1),
            ("my_exponential_histogram_some_value_at_2", 2),
        ],
    ),
    (
        "rust_expected.json",
        3,
        &[
            ("counter_u64_myvalue1_myvalue2", 10),
            ("example_histogram_myvalue4_count", 1),
            ("example_histogram_myvalue4_sum", 42_000),
            ("example_histogram_myvalue4_to_50", 1),
            ("example_up_down_counter_myvalue5", -1),
        ],
    ),
];
/// It has quantiles alone, which do not add up.
const SUMMARY: &str = "gcp_summary.json";

#[test]
fn recorded_requests_are_counted_once() {
    let Some(folder) = skip::real_data().map(|folder| folder.join("otlp")) else { return };
    if !folder.is_dir() {
        return skip::skip("there is no folder `otlp` in the folder of ALPHEUS_REAL_DATA");
    }
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    for (file, points, expected) in EXPECTED {
        let text = read(file);
        let store = Machine::new().open().unwrap();
        let (intake, names) = open_for(&store, &drafted(&text).unwrap());
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
        // An exporter that hears nothing sends its request again.
        for repeated in [0, *points] {
            for request in requests(text.as_bytes()).unwrap() {
                let outcome = intake.take(&request, NOW).unwrap();
                let counted = (outcome.taken, outcome.repeated, outcome.refused);
                assert_eq!(counted, (*points, repeated, 0), "{file}: {}", outcome.message);
                assert!(outcome.overlapping.is_empty() && outcome.beyond.is_empty(), "{file}");
            }
            assert_eq!(totals(&intake, &names), expected, "{file}");
        }
    }
    let text = read(SUMMARY);
    assert_eq!(drafted(&text).unwrap_err(), DraftError::Nothing);
    let store = Machine::new().open().unwrap();
    let (intake, names) = open_for(&store, &drafted(&read("proto_example.json")).unwrap());
    let outcome = intake.take(&requests(text.as_bytes()).unwrap()[0], NOW).unwrap();
    assert_eq!((outcome.taken, outcome.refused), (0, 1));
    assert!(outcome.message.contains("quantiles"), "{}", outcome.message);
    assert!(totals(&intake, &names).is_empty());
}

/// A later total of the counter that does not say since when it counts.
#[test]
fn a_recorded_total_without_a_start_counts_from_its_second_point_on() {
    let Some(folder) = skip::real_data().map(|folder| folder.join("otlp")) else { return };
    let Ok(text) = std::fs::read_to_string(folder.join("gcp_nonmonotonic_counter.json")) else {
        return skip::skip("there is no folder `otlp` in the folder of ALPHEUS_REAL_DATA");
    };
    let store = Machine::new().open().unwrap();
    let (intake, names) = open_for(&store, &drafted(&text).unwrap());
    let later = text
        .replace("1634877479074335121", "1634877489074335121")
        .replace("6641752448", "6641752400");
    assert_ne!(later, text);
    for text in [&text, &later] {
        let outcome = intake.take(&requests(text.as_bytes()).unwrap()[0], NOW).unwrap();
        assert_eq!((outcome.taken, outcome.refused), (1, 0));
    }
    // It may fall, since it is not monotonic.
    let expected: BTreeMap<_, _> = [("system_memory_usage_used".to_owned(), -48)].into();
    assert_eq!(totals(&intake, &names), expected);
}
