//! A schema, policies and a mapping from what was seen.

use crate::capture::{Kind, MAX_VALUES, MetricSurvey, Survey};
use crate::mapping::{CompiledMapping, Mapping, MetricMap, SUM, SeriesMap, Shape};
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use alpheus_standards::inventory::Entry;
use alpheus_standards::names::Names;
use alpheus_standards::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// The most series with attributes of their own, of one metric.
const MAX_SERIES: usize = 24;
/// The most attributes of a schema.
const MAX_ATTRIBUTES: usize = 1000;
/// Longest beginning of names, so that endings have room.
const MAX_PREFIX: usize = 40;
/// The largest count of one event.
const MAX_COUNT: i64 = 1_000_000_000;
/// The largest value of one event in units of its last place: ten million of them fit a word.
const MAX_VALUE: i64 = 900_000_000_000;
/// Decimal places of values with a point.
const PLACES: (u8, u8) = (3, 6);
/// The usual scale of exponential buckets: powers of two. Coarser points are rare.
const SCALE: i32 = 0;
/// Buckets beside those that were seen.
const MARGIN: i64 = 4;

/// What was written, as texts of files, and what became of each part.
#[derive(Debug)]
pub struct Draft {
    /// The schema.
    pub schema: String,
    /// The policies.
    pub policies: String,
    /// The mapping.
    pub mapping: Mapping,
    /// Parts that are in these files.
    pub carried: Vec<Entry>,
    /// Parts that are not.
    pub not_carried: Vec<Entry>,
}

/// Why nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// No metric can be carried.
    #[error("the file has no metric that can be added up; sums, gauges and histograms can")]
    Nothing,
    /// A written file would not be read again: a defect of this program.
    #[error(
        "the {file} that would be written is not valid: {problem}; please report these metrics"
    )]
    Invalid {
        /// Which file.
        file: &'static str,
        /// What its parser says.
        problem: String,
    },
}

/// Drafts all files.
///
/// # Errors
/// [`DraftError`].
pub fn draft(seen: &Survey, name: &str) -> Result<Draft, DraftError> {
    let mut writer = Writer::default();
    for (metric, own) in &seen.metrics {
        writer.metric(metric, own);
    }
    if writer.mapping.metrics.is_empty() {
        return Err(DraftError::Nothing);
    }
    let name = Names::default().give(name, "Metrics");
    let (metadata, names) = writer.resource(&seen.resource);
    let schema = schema_text(&name, &metadata, &writer.attributes, &writer.names);
    let policies = format!(
        "# What is released for owners who have not chosen themselves.\nschema: {name}\ndefault: {{ \"*\": {{ option: crowd, clients: 100, window: 1hr }} }}\n"
    );
    let Writer { mapping, carried, not_carried, .. } = writer;
    let _ = names;
    let draft = Draft { schema, policies, mapping, carried, not_carried };
    check(&draft)?;
    Ok(draft)
}

/// What is written is read again by those who use it.
fn check(draft: &Draft) -> Result<(), DraftError> {
    let invalid = |file, problem: String| DraftError::Invalid { file, problem };
    let schema = Schema::from_yaml(&draft.schema).map_err(|e| invalid("schema", e.to_string()))?;
    Policies::from_yaml(&draft.policies, &schema)
        .map_err(|e| invalid("policies", e.to_string()))?;
    CompiledMapping::of(&draft.mapping, &schema).map_err(|e| invalid("mapping", e.to_string()))?;
    Ok(())
}

fn schema_text(name: &str, metadata: &str, attributes: &str, names: &[String]) -> String {
    format!(
        "# A draft by `alpheus otlp import` from captured metrics. import.json lists what became of each part.\n\
         name: {name}\nversion: 1\ntick: 10s\n\
         # Bounds on owners, and on events of one owner in a window: each export is one or more, so a window longer than an\n\
         # hour needs more.\n\
         capacity: {{ population: 10000, events: 1000 }}\n{metadata}streamAttributes:\n{attributes}\
         streamPolicyOptions:\n  \
         # Only in a crowd. A restart of the receiver may take a minute.\n  \
         - {{ name: crowd, option: aggregate, clients: [100, 1000], window: [1min, 1hr], missingTicks: 6, attributes: [{}] }}\n  \
         - {{ name: private, option: private }}\n",
        names.join(", ")
    )
}

#[derive(Default)]
struct Writer {
    prefixes: Names,
    taken: BTreeSet<String>,
    names: Vec<String>,
    attributes: String,
    mapping: Mapping,
    carried: Vec<Entry>,
    not_carried: Vec<Entry>,
}

const DESCRIPTION: &str = "text for people; a schema keeps no descriptions";
const EXTREMES: &str = "least and greatest values and exemplars do not add up; they are not read";

impl Writer {
    fn leave(&mut self, path: &str, of: &str, why: impl Into<String>) {
        self.not_carried.push(Entry { path: path.to_owned(), of: of.to_owned(), why: why.into() });
    }

    fn carry(&mut self, path: &str, of: &str, why: impl Into<String>) {
        self.carried.push(Entry { path: path.to_owned(), of: of.to_owned(), why: why.into() });
    }

    fn metric(&mut self, metric: &str, own: &MetricSurvey) {
        let path = format!("metrics[{}]", Tree::quoted(metric));
        let shape = match shape(own) {
            Ok(shape) => shape,
            Err(why) => return self.leave(&path, metric, why),
        };
        let by = self.keys(&path, metric, own);
        let mut all: BTreeSet<BTreeMap<String, String>> = BTreeSet::new();
        for series in &own.series {
            all.insert(
                series
                    .iter()
                    .filter(|(key, _)| by.contains(key))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            );
        }
        all.remove(&BTreeMap::new());
        let endings = shape.endings();
        if self.names.len() + endings.len() * (all.len() + 1) > MAX_ATTRIBUTES
            || all.len() > MAX_SERIES
        {
            let why = "it has more series than a schema has room for; they are added up";
            self.leave(&format!("{path}.series"), metric, why);
            all.clear();
        }
        if self.names.len() + endings.len() > MAX_ATTRIBUTES {
            return self.leave(
                &path,
                metric,
                "a schema has at most 1000 attributes; import fewer metrics",
            );
        }
        let by = if all.is_empty() { Vec::new() } else { by };
        let mut series = Vec::new();
        for of in all {
            let wanted = format!("{metric}_{}", of.values().cloned().collect::<Vec<_>>().join("_"));
            let prefix = self.prefix(&wanted, &endings);
            self.write(&prefix, own, &shape);
            series.push(SeriesMap { of, prefix });
        }
        let other = if series.is_empty() { metric.to_owned() } else { format!("{metric}_other") };
        let other = self.prefix(&other, &endings);
        self.write(&other, own, &shape);
        self.report(&path, metric, own, &other);
        self.mapping.metrics.push(MetricMap { name: metric.to_owned(), shape, by, series, other });
    }

    /// The keys that distinguish series.
    fn keys(&mut self, path: &str, metric: &str, own: &MetricSurvey) -> Vec<String> {
        let mut keys = Vec::new();
        for (key, values) in &own.attributes {
            let at = format!("{path}.attributes[{}]", Tree::quoted(key));
            if values.len() > MAX_VALUES {
                self.leave(&at, metric, "it has more than 8 values; points are added up over it");
            } else if key.is_empty() {
                self.leave(&at, metric, "it has no name; points are added up over it");
            } else if may_name_persons(key, values.iter().map(String::as_str)) {
                self.leave(
                    &at,
                    metric,
                    "it may name persons, and a schema is public; points are added up over it",
                );
            } else {
                self.carry(&at, metric, "tells series apart: each value seen has attributes of its own, and all others have `other`");
                keys.push(key.clone());
            }
        }
        keys
    }

    /// A beginning under which no name is taken.
    fn prefix(&mut self, wanted: &str, endings: &[String]) -> String {
        let short: String = wanted.chars().take(MAX_PREFIX).collect();
        loop {
            let prefix = self.prefixes.give(&short, "metric");
            let full = |ending: &String| format!("{prefix}{ending}").to_ascii_lowercase();
            if endings.iter().all(|ending| !self.taken.contains(&full(ending))) {
                self.taken.extend(endings.iter().map(full));
                return prefix;
            }
        }
    }

    fn write(&mut self, prefix: &str, own: &MetricSurvey, shape: &Shape) {
        let places = if own.places == 0 { 0 } else { own.places.clamp(PLACES.0, PLACES.1) };
        let is_number = matches!(shape, Shape::Sum | Shape::Gauge);
        for (part, ending) in shape.endings().iter().enumerate() {
            let has_values = is_number || part == usize::from(SUM);
            let name = format!("{prefix}{ending}");
            let unit = if has_values { own.unit.as_str() } else { "" };
            let (places, max) = if has_values { (places, MAX_VALUE) } else { (0, MAX_COUNT) };
            let may_fall =
                has_values && (own.is_negative || own.kind != Kind::Sum { is_monotonic: true });
            let max = alpheus_policy::decimal::format_scaled(max, places);
            let min = if may_fall { format!("-{max}") } else { "0".to_owned() };
            let kind = if places == 0 {
                "integer".to_owned()
            } else {
                format!("decimal, scale: {places}")
            };
            let is_shown =
                !unit.is_empty() && unit.len() <= 256 && !unit.contains(char::is_control);
            let unit =
                if is_shown { format!(", unit: {}", Tree::quoted(unit)) } else { String::new() };
            let statistic = if *shape == Shape::Gauge { "mean" } else { "sum" };
            self.attributes.push_str(&format!(
                "  - {{ name: {name}, type: {kind}, min: {min}, max: {max}{unit}, optional: true, aggregations: [{statistic}] }}\n"
            ));
            self.names.push(name);
        }
    }

    fn report(&mut self, path: &str, metric: &str, own: &MetricSurvey, prefix: &str) {
        self.carry(
            path,
            metric,
            format!("attributes whose names begin with `{prefix}` or the series' own beginnings"),
        );
        if !own.unit.is_empty() {
            self.carry(&format!("{path}.unit"), metric, "the unit of the attributes with values");
        }
        if own.is_described {
            self.leave(&format!("{path}.description"), metric, DESCRIPTION);
        }
        if own.is_cumulative {
            self.carry(
                &format!("{path}.aggregationTemporality"),
                metric,
                "cumulative values are turned into differences",
            );
        }
        if matches!(own.kind, Kind::Histogram | Kind::Exponential) {
            self.leave(&format!("{path}.min, max, exemplars"), metric, EXTREMES);
        }
        if own.bounds_differ {
            let why = "points had different bounds; those of the first are attributes, and other points count as unplaced";
            self.leave(&format!("{path}.explicitBounds"), metric, why);
        } else if own.kind == Kind::Histogram {
            self.carry(
                &format!("{path}.explicitBounds"),
                metric,
                "a bucket up to each bound, and one behind the last",
            );
        }
        if own.kind == Kind::Exponential {
            let why = "buckets are added up to powers of two, or of a larger base if they are coarser; values beyond the captured buckets and four more are in `_below` and `_above`; negative values have one bucket";
            self.carry(&format!("{path}.positive"), metric, why);
        }
    }

    /// Attributes of resources that become metadata of streams.
    fn resource(&mut self, resource: &BTreeMap<String, BTreeSet<String>>) -> (String, Names) {
        let (mut text, mut names) = (String::new(), Names::default());
        for (key, values) in resource {
            let path = format!("resource.attributes[{}]", Tree::quoted(key));
            let is_plain = |value: &String| {
                !value.is_empty() && value.len() <= 256 && !value.contains(char::is_control)
            };
            if values.len() != 1 || !values.iter().all(is_plain) || key.is_empty() {
                self.leave(
                    &path,
                    "",
                    "it differs among what was captured, so it is not of a stream",
                );
                continue;
            }
            if !matches!(
                key.as_str(),
                "service.name"
                    | "service.namespace"
                    | "service.version"
                    | "deployment.environment"
                    | "deployment.environment.name"
                    | "cloud.region"
                    | "cloud.availability_zone"
            ) {
                self.leave(&path, "", "may name a person, a host or a process; write it as metadata if streams are to be chosen by it");
                continue;
            }
            let wanted = self.prefix(key, &[String::new()]);
            let name = names.give(&wanted, "resource");
            text.push_str(&format!("  - {{ name: {name}, type: string, optional: true }}\n"));
            self.carry(&path, "", format!("metadata `{name}`, which `owner add` gives a stream"));
        }
        let text = if text.is_empty() { text } else { format!("metadataAttributes:\n{text}") };
        (text, names)
    }
}

/// Words of keys whose values are of persons or of what stands for them.
const PERSONS: &[&str] = &[
    "account",
    "client",
    "customer",
    "device",
    "email",
    "employee",
    "enduser",
    "guest",
    "ip",
    "mail",
    "member",
    "msisdn",
    "owner",
    "patient",
    "peer",
    "person",
    "phone",
    "session",
    "subscriber",
    "tenant",
    "user",
    "userid",
    "username",
    "visitor",
];

/// Whether the values of a key may name persons. They would be in the schema.
fn may_name_persons<'a>(key: &str, mut values: impl Iterator<Item = &'a str>) -> bool {
    let lower = key.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| PERSONS.contains(&word.strip_suffix('s').unwrap_or(word)))
        || PERSONS.iter().any(|word| word.len() > 3 && lower.starts_with(word))
        || values.any(|value| value.contains('@'))
}

fn shape(own: &MetricSurvey) -> Result<Shape, &'static str> {
    match own.kind {
        Kind::Sum { .. } => Ok(Shape::Sum),
        Kind::Gauge => Ok(Shape::Gauge),
        Kind::Histogram => {
            let bounds = own.bounds.clone().unwrap_or_default();
            let ascend = bounds.iter().zip(bounds.iter().skip(1)).all(|(one, next)| one < next);
            let is_fine =
                ascend && bounds.len() < 500 && bounds.iter().all(|bound| bound.is_finite());
            if is_fine {
                Ok(Shape::Histogram { bounds })
            } else {
                Err("its bounds do not ascend, or are too many")
            }
        }
        Kind::Exponential => {
            let (scale, low, high) = own.buckets.unwrap_or((SCALE, 0, 0));
            let to = scale.min(SCALE);
            let shift = u32::try_from((i64::from(scale) - i64::from(to)).min(63)).unwrap_or(0);
            let bound = |index: i64| i32::try_from(index.clamp(-1100, 1100)).unwrap_or(0);
            let (low, high) = (bound((low >> shift) - MARGIN), bound((high >> shift) + MARGIN));
            if i64::from(high) - i64::from(low) > 300 {
                return Err("it has too many buckets");
            }
            Ok(Shape::Exponential { scale: to, low, high })
        }
        Kind::Summary => Err("quantiles of a summary cannot be added up; send a histogram"),
        Kind::Unclear => Err("its kind is missing, or differs among what was captured"),
    }
}
