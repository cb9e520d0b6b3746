//! Feeds a recording to the owners' devices, tick by tick, as if time passed.

use alpheus_encrypted_stream::encode::Encoder;
use alpheus_encrypted_stream::producer::Start;
use alpheus_input::refusals::{Refusals, RefusedRow, RowError};
use alpheus_input::rows::{RecordedStream, Recording};
use alpheus_stream_runtime::devices::{Device, DeviceError};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use rand_core::CryptoRng;

/// After a silence of more ticks than this, a stream goes offline and comes back. A border
/// for each tick would be useless and cost a vector.
const MAX_SILENT_TICKS: u64 = 100_000;

/// Walks a recording in event time.
pub struct Feed<'a> {
    /// By stream, then time.
    stretches: Vec<Stretch<'a>>,
    tick: Span,
    next: Option<Timestamp>,
    /// Where this run continues an earlier one; sessions before it are dead.
    resumed: Option<Timestamp>,
    end: Timestamp,
    /// The next tick is this run's last.
    stopping: bool,
}

/// Events of a stream from going online to going offline.
struct Stretch<'a> {
    recorded: &'a RecordedStream,
    /// Position of the stream among members and devices.
    stream: usize,
    /// Whether the stream was never online before.
    first: bool,
    from: Timestamp,
    to: Timestamp,
    /// The next event, and the end of those that belong here.
    next: usize,
    until: usize,
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
        let mut stretches = Vec::new();
        for (stream, recorded) in recording.streams.iter().enumerate() {
            for (start, until) in split(recorded, tick) {
                let ends = (recorded.event(start).time, recorded.event(until - 1).time);
                let (from, to) = whole_windows(ends.0, ends.1, windows);
                // A window spans the silence, so the stream stays online.
                if let Some(before) = stretches
                    .last_mut()
                    .filter(|before: &&mut Stretch<'_>| before.stream == stream && from < before.to)
                {
                    (before.to, before.until) = (to, until);
                    continue;
                }
                let past = resume.map_or(start, |resume| {
                    recorded.events().take_while(|event| event.time <= resume).count()
                });
                let (first, next) = (start == 0, past.clamp(start, until));
                stretches.push(Stretch { recorded, stream, first, from, to, next, until });
            }
        }
        let first = stretches.iter().map(|stretch| stretch.from).min();
        let end = stretches.iter().map(|stretch| stretch.to).max().unwrap_or(Timestamp(0));
        let next = resume.or(first).filter(|next| *next < end);
        Feed { stretches, tick, next, resumed: resume, end, stopping: false }
    }

    /// Makes the next tick the last of this run: all streams go offline in order
    /// at its end, so that a later run can take them up there without a gap.
    pub fn stop(&mut self) {
        self.stopping = true;
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
    /// A [`DeviceError`] that no single event causes.
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
        for stretch in &mut self.stretches {
            if stretch.from > from || stretch.to <= from {
                continue;
            }
            let Some(device) = devices.get_mut(stretch.stream) else { continue };
            if !device.is_online() {
                let dead = self.resumed.is_some_and(|resumed| stretch.from < resumed);
                let again = dead || !stretch.first;
                let start = if again { Start::Again { now: from } } else { Start::First };
                device.open(start, from, rng, batch)?;
            }
            stretch.send(to, device, encoder, rng, batch, refused)?;
            if stretch.to == to || self.stopping {
                device.close(to, rng, batch)?;
            } else {
                device.advance(to, rng, batch)?;
            }
        }
        self.next = self.stretches.iter().filter_map(|stretch| stretch.after(to)).min();
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

/// Splits a stream's events at long silences.
fn split(recorded: &RecordedStream, tick: Span) -> Vec<(usize, usize)> {
    let longest = tick.0.saturating_mul(MAX_SILENT_TICKS);
    let (mut parts, mut start, mut before) = (Vec::new(), 0, None::<Timestamp>);
    for (at, event) in recorded.events().enumerate() {
        if before.is_some_and(|before| event.time.0.saturating_sub(before.0) > longest) {
            parts.push((start, at));
            start = at;
        }
        before = Some(event.time);
    }
    if start < recorded.len() {
        parts.push((start, recorded.len()));
    }
    parts
}

impl Stretch<'_> {
    fn send(
        &mut self,
        to: Timestamp,
        device: &mut Device,
        encoder: &Encoder,
        rng: &mut impl CryptoRng,
        batch: &mut Batch,
        refused: &mut Refusals,
    ) -> Result<(), DeviceError> {
        while self.next < self.until {
            let event = self.recorded.event(self.next);
            if event.time >= to {
                break;
            }
            match device.event(event.time, event.cells, encoder, rng, batch) {
                Err(DeviceError::Encode(_)) => {
                    let fault = RowError::OutOfBounds;
                    refused.push(RefusedRow { line: event.line, column: None, fault });
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
