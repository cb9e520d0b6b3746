//! JSON Schemas of the files that no other crate has one of: settings, profiles, schemas of tables,
//! statistics plans and OTLP mappings. With them editors check and complete such files while people type.

use alpheus_policy::editor::{map, number, scalar, titled, truth, words};
use serde_json::{Value, json};

/// A map with these keys, of which some are required.
fn all(required: &[&str], rules: &[(&str, Value)]) -> Value {
    let keys: Vec<&str> = rules.iter().map(|(key, _)| *key).collect();
    map(&keys, required, rules)
}

fn list(item: Value) -> Value {
    json!({"type": "array", "items": item})
}

fn named(own: Value) -> Value {
    json!({"type": "object", "additionalProperties": own})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// A whole number from 0.
fn whole() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// A table of settings of which none is required: those that are texts, and those that are numbers.
fn table(texts: &[&str], numbers: &[&str]) -> Value {
    let keys = |keys: &[&str], rule: fn() -> Value| -> Vec<(String, Value)> {
        keys.iter().map(|key| ((*key).to_owned(), rule())).collect()
    };
    let properties = [keys(texts, text), keys(numbers, whole)].concat();
    let properties: serde_json::Map<String, Value> = properties.into_iter().collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn with(mut table: Value, more: &[(&str, Value)]) -> Value {
    for (key, rule) in more {
        table["properties"][*key] = rule.clone();
    }
    table
}

/// Of `alpheus.toml`, which all roles read.
pub(super) fn settings() -> Value {
    const TEXTS: &[&str] =
        &["listen", "proxy", "log", "state", "api", "identity", "server", "key-file", "schema"];
    const NUMBERS: &[&str] = &[
        "drain-seconds",
        "connections",
        "poll-seconds",
        "queries-per-consumer",
        "stream-megabytes",
    ];
    const WINDOWS: &[&str] = &[
        "idle-timeout-seconds",
        "controller-timeout-seconds",
        "sums-timeout-seconds",
        "recovery-timeout-seconds",
        "retention-hours",
        "results-days",
        "results-rows",
        "receipts-days",
    ];
    let kafka = table(&["brokers", "prefix", "properties"], &["min-copies", "timeout-seconds"]);
    let own = with(
        table(TEXTS, NUMBERS),
        &[
            ("format", words(&["table", "json", "csv"])),
            ("log-format", words(&["plain", "json"])),
            ("engine", words(&["in-process", "job"])),
            ("tls", table(&["certificate", "key", "client-ca"], &[])),
            ("kafka", kafka),
            ("windows", table(&[], WINDOWS)),
            ("owners-log", table(&[], &["retention-days", "max-megabytes"])),
            ("worker", table(&[], &["disorder-seconds", "idle-seconds", "skew-seconds"])),
            ("table", table(&[], &["quota-bytes"])),
            ("board", table(&["card", "key", "members", "fence"], &[])),
            ("pass", pass()),
            ("stats", stats()),
        ],
    );
    titled("Settings of Alpheus", own)
}

fn pass() -> Value {
    const TEXTS: &[&str] = &[
        "deployment",
        "card",
        "accounts",
        "accounts-command",
        "oidc-provider",
        "oidc-client",
        "oidc-authority",
        "verifiers",
        "upstream",
        "check",
    ];
    let numbers = ["requests-per-minute", "shard", "concurrent", "overlap-milliseconds"];
    with(table(TEXTS, &numbers), &[("plain", truth())])
}

fn stats() -> Value {
    let numbers =
        ["retention-days", "message-timeout-seconds", "attempt-timeout-seconds", "timeout-seconds"];
    table(&["card", "keys", "accounts", "peers", "fence"], &numbers)
}

/// Of `profile.yaml`.
pub(super) fn profile() -> Value {
    let range = || json!({"type": "array", "items": number(), "minItems": 2, "maxItems": 2});
    let walk = all(&["start", "step"], &[("start", range()), ("step", number())]);
    let one = |key: &str, rule: Value| json!({"type": "object", "properties": {key: rule}, "required": [key], "additionalProperties": false});
    let behaviour = json!({"anyOf": [
        one("walk", walk),
        one("uniform", range()),
        one("skewed", number()),
        one("chance", number()),
        one("choice", list(scalar())),
    ]});
    let required = ["streams", "minutes", "intervalMs", "start", "attributes"];
    let numbers = ["streams", "minutes", "intervalMs", "start"].map(|key| (key, number()));
    let more = [("metadata", named(list(scalar()))), ("attributes", named(behaviour))];
    titled("A profile of Alpheus", all(&required, &[&numbers[..], &more].concat()))
}

/// Of the `schema.yaml` of a table.
pub(super) fn table_schema() -> Value {
    let source = alpheus_input::editor::source_schema();
    let of_source = |key: &str| source["properties"][key].clone();
    let column = [
        ("name", scalar()),
        ("scale", number()),
        ("min", number()),
        ("max", number()),
        ("optional", truth()),
        ("squares", truth()),
    ];
    let pair = json!({"type": "array", "items": scalar(), "minItems": 2, "maxItems": 2});
    let wide = [("from", scalar()), ("to", scalar()), ("step", number())];
    let rules = [
        ("name", scalar()),
        ("parameters", words(&["L128", "S128", "X128", "W128"])),
        ("order", number()),
        ("file", of_source("file")),
        ("time", of_source("time")),
        ("groups", list(scalar())),
        ("columns", list(all(&["name", "min", "max"], &column))),
        ("pairs", list(pair)),
        ("wide", all(&["from", "to", "step"], &wide)),
    ];
    titled("A table's schema of Alpheus", all(&["name", "time", "columns"], &rules))
}

/// Of a plan of accountable statistics: sums of samples, or a count.
pub(super) fn plan() -> Value {
    let values = [
        ("lowest", number()),
        ("highest", number()),
        ("decimals", number()),
        ("resolution", number()),
    ];
    let times =
        [("turn", scalar()), ("turns", number()), ("settling", scalar()), ("patience", scalar())];
    let mean = json!({
        "type": "object",
        "properties": {"mean": number()},
        "required": ["mean"],
        "additionalProperties": false,
    });
    let counted = ["during", "quota", "accounts", "slots", "expected", "clients"];
    let counted = counted.map(|key| (key, number()));
    let more = [
        ("place", scalar()),
        ("attribute", scalar()),
        ("interval", all(&["lowest", "highest"], &values)),
        ("deviation", truth()),
        ("every", scalar()),
        ("release", json!({"anyOf": [words(&["full"]), mean]})),
        ("after", all(&["turn", "turns", "settling", "patience"], &times)),
    ];
    let rules = [&counted[..], &more].concat();
    let required: Vec<&str> =
        rules.iter().map(|(key, _)| *key).filter(|key| *key != "deviation").collect();
    let sums = all(&required, &rules);
    let count = [
        ("place", scalar()),
        ("every", scalar()),
        ("release", words(&["count"])),
        ("fewest", number()),
        ("after", all(&["close"], &[("close", scalar())])),
    ];
    let count = all(&["place", "every", "release", "fewest", "after"], &count);
    titled("A statistics plan of Alpheus", json!({"anyOf": [sums, count]}))
}

/// Of `otlp.json`.
pub(super) fn mapping() -> Value {
    let integer = || json!({"type": "integer"});
    let bounds = list(json!({"type": "number"}));
    let histogram = all(&["bounds"], &[("bounds", bounds)]);
    let powers = ["scale", "low", "high"].map(|key| (key, integer()));
    let one = |key: &str, rule: Value| json!({"type": "object", "properties": {key: rule}, "required": [key], "additionalProperties": false});
    let shape = json!({"anyOf": [
        words(&["sum", "gauge"]),
        one("histogram", histogram),
        one("exponential", all(&["scale", "low", "high"], &powers)),
    ]});
    let series = all(&["of", "prefix"], &[("of", named(text())), ("prefix", text())]);
    let metric = [
        ("name", text()),
        ("shape", shape),
        ("by", list(text())),
        ("series", list(series)),
        ("other", text()),
    ];
    let metrics = list(all(&["name", "shape", "other"], &metric));
    titled("An OTLP mapping of Alpheus", all(&["metrics"], &[("metrics", metrics)]))
}
