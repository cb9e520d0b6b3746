//! Known answers from an independent script, `vectors/schema`: the meaning of files, their
//! layouts, and which files are refused.

// The lint exempts test functions, but not helpers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use alpheus_policy::layout::{FieldStatistic, Layout, Packing, PairMoment};
use alpheus_policy::schema::{Schema, SchemaError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cases(name: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("schema/v1/{name}"))
}

fn read(case: &Value) -> Result<Schema, SchemaError> {
    let text = |key: &str| case.get(key).and_then(Value::as_str);
    match (text("yaml"), text("avsc"), text("file")) {
        (Some(yaml), ..) => Schema::from_yaml(yaml),
        (_, Some(avsc), _) => Schema::from_avsc(avsc),
        (.., Some(file)) => Schema::from_yaml(&std::fs::read_to_string(root().join(file)).unwrap()),
        _ => panic!("no schema in {case}"),
    }
}

fn statistic(statistic: FieldStatistic) -> Value {
    use FieldStatistic as S;
    match statistic {
        S::EventCount => json!(["EventCount"]),
        S::Count(a) => json!(["Count", a]),
        S::Sum(a) => json!(["Sum", a]),
        S::SumOfSquares(a) => json!(["SumOfSquares", a]),
        S::Histogram(a, k) => json!(["Histogram", a, k]),
        S::Pair { y, x, moment } => json!(["Pair", y, x, moment_name(moment)]),
        S::By { of, by, aggregation, order } => json!(["By", of, by, aggregation, order]),
        S::Threshold { of, aggregation, order } => json!(["Threshold", of, aggregation, order]),
        S::Any(a) => json!(["Any", a]),
        S::All(a) => json!(["All", a]),
        S::Sketch(a, k) => json!(["Sketch", a, k]),
    }
}

fn moment_name(moment: PairMoment) -> String {
    format!("{moment:?}")
}

fn packing(packing: Packing) -> Value {
    match packing {
        Packing::Whole => json!(["whole"]),
        Packing::Digits { bits, per_word } => json!(["digits", bits, per_word]),
        Packing::Limbs => json!(["limbs"]),
    }
}

#[test]
fn valid_files_match_the_script() {
    for case in ["schema.json", "frames.json", "avro.json"].map(cases).into_iter().flatten() {
        let schema = read(&case).unwrap();
        let name = &schema.name;
        assert_eq!(schema.tick.0, case["tick"].as_u64().unwrap(), "{name}");
        let layout = Layout::of(&schema).unwrap();
        let fields = layout.fields.iter().map(|field| {
            json!({
                "statistic": statistic(field.statistic), "first": field.first,
                "cells": field.cells, "packing": packing(field.packing),
            })
        });
        assert_eq!(Value::Array(fields.collect()), case["fields"], "{name}");
        assert_eq!(u64::from(layout.words), case["words"].as_u64().unwrap(), "{name}");
        assert_eq!(schema.id().to_string(), case["id"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn invalid_files_have_the_error_of_the_script() {
    let files = ["schema_bad_yaml.json", "schema_bad_frames.json", "schema_bad_avro.json"];
    for case in files.map(cases).into_iter().flatten() {
        let error = format!("{:?}", read(&case).unwrap_err().problem);
        let name = error.split(|c: char| !c.is_alphanumeric()).next().unwrap();
        // Vectors name errors by their variant.
        assert_eq!(name, case["error"].as_str().unwrap(), "{case}");
    }
}
