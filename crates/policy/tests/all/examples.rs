//! The schemas and policies under `examples/`: the paper's three applications fit their
//! words, and every file can be read.

// The lint exempts test functions, but not helpers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::avro_form::avsc_of_yaml;
use alpheus_policy::layout::{FieldStatistic, Layout, Packing};
use alpheus_policy::plan::Fraction;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::{Aggregation, AttributeKind, Edges, OptionKind, Schema};
use std::path::PathBuf;

const APPLICATIONS: [&str; 3] = ["fitness", "web-analytics", "car-maintenance"];
const RECORDINGS: [&str; 5] =
    ["real/fitness", "real/cars", "real/smartmeter", "real/traffic_speed", "real/weblog_apache"];

fn text(example: &str, file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    std::fs::read_to_string(path.join(file)).unwrap()
}

fn schema(example: &str) -> Schema {
    Schema::from_yaml(&text(example, "schema.yaml")).unwrap_or_else(|e| panic!("{example}: {e}"))
}

/// Words of an example without its check word.
fn words(example: &str) -> u16 {
    Layout::of(&schema(example)).unwrap().words - 1
}

/// Encoded fields as the paper counts them: the moments of an attribute are one field, and
/// so are its sums and counts by buckets of another.
fn encoded_fields(example: &str) -> usize {
    let layout = Layout::of(&schema(example)).unwrap();
    let counts = |statistic| match statistic {
        FieldStatistic::SumOfSquares(_) | FieldStatistic::By { order: 0, .. } => 0,
        FieldStatistic::Sum(_) | FieldStatistic::EventCount | FieldStatistic::Count(_) => 1,
        // In web analytics sum, squares and count by page are three fields.
        FieldStatistic::By { order: 1, .. } if example == "web-analytics" => 3,
        FieldStatistic::By { order: 2, .. } => 0,
        _ => 1,
    };
    layout.fields.iter().map(|field| counts(field.statistic)).sum()
}

#[test]
fn the_papers_applications_fit_the_words_of_the_prototype() {
    // Example, words, the prototype's words, fields in the paper's sense.
    for (example, ours, most, fields) in [
        ("fitness", 456, 683, 18),
        ("web-analytics", 856, 956, 24),
        ("car-maintenance", 101, 169, 23),
    ] {
        assert!(words(example) <= most, "{example}: {} words, at most {most}", words(example));
        assert_eq!(words(example), ours, "{example}: docs/protocol.md says otherwise");
        assert_eq!(encoded_fields(example), fields, "{example}");
    }
}

/// Cells as the paper lays them out, before packing.
#[test]
fn the_papers_applications_have_the_papers_cells() {
    let cells = |example| -> usize {
        let layout = Layout::of(&schema(example)).unwrap();
        layout.fields.iter().map(|field| usize::from(field.cells)).sum()
    };
    assert_eq!(cells("fitness"), 683);
    assert_eq!(cells("car-maintenance"), 169);
    // The prototype spends two words on each sum and each sum of squares.
    assert_eq!(cells("web-analytics") + 4 * 50, 956);
}

#[test]
fn every_example_means_the_same_in_avro() {
    for example in APPLICATIONS.iter().chain(&RECORDINGS) {
        let yaml = text(example, "schema.yaml");
        let avro = avsc_of_yaml(&yaml).unwrap();
        let read = Schema::from_avsc(&avro).unwrap_or_else(|e| panic!("{example}: {e}"));
        assert_eq!(read.id(), Schema::from_yaml(&yaml).unwrap().id(), "{example}");
    }
}

#[test]
fn every_policies_file_is_valid() {
    for example in APPLICATIONS {
        Policies::from_yaml(&text(example, "policies.yaml"), &schema(example))
            .unwrap_or_else(|e| panic!("{example}: {e}"));
    }
    for (file, min) in [("policies.yaml", 1), ("policies.min10.yaml", 10)] {
        for example in RECORDINGS {
            let schema = schema(example);
            let policies = Policies::from_yaml(&text(example, file), &schema)
                .unwrap_or_else(|e| panic!("{example}: {e}"));
            for attribute in &policies.of_owner("anyone").attributes {
                let open = &attribute.alternatives[0];
                assert_eq!(open.kind, OptionKind::Aggregate, "{example}");
                assert_eq!(open.min_population, min, "{example} {file}");
                assert_eq!((open.alpha, open.dropout), (Fraction::ZERO, Fraction::ZERO));
            }
        }
    }
}

#[test]
fn web_analytics_has_policies_with_noise_and_without() {
    let schema = schema("web-analytics");
    let noisy = schema.options.iter().find(|o| o.kind == OptionKind::DpAggregate).unwrap();
    assert_eq!(noisy.attributes.len(), schema.attributes.len());
    for (policies, kind) in
        [("policies.yaml", OptionKind::Aggregate), ("policies.dp.yaml", OptionKind::DpAggregate)]
    {
        let chosen = Policies::from_yaml(&text("web-analytics", policies), &schema).unwrap();
        let owner = chosen.of_owner("anyone");
        assert!(owner.attributes.iter().all(|a| a.alternatives[0].kind == kind), "{policies}");
    }
    // Cells with noise are not packed.
    let layout = Layout::of(&schema).unwrap();
    let packed = |packing| matches!(packing, Packing::Digits { .. });
    assert!(!layout.fields.iter().any(|field| packed(field.packing)));
}

/// Decimal places and ten bins of each recorded attribute, in natural units.
#[test]
fn recordings_have_the_expected_attributes_scales_and_bins() {
    /// Name, decimal places, width of a bin in scaled units.
    type Truth = &'static [(&'static str, u8, i64)];
    let truth: [(&str, Truth); 4] = [
        ("real/fitness", &[("heart_rate", 0, 20), ("altitude_m", 1, 3000), ("speed_mps", 3, 2000)]),
        (
            "real/cars",
            &[
                ("ENGINE_RPM", 2, 50_000),
                ("VEHICLE_SPEED", 0, 15),
                ("COOLANT_TEMPERATURE", 0, 10),
                ("ENGINE_LOAD", 3, 10_000),
                ("THROTTLE", 3, 10_000),
            ],
        ),
        ("real/smartmeter", &[("energy_kwh", 3, 200)]),
        ("real/traffic_speed", &[("speed_mph", 3, 10_000)]),
    ];
    for (example, attributes) in truth {
        let schema = schema(example);
        assert_eq!(schema.attributes.len(), attributes.len());
        for (found, (name, scale, width)) in schema.attributes.iter().zip(attributes) {
            assert_eq!(found.name, *name);
            assert!(found.optional, "cells may be empty");
            assert!(matches!(found.kind, AttributeKind::Number { scale: s, .. } if s == *scale));
            let bins = Edges::Uniform { lo: 0, width: *width, bins: 10 };
            assert!(found.aggregations.contains(&Aggregation::Histogram(bins)), "{name}");
        }
    }
    let bytes = &schema("real/weblog_apache").attributes[0];
    let edges = vec![0, 1, 100, 1000, 5000, 10000, 50000, 100_000, 500_000, 1_000_000];
    assert!(bytes.aggregations.contains(&Aggregation::Histogram(Edges::Explicit(edges))));
}

#[test]
fn the_recorded_ride_has_heart_rate_by_five_metres() {
    let schema = schema("real/fitness");
    let altitude = schema.position("altitude_m").unwrap();
    let by = schema.attributes[0].aggregations.iter().find_map(|offered| match offered {
        Aggregation::By { attribute, edges, order } if *attribute == altitude => {
            Some((edges, *order))
        }
        _ => None,
    });
    let (edges, order) = by.unwrap();
    assert_eq!(order, 1);
    for (metres, decimetres) in [(-10, -100), (0, 0), (3005, 30_050)] {
        let bin = edges.bin(decimetres);
        assert_eq!(edges.lower(bin), Some(metres * 10));
    }
}

#[test]
fn a_household_may_see_its_own_days() {
    let schema = schema("real/smartmeter");
    assert_eq!(schema.metadata[0].name, "VID");
    let policies = Policies::from_yaml(&text("real/smartmeter", "policies.yaml"), &schema).unwrap();
    let owner = policies.of_owner("anyone");
    let daily = &owner.attributes[0].alternatives[1];
    assert_eq!((daily.kind, daily.window.to_string()), (OptionKind::StreamAggregate, "1d".into()));
}
