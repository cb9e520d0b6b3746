//! What was seen of each metric in captured requests.

use crate::message::{ExportRequest, Metric};
use crate::point::{Content, Flow, Point, by_key, points};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};

/// Values of one key that are remembered; more are too many to tell series apart by.
pub const MAX_VALUES: usize = 8;

/// What was seen.
#[derive(Debug, Default)]
pub struct Survey {
    /// Attributes of resources, with their values.
    pub resource: BTreeMap<String, BTreeSet<String>>,
    /// Metrics by name.
    pub metrics: BTreeMap<String, MetricSurvey>,
}

/// What kind a metric is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Values that add up.
    Sum {
        /// Whether they never fall.
        is_monotonic: bool,
    },
    /// Values at moments.
    Gauge,
    /// Counts between bounds.
    Histogram,
    /// Counts between powers.
    Exponential,
    /// Quantiles.
    Summary,
    /// No kind, or several.
    Unclear,
}

/// What was seen of one metric.
#[derive(Debug)]
pub struct MetricSurvey {
    /// Its kind.
    pub kind: Kind,
    /// Its unit.
    pub unit: String,
    /// Whether it has a description.
    pub is_described: bool,
    /// The most decimal places of its values; 0 if all were whole.
    pub places: u8,
    /// Whether a value fell below zero.
    pub is_negative: bool,
    /// Bounds of all points, if they agree.
    pub bounds: Option<Vec<f64>>,
    /// Whether points disagree about bounds.
    pub bounds_differ: bool,
    /// The scale and the buckets of exponential points.
    pub buckets: Option<(i32, i64, i64)>,
    /// Whether points have least or greatest values, or exemplars, is not read; whether points
    /// are cumulative.
    pub is_cumulative: bool,
    /// Attributes of points, with their values.
    pub attributes: BTreeMap<String, BTreeSet<String>>,
    /// The attributes of each series.
    pub series: BTreeSet<BTreeMap<String, String>>,
}

/// A capture that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Neither format.
    #[error(
        "not OTLP metrics: neither JSON (one request, or one per line) nor Protobuf of an ExportMetricsServiceRequest"
    )]
    Malformed,
    /// Nothing in it.
    #[error("the file has no metrics; capture some with `alpheus otlp capture`")]
    Empty,
}

/// The requests of a captured file: JSON, one request or one a line, or one in Protobuf.
///
/// # Errors
/// [`CaptureError`].
pub fn requests(bytes: &[u8]) -> Result<Vec<ExportRequest>, CaptureError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let all = match first {
        None => Vec::new(),
        Some(b'{') => {
            let stream = serde_json::Deserializer::from_slice(bytes).into_iter();
            stream.collect::<Result<Vec<_>, _>>().map_err(|_| CaptureError::Malformed)?
        }
        Some(_) => vec![ExportRequest::decode(bytes).map_err(|_| CaptureError::Malformed)?],
    };
    let metrics = |request: &ExportRequest| {
        let scopes = request.resource_metrics.iter().flat_map(|own| &own.scope_metrics);
        scopes.flat_map(|own| &own.metrics).count()
    };
    if all.iter().map(metrics).sum::<usize>() == 0 { Err(CaptureError::Empty) } else { Ok(all) }
}

impl Survey {
    /// Adds what a request shows.
    pub fn look(&mut self, request: &ExportRequest) {
        for resource in &request.resource_metrics {
            for (key, value) in resource.resource.iter().flat_map(|own| by_key(&own.attributes)) {
                note(self.resource.entry(key).or_default(), value);
            }
            for metric in resource.scope_metrics.iter().flat_map(|own| &own.metrics) {
                let kind = kind(metric);
                let seen = self.metrics.entry(metric.name.clone());
                seen.or_insert_with(|| MetricSurvey::new(kind, metric)).look(kind, metric);
            }
        }
    }
}

/// One more than what is remembered is kept, to say that there were more.
fn note(values: &mut BTreeSet<String>, value: String) {
    if values.len() <= MAX_VALUES {
        values.insert(value);
    }
}

fn kind(metric: &Metric) -> Kind {
    let kinds = [
        metric.gauge.as_ref().map(|_| Kind::Gauge),
        metric.sum.as_ref().map(|sum| Kind::Sum { is_monotonic: sum.is_monotonic }),
        metric.histogram.as_ref().map(|_| Kind::Histogram),
        metric.exponential_histogram.as_ref().map(|_| Kind::Exponential),
        metric.summary.as_ref().map(|_| Kind::Summary),
    ];
    kinds.into_iter().flatten().next().unwrap_or(Kind::Unclear)
}

impl MetricSurvey {
    fn new(kind: Kind, metric: &Metric) -> MetricSurvey {
        MetricSurvey {
            kind,
            unit: metric.unit.clone(),
            is_described: false,
            places: 0,
            is_negative: false,
            bounds: None,
            bounds_differ: false,
            buckets: None,
            is_cumulative: false,
            attributes: BTreeMap::new(),
            series: BTreeSet::new(),
        }
    }

    fn look(&mut self, kind: Kind, metric: &Metric) {
        if kind != self.kind {
            self.kind = Kind::Unclear;
        }
        self.is_described |= !metric.description.is_empty();
        let Some((flow, points)) = points(metric) else { return };
        self.is_cumulative |= matches!(flow, Ok(Flow::Cumulative { .. }));
        for point in &points {
            self.point(point);
        }
    }

    fn point(&mut self, point: &Point<'_>) {
        let of = by_key(point.attributes);
        for (key, value) in &of {
            note(self.attributes.entry(key.clone()).or_default(), value.clone());
        }
        // More than this many series are too many for a schema.
        if self.series.len() < 1000 {
            self.series.insert(of);
        }
        match point.content {
            Content::Number(own) => {
                self.is_negative |= own.as_int.is_some_and(|value| value < 0);
                own.as_double.iter().for_each(|value| self.value(*value));
            }
            Content::Histogram(own) => {
                own.sum.iter().for_each(|value| self.value(*value));
                let bounds = &own.explicit_bounds;
                self.bounds_differ |= self.bounds.as_ref().is_some_and(|seen| seen != bounds);
                self.bounds.get_or_insert_with(|| bounds.clone());
            }
            Content::Exponential(own) => {
                own.sum.iter().for_each(|value| self.value(*value));
                let Some(positive) = &own.positive else { return };
                let many = i64::try_from(positive.bucket_counts.len()).unwrap_or(i64::MAX);
                let (low, high) =
                    (i64::from(positive.offset), i64::from(positive.offset) + many - 1);
                if many > 0 {
                    self.buckets(own.scale, low, high);
                }
            }
        }
    }

    /// Widens the buckets, at the coarser of both scales.
    fn buckets(&mut self, scale: i32, low: i64, high: i64) {
        let (coarse, lowest, highest) = self.buckets.unwrap_or((scale, low, high));
        let to = scale.min(coarse);
        let shift = |from: i32, index: i64| {
            index >> u32::try_from((i64::from(from) - i64::from(to)).min(63)).unwrap_or(0)
        };
        let low = shift(scale, low).min(shift(coarse, lowest));
        let high = shift(scale, high).max(shift(coarse, highest));
        self.buckets = Some((to, low, high));
    }

    fn value(&mut self, value: f64) {
        self.is_negative |= value < 0.0;
        let text = value.to_string();
        let behind = text.split_once('.').map_or(0, |(_, behind)| behind.len());
        self.places = self.places.max(u8::try_from(behind).unwrap_or(u8::MAX).max(1));
    }
}
