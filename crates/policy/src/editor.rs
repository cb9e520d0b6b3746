//! JSON Schemas of our files, with which editors check and complete them while people type.
//!
//! They are made from the words that the parsers know. They say less than the parsers: names,
//! sums and references between parts are beyond them. A parser refuses everything that they refuse.

use crate::policy::policies;
use crate::schema::{attributes, options, read};
use serde_json::{Map, Value, json};

/// The dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A file that there is a JSON Schema of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedFile {
    /// `schema.yaml`.
    Schema,
    /// `policies.yaml`.
    Policies,
}

/// The JSON Schema of a file.
#[must_use]
pub fn json_schema(file: EditedFile) -> Value {
    match file {
        EditedFile::Schema => titled("A schema of Alpheus", schema()),
        EditedFile::Policies => titled("Policies of Alpheus", choices_file()),
    }
}

/// A whole JSON Schema, with its dialect and its title.
#[must_use]
pub fn titled(title: &str, body: Value) -> Value {
    let mut whole = Map::new();
    whole.insert("$schema".to_owned(), DIALECT.into());
    whole.insert("title".to_owned(), title.into());
    if let Value::Object(entries) = body {
        whole.extend(entries);
    }
    Value::Object(whole)
}

/// A map with exactly these keys, of which some are required. A key without a rule of its own
/// takes anything.
#[must_use]
pub fn map(keys: &[&str], required: &[&str], rules: &[(&str, Value)]) -> Value {
    let rule = |key: &&str| {
        let own = rules.iter().find(|(name, _)| name == key).map(|(_, rule)| rule.clone());
        let own = own.unwrap_or(Value::Bool(true));
        // A key without a value is as good as a missing one.
        let own =
            if required.contains(key) { own } else { json!({"anyOf": [own, {"type": "null"}]}) };
        ((*key).to_owned(), own)
    };
    json!({
        "type": "object",
        "properties": keys.iter().map(rule).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// A key with a value.
fn has(key: &str) -> Value {
    json!({"required": [key], "properties": {key: {"not": {"type": "null"}}}})
}

fn has_all(keys: &[&str]) -> Value {
    json!({"allOf": keys.iter().map(|key| has(key)).collect::<Vec<_>>()})
}

/// With all keys of one of these groups.
fn with_one_of(map: Value, groups: &[&[&str]]) -> Value {
    let groups: Vec<Value> = groups.iter().map(|group| has_all(group)).collect();
    json!({"allOf": [map, {"anyOf": groups}]})
}

/// With more required keys where `key` is, or lists, a word.
fn with_more_where(map: Value, key: &str, word: &str, more: &[&str]) -> Value {
    let is = json!({"anyOf": [{"const": word}, {"type": "array", "contains": {"const": word}}]});
    let holds = json!({"required": [key], "properties": {key: is}});
    json!({"allOf": [map, {"if": holds, "then": has_all(more)}]})
}

fn list(item: Value) -> Value {
    json!({"type": "array", "minItems": 1, "items": item})
}

/// One of these, or a list of them.
#[must_use]
pub fn one_or_list(item: Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item}]})
}

/// One of these words.
#[must_use]
pub fn words(words: &[&str]) -> Value {
    json!({"enum": words})
}

/// Numbers may be in quotes, and words without.
#[must_use]
pub fn scalar() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

/// A number; it may be in quotes.
#[must_use]
pub fn number() -> Value {
    json!({"type": ["number", "string"]})
}

/// Yes or no.
#[must_use]
pub fn truth() -> Value {
    json!({"type": "boolean"})
}

fn schema() -> Value {
    let capacity = map(
        &["population", "events", "eventsPerSecond", "window"],
        &["population"],
        &[
            ("population", number()),
            ("events", number()),
            ("eventsPerSecond", number()),
            ("window", scalar()),
        ],
    );
    let rules = [
        ("name", scalar()),
        ("version", number()),
        ("tick", scalar()),
        ("frames", words(&["events", "ticks"])),
        ("anchor", scalar()),
        ("capacity", with_one_of(capacity, &[&["events"], &["eventsPerSecond", "window"]])),
        ("sizes", json!({"type": "object", "additionalProperties": number()})),
        ("sharedCount", truth()),
        ("metadataAttributes", list(metadata())),
        ("streamAttributes", list(attribute())),
        ("streamPolicyOptions", list(option())),
    ];
    map(read::KEYS, &["name", "streamAttributes"], &rules)
}

fn metadata() -> Value {
    let rules = [
        ("name", scalar()),
        ("type", one_or_list(words(&["string", "enum", "optional"]))),
        ("symbols", list(scalar())),
        ("optional", truth()),
    ];
    let own = map(&["name", "type", "symbols", "optional"], &["name", "type"], &rules);
    with_more_where(own, "type", "enum", &["symbols"])
}

fn attribute() -> Value {
    let rules = [
        ("name", scalar()),
        ("type", one_or_list(words(attributes::TYPES))),
        ("scale", number()),
        ("min", number()),
        ("max", number()),
        ("unit", scalar()),
        ("optional", truth()),
        ("maxBytes", number()),
        ("aggregations", list(aggregation())),
    ];
    let own = map(attributes::KEYS, &["name", "type"], &rules);
    with_more_where(own, "type", "decimal", &["scale", "min", "max"])
}

/// The two ways to write a grid.
const GRIDS: &[&[&str]] = &[&["edges"], &["lo", "width", "bins"]];

/// A word, or a map with one key.
fn aggregation() -> Value {
    let edges = json!({"type": "array", "items": number()});
    let grid = [("lo", number()), ("width", number()), ("bins", number()), ("edges", edges)];
    let by = [
        &grid[..],
        &[("attribute", scalar()), ("statistics", one_or_list(words(attributes::STATISTICS)))],
    ]
    .concat();
    let rule = |name: &&str| {
        let rule = match *name {
            "histogram" => with_one_of(map(&["lo", "width", "bins", "edges"], &[], &grid), GRIDS),
            "regression" => map(&["x", "r2"], &["x"], &[("x", scalar()), ("r2", truth())]),
            "by" => {
                let keys = &["attribute", "lo", "width", "bins", "edges", "statistics"];
                with_one_of(map(keys, &["attribute"], &by), GRIDS)
            }
            "sketch" => map(
                &["depth", "width"],
                &["depth", "width"],
                &[("depth", number()), ("width", number())],
            ),
            _ => number(),
        };
        ((*name).to_owned(), rule)
    };
    let named = json!({
        "type": "object",
        "properties": attributes::MAPS.iter().map(rule).collect::<Map<_, _>>(),
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    });
    json!({"anyOf": [words(attributes::WORDS), named]})
}

fn option() -> Value {
    let edges = json!({"type": "array", "items": number()});
    let generalise = map(
        &["attribute", "width", "edges"],
        &["attribute"],
        &[("attribute", scalar()), ("width", number()), ("edges", edges)],
    );
    let budget = map(
        &["perWindow", "total", "delta", "unit", "period"],
        &["perWindow", "total", "unit"],
        &[
            ("perWindow", number()),
            ("total", number()),
            ("delta", number()),
            ("unit", words(options::UNITS)),
            ("period", scalar()),
        ],
    );
    let generalise = with_one_of(generalise, &[&["width"], &["edges"]]);
    let budget = with_more_where(budget, "unit", "person-per-period", &["period"]);
    let names = one_or_list(scalar());
    let rules = [
        ("name", scalar()),
        ("option", words(options::KINDS)),
        ("attributes", names.clone()),
        ("window", names.clone()),
        ("windows", names.clone()),
        ("clients", names.clone()),
        ("minimumPopulation", names.clone()),
        ("generalise", one_or_list(generalise)),
        ("budget", budget),
        ("to", names.clone()),
        ("alpha", scalar()),
        ("colluders", number()),
        ("dropout", scalar()),
        ("missingTicks", number()),
        ("splitPopulations", json!({"const": false})),
        ("trusted", names),
        ("integrity", words(options::INTEGRITY)),
    ];
    let own = map(options::KEYS, &["name", "option"], &rules);
    with_more_where(own, "option", "dp-aggregate", &["budget"])
}

fn choices_file() -> Value {
    let part = map(
        &["share", "policy"],
        &["share", "policy"],
        &[("share", scalar()), ("policy", choices())],
    );
    let rules = [
        ("schema", scalar()),
        ("service", scalar()),
        ("validFrom", scalar()),
        ("validTo", scalar()),
        ("default", choices()),
        ("mix", json!({"type": "array", "items": part})),
        ("owners", json!({"type": "object", "additionalProperties": choices()})),
    ];
    map(policies::KEYS, &[], &rules)
}

/// `attribute: choice`, or a list of such maps.
fn choices() -> Value {
    let full = map(
        &["option", "clients", "window", "setsPerDay"],
        &["option"],
        &[
            ("option", scalar()),
            ("clients", scalar()),
            ("window", scalar()),
            ("setsPerDay", number()),
        ],
    );
    let choice = one_or_list(json!({"anyOf": [scalar(), full]}));
    let own = json!({"type": "object", "additionalProperties": choice});
    json!({"anyOf": [own, {"type": "array", "items": own}]})
}
