//! Takes what an exporter sends: what its points add becomes records of events, in one commit
//! with what is known of their series. Only then is the exporter answered.
//!
//! | key | value |
//! | --- | --- |
//! | `series/<digest>` | what is known of a series |
//! | `event/<number>` | an event that no durable border has followed |
//! | `next` | the number of the next event |
//! | `begun` | when the receiver began, and until when it has forgotten series |

use crate::mapping::{Compiled, Shape, Target};
use crate::message::{ExportRequest, KeyValue, Metric, ResourceMetrics, ScopeMetrics};
use crate::point::{Flow, Point, PointError, amounts, by_key, points};
use crate::series::{Horizon, SeriesState, added};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Bytes, Error, Space, Store};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prost::Message as _;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const SERIES: &[u8] = b"series/";
const EVENTS: &[u8] = b"event/";
const NEXT: &[u8] = b"next";
const BEGUN: &[u8] = b"begun";
/// A series without a point for so many days is forgotten.
const SERIES_DAYS: u64 = 30;
/// Series that are looked at at once, to forget old ones.
const SERIES_AT_ONCE: usize = 1024;
/// Events that may wait; then exporters are asked to come back.
const MAX_WAITING: u64 = 10_000;
/// How far a program's clock may be ahead of this machine's, which is usually the same.
const AHEAD: Span = Span::seconds(3600);
/// Requests that are in memory at once.
const DOORS: usize = 4;
/// Events that are read at once.
const AT_ONCE: usize = 256;

/// An event's values by position in the schema, in units of their last places.
pub type Event = Vec<(u16, i64)>;

/// Why nothing was taken. The exporter should send it again.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// The service does not take what was sent before.
    #[error("too many events wait for the service; send it again later")]
    Full,
}

/// What became of the points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Points that were counted, or were counted before.
    pub taken: u64,
    /// Points that were refused.
    pub refused: u64,
    /// Why, for the first of each metric. Names no value.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Takes requests, one at a time. Clones share it.
#[derive(Clone)]
pub struct Intake(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    space: Space,
    mapping: Compiled,
    next: Mutex<Next>,
    arrived: Condvar,
    doors: Arc<Semaphore>,
    points: Counter,
    refused: Family<Reason, Counter>,
}

/// What the next request begins with.
struct Next {
    /// The number of the next event.
    number: u64,
    horizon: Horizon,
    /// The day on which old series were forgotten last.
    day: u64,
}

impl Intake {
    /// Opens it as it was left. What series had added up before it was opened first is not counted.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(store: Arc<dyn Store>, mapping: Compiled, now: Timestamp) -> Result<Intake, Error> {
        let space = Space::new("otlp")?;
        store.ensure_space(&space)?;
        let stored = store.get(&space, NEXT)?;
        let next = stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes);
        let (points, refused) = Default::default();
        let horizon = match store.get(&space, BEGUN)?.map(|bytes| horizon_of(&bytes)) {
            Some(horizon) => horizon,
            None => {
                let horizon = Horizon { begun: nanoseconds(now), forgotten: 0 };
                let mut batch = Batch::new();
                batch.put(&space, BEGUN, bytes_of(horizon))?;
                store.commit(batch)?;
                horizon
            }
        };
        let next = Next { number: next.unwrap_or(1), horizon, day: 0 };
        let (next, arrived) = (Mutex::new(next), Condvar::new());
        let doors = Arc::new(Semaphore::new(DOORS));
        let inner = Inner { store, space, mapping, next, arrived, doors, points, refused };
        Ok(Intake(Arc::new(inner)))
    }

    /// A place for a request that is in memory; none if there are enough.
    #[must_use]
    pub fn door(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.doors).try_acquire_owned().ok()
    }

    /// Counts points as `alpheus_otlp_points` and `alpheus_otlp_points_refused`.
    pub fn register(&self, metrics: &alpheus_node::service::metrics::Metrics) {
        metrics.with(|registry| {
            let help = "Points that were counted, or were counted before";
            registry.register("otlp_points", help, self.0.points.clone());
            let help = "Points that were refused, by reason";
            registry.register("otlp_points_refused", help, self.0.refused.clone());
        });
    }

    /// Takes a request at a time: its points are durable when this returns.
    ///
    /// # Errors
    /// [`IntakeError`]; then nothing of it was taken.
    pub fn take(&self, request: &ExportRequest, now: Timestamp) -> Result<Outcome, IntakeError> {
        let inner = &self.0;
        let mut next = inner.next.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = inner.store.scan(&inner.space, EVENTS, Bound::Unbounded, 1)?;
        let oldest = oldest.first().and_then(|(key, _)| number_of(key)).unwrap_or(next.number);
        if next.number - oldest >= MAX_WAITING {
            return Err(IntakeError::Full);
        }
        let day = now.0 / Span::DAY.0;
        if next.day != day {
            next.horizon = inner.forget_series(next.horizon, day)?;
            next.day = day;
        }
        let mut work = Work {
            inner,
            horizon: next.horizon,
            day,
            latest: nanoseconds(now.plus(AHEAD)),
            known: HashMap::new(),
            sums: BTreeMap::new(),
            moments: Vec::new(),
            taken: Outcome::default(),
        };
        for resource in &request.resource_metrics {
            for scope in &resource.scope_metrics {
                for metric in &scope.metrics {
                    work.metric(resource, scope, metric)?;
                }
            }
        }
        let Work { known, sums, moments, taken, .. } = work;
        let mut batch = Batch::new();
        for (key, known) in known {
            batch.put(&inner.space, key, postcard::to_allocvec(&known).unwrap_or_default())?;
        }
        let mut number = next.number;
        for event in events(sums, moments) {
            let bytes = postcard::to_allocvec(&event).unwrap_or_default();
            batch.put(&inner.space, key_of(number), bytes)?;
            number += 1;
        }
        batch.put(&inner.space, NEXT, number.to_be_bytes().to_vec())?;
        inner.store.commit(batch)?;
        next.number = number;
        inner.points.inc_by(taken.taken);
        drop(next);
        inner.arrived.notify_all();
        Ok(taken)
    }

    /// The events after this number, with their numbers; waits a while for one.
    ///
    /// # Errors
    /// The store's error.
    pub fn after(&self, last: u64, wait: Duration) -> Result<Vec<(u64, Event)>, Error> {
        let found = self.scan(last)?;
        if !found.is_empty() {
            return Ok(found);
        }
        // One that has come meanwhile is found after the pause.
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.arrived.wait_timeout(next, wait).unwrap_or_else(PoisonError::into_inner));
        self.scan(last)
    }

    fn scan(&self, last: u64) -> Result<Vec<(u64, Event)>, Error> {
        let (inner, from) = (&self.0, key_of(last));
        let found = inner.store.scan(&inner.space, EVENTS, Bound::Excluded(&from), AT_ONCE)?;
        let read = |(key, value): &(Bytes, Bytes)| {
            Some((number_of(key)?, postcard::from_bytes(value).unwrap_or_default()))
        };
        Ok(found.iter().filter_map(read).collect())
    }

    /// The record of an event.
    #[must_use]
    pub fn record(&self, number: u64) -> (Space, Vec<u8>) {
        (self.0.space.clone(), key_of(number))
    }
}

impl Inner {
    /// Forgets series that have had no point for [`SERIES_DAYS`].
    fn forget_series(&self, horizon: Horizon, day: u64) -> Result<Horizon, Error> {
        let Some(last) = day.checked_sub(SERIES_DAYS) else { return Ok(horizon) };
        let (mut from, mut horizon) = (Bound::Unbounded, horizon);
        loop {
            let start = from.as_ref().map(|key: &Bytes| &key[..]);
            let found = self.store.scan(&self.space, SERIES, start, SERIES_AT_ONCE)?;
            let Some((end, _)) = found.last() else { return Ok(horizon) };
            from = Bound::Excluded(end.clone());
            let is_old = |bytes: &Bytes| {
                postcard::from_bytes::<SeriesState>(bytes).is_ok_and(|known| known.day < last)
            };
            let mut batch = Batch::new();
            for (key, _) in found.iter().filter(|(_, known)| is_old(known)) {
                batch.delete(&self.space, key.to_vec())?;
            }
            if !batch.is_empty() {
                // What they counted is not counted again.
                let time = Timestamp(last.saturating_mul(Span::DAY.0));
                horizon.forgotten = horizon.forgotten.max(nanoseconds(time));
                batch.put(&self.space, BEGUN, bytes_of(horizon))?;
                self.store.commit(batch)?;
            }
        }
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    time.0.saturating_mul(1000)
}

fn bytes_of(horizon: Horizon) -> Vec<u8> {
    [horizon.begun.to_be_bytes(), horizon.forgotten.to_be_bytes()].concat()
}

fn horizon_of(bytes: &[u8]) -> Horizon {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |at: usize| words.get(at).map_or(0, |word| u64::from_be_bytes(*word));
    Horizon { begun: word(0), forgotten: word(1) }
}

fn key_of(number: u64) -> Vec<u8> {
    [EVENTS, &number.to_be_bytes()].concat()
}

fn number_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(EVENTS.len()..)?.try_into().ok()?))
}

/// What one request changes.
struct Work<'a> {
    inner: &'a Inner,
    horizon: Horizon,
    day: u64,
    /// The latest time that a point may have.
    latest: u64,
    known: HashMap<Vec<u8>, SeriesState>,
    sums: BTreeMap<u16, (i128, Target)>,
    moments: Vec<(u16, i64)>,
    taken: Outcome,
}

impl Work<'_> {
    fn metric(
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
                Ok(()) => self.taken.taken += 1,
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
    ) -> Result<Result<(), PointError>, Error> {
        if let Flow::Cumulative { .. } = flow {
            identity.update(point.start.to_be_bytes());
        }
        let key = [SERIES, identity.finalize().as_slice()].concat();
        let known = match self.known.get(&key) {
            Some(known) => Some(known.clone()),
            None => {
                let stored = self.inner.store.get(&self.inner.space, &key)?;
                stored.and_then(|bytes| postcard::from_bytes(&bytes).ok())
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
        let (mut known, added) = match step {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(Ok(())),
            Err(why) => return Ok(Err(why)),
        };
        known.day = self.day;
        self.known.insert(key, known);
        let added = match added {
            Ok(added) => added,
            Err(why) => return Ok(Err(why)),
        };
        for (part, value) in added {
            let Some(target) = targets.get(usize::from(part)) else { continue };
            if flow == Flow::Moment {
                self.moments.push((target.position, value));
            } else {
                let sum = self.sums.entry(target.position).or_insert((0, *target));
                sum.0 += i128::from(value);
            }
        }
        Ok(Ok(()))
    }

    fn refuse(&mut self, metric: &Metric, why: PointError, points: usize) {
        let points = u64::try_from(points).unwrap_or(u64::MAX);
        self.taken.refused = self.taken.refused.saturating_add(points);
        self.inner.refused.get_or_create(&Reason { reason: why.label() }).inc_by(points);
        let name: String = metric.name.chars().take(100).collect();
        let said = format!("{name}: {why}");
        if points > 0 && self.taken.message.len() < 1000 && !self.taken.message.contains(&said) {
            let join = if self.taken.message.is_empty() { "" } else { "; " };
            self.taken.message = format!("{}{join}{said}", self.taken.message);
        }
    }
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
fn events(sums: BTreeMap<u16, (i128, Target)>, moments: Vec<(u16, i64)>) -> Vec<Event> {
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
