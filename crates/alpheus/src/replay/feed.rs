//! Feeds a recording to the owners' devices, tick by tick, as if time passed.

use super::refused::{Refusals, Refused, RowFault};
use super::rows::{RecordedStream, Recording};
use crate::runtime::devices::{Device, DeviceError};
use alpheus_encrypted_stream::encode::Encoder;
use alpheus_encrypted_stream::producer::Start;
use alpheus_policy::time::{Span, Timestamp};
use alpheus_transport::Batch;
use rand_core::CryptoRng;

/// Walks a recording in event time.
pub struct Feed<'a> {
    streams: Vec<Track<'a>>,
    tick: Span,
    next: Option<Timestamp>,
    /// Where this run took up an earlier one; sessions before it are dead.
    resumed: Option<Timestamp>,
    end: Timestamp,
}

struct Track<'a> {
    recorded: &'a RecordedStream,
    from: Timestamp,
    to: Timestamp,
    next: usize,
}

impl<'a> Feed<'a> {
    /// Starts at the recording's first tick, or at `resume` if an earlier run
    /// got that far.
    #[must_use]
    pub fn new(recording: &'a Recording, tick: Span, resume: Option<Timestamp>) -> Feed<'a> {
        let track = |recorded: &'a RecordedStream| {
            let (first, last) = recorded.range()?;
            let (from, to) = (first.floor(tick), last.floor(tick).plus(tick));
            let past = resume.unwrap_or(from);
            let next =
                recorded.events().position(|event| event.time > past).unwrap_or(recorded.len());
            Some(Track { recorded, from, to, next })
        };
        let streams: Vec<Track<'a>> = recording.streams.iter().filter_map(track).collect();
        let first = streams.iter().map(|track| track.from).min();
        let end = streams.iter().map(|track| track.to).max().unwrap_or(Timestamp(0));
        let next = resume.or(first).filter(|next| *next < end);
        Feed { streams, tick, next, resumed: resume, end }
    }

    /// The tick that [`Feed::step`] feeds next; none at the end.
    #[must_use]
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.next
    }

    /// End of the recording.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.end
    }

    /// Feeds one tick: sessions open, events are sent, borders stand, sessions
    /// close. An event that the encoder refuses is counted and left out.
    ///
    /// # Errors
    /// A [`DeviceError`] that no event is to blame for.
    pub fn step(
        &mut self,
        devices: &mut [Device],
        encoder: &Encoder,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
        refused: &mut Refusals,
    ) -> Result<(), DeviceError> {
        let Some(from) = self.next else { return Ok(()) };
        let to = from.plus(self.tick);
        let start = |first: Timestamp| match self.resumed {
            Some(resumed) if first < resumed => Start::Again { now: from },
            _ => Start::First,
        };
        for (track, device) in self.streams.iter_mut().zip(devices) {
            if track.from > from || track.to <= from {
                continue;
            }
            if !device.is_online() {
                device.open(start(track.from), from, rng, batch)?;
            }
            track.send(to, device, encoder, rng, batch, refused)?;
            if track.to == to { device.close(to, batch)? } else { device.advance(to, batch)? }
        }
        self.next = self.streams.iter().filter_map(|track| track.after(to)).min();
        Ok(())
    }
}

impl Track<'_> {
    fn send(
        &mut self,
        to: Timestamp,
        device: &mut Device,
        encoder: &Encoder,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
        refused: &mut Refusals,
    ) -> Result<(), DeviceError> {
        while self.next < self.recorded.len() {
            let event = self.recorded.event(self.next);
            if event.time >= to {
                break;
            }
            match device.event(event.time, event.cells, encoder, rng, batch) {
                Err(DeviceError::Encode(_)) => {
                    let fault = RowFault::OutOfBounds;
                    refused.push(Refused { line: event.line, column: None, fault });
                }
                sent => sent?,
            }
            self.next += 1;
        }
        Ok(())
    }

    /// The first tick at or after `time` in which the stream is online.
    fn after(&self, time: Timestamp) -> Option<Timestamp> {
        (self.to > time).then(|| self.from.max(time))
    }
}
