//! Which attributes of a schema a metric becomes: the file `otlp.json`, which `alpheus otlp import`
//! writes and `alpheus otlp` reads.

use alpheus_policy::schema::{AttributeKind, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest part of a name that says a bound.
const MAX_BOUND: usize = 16;

/// What each metric becomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The metrics. Others are refused.
    pub metrics: Vec<MetricMap>,
}

/// What one metric becomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricMap {
    /// Its name.
    pub name: String,
    /// What its points have.
    pub shape: Shape,
    /// Attributes of its points that tell its series apart. Points are added up over others.
    #[serde(default)]
    pub by: Vec<String>,
    /// Series with attributes of their own in the schema.
    #[serde(default)]
    pub series: Vec<SeriesMap>,
    /// What the names begin with for all other series.
    pub other: String,
}

/// A series of points with the same attributes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesMap {
    /// Its attributes.
    pub of: BTreeMap<String, String>,
    /// What its names in the schema begin with.
    pub prefix: String,
}

/// What the points of a metric have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// A value that adds up.
    Sum,
    /// A value at a moment.
    Gauge,
    /// Counts between bounds.
    Histogram {
        /// The bounds, ascending.
        bounds: Vec<f64>,
    },
    /// Counts between powers of `2^(2^-scale)`. Bucket `i` has the values above the `i`-th power,
    /// up to the next.
    Exponential {
        /// How fine the buckets are.
        scale: i32,
        /// The first bucket. Smaller positive values are in [`BELOW`].
        low: i32,
        /// The last bucket. Larger values are in [`ABOVE`].
        high: i32,
    },
}

/// Where the sum of a histogram's values stands among its parts.
pub const SUM: u16 = 1;
/// Where an exponential histogram's positive values below its first bucket stand.
pub const BELOW: u16 = 4;
/// Where an exponential histogram's values above its last bucket stand.
pub const ABOVE: u16 = 5;

impl Shape {
    /// What the names of its attributes end in, in order.
    #[must_use]
    pub fn endings(&self) -> Vec<String> {
        let mut all = vec!["_count".to_owned(), "_sum".to_owned()];
        match self {
            Shape::Sum | Shape::Gauge => return vec![String::new()],
            Shape::Histogram { bounds } => {
                all.extend(bounds.iter().enumerate().map(|(at, bound)| up_to(at, *bound)));
                all.push(bounds.last().map_or("_all".to_owned(), |last| {
                    up_to(bounds.len(), *last).replacen("_to_", "_over_", 1)
                }));
            }
            Shape::Exponential { low, high, .. } => {
                all.extend(["_zero", "_negative", "_below", "_above"].map(str::to_owned));
                let sign = |index: i32| if index < 0 { "minus_" } else { "" };
                let name = |index: i32| format!("_at_{}{}", sign(index), index.unsigned_abs());
                all.extend((*low..=*high).map(name));
            }
        }
        all.push("_unplaced".to_owned());
        all
    }
}

/// `_to_0_5` for values up to 0.5.
fn up_to(place: usize, bound: f64) -> String {
    let text = bound.to_string().replace('.', "_").replace('-', "minus_");
    let plain =
        text.len() <= MAX_BOUND && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { format!("_to_{text}") } else { format!("_bucket_{place}") }
}

/// Why a mapping does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// An attribute is missing.
    #[error(
        "`{metric}` becomes `{attribute}`, but the schema has no numeric attribute of that name; use the schema and the mapping of the same import"
    )]
    NoAttribute {
        /// The metric.
        metric: String,
        /// The attribute.
        attribute: String,
    },
    /// Two metrics have one name.
    #[error("`{metric}` is in the mapping twice; remove one")]
    Twice {
        /// The metric.
        metric: String,
    },
    /// Buckets that are out of order, or too many.
    #[error(
        "the bounds of `{metric}` must be in ascending order, and there may be at most 1000 buckets"
    )]
    Bounds {
        /// The metric.
        metric: String,
    },
}

/// The most buckets of a histogram.
const MAX_BUCKETS: usize = 1000;

/// An attribute that a part of a point becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its position in the schema.
    pub position: u16,
    /// Its decimal places.
    pub scale: u8,
    /// The smallest value in one event, in units of the last place.
    pub min: i64,
    /// The largest value in one event.
    pub max: i64,
}

/// A mapping, with the schema's attributes in place of their names.
#[derive(Clone, Debug)]
pub struct CompiledMapping {
    metrics: BTreeMap<String, CompiledMetric>,
}

/// What one metric becomes.
#[derive(Clone, Debug)]
pub struct CompiledMetric {
    /// What its points have.
    pub shape: Shape,
    by: Vec<String>,
    series: Vec<(BTreeMap<String, String>, Vec<Target>)>,
    other: Vec<Target>,
}

impl CompiledMapping {
    /// Finds every attribute in the schema.
    ///
    /// # Errors
    /// [`MappingError`].
    pub fn of(mapping: &Mapping, schema: &Schema) -> Result<CompiledMapping, MappingError> {
        let mut metrics = BTreeMap::new();
        for own in &mapping.metrics {
            let metric = own.name.clone();
            if !is_in_order(&own.shape) {
                return Err(MappingError::Bounds { metric });
            }
            let series = own
                .series
                .iter()
                .map(|series| Ok((series.of.clone(), targets(own, &series.prefix, schema)?)));
            let compiled = CompiledMetric {
                shape: own.shape.clone(),
                by: own.by.clone(),
                series: series.collect::<Result<_, _>>()?,
                other: targets(own, &own.other, schema)?,
            };
            if metrics.insert(metric.clone(), compiled).is_some() {
                return Err(MappingError::Twice { metric });
            }
        }
        Ok(CompiledMapping { metrics })
    }

    /// What a metric becomes.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&CompiledMetric> {
        self.metrics.get(name)
    }
}

impl CompiledMetric {
    /// The attributes that a point becomes which has these attributes.
    #[must_use]
    pub fn targets(&self, attributes: &BTreeMap<String, String>) -> &[Target] {
        let own: BTreeMap<&String, &String> =
            attributes.iter().filter(|(key, _)| self.by.contains(key)).collect();
        let is_own = |of: &BTreeMap<String, String>| {
            of.len() == own.len() && of.iter().all(|(key, value)| own.get(key) == Some(&value))
        };
        let found = self.series.iter().find(|(of, _)| is_own(of));
        found.map_or(&self.other, |(_, targets)| targets)
    }
}

fn is_in_order(shape: &Shape) -> bool {
    match shape {
        Shape::Sum | Shape::Gauge => true,
        Shape::Histogram { bounds } => {
            let ascend = bounds.iter().zip(bounds.iter().skip(1)).all(|(one, next)| one < next);
            ascend && bounds.len() < MAX_BUCKETS && bounds.iter().all(|bound| bound.is_finite())
        }
        Shape::Exponential { low, high, .. } => {
            let buckets = i64::from(*high) - i64::from(*low) + 1;
            (1..=MAX_BUCKETS).contains(&usize::try_from(buckets).unwrap_or(0))
        }
    }
}

fn targets(own: &MetricMap, prefix: &str, schema: &Schema) -> Result<Vec<Target>, MappingError> {
    let target = |ending: &String| {
        let attribute = format!("{prefix}{ending}");
        let position = schema.position(&attribute);
        let kind = position
            .and_then(|at| schema.attributes.get(usize::from(at)))
            .map(|found| (&found.kind, found.optional));
        match (position, kind) {
            (Some(position), Some((AttributeKind::Number { scale, min, max }, true))) => {
                Ok(Target { position, scale: *scale, min: *min, max: *max })
            }
            _ => Err(MappingError::NoAttribute { metric: own.name.clone(), attribute }),
        }
    };
    own.shape.endings().iter().map(target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_part_is() {
        let shape = Shape::Histogram { bounds: vec![-1.0, 0.005, 10.0, 1e-30] };
        assert_eq!(
            shape.endings(),
            [
                "_count",
                "_sum",
                "_to_minus_1",
                "_to_0_005",
                "_to_10",
                "_bucket_3",
                "_bucket_4",
                "_unplaced"
            ]
        );
        let shape = Shape::Exponential { scale: 0, low: -1, high: 1 };
        let endings = shape.endings();
        assert_eq!(endings[..4], ["_count", "_sum", "_zero", "_negative"]);
        assert_eq!(
            endings[4..],
            ["_below", "_above", "_at_minus_1", "_at_0", "_at_1", "_unplaced"]
        );
        assert_eq!((endings[usize::from(BELOW)].as_str(), usize::from(ABOVE)), ("_below", 5));
        assert_eq!(
            Shape::Histogram { bounds: vec![] }.endings(),
            ["_count", "_sum", "_all", "_unplaced"]
        );
        assert_eq!(Shape::Gauge.endings(), [""]);
    }

    #[test]
    fn bounds_must_ascend() {
        assert!(is_in_order(&Shape::Histogram { bounds: vec![1.0, 2.0] }));
        assert!(!is_in_order(&Shape::Histogram { bounds: vec![2.0, 1.0] }));
        assert!(!is_in_order(&Shape::Histogram { bounds: vec![f64::NAN] }));
        assert!(!is_in_order(&Shape::Exponential { scale: 0, low: 0, high: i32::MAX }));
        assert!(!is_in_order(&Shape::Exponential { scale: 0, low: 1, high: 0 }));
    }
}
