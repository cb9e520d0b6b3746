//! The messages of OTLP metrics, as far as they are read here. Other fields are skipped, in
//! Protobuf as in JSON. Names and numbers are those of `opentelemetry/proto/metrics/v1`.

use crate::json::{bytes, real, reals, signed, temporality, whole, wholes};
use serde::Deserialize;

pub use crate::json::{CUMULATIVE, DELTA};

/// What an exporter sends.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExportRequest {
    /// Metrics by the resource that they are of.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// What an exporter is answered.
#[derive(Clone, PartialEq, prost::Message, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportResponse {
    /// Points that were not taken.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_success: Option<PartialSuccess>,
}

/// Points that were not taken, and why.
#[derive(Clone, PartialEq, prost::Message, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialSuccess {
    /// How many.
    #[prost(int64, tag = "1")]
    pub rejected_data_points: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// Metrics of one resource.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceMetrics {
    /// What is measured.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Metrics by what measures them.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// What is measured: a program, a device.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Resource {
    /// Its attributes.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Metrics of one library.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScopeMetrics {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// A library that measures.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// A metric with its points. It has one of the five kinds.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metric {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it is, for people.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Its unit.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Values at moments.
    #[prost(message, optional, tag = "5")]
    pub gauge: Option<Gauge>,
    /// Values that add up.
    #[prost(message, optional, tag = "7")]
    pub sum: Option<Sum>,
    /// Counts between given bounds.
    #[prost(message, optional, tag = "9")]
    pub histogram: Option<Histogram>,
    /// Counts between powers.
    #[prost(message, optional, tag = "10")]
    pub exponential_histogram: Option<ExponentialHistogram>,
    /// Quantiles.
    #[prost(message, optional, tag = "11")]
    pub summary: Option<Summary>,
}

/// Values at moments.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Gauge {
    /// The points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
}

/// Values that add up.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sum {
    /// The points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
    /// [`DELTA`] or [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "temporality")]
    pub aggregation_temporality: i32,
    /// Whether it never falls.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// The flag of a point without a value.
pub const NO_VALUE: u32 = 1;

/// Counts between given bounds.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Histogram {
    /// The points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramPoint>,
    /// [`DELTA`] or [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "temporality")]
    pub aggregation_temporality: i32,
}

/// Counts between powers.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExponentialHistogram {
    /// The points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<ExponentialPoint>,
    /// [`DELTA`] or [`CUMULATIVE`].
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "temporality")]
    pub aggregation_temporality: i32,
}

/// Quantiles, of which nothing adds up.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Summary {
    /// The points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<SummaryPoint>,
}

/// A value.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NumberPoint {
    /// What distinguishes it from other points of the metric.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    /// Since when it adds up, in nanoseconds; 0 if that is not known.
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "whole")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "whole")]
    pub time_unix_nano: u64,
    /// The value, if it is a number with a point.
    #[prost(double, optional, tag = "4")]
    #[serde(deserialize_with = "real")]
    pub as_double: Option<f64>,
    /// The value, if it is a whole number.
    #[prost(sfixed64, optional, tag = "6")]
    #[serde(deserialize_with = "signed")]
    pub as_int: Option<i64>,
    /// [`NO_VALUE`] or 0.
    #[prost(uint32, tag = "8")]
    pub flags: u32,
}

/// Counts of values between bounds.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HistogramPoint {
    /// What distinguishes it from other points of the metric.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Since when it adds up; 0 if that is not known.
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "whole")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "whole")]
    pub time_unix_nano: u64,
    /// The number of values.
    #[prost(fixed64, tag = "4")]
    #[serde(deserialize_with = "whole")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    #[serde(deserialize_with = "real")]
    pub sum: Option<f64>,
    /// The number of values up to each bound, and behind the last.
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(deserialize_with = "wholes")]
    pub bucket_counts: Vec<u64>,
    /// The bounds, ascending. A bound itself belongs to the bucket below it.
    #[prost(double, repeated, tag = "7")]
    #[serde(deserialize_with = "reals")]
    pub explicit_bounds: Vec<f64>,
    /// [`NO_VALUE`] or 0.
    #[prost(uint32, tag = "10")]
    pub flags: u32,
}

/// Counts of values between powers of `2^(2^-scale)`.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExponentialPoint {
    /// What distinguishes it from other points of the metric.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
    /// Since when it adds up; 0 if that is not known.
    #[prost(fixed64, tag = "2")]
    #[serde(deserialize_with = "whole")]
    pub start_time_unix_nano: u64,
    /// When it was read.
    #[prost(fixed64, tag = "3")]
    #[serde(deserialize_with = "whole")]
    pub time_unix_nano: u64,
    /// The number of values.
    #[prost(fixed64, tag = "4")]
    #[serde(deserialize_with = "whole")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    #[serde(deserialize_with = "real")]
    pub sum: Option<f64>,
    /// How fine the buckets are.
    #[prost(sint32, tag = "6")]
    pub scale: i32,
    /// The number of values that count as zero.
    #[prost(fixed64, tag = "7")]
    #[serde(deserialize_with = "whole")]
    pub zero_count: u64,
    /// Positive values.
    #[prost(message, optional, tag = "8")]
    pub positive: Option<Buckets>,
    /// Negative values.
    #[prost(message, optional, tag = "9")]
    pub negative: Option<Buckets>,
    /// [`NO_VALUE`] or 0.
    #[prost(uint32, tag = "10")]
    pub flags: u32,
}

/// Buckets that follow each other.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Buckets {
    /// The index of the first.
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    /// The number of values in each.
    #[prost(uint64, repeated, tag = "2")]
    #[serde(deserialize_with = "wholes")]
    pub bucket_counts: Vec<u64>,
}

/// Quantiles of values.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SummaryPoint {
    /// What distinguishes it from other points of the metric.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValue {
    /// Its key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute. Lists, maps and bytes tell series apart and are no texts.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AnyValue {
    /// A text.
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
    /// A truth value.
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    #[serde(deserialize_with = "signed")]
    pub int_value: Option<i64>,
    /// A number with a point.
    #[prost(double, optional, tag = "4")]
    #[serde(deserialize_with = "real")]
    pub double_value: Option<f64>,
    /// A list.
    #[prost(message, optional, tag = "5")]
    pub array_value: Option<ArrayValue>,
    /// A map.
    #[prost(message, optional, tag = "6")]
    pub kvlist_value: Option<KeyValueList>,
    /// Bytes; in JSON the text that stands for them.
    #[prost(bytes = "vec", optional, tag = "7")]
    #[serde(deserialize_with = "bytes")]
    pub bytes_value: Option<Vec<u8>>,
}

/// A list of values.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArrayValue {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

/// A map of values.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyValueList {
    /// The entries.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValue>,
}

impl AnyValue {
    /// The value as text; empty for a list, a map or bytes.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some(text) = &self.string_value {
            return text.clone();
        }
        let truth = self.bool_value.map(|value| value.to_string());
        let whole = || self.int_value.map(|value| value.to_string());
        let real = || self.double_value.map(|value| value.to_string());
        truth.or_else(whole).or_else(real).unwrap_or_default()
    }
}
