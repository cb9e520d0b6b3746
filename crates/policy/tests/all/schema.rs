//! Schemas as people write them: the paper's figure, every kind of mistake with its
//! location, and Avro compared with YAML.

use crate::avro_form::avsc_of_yaml;
use alpheus_policy::membership::DEFAULT_COLLUDERS;
use alpheus_policy::plan::Fraction;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::{
    Aggregation, AttributeKind, Edges, Frames, OptionKind, PrivacyUnit, Schema, SchemaError,
};
use alpheus_time::Span;
use proptest::prelude::*;

/// The left half of the paper's figure 3, as printed.
const FIGURE_3: &str = "\
name: MedicalSensor
metadataAttributes:
  - name: ageGroup
    type: [enum, optional]
    symbols: [young, middleaged, senior]
  - name: region
    type: string
streamAttributes:
  - name: heart-rate
    type: integer
    aggregations: [var]
  - name: hrv
    type: integer
streamPolicyOptions:
  - name: aggr
    option: aggregate
    clients: [medium, large]
    window: [1hr]
  - name: priv
    option: private
";

/// The choices of its right half.
const CHOICES_3: &str = "\
service: app.com
validFrom: 2020-04-20
validTo: 2021-04-20
default:
  - heartrate:
      option: aggr
      clients: medium
      window: 1hr
  - hrv:
      option: priv
";

const AVSC_3: &str = r#"{
  "type": "record", "name": "MedicalSensor", "namespace": "health",
  "fields": [
    {"name": "heart_rate", "type": "int", "doc": "beats", "alpheus": {"name": "heart-rate", "aggregations": ["var"]}},
    {"name": "hrv", "type": {"type": "long"}}
  ],
  "alpheus": {
    "metadataAttributes": [
      {"name": "ageGroup", "type": ["enum", "optional"], "symbols": ["young", "middleaged", "senior"]},
      {"name": "region", "type": "string"}
    ],
    "streamPolicyOptions": [
      {"name": "aggr", "option": "aggregate", "clients": ["medium", "large"], "window": ["1hr"]},
      {"name": "priv", "option": "private"}
    ]
  }
}"#;

/// Other features of Avro: defaults, orders, aliases, decimals.
const AVSC_RICH: &str = r#"{
  "type": "record", "name": "Meter", "namespace": "a.b", "aliases": ["a.Old"],
  "fields": [
    {"name": "level", "type": "int",
     "default": 5,
     "order": "ignore"},
    {"name": "cost", "type": ["null", {"type": "bytes", "logicalType": "decimal",
        "precision": 9,
        "scale": 2}],
     "default": null,
     "alpheus": {"min": 0, "max": 100}},
    {"name": "weight", "type": {"type": "fixed", "name": "Weight", "logicalType": "decimal",
        "size": 8,
        "precision": 18, "scale": 3},
     "alpheus": {"min": 0, "max": 100}}
  ]
}"#;

#[test]
fn the_papers_figure_is_read() {
    let schema = Schema::from_yaml(FIGURE_3).unwrap();
    assert_eq!(schema.name, "MedicalSensor");
    assert_eq!(schema.metadata[0].symbols.len(), 3);
    assert!(schema.metadata[0].optional && !schema.metadata[1].optional);
    assert_eq!(schema.attributes[0].aggregations, [Aggregation::Variance]);
    let aggr = &schema.options[0];
    assert_eq!(aggr.kind, OptionKind::Aggregate);
    assert_eq!(aggr.clients, [100, 1000]);
    assert_eq!(aggr.windows, [Span::seconds(3600)]);
    let bounds = (aggr.alpha, aggr.colluders, aggr.dropout);
    assert_eq!(bounds, (Fraction::THIRD, DEFAULT_COLLUDERS, Fraction::FIFTH));
    // The figure's annotation writes `heartrate` for `heart-rate`.
    let choices = CHOICES_3.replace("heartrate", "heart_rate");
    let policies = Policies::from_yaml(&choices, &schema).unwrap();
    let owner = policies.of_owner("2474b75564b");
    assert_eq!(owner.attributes[0].alternatives[0].min_population, 100);
    assert!(owner.attributes[1].alternatives.is_empty());
    assert_eq!(policies.service, "app.com");
    assert_eq!(policies.valid_from.0, 1_587_340_800_000_000);
}

#[test]
fn equivalent_avro_and_yaml_give_equal_schemas() {
    let yaml = Schema::from_yaml(FIGURE_3).unwrap();
    let avro = Schema::from_avsc(AVSC_3).unwrap();
    assert_eq!(yaml, avro);
    assert_eq!(yaml.id(), avro.id());
    let written = avsc_of_yaml(FIGURE_3).unwrap();
    assert_eq!(Schema::from_avsc(&written).unwrap().id(), yaml.id());
}

/// Keys are bound to the meaning of a schema. Each of these changes it.
#[test]
fn the_id_depends_on_the_meaning_and_not_on_the_spelling() {
    let id = |text: &str| Schema::from_yaml(text).unwrap().id();
    let original = id(FIGURE_3);
    let spelt = FIGURE_3.replace("[1hr]", "60 min").replace("type: integer", "type: [integer]");
    assert_eq!(id(&format!("# a comment\n{spelt}")), original);
    for (from, to) in [
        ("hrv", "hrw"),
        ("[var]", "[mean]"),
        ("[1hr]", "[2hr]"),
        ("medium, large", "medium"),
        ("option: private", "option: public"),
        ("senior", "elder"),
        ("name: MedicalSensor", "name: MedicalSensor\nversion: 2"),
        ("name: MedicalSensor", "name: MedicalSensor\ntick: 1s"),
        ("name: MedicalSensor", "name: MedicalSensor\ncapacity: {population: 10, events: 10}"),
    ] {
        assert_ne!(id(&FIGURE_3.replacen(from, to, 1)), original, "{from} → {to}");
    }
}

/// A schema with one attribute and one option, each with more keys.
fn small(attribute: &str, option: &str) -> String {
    format!(
        "name: T\nstreamAttributes:\n  - name: x\n    {attribute}\n  - {{name: b, type: boolean}}\nstreamPolicyOptions:\n  - name: o\n    {option}\n"
    )
}

const INTEGER: &str = "type: integer";
const PRIVATE: &str = "option: private";

fn refused(text: &str) -> (usize, String) {
    match Schema::from_yaml(text) {
        Ok(_) => (0, format!("read: {text}")),
        Err(SchemaError { at, problem }) => {
            (at.line.map_or(0, |(line, _)| line), problem.to_string())
        }
    }
}

/// Keys of an attribute, the line of the mistake, and a part of the message.
const MISTAKES: &[(&str, usize, &str)] = &[
    ("type: integr", 4, "not one of integer, decimal, boolean"),
    ("type: decimal", 3, "`scale` is missing"),
    ("type: integer\n    scale: 2", 5, "use type `decimal`"),
    ("type: integer\n    min: 5\n    max: 4", 5, "greater than `max`"),
    ("type: integer\n    min: 0.5", 5, "more than 0 decimal places"),
    ("type: integer\n    max: 9223372036854775808", 5, "does not fit in 64 bits"),
    ("type: integer\n    colour: red", 5, "unknown key `colour`; the keys allowed here are name"),
    ("type: integer\n    aggregations: []", 5, "the list is empty"),
    ("type: integer\n    aggregations: [summ]", 5, "not one of count, sum"),
    ("type: integer\n    aggregations: [sum, sum]", 5, "used twice"),
    (
        "type: boolean\n    aggregations: [sum]",
        5,
        "`sum` is not available for an attribute of type boolean",
    ),
    ("type: integer\n    aggregations: [any]", 5, "`any` is not available"),
    (
        "type: integer\n    aggregations: [histogram: {lo: 0, width: 0, bins: 3}]",
        5,
        "must be above 0",
    ),
    (
        "type: integer\n    aggregations: [histogram: {lo: 0, width: 1, bins: 0}]",
        5,
        "between 1 and",
    ),
    (
        "type: integer\n    aggregations: [histogram: {edges: [1, 1]}]",
        5,
        "strictly ascending order",
    ),
    (
        "type: integer\n    aggregations: [histogram: {edges: [1], lo: 2}]",
        5,
        "cannot be used with `edges`",
    ),
    ("type: integer\n    aggregations: [regression: {x: y}]", 5, "no stream attribute `y`"),
    ("type: integer\n    aggregations: [regression: {x: x}]", 5, "expected a different attribute"),
    ("type: integer\n    aggregations: [regression: {x: b}]", 5, "expected a numeric attribute"),
    ("type: integer\n    aggregations: [threshold: 0.5]", 5, "decimal places"),
    (
        "type: integer\n    max: 9000000000000000000\n    aggregations: [var]",
        3,
        "may not fit in two 64-bit words",
    ),
    ("type: integer\n    aggregations: [sketch: {depth: 32, width: 8000}]", 3, "at most 8192"),
    ("type: string\n    min: 3", 5, "cannot be used with type `string`"),
];

#[test]
fn mistakes_are_reported_with_line_and_fix() {
    for (attribute, line, words) in MISTAKES {
        let (found, message) = refused(&small(attribute, PRIVATE));
        assert!(message.contains(words), "{attribute}: {message}");
        assert_eq!(found, *line, "{attribute}: {message}");
    }
}

/// A longer tick would allow a session of three days. The keys of the outer two would open
/// the sum of the middle one.
#[test]
fn ticks_are_at_most_a_day() {
    let schema = |tick: &str| {
        Schema::from_yaml(&format!("tick: {tick}\n{}", small(INTEGER, "option: public")))
    };
    for tick in ["25h", "36h", "2d", "500us"] {
        let message = schema(tick).unwrap_err().to_string();
        assert!(message.contains("1d"), "{tick}: {message}");
    }
    for tick in ["1d", "24h", "23h", "1ms"] {
        assert!(schema(tick).is_ok(), "{tick}");
    }
}

#[test]
fn frames_are_ticks_unless_the_schema_says_events() {
    let schema =
        |head: &str| Schema::from_yaml(&format!("{head}{}", small(INTEGER, "option: public")));
    let of = |head: &str| schema(head).unwrap().frames;
    let ticks = |anchor| Frames::Ticks { anchor };
    assert_eq!(of("frames: events\n"), Frames::Events);
    for head in ["", "frames: ticks\n", "anchor: 1h\n"] {
        assert_eq!(of(head), ticks(Span::seconds(3600)), "{head}");
    }
    // The first multiple of the tick that is no shorter than an hour.
    assert_eq!(of("tick: 7s\n"), ticks(Span::seconds(3605)));
    assert_eq!(of("tick: 1d\n"), ticks(Span::DAY));
    assert_eq!(of("anchor: 20s\n"), ticks(Span::seconds(20)));
    for (head, words) in [
        ("frames: windows\n", "not one of events, ticks"),
        ("frames: events\nanchor: 1h\n", "use `frames: ticks`"),
        ("anchor: 15s\n", "15s is not a multiple of the schema's tick of 10s; use 10s or 20s"),
        ("frames: ticks\nanchor: 9s\n", "between the tick, 10s, and 1d"),
        ("frames: ticks\nanchor: 25h\n", "between the tick, 10s, and 1d"),
    ] {
        let message = schema(head).unwrap_err().to_string();
        assert!(message.contains(words), "{head}: {message}");
    }
}

#[test]
fn frames_and_anchor_are_in_the_id_unless_frames_are_events() {
    let schema = |head: &str| {
        Schema::from_yaml(&format!("{head}{}", small(INTEGER, "option: public"))).unwrap()
    };
    let id = |head: &str| schema(head).id();
    assert_eq!(id(""), id("frames: ticks\n"));
    assert_eq!(id(""), id("anchor: 60min\n"));
    assert_ne!(id(""), id("frames: events\n"));
    assert_ne!(id("frames: ticks\n"), id("frames: ticks\nanchor: 2h\n"));
    for head in ["", "frames: events\n"] {
        let json = serde_json::to_string(&schema(head)).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema(head));
    }
}

#[test]
fn mistakes_in_options_are_reported_with_line_and_fix() {
    let cases = [
        ("option: aggregated", "not one of private, public"),
        ("option: private\n    clients: 10", "which allows nothing"),
        ("option: public\n    window: 1hr", "use `stream-aggregate`"),
        ("option: stream-aggregate\n    clients: 10", "releases one stream"),
        ("option: aggregate\n    clients: huge", "not a number"),
        ("option: aggregate\n    clients: 0", "between 1 and"),
        (
            "option: aggregate\n    window: 15s",
            "15s is not a multiple of the schema's tick of 10s; use 10s or 20s",
        ),
        ("option: aggregate\n    window: soon", "not a duration"),
        ("option: aggregate\n    alpha: 1.5", "not a fraction"),
        ("option: stream-aggregate\n    colluders: 1", "cannot be used with"),
        ("option: aggregate\n    attributes: [y]", "no stream attribute `y`"),
        ("option: aggregate\n    generalise: {attribute: x, width: 5}", "no histogram"),
        ("option: aggregate\n    budget: {unit: event}", "use `dp-aggregate`"),
        ("option: dp-aggregate", "`budget` is missing"),
        ("option: dp-aggregate\n    budget: {perWindow: 1, total: 2}", "`unit` is missing"),
        (
            "option: dp-aggregate\n    budget: {perWindow: 3, total: 2, unit: event}",
            "at most `total`",
        ),
        ("option: dp-aggregate\n    budget: {perWindow: 0, total: 2, unit: event}", "above 0"),
        (
            "option: dp-aggregate\n    budget: {perWindow: 1, total: 2, unit: event, period: 1d}",
            "cannot be used with this unit",
        ),
        ("option: aggregate\n    trusted: [abc]", "64 hexadecimal digits"),
    ];
    for (option, words) in cases {
        let (line, message) = refused(&small(INTEGER, option));
        assert!(message.contains(words), "{option}: {message}");
        let expected = if words.contains("is missing") { 7..=9 } else { 8..=9 };
        assert!(expected.contains(&line), "{option}: line {line}: {message}");
    }
}

#[test]
fn names_that_queries_could_not_distinguish_are_refused() {
    for names in [("a", "A"), ("a-b", "a_b"), ("region", "Region")] {
        let text = format!(
            "name: T\nmetadataAttributes: [{{name: {}, type: string}}]\nstreamAttributes: [{{name: {}, type: integer}}]",
            names.0, names.1
        );
        assert!(refused(&text).1.contains("used twice"), "{names:?}");
    }
    assert!(
        refused("name: 1x\nstreamAttributes: [{name: a, type: integer}]").1.contains("start with")
    );
}

#[test]
fn numbers_are_read_exactly() {
    let text = small(
        "type: decimal\n    scale: 3\n    min: -0.005\n    max: \"1e2\"\n    aggregations: [histogram: {lo: -0.005, width: 0.2, bins: 3}]",
        PRIVATE,
    );
    let schema = Schema::from_yaml(&text).unwrap();
    assert_eq!(
        schema.attributes[0].kind,
        AttributeKind::Number { scale: 3, min: -5, max: 100_000 }
    );
    let edges = Edges::Uniform { lo: -5, width: 200, bins: 3 };
    assert_eq!(schema.attributes[0].aggregations, [Aggregation::Histogram(edges)]);
}

#[test]
fn capacity_and_budget_are_read_exactly() {
    let budget = "option: dp-aggregate\n    budget: {perWindow: 0.5, total: 10, delta: 1e-9, unit: person-per-period, period: 30d}";
    let text = small(INTEGER, budget).replace(
        "name: T\n",
        "name: T\ncapacity: {population: 5, eventsPerSecond: 0.3, window: 10s}\n",
    );
    let schema = Schema::from_yaml(&text).unwrap();
    assert_eq!((schema.capacity.population, schema.capacity.events), (5, 3));
    let budget = schema.options[0].budget.unwrap();
    assert_eq!((budget.window_micro_epsilon, budget.total_micro_epsilon), (500_000, 10_000_000));
    assert_eq!(budget.atto_delta, 1_000_000_000);
    assert_eq!(budget.unit, PrivacyUnit::PersonPerPeriod(Span::seconds(30 * 86_400)));
}

#[test]
fn mistakes_in_avro_are_reported_with_their_path() {
    for (from, to, place, words) in [
        ("\"int\"", "\"float\"", "$.fields[0].type", "int, long, boolean"),
        ("[\"var\"]", "[\"vr\"]", "$.fields[0].alpheus.aggregations[0]", "not one of count"),
        (
            "[\"1hr\"]",
            "[\"1fortnight\"]",
            "$.alpheus.streamPolicyOptions[0].window[0]",
            "not a duration",
        ),
        ("\"record\"", "\"rekord\"", "$.type", "expected \"record\""),
        ("\"health\"", "\"he-alth\"", "$.namespace", "a name of letters"),
        ("heart_rate", "heart-rate", "$.fields[0].name", "a name of letters"),
        ("\"hrv\"", "\"heart_rate\"", "$.fields[1].name", "appears twice"),
        (
            "\"beats\"",
            "\"beats\", \"default\": \"0\"",
            "$.fields[0].default",
            "a value of the field's type",
        ),
        ("\"beats\"", "5", "$.fields[0].doc", "a quoted text"),
        (
            "\"aggregations\": [\"var\"]",
            "\"min\": 0.5",
            "$.fields[0].alpheus.min",
            "must be quoted",
        ),
        (
            "\"aggregations\": [\"var\"]",
            "\"type\": \"decimal\"",
            "$.fields[0].alpheus.type",
            "an Avro type",
        ),
    ] {
        let error = Schema::from_avsc(&AVSC_3.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.at.to_string(), place, "{error}");
        assert!(error.problem.to_string().contains(words), "{error}");
    }
    apache_avro::Schema::parse_str(AVSC_RICH).unwrap();
    assert_eq!(Schema::from_avsc(AVSC_RICH).unwrap().attributes.len(), 3);
    let optional = AVSC_3.replacen("\"int\"", "[\"null\", \"int\"]", 1);
    assert!(Schema::from_avsc(&optional).unwrap().attributes[0].optional);
}

#[test]
fn choices_beyond_what_is_offered_are_refused() {
    let schema = Schema::from_yaml(FIGURE_3).unwrap();
    for (choices, words) in [
        ("default: {hrx: aggr}", "no stream attribute `hrx`"),
        ("default: {hrv: agr}", "offers no policy option `agr`"),
        ("default: {hrv: {option: aggr, clients: small}}", "not a number"),
        ("default: {hrv: {option: aggr, clients: 10}}", "choose one of 100, 1000"),
        ("default: {hrv: {option: aggr, window: 1d}}", "choose one of 1h"),
        ("default: {hrv: {option: priv, window: 1hr}}", "cannot be used with a private option"),
        ("default: {hrv: aggr, HRV: priv}", "used twice"),
        ("schema: Other", "for schema `Other`, not `MedicalSensor`"),
        ("mix: [{share: 0.6, policy: {}}, {share: 1/2, policy: {}}]", "more than 1"),
        ("validFrom: 2021-01-01\nvalidTo: 2020-01-01", "later than"),
    ] {
        let error = Policies::from_yaml(choices, &schema).unwrap_err();
        assert!(error.problem.to_string().contains(words), "{choices}: {error}");
        assert!(error.at.line.is_some());
    }
}

#[test]
fn a_mix_is_assigned_by_name_and_owners_may_differ() {
    let schema = Schema::from_yaml(FIGURE_3).unwrap();
    let text = "default: {'*': aggr}\nmix: [{share: 1/4, policy: {hrv: priv}}]\nowners: {p01: {heart-rate: priv}}";
    let policies = Policies::from_yaml(text, &schema).unwrap();
    let is_private = |owner: &str| policies.of_owner(owner).attributes[1].alternatives.is_empty();
    let share = (0..2000).filter(|n| is_private(&format!("owner {n}"))).count();
    assert!((400..600).contains(&share), "{share} of 2000 instead of about 500");
    let own = policies.of_owner("p01");
    assert!(own.attributes[0].alternatives.is_empty() && own.attributes[1].alternatives.len() == 1);
}

/// A megabyte of keys, or too many cells for a vector.
#[test]
fn large_documents_are_refused() {
    let keys: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    assert!(Schema::from_yaml(&keys).is_err());
    let attribute = |n: usize| {
        let thresholds: Vec<String> = (0..900).map(|at| format!("threshold: {at}")).collect();
        format!("- {{name: a{n}, type: integer, aggregations: [{}]}}\n", thresholds.join(", "))
    };
    let many: String = (0..60).map(attribute).collect();
    let refused = Schema::from_yaml(&format!("name: T\nstreamAttributes:\n{many}")).unwrap_err();
    assert!(refused.problem.to_string().contains("at most 8192"), "{refused}");
}

/// Removes or repeats a line of the text, or changes a character.
fn mutated(text: &str, at: usize, with: char, kind: u8) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = at % lines.len();
    match kind % 4 {
        0 => drop(lines.remove(line)),
        1 => {
            let again = lines[line].clone();
            lines.insert(line, again);
        }
        2 => {
            let place = lines[line].len().min(at % 7);
            lines[line].insert(place, with);
        }
        _ => lines[line].extend([' ', with]),
    }
    lines.join("\n")
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text: String) {
        let _ = Schema::from_yaml(&text);
        let _ = Schema::from_avsc(&text);
        let _ = Policies::from_yaml(&text, &Schema::from_yaml(FIGURE_3).unwrap());
    }

    /// A damaged schema is refused, or read. If it is read, it means the same in Avro.
    #[test]
    fn damaged_schemas_are_read_without_a_panic(at: usize, with: char, kind: u8) {
        let text = mutated(FIGURE_3, at, with, kind);
        if let Ok(schema) = Schema::from_yaml(&text) {
            let avro = avsc_of_yaml(&text).unwrap();
            prop_assert_eq!(Schema::from_avsc(&avro).unwrap().id(), schema.id());
        }
        let avro = mutated(AVSC_3, at, with, kind);
        // The Avro library accepts everything that we accept.
        prop_assert!(Schema::from_avsc(&avro).is_err() || apache_avro::Schema::parse_str(&avro).is_ok(), "{avro}");
        let avro = mutated(AVSC_RICH, at, with, kind);
        prop_assert!(Schema::from_avsc(&avro).is_err() || apache_avro::Schema::parse_str(&avro).is_ok(), "{avro}");
    }
}
