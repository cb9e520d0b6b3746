//! Takes what an exporter sends: what its points add becomes records of events, in one commit
//! with what is known about their series. Only then is the exporter answered.
//!
//! | key | value |
//! | --- | --- |
//! | `series/<digest>` | what is known about a series |
//! | `event/<number>` | an event that no durable border has followed |
//! | `next` | the number of the next event |
//! | `begun` | when the receiver began, and until when it has forgotten series |

mod counters;
mod work;

use crate::mapping::CompiledMapping;
use crate::message::ExportRequest;
use crate::series::{Horizon, SeriesState};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, Bytes, Error, Space, Store};
use counters::Counters;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use work::{Work, events};

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
    /// The file of a capture.
    #[error("the capture cannot be written")]
    File(#[source] std::io::Error),
    /// A capture has enough.
    #[error("the capture has reached 64 MiB; stop it and import it")]
    Long,
}

/// What became of the points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Points that were counted, or were counted before.
    pub taken: u64,
    /// Of these, points that added nothing: they came again, or a later total contains them.
    pub repeated: u64,
    /// Of these, points that overlap with others of their series, by metric.
    pub overlapping: BTreeMap<String, u64>,
    /// Values beyond all buckets of an exponential histogram, by metric.
    pub beyond: BTreeMap<String, u64>,
    /// Points that were refused.
    pub refused: u64,
    /// Why, for the first of each metric. Names no value.
    pub message: String,
}

/// Takes requests, one at a time. Clones share it.
#[derive(Clone)]
pub struct Intake(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    space: Space,
    mapping: CompiledMapping,
    next: Mutex<Next>,
    arrived: Condvar,
    doors: Arc<Semaphore>,
    counters: Counters,
}

/// What the next request begins with.
struct Next {
    /// The number of the next event.
    number: u64,
    horizon: Horizon,
    /// The day on which old series were forgotten last.
    day: u64,
}

/// Places for requests that are in memory.
pub(crate) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(DOORS))
}

impl Intake {
    /// Opens it as it was left. Totals from before it was first opened are not counted.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(
        store: Arc<dyn Store>,
        mapping: CompiledMapping,
        now: Timestamp,
    ) -> Result<Intake, Error> {
        let space = Space::new("otlp")?;
        store.ensure_space(&space)?;
        let stored = store.get(&space, NEXT)?;
        let next = stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes);
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
        let doors = room();
        let counters = Counters::default();
        let inner = Inner { store, space, mapping, next, arrived, doors, counters };
        Ok(Intake(Arc::new(inner)))
    }

    /// A place for a request that is in memory; none if there are enough.
    #[must_use]
    pub fn door(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.doors).try_acquire_owned().ok()
    }

    /// Registers the counters of points, such as `alpheus_otlp_points`.
    pub fn register(&self, metrics: &alpheus_node::service::metrics::Metrics) {
        self.0.counters.register(metrics);
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
            batch.put(&inner.space, key, known.bytes())?;
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
        drop(next);
        inner.counters.count(&taken);
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
            let is_old =
                |bytes: &Bytes| SeriesState::read(bytes).is_some_and(|known| known.day < last);
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
