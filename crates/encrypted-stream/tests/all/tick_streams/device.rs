//! A device, the service's transformer, and a controller's view of a window.

use crate::devices::{self, Device};
use crate::transformer::feed;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::messages::{Segments, SummonedStream};
use alpheus_encrypted_stream::producer::{
    EventVector, OpeningSecrets, Producer, Start, TickProducer,
};
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::tick::segment;
use alpheus_encrypted_stream::transformer::{FrameEffect, IngestError, Shape, Transformer};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::{Plan, PlannedStream};
use alpheus_policy::schema::{Frames, Schema};
use alpheus_time::{Span, Timestamp, Window};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use std::convert::Infallible;

pub(super) const TICK: u64 = 10_000_000;
/// Three ticks.
pub(super) const ANCHOR: u64 = 3 * TICK;
/// Twelve ticks before a midnight, and a multiple of the longest window.
pub(super) const START: u64 = 19_675 * Span::DAY.0 - 12 * TICK;
pub(super) const STREAM: StreamId = StreamId([7; 16]);

pub(super) fn at(ticks: u64) -> Timestamp {
    Timestamp(START + ticks * TICK)
}

/// From tick to tick.
pub(super) fn window(from: u64, to: u64) -> Window {
    Window { start: at(from), end: at(to) }
}

pub(super) fn schema(frames: Frames) -> Schema {
    let text = "name: S\ntick: 10s\nstreamAttributes: [{name: x, type: integer, min: 0, max: 1000, aggregations: [mean]}]\n";
    Schema { frames, ..Schema::from_yaml(text).unwrap() }
}

pub(super) fn ticks() -> Schema {
    schema(Frames::Ticks { anchor: Span(ANCHOR) })
}

pub(super) fn keys(schema: &Schema) -> StreamKeys {
    StreamKeys::new(&master(), STREAM, schema.id())
}

pub(super) fn master() -> MasterSecret {
    MasterSecret::new(Secret::from_bytes([5; 32]))
}

/// Releases everything in windows of this many ticks.
pub(super) fn plan(schema: &Schema, ticks: u64) -> Plan {
    let words = Layout::of(schema).unwrap().words;
    let streams = vec![PlannedStream { stream: STREAM, owner: OwnerId([0; 32]), controller: 0 }];
    Plan {
        nonce: [ticks as u8; 16],
        schema: schema.id(),
        from: at(0),
        streams,
        ..feed::plan(1, ticks * TICK, feed::everything(words))
    }
}

pub(super) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// An event of a value: sum and count.
pub(super) fn value(x: u64) -> impl Fn(&mut EventVector<'_>) -> Result<(), Infallible> {
    move |vector| {
        vector.add(0, x);
        vector.add(1, 1);
        Ok(())
    }
}

/// The service, with plans of windows of these numbers of ticks.
pub(super) struct Service {
    pub(super) schema: Schema,
    pub(super) transformer: Transformer,
    pub(super) ingest: Ingest,
    pub(super) plans: Vec<(PlanId, Plan)>,
}

impl Service {
    pub(super) fn new(schema: Schema, windows: &[u64]) -> Service {
        let layout = Layout::of(&schema).unwrap();
        let mut transformer = Transformer::new(Shape::of(&schema, &layout, Span(0)), 1);
        transformer.admit(STREAM);
        let plans = windows.iter().map(|ticks| {
            let plan = plan(&schema, *ticks);
            (transformer.register(&plan).unwrap(), plan)
        });
        let plans = plans.collect();
        let ingest = devices::ingest(devices::authority(), schema.id(), schema.tick);
        Service { schema, transformer, ingest, plans }
    }

    pub(super) fn ticks(windows: &[u64]) -> Service {
        Service::new(ticks(), windows)
    }

    pub(super) fn take(&mut self, frame: &[u8]) -> Result<FrameEffect, IngestError> {
        let now = Timestamp(1 << 51);
        if self.schema.frames.is_events() {
            return self.transformer.handle(0, STREAM, frame, now);
        }
        devices::take(&mut self.ingest, &mut self.transformer, STREAM, frame, now)
    }

    pub(super) fn take_all(&mut self, frames: &[Vec<u8>]) {
        for (place, frame) in frames.iter().enumerate() {
            self.take(frame).unwrap_or_else(|error| panic!("frame {place}: {error}"));
        }
    }

    /// Closes a window of the plan at this place: the stream in it, if it is complete.
    pub(super) fn close(&mut self, plan: usize, window: Window) -> Option<SummonedStream> {
        let report = self.transformer.close(&self.plans[plan].0, window, 0).unwrap();
        report.complete().next().cloned()
    }

    /// Closes a window, and opens its sum as a controller would.
    pub(super) fn open(&mut self, plan: usize, window: Window) -> Option<Vec<u64>> {
        let stream = self.close(plan, window)?;
        let (id, plan) = &self.plans[plan];
        let mut rows = self.transformer.sum(id, window, &[0]).unwrap();
        for (session, span) in self.spans(&stream, window) {
            let part =
                keys(&self.schema).key_sum(&plan.release, session, span.start, span.end).unwrap();
            rows.iter_mut().zip(part).for_each(|(row, part)| *row = row.wrapping_add(part));
        }
        assert_eq!(rows.pop(), Some(0), "the check word of {window:?}");
        Some(rows)
    }

    fn spans(&self, stream: &SummonedStream, window: Window) -> Vec<(u64, Window)> {
        match &stream.segments {
            Segments::OfEvents(segments) => {
                let span = |s: &alpheus_encrypted_stream::messages::Segment| {
                    (s.session, Window { start: s.from, end: s.to() })
                };
                segments.iter().map(span).collect()
            }
            Segments::OfTicks { claims, .. } => {
                let anchor = self.schema.frames.anchor().unwrap();
                let checked = claims.iter().map(|claims| {
                    segment::check(&keys(&self.schema), claims, window, anchor).unwrap()
                });
                let spans = checked
                    .flat_map(|own| own.spans.into_iter().map(move |span| (own.session, span)));
                spans.collect()
            }
        }
    }
}

/// A device and what it has sent.
pub(super) struct Sender {
    pub(super) schema: Schema,
    /// None once it is gone.
    pub(super) device: Option<Device>,
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) rng: ChaCha20Rng,
}

impl Sender {
    pub(super) fn new(schema: Schema, from: Timestamp, seed: u64) -> Sender {
        let (device, frames) = (None, Vec::new());
        let mut sender = Sender { schema, device, frames, rng: rng(seed) };
        sender.open(Start::First, from, None);
        sender
    }

    pub(super) fn ticks(from: Timestamp, seed: u64) -> Sender {
        Sender::new(ticks(), from, seed)
    }

    pub(super) fn open(
        &mut self,
        start: Start,
        from: Timestamp,
        previous: Option<(u64, Timestamp)>,
    ) {
        let secrets = devices::secrets(&devices::authority());
        self.open_with(start, from, previous, secrets);
    }

    pub(super) fn open_with(
        &mut self,
        start: Start,
        from: Timestamp,
        previous: Option<(u64, Timestamp)>,
        secrets: OpeningSecrets,
    ) {
        let (schema, layout) = (&self.schema, Layout::of(&self.schema).unwrap());
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.device = if schema.frames.is_events() {
            let producer = Producer::for_schema(&master(), STREAM, schema, &layout).unwrap();
            Some(Device::Events(producer.open(start, from, &mut self.rng, sink).unwrap()))
        } else {
            let own = TickProducer::for_schema(&master(), STREAM, schema, &layout, secrets);
            let session = own.unwrap().open(start, from, previous, &mut self.rng, sink);
            Some(Device::Ticks(Box::new(session.unwrap())))
        };
    }

    pub(super) fn event(&mut self, t: Timestamp, x: u64) {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.device.iter_mut().for_each(|device| device.event(t, value(x), &mut self.rng, sink));
    }

    pub(super) fn advance(&mut self, t: Timestamp) {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.device.iter_mut().for_each(|device| device.advance(t, &mut self.rng, sink));
    }

    pub(super) fn sleep(&mut self, t: Timestamp) {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.device.iter_mut().for_each(|device| device.sleep(t, &mut self.rng, sink));
    }

    /// Ends the session in order.
    pub(super) fn close(&mut self, t: Timestamp) {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        if let Some(device) = self.device.take() {
            device.close(t, &mut self.rng, sink);
        }
    }

    /// Takes what was sent.
    pub(super) fn sent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.frames)
    }
}
