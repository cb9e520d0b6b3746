//! The owners' devices: one producer for each stream, which writes encrypted frames
//! into a batch for the events topic. Values are in the clear only here.

use super::storage::{Topics, device_partition};
use super::stream_producer::{StreamProducer, StreamSession};
use alpheus_encrypted_stream::encode::{EncodeError, Encoder, Value};
use alpheus_encrypted_stream::producer::{EventError, MAX_SILENCE, Start, TimeError};
use alpheus_input::rows::Cell;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, NewRecord, Partition};
use rand_core::CryptoRng;
use thiserror::Error;

/// One owner's device.
pub struct Device {
    partition: Partition,
    key: [u8; 16],
    state: Option<State>,
    /// The last session and its last border, if the next one names them.
    reached: Option<(u64, Timestamp)>,
}

enum State {
    Offline(StreamProducer),
    Online(StreamSession),
}

/// Why a device did not send.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// A value does not fit the schema.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The event's time cannot follow the last.
    #[error("the event's time cannot follow the last one: {0}")]
    Time(String),
    /// The device is not in the state that the call needs.
    #[error("the device is {0}")]
    State(&'static str),
    /// The frame does not fit the transport.
    #[error(transparent)]
    Transport(#[from] alpheus_transport::Error),
}

impl Device {
    /// A device that is offline.
    #[must_use]
    pub fn new(producer: StreamProducer, topics: &Topics) -> Device {
        let key = producer.stream().0;
        Device {
            partition: device_partition(topics, &key),
            key,
            state: Some(State::Offline(producer)),
            reached: None,
        }
    }

    /// Whether it has a session.
    #[must_use]
    pub fn is_online(&self) -> bool {
        matches!(self.state, Some(State::Online(_)))
    }

    /// Opens a session at the tick `at`.
    ///
    /// # Errors
    /// If it is online, or no session may open there.
    pub fn open(
        &mut self,
        start: Start,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
    ) -> Result<(), DeviceError> {
        let Some(State::Offline(producer)) = self.state.take() else {
            return Err(DeviceError::State("online already"));
        };
        let mut outbox = Outbox::new(&self.partition, &self.key, at, batch);
        let session = producer.open(start, at, self.reached, rng, &mut |frame| outbox.push(frame));
        outbox.finish()?;
        let session = session.map_err(|(_, error)| DeviceError::Time(error.to_string()))?;
        self.state = Some(State::Online(session));
        Ok(())
    }

    /// Encrypts one event.
    ///
    /// # Errors
    /// If the event is not as the schema declares, or not after the last.
    pub fn event(
        &mut self,
        time: Timestamp,
        cells: &[Cell],
        encoder: &Encoder,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
    ) -> Result<(), DeviceError> {
        let Some(State::Online(session)) = &mut self.state else {
            return Err(DeviceError::State("offline"));
        };
        let values: Vec<Value<'_>> = cells.iter().map(value_of).collect();
        let mut outbox = Outbox::new(&self.partition, &self.key, time, batch);
        let sent = session.event(
            time,
            rng,
            |rng, vector| encoder.encode(&values, rng, |word, addend| vector.add(word, addend)),
            &mut |frame| outbox.push(frame),
        );
        outbox.finish()?;
        sent.map_err(|error| match error {
            EventError::Encoding(error) => DeviceError::Encode(error),
            other => DeviceError::Time(other.to_string()),
        })
    }

    /// Sends the borders up to `now`.
    ///
    /// # Errors
    /// If it is offline or at the end of time.
    pub fn advance(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
    ) -> Result<(), DeviceError> {
        let Some(State::Online(session)) = &mut self.state else {
            return Err(DeviceError::State("offline"));
        };
        let mut outbox = Outbox::new(&self.partition, &self.key, now, batch);
        let sent = pass(session, now, rng, &mut outbox);
        outbox.finish()?;
        sent.map_err(|error| DeviceError::Time(error.to_string()))
    }

    /// Ends the session in order at the tick `at`.
    ///
    /// # Errors
    /// If it is offline, or the session cannot close there.
    pub fn close(
        &mut self,
        at: Timestamp,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
    ) -> Result<(), DeviceError> {
        let Some(State::Online(mut session)) = self.state.take() else {
            return Err(DeviceError::State("offline"));
        };
        let mut outbox = Outbox::new(&self.partition, &self.key, at, batch);
        // What is wrong with the time, the session says when it closes.
        let _ = pass(&mut session, Timestamp(at.0.saturating_sub(1)), rng, &mut outbox);
        let number = session.reached().map(|(number, _)| (number, at));
        let closed = session.close(at, rng, &mut |frame| outbox.push(frame));
        outbox.finish()?;
        match closed {
            Ok(producer) => {
                self.reached = number;
                self.state = Some(State::Offline(producer));
            }
            Err((session, error)) => {
                self.state = Some(State::Online(*session));
                return Err(DeviceError::Time(error.to_string()));
            }
        }
        Ok(())
    }

    /// Drops the session as a crash would, and returns how many events are lost.
    pub fn crash(&mut self) -> u64 {
        match self.state.take() {
            Some(State::Online(session)) => {
                self.reached = session.reached();
                let (producer, lost) = session.abandon();
                self.state = Some(State::Offline(producer));
                lost
            }
            offline => {
                self.state = offline;
                0
            }
        }
    }
}

/// Sends the borders up to `now`. A recording may be silent for longer than a clock that nobody sets.
fn pass(
    session: &mut StreamSession,
    now: Timestamp,
    rng: &mut impl CryptoRng,
    outbox: &mut Outbox<'_>,
) -> Result<(), TimeError> {
    let most = Span(session.tick().0.saturating_mul(MAX_SILENCE - 1));
    while session.next_border().plus(most) < now {
        let part = session.next_border().plus(most);
        session.advance(part, rng, &mut |frame| outbox.push(frame))?;
    }
    session.advance(now, rng, &mut |frame| outbox.push(frame))
}

/// Adds frames to a batch and keeps the first error, since a sink cannot fail.
struct Outbox<'a> {
    partition: &'a Partition,
    key: &'a [u8],
    time: Timestamp,
    batch: &'a mut Batch,
    failed: Option<alpheus_transport::Error>,
}

impl<'a> Outbox<'a> {
    fn new(partition: &'a Partition, key: &'a [u8], time: Timestamp, batch: &'a mut Batch) -> Self {
        Outbox { partition, key, time, batch, failed: None }
    }

    fn push(&mut self, frame: &[u8]) {
        let record =
            NewRecord { key: self.key, value: frame, timestamp: self.time.0, ..Default::default() };
        if let Err(error) = self.batch.append(self.partition, &record) {
            self.failed.get_or_insert(error);
        }
    }

    fn finish(self) -> Result<(), alpheus_transport::Error> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// A cell as the encoder takes it.
#[must_use]
pub fn value_of(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Absent => Value::Absent,
        Cell::Number(number) => Value::Number(*number),
        Cell::Boolean(truth) => Value::Boolean(*truth),
        Cell::Text(text) => Value::Text(text.as_bytes()),
    }
}
