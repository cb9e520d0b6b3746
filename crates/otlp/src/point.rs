//! Points of all kinds of metrics, as amounts of the parts that a shape has.

use crate::mapping::{ABOVE, BELOW, SUM, Shape};
use crate::message::{
    CUMULATIVE, DELTA, ExponentialPoint, HistogramPoint, KeyValue, Metric, NO_VALUE, NumberPoint,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much of one part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    /// A whole number.
    Whole(i64),
    /// A number with a point.
    Real(f64),
}

/// Why a point is not taken. Names no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PointError {
    /// The mapping has no such metric.
    #[error("the mapping has no such metric; import it and start with the new schema")]
    Unknown,
    /// The metric has another kind in the mapping.
    #[error("the mapping has another kind for it; import it again")]
    OtherKind,
    /// Quantiles.
    #[error("quantiles of a summary cannot be added up; send a histogram")]
    Summary,
    /// Neither a delta nor cumulative.
    #[error("it does not say whether its values are cumulative")]
    Temporality,
    /// Its parts do not fit each other.
    #[error("its counts and bounds do not match")]
    Malformed,
    /// A number that is none, or does not fit.
    #[error("a number is not finite, or does not fit into 64 bits")]
    NoNumber,
    /// Its clock is wrong.
    #[error("its time is more than an hour ahead of this machine's clock")]
    Future,
    /// Nobody can tell whether it came before.
    #[error("it has no time, so a new point cannot be distinguished from a repeated one")]
    NoTime,
    /// So late that nobody knows whether it was counted.
    #[error(
        "it is older than the points that are remembered for its series, so it may have been counted already; if several programs send as one, give each a `service.instance.id`"
    )]
    TooOld,
    /// Out of the schema's bounds.
    #[error("a value is outside the bounds of its attribute; widen them in the schema")]
    OutOfBounds,
}

impl PointError {
    /// The reason as a label of metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            PointError::Unknown => "unknown-metric",
            PointError::OtherKind => "other-kind",
            PointError::Summary => "summary",
            PointError::Temporality => "no-temporality",
            PointError::Malformed => "malformed",
            PointError::NoNumber => "no-number",
            PointError::Future => "future",
            PointError::NoTime => "no-time",
            PointError::TooOld => "too-old",
            PointError::OutOfBounds => "out-of-bounds",
        }
    }
}

/// How the values of a metric's points follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Each stands for itself.
    Moment,
    /// Each is what was added since the one before.
    Delta,
    /// Each is what was added since the start. It falls only if it may.
    Cumulative {
        /// Whether it may fall.
        may_fall: bool,
    },
}

/// What a point has.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A number.
    Number(&'a NumberPoint),
    /// Counts between bounds.
    Histogram(&'a HistogramPoint),
    /// Counts between powers.
    Exponential(&'a ExponentialPoint),
}

/// A point of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// What distinguishes it.
    pub attributes: &'a [KeyValue],
    /// Since when it adds up.
    pub start: u64,
    /// When it was read.
    pub time: u64,
    /// Whether it has a value.
    pub has_value: bool,
    /// What it has.
    pub content: Content<'a>,
}

/// The points of a metric, and how they follow each other. `None` of a summary, or of a metric
/// of no kind.
#[must_use]
pub fn points(metric: &Metric) -> Option<(Result<Flow, PointError>, Vec<Point<'_>>)> {
    if let Some(gauge) = &metric.gauge {
        return Some((Ok(Flow::Moment), gauge.data_points.iter().map(number).collect()));
    }
    if let Some(sum) = &metric.sum {
        let flow = flow(sum.aggregation_temporality, !sum.is_monotonic);
        return Some((flow, sum.data_points.iter().map(number).collect()));
    }
    if let Some(histogram) = &metric.histogram {
        let flow = flow(histogram.aggregation_temporality, false);
        return Some((flow, histogram.data_points.iter().map(between_bounds).collect()));
    }
    let histogram = metric.exponential_histogram.as_ref()?;
    let flow = flow(histogram.aggregation_temporality, false);
    Some((flow, histogram.data_points.iter().map(between_powers).collect()))
}

fn between_bounds(own: &HistogramPoint) -> Point<'_> {
    let times = (own.start_time_unix_nano, own.time_unix_nano);
    at(&own.attributes, times, own.flags, Content::Histogram(own))
}

fn between_powers(own: &ExponentialPoint) -> Point<'_> {
    let times = (own.start_time_unix_nano, own.time_unix_nano);
    at(&own.attributes, times, own.flags, Content::Exponential(own))
}

fn number(own: &NumberPoint) -> Point<'_> {
    let times = (own.start_time_unix_nano, own.time_unix_nano);
    at(&own.attributes, times, own.flags, Content::Number(own))
}

fn at<'a>(
    attributes: &'a [KeyValue],
    (start, time): (u64, u64),
    flags: u32,
    content: Content<'a>,
) -> Point<'a> {
    Point { attributes, start, time, has_value: flags & NO_VALUE == 0, content }
}

fn flow(temporality: i32, may_fall: bool) -> Result<Flow, PointError> {
    match temporality {
        DELTA => Ok(Flow::Delta),
        CUMULATIVE => Ok(Flow::Cumulative { may_fall }),
        _ => Err(PointError::Temporality),
    }
}

/// Attributes by key. Of a key that stands twice, the last counts.
#[must_use]
pub fn by_key(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let pair = |own: &KeyValue| {
        (own.key.clone(), own.value.as_ref().map(|value| value.text()).unwrap_or_default())
    };
    attributes.iter().map(pair).collect()
}

/// Amounts of the parts of a shape, by their position among [`Shape::endings`]. Unlisted parts are
/// zero.
pub type Amounts = BTreeMap<u16, Amount>;

/// The amounts that a point has.
///
/// # Errors
/// [`PointError`].
pub fn amounts(shape: &Shape, content: Content<'_>) -> Result<Amounts, PointError> {
    match (shape, content) {
        (Shape::Sum | Shape::Gauge, Content::Number(own)) => {
            let whole = own.as_int.map(Amount::Whole);
            let amount = whole.or_else(|| own.as_double.map(Amount::Real));
            Ok([(0, amount.ok_or(PointError::Malformed)?)].into())
        }
        (Shape::Histogram { bounds }, Content::Histogram(own)) => histogram(bounds, own),
        (Shape::Exponential { scale, low, high }, Content::Exponential(own)) => {
            exponential((*scale, *low, *high), own)
        }
        _ => Err(PointError::OtherKind),
    }
}

/// Counts of parts, which are whole.
#[derive(Default)]
struct Counts(BTreeMap<u16, u64>);

impl Counts {
    fn add(&mut self, part: usize, count: u64) -> Result<(), PointError> {
        let part = u16::try_from(part).map_err(|_| PointError::Malformed)?;
        let all = self.0.entry(part).or_default();
        *all = all.checked_add(count).ok_or(PointError::NoNumber)?;
        Ok(())
    }

    fn with_sum(self, sum: Option<f64>) -> Result<Amounts, PointError> {
        let mut amounts = Amounts::new();
        for (part, count) in self.0.into_iter().filter(|(_, count)| *count > 0) {
            let count = i64::try_from(count).map_err(|_| PointError::NoNumber)?;
            amounts.insert(part, Amount::Whole(count));
        }
        amounts.extend(sum.map(|sum| (SUM, Amount::Real(sum))));
        Ok(amounts)
    }
}

/// Parts: count, sum, a bucket up to each bound, one behind the last, and what has no bucket.
fn histogram(bounds: &[f64], own: &HistogramPoint) -> Result<Amounts, PointError> {
    let (first, unplaced) = (2, bounds.len() + 3);
    let mut counts = Counts::default();
    counts.add(0, own.count)?;
    let theirs = &own.explicit_bounds;
    if own.bucket_counts.is_empty() {
        counts.add(unplaced, own.count)?;
        return counts.with_sum(own.sum);
    }
    let total = own.bucket_counts.iter().try_fold(0u64, |all, count| all.checked_add(*count));
    if own.bucket_counts.len() != theirs.len() + 1 || total != Some(own.count) {
        return Err(PointError::Malformed);
    }
    // Finer buckets can be added up to ours. Others cannot be split.
    if !bounds.iter().all(|bound| theirs.contains(bound)) {
        counts.add(unplaced, own.count)?;
        return counts.with_sum(own.sum);
    }
    for (place, count) in own.bucket_counts.iter().enumerate() {
        let bucket = match theirs.get(place) {
            Some(upper) => bounds.partition_point(|bound| bound < upper),
            None => bounds.len(),
        };
        counts.add(first + bucket, *count)?;
    }
    counts.with_sum(own.sum)
}

/// Parts: count, sum, zeros, negative values, values below and above all buckets, buckets, and what
/// has no bucket.
fn exponential(
    (scale, low, high): (i32, i32, i32),
    own: &ExponentialPoint,
) -> Result<Amounts, PointError> {
    let buckets = i64::from(high) - i64::from(low) + 1;
    let first = usize::from(ABOVE) + 1;
    let unplaced = first + usize::try_from(buckets).map_err(|_| PointError::Malformed)?;
    let mut counts = Counts::default();
    counts.add(0, own.count)?;
    counts.add(2, own.zero_count)?;
    let mut placed = own.zero_count;
    let mut place = |counts: &mut Counts, part, count: u64| {
        placed = placed.checked_add(count).ok_or(PointError::NoNumber)?;
        counts.add(part, count)
    };
    for count in own.negative.iter().flat_map(|own| &own.bucket_counts) {
        place(&mut counts, 3, *count)?;
    }
    // Two buckets of one scale are one of the next coarser.
    let coarser = i64::from(own.scale) - i64::from(scale);
    let shift = u32::try_from(coarser.min(63)).ok();
    if let Some(positive) = &own.positive {
        for (index, count) in (i64::from(positive.offset)..).zip(&positive.bucket_counts) {
            let part = match shift {
                None => unplaced,
                Some(shift) if index >> shift > i64::from(high) => usize::from(ABOVE),
                Some(shift) => match usize::try_from((index >> shift) - i64::from(low)) {
                    Ok(bucket) => first + bucket,
                    Err(_) => usize::from(BELOW),
                },
            };
            place(&mut counts, part, *count)?;
        }
    }
    if placed == own.count { counts.with_sum(own.sum) } else { Err(PointError::Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Buckets;

    fn wholes(amounts: &Amounts) -> Vec<(u16, i64)> {
        let whole = |(part, amount): (&u16, &Amount)| match amount {
            Amount::Whole(count) => Some((*part, *count)),
            Amount::Real(_) => None,
        };
        amounts.iter().filter_map(whole).collect()
    }

    fn histogram_point(bounds: &[f64], counts: &[u64]) -> HistogramPoint {
        HistogramPoint {
            count: counts.iter().sum(),
            sum: Some(1.5),
            bucket_counts: counts.to_vec(),
            explicit_bounds: bounds.to_vec(),
            ..HistogramPoint::default()
        }
    }

    #[test]
    fn finer_buckets_are_added_up_and_others_have_no_place() {
        let shape = Shape::Histogram { bounds: vec![1.0, 5.0] };
        let of = |bounds: &[f64], counts: &[u64]| {
            let point = histogram_point(bounds, counts);
            amounts(&shape, Content::Histogram(&point)).map(|amounts| wholes(&amounts))
        };
        assert_eq!(of(&[1.0, 5.0], &[1, 2, 3]), Ok(vec![(0, 6), (2, 1), (3, 2), (4, 3)]));
        assert_eq!(
            of(&[0.5, 1.0, 2.0, 5.0, 9.0], &[1, 2, 4, 8, 16, 32]),
            Ok(vec![(0, 63), (2, 3), (3, 12), (4, 48)])
        );
        assert_eq!(of(&[1.0, 6.0], &[1, 2, 3]), Ok(vec![(0, 6), (5, 6)]));
        assert_eq!(of(&[1.0, 5.0], &[1, 2]), Err(PointError::Malformed));
        assert_eq!(of(&[], &[4]), Ok(vec![(0, 4), (5, 4)]));
    }

    #[test]
    fn powers_are_added_up_to_the_coarser_scale() {
        let shape = Shape::Exponential { scale: 0, low: -1, high: 2 };
        let point = |scale, offset, counts: &[u64]| {
            let count = counts.iter().sum::<u64>() + 5;
            let positive = Some(Buckets { offset, bucket_counts: counts.to_vec() });
            let negative = Some(Buckets { offset: 0, bucket_counts: vec![2, 1] });
            let zero_count = 2;
            let own = ExponentialPoint {
                scale,
                count,
                zero_count,
                positive,
                negative,
                ..ExponentialPoint::default()
            };
            amounts(&shape, Content::Exponential(&own)).map(|amounts| wholes(&amounts))
        };
        let fixed = |count, more: &[(u16, i64)]| Ok([&[(0, count), (2, 2), (3, 3)], more].concat());
        // What is beyond the four buckets, which begin at part 6, has parts of its own.
        assert_eq!(
            point(0, -2, &[1, 2, 4, 8, 16, 32]),
            fixed(68, &[(4, 1), (5, 32), (6, 2), (7, 4), (8, 8), (9, 16)])
        );
        assert_eq!(point(0, i32::MAX, &[3]), fixed(8, &[(5, 3)]));
        assert_eq!(point(0, i32::MIN, &[3]), fixed(8, &[(4, 3)]));
        // One scale finer: indexes -3, then -2 and -1, then 0 …
        assert_eq!(point(1, -3, &[1, 2, 4, 8]), fixed(20, &[(4, 1), (6, 6), (7, 8)]));
        assert_eq!(point(-1, 0, &[7]), fixed(12, &[(10, 7)]));
    }
}
