//! What one request changes: points become amounts, and amounts events.

use super::{Event, Inner, Outcome, SERIES};
use crate::mapping::{ABOVE, BELOW, Shape, Target};
use crate::message::{KeyValue, Metric, ResourceMetrics, ScopeMetrics};
use crate::point::{Flow, Point, PointError, amounts, by_key, points};
use crate::series::{Horizon, Increments, SeriesState, Step, added};
use alpheus_transport::Error;
use prost::Message as _;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};

/// How a point was counted.
enum CountOutcome {
    /// It came again, or a later total contains it.
    Before,
    /// Now.
    Now {
        /// Whether it overlaps with others of its series.
        overlaps: bool,
        /// How many of its values are beyond all buckets.
        beyond: u64,
    },
}

/// What one request changes.
pub(super) struct Work<'a> {
    pub(super) inner: &'a Inner,
    pub(super) horizon: Horizon,
    pub(super) day: u64,
    /// The latest time that a point may have.
    pub(super) latest: u64,
    pub(super) known: HashMap<Vec<u8>, SeriesState>,
    pub(super) sums: BTreeMap<u16, (i128, Target)>,
    pub(super) moments: Vec<(u16, i64)>,
    pub(super) taken: Outcome,
}

impl Work<'_> {
    pub(super) fn metric(
        &mut self,
        resource: &ResourceMetrics,
        scope: &ScopeMetrics,
        metric: &Metric,
    ) -> Result<(), Error> {
        let Some((flow, points)) = points(metric) else {
            let count = metric.summary.as_ref().map_or(0, |summary| summary.data_points.len());
            self.refuse(metric, PointError::Summary, count);
            return Ok(());
        };
        let inner = self.inner;
        let Some(compiled) = inner.mapping.metric(&metric.name) else {
            self.refuse(metric, PointError::Unknown, points.len());
            return Ok(());
        };
        let flow = match flow {
            // A gauge that a mapping takes for a sum, and the other way, has no meaning.
            Ok(Flow::Moment) if compiled.shape != Shape::Gauge => Err(PointError::OtherKind),
            Ok(Flow::Moment) => Ok(Flow::Moment),
            Ok(_) if compiled.shape == Shape::Gauge => Err(PointError::OtherKind),
            other => other,
        };
        for point in points.iter().filter(|point| point.has_value) {
            let of = by_key(point.attributes);
            let targets = compiled.targets(&of);
            let identity = identity((resource, scope, metric), &of, &compiled.shape, targets);
            let identity = typed(identity, resource, scope, point.attributes);
            let step = match flow {
                Ok(flow) => self.point(identity, (flow, &compiled.shape), point, targets)?,
                Err(why) => Err(why),
            };
            match step {
                Ok(how) => self.accept(metric, how),
                Err(why) => self.refuse(metric, why, 1),
            }
        }
        Ok(())
    }

    fn point(
        &mut self,
        mut identity: Sha256,
        (flow, shape): (Flow, &Shape),
        point: &Point<'_>,
        targets: &[Target],
    ) -> Result<Result<CountOutcome, PointError>, Error> {
        if let Flow::Cumulative { .. } = flow {
            identity.update(point.start.to_be_bytes());
        }
        let key = [SERIES, identity.finalize().as_slice()].concat();
        let known = match self.known.get(&key) {
            Some(known) => Some(known.clone()),
            None => {
                let stored = self.inner.store.get(&self.inner.space, &key)?;
                stored.and_then(|bytes| SeriesState::read(&bytes))
            }
        };
        let step = amounts(shape, point.content).and_then(|amounts| {
            // After it, none of its series would count until then.
            if point.time > self.latest {
                return Err(PointError::Future);
            }
            let (times, of) = ((point.start, point.time), (targets, self.horizon));
            added(known, (flow, shape), times, &amounts, of)
        });
        let Step { mut known, added, overlaps } = match step {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(Ok(CountOutcome::Before)),
            Err(why) => return Ok(Err(why)),
        };
        known.day = self.day;
        self.known.insert(key, known);
        let added = match added {
            Ok(added) => added,
            Err(why) => return Ok(Err(why)),
        };
        let beyond = beyond(shape, &added);
        for (part, value) in added {
            let Some(target) = targets.get(usize::from(part)) else { continue };
            if flow == Flow::Moment {
                self.moments.push((target.position, value));
            } else {
                let sum = self.sums.entry(target.position).or_insert((0, *target));
                sum.0 += i128::from(value);
            }
        }
        Ok(Ok(CountOutcome::Now { overlaps, beyond }))
    }

    fn accept(&mut self, metric: &Metric, how: CountOutcome) {
        self.taken.taken += 1;
        let CountOutcome::Now { overlaps, beyond } = how else {
            self.taken.repeated += 1;
            return;
        };
        if overlaps {
            *self.taken.overlapping.entry(metric.name.clone()).or_default() += 1;
        }
        if beyond > 0 {
            *self.taken.beyond.entry(metric.name.clone()).or_default() += beyond;
        }
    }

    fn refuse(&mut self, metric: &Metric, why: PointError, points: usize) {
        let points = u64::try_from(points).unwrap_or(u64::MAX);
        self.taken.refused = self.taken.refused.saturating_add(points);
        self.inner.counters.refuse(why, points);
        let name: String = metric.name.chars().take(100).collect();
        let said = format!("{name}: {why}");
        if points > 0 && self.taken.message.len() < 1000 && !self.taken.message.contains(&said) {
            let join = if self.taken.message.is_empty() { "" } else { "; " };
            self.taken.message = format!("{}{join}{said}", self.taken.message);
        }
    }
}

/// How many values are beyond all buckets.
fn beyond(shape: &Shape, added: &Increments) -> u64 {
    let parts = [BELOW, ABOVE].into_iter().filter(|_| matches!(shape, Shape::Exponential { .. }));
    parts.filter_map(|part| u64::try_from(*added.get(&part)?).ok()).sum()
}

/// What distinguishes a series: its resource, library, metric and attributes, and what it becomes.
fn identity(
    (resource, scope, metric): (&ResourceMetrics, &ScopeMetrics, &Metric),
    of: &BTreeMap<String, String>,
    shape: &Shape,
    targets: &[Target],
) -> Sha256 {
    let listed = |own: &[KeyValue]| by_key(own);
    let of_resource = resource.resource.as_ref().map(|own| listed(&own.attributes));
    let of_scope = scope.scope.as_ref();
    let of_scope = of_scope.map(|own| (&own.name, &own.version, listed(&own.attributes)));
    let positions: Vec<u16> = targets.iter().map(|target| target.position).collect();
    let shape = serde_json::to_string(shape).unwrap_or_default();
    let parts = (of_resource, of_scope, &metric.name, of, shape, positions);
    Sha256::new().chain_update(postcard::to_allocvec(&parts).unwrap_or_default())
}

/// Tells values apart whose texts are the same, such as the number 1 from the text "1".
fn typed(
    identity: Sha256,
    resource: &ResourceMetrics,
    scope: &ScopeMetrics,
    of: &[KeyValue],
) -> Sha256 {
    let of_resource = resource.resource.as_ref().map(|own| own.attributes.as_slice());
    let of_scope = scope.scope.as_ref().map(|own| own.attributes.as_slice());
    let groups = [of_resource.unwrap_or_default(), of_scope.unwrap_or_default(), of];
    let mut identity = identity;
    for (group, own) in (0_u8..).zip(groups) {
        let is_text = |own: &KeyValue| own.value.as_ref().is_none_or(|v| v.string_value.is_some());
        let mut others: Vec<_> =
            own.iter().filter(|own| !is_text(own)).map(KeyValue::encode_to_vec).collect();
        others.sort();
        for bytes in others {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            identity.update([&[group], &length.to_be_bytes()[..], &bytes].concat());
        }
    }
    identity
}

/// Events with these sums and moments, each within its bounds.
pub(super) fn events(sums: BTreeMap<u16, (i128, Target)>, moments: Vec<(u16, i64)>) -> Vec<Event> {
    let mut events: Vec<BTreeMap<u16, i64>> = Vec::new();
    let mut put = |place: usize, position: u16, value: i64| {
        if events.len() <= place {
            events.resize_with(place + 1, BTreeMap::new);
        }
        events.get_mut(place).map(|event| event.insert(position, value));
    };
    for (position, (mut left, target)) in sums {
        let mut place = 0;
        while left != 0 {
            let part = left.clamp(target.min.into(), target.max.into());
            if part == 0 {
                break;
            }
            put(place, position, i64::try_from(part).unwrap_or(0));
            (left, place) = (left - part, place + 1);
        }
    }
    let mut places: HashMap<u16, usize> = HashMap::new();
    for (position, value) in moments {
        let place = places.entry(position).or_default();
        put(*place, position, value);
        *place += 1;
    }
    events.into_iter().map(|event| event.into_iter().collect()).collect()
}
