//! What the producers of a [`World`] send, with a frame for each event or one a tick.

use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start, TickProducer};
use alpheus_encrypted_stream::transformer::IngestError;
use alpheus_policy::ids::StreamId;
use alpheus_time::Timestamp;

use crate::devices::{self, Device};
use crate::protocol::world::{World, window};

impl World {
    /// Sends the events of one stream, and all borders.
    pub fn produce(
        &mut self,
        number: usize,
        secret: &MasterSecret,
        with_data: &dyn Fn(u64) -> bool,
    ) {
        let stream = self.plan.streams[number].stream;
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
        let mut session = self.open(stream, secret, &mut sink);
        for w in (0..self.setup.windows).filter(|w| with_data(*w)) {
            let (value, words) = (self.setup.value(number, w), self.layout.check_word());
            let encode = |vector: &mut EventVector<'_>| {
                (0..words).for_each(|word| vector.add(word, value * u64::from(word + 1)));
                Ok::<(), std::convert::Infallible>(())
            };
            for event in 0..self.setup.events(number) {
                let at = Timestamp(window(w).start.0 + 1000 + event);
                session.event(at, encode, &mut self.rng, &mut sink);
            }
        }
        let end = window(self.setup.windows).start;
        session.advance(end, &mut self.rng, &mut sink);
        for frame in frames {
            self.take(stream, &frame);
            self.frames.push((stream, frame));
        }
    }

    pub fn open(
        &mut self,
        stream: StreamId,
        secret: &MasterSecret,
        sink: &mut impl FnMut(&[u8]),
    ) -> Device {
        let (schema, layout, at) = (&self.schema, &self.layout, window(0).start);
        if self.setup.frames.is_events() {
            let producer = Producer::for_schema(secret, stream, schema, layout).unwrap();
            let session = producer.open(Start::First, at, &mut self.rng, sink);
            return Device::Events(session.unwrap_or_else(|refused| panic!("{:?}", refused.error)));
        }
        let secrets = devices::secrets(&self.authority.verifying_key());
        let producer = TickProducer::for_schema(secret, stream, schema, layout, secrets).unwrap();
        let session = producer.open(Start::First, at, None, &mut self.rng, sink);
        Device::Ticks(Box::new(session.unwrap_or_else(|refused| panic!("{:?}", refused.error))))
    }

    /// Offers a frame of a tick to the transformer, which may refuse it.
    pub fn offer(&mut self, stream: StreamId, frame: &[u8]) -> Result<(), IngestError> {
        let now = Timestamp(1 << 51);
        devices::take(&mut self.ingest, &mut self.transformer, stream, frame, now).map(drop)
    }

    /// Gives a frame to the transformer.
    pub fn take(&mut self, stream: StreamId, frame: &[u8]) {
        let now = Timestamp(1 << 51);
        if self.setup.frames.is_events() {
            self.transformer.handle(0, stream, frame, now).unwrap();
        } else {
            devices::take(&mut self.ingest, &mut self.transformer, stream, frame, now).unwrap();
        }
    }
}
