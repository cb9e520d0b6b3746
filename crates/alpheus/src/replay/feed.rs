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
    /// got that far. A stream is online from the start of the windows that hold
    /// its first event to the end of those that hold its last.
    #[must_use]
    pub fn new(
        recording: &'a Recording,
        tick: Span,
        windows: &[Span],
        resume: Option<Timestamp>,
    ) -> Feed<'a> {
        let track = |recorded: &'a RecordedStream| {
            let (first, last) = recorded.range()?;
            let (from, to) = whole_windows(first, last, windows);
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

/// The shortest time that holds both and cuts no window of any of these lengths.
fn whole_windows(first: Timestamp, last: Timestamp, windows: &[Span]) -> (Timestamp, Timestamp) {
    let widen = |(from, to): (Timestamp, Timestamp)| {
        windows.iter().fold((from, to), |(from, to), window| {
            let last = Timestamp(to.0.saturating_sub(1)).floor(*window);
            (from.floor(*window), last.plus(*window))
        })
    };
    let mut found = widen((first, Timestamp(last.0 + 1)));
    while widen(found) != found {
        found = widen(found);
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_online_for_whole_windows() {
        let span = |first, last, windows: &[u64]| {
            let windows: Vec<Span> = windows.iter().map(|window| Span(*window)).collect();
            let (from, to) = whole_windows(Timestamp(first), Timestamp(last), &windows);
            (from.0, to.0)
        };
        assert_eq!(span(12, 39, &[10]), (10, 40));
        assert_eq!(span(12, 40, &[10]), (10, 50));
        assert_eq!(span(12, 39, &[10, 60]), (0, 60));
        assert_eq!(span(15, 20, &[7, 10]), (0, 70));
    }
}
