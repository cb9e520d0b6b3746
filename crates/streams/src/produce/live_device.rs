//! A running device: it encrypts lines as events, and makes borders between them.

use super::clock_steps::{ClockStep, ClockSteps, wait_for};
use super::lines::Line;
use super::outbox::{Outbox, Record};
use super::progress::Progress;
use super::refused_sessions::RefusedSessions;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::producer::{EventError, MAX_SILENCE, Start};
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_node::service::shutdown::Shutdown;
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::devices::value_of;
use alpheus_stream_runtime::stream_producer::{StreamProducer, StreamSession};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long frames are collected before they are written to the outbox.
pub(super) const GATHER: Duration = Duration::from_millis(100);
/// Maximum number of frames collected.
const MAX_GATHERED: usize = 256;
/// Borders that are made before they are written to the outbox.
const BORDERS: u64 = 256;
/// Whole ticks that passed unseen: then the device slept.
const ASLEEP: u64 = 2;
/// Pause before a session is opened that takes the place of a refused one.
const REOPENING: RetryPolicy =
    RetryPolicy::doubling(Duration::from_secs(1), Duration::from_secs(60));
/// What became of the lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Lines that were encrypted and have arrived, or wait for the next start.
    pub events: u64,
    /// Lines that were refused.
    pub refused: u64,
}

/// When events happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When their lines say so.
    Stated,
    /// When their lines say so, and they are not sent before. Between them nothing happens.
    Paced,
    /// When their lines are read.
    Live,
    /// When their lines are read, and the session begins before the first.
    AtOnce,
}

/// A running device.
pub(super) struct LiveDevice {
    pub(super) encoder: Encoder,
    pub(super) schema: Schema,
    pub(super) outbox: Outbox,
    pub(super) rng: ChaCha20Rng,
    pub(super) is_new: bool,
    /// The last session and its last border, if the next one names them.
    pub(super) reached: Option<(u64, Timestamp)>,
    /// When events happen.
    pub(super) pace: Pace,
    /// The stream is online for whole windows of this length: with times in the lines.
    pub(super) whole: Option<Span>,
    /// The time of the last event that was encrypted.
    pub(super) last_event: Option<Timestamp>,
    /// Who learns how far everything has arrived, if anybody does.
    pub(super) progress: Option<Progress>,
    /// Sessions that the service does not take.
    pub(super) refused: RefusedSessions,
    /// What it says of its clock.
    pub(super) steps: ClockSteps,
    /// The request to stop.
    pub(super) stop: Shutdown,
    /// Lines with records whose events no border has followed yet: they may be lost.
    pub(super) unsettled: Vec<Line>,
    /// Records of events that a border has followed, or that can never be sent.
    pub(super) done: Vec<Record>,
}

impl LiveDevice {
    /// Sends all lines, and borders between them; closes the session at the end. Also returns who
    /// learns how far everything has arrived.
    pub(super) fn run(
        mut self,
        producer: StreamProducer,
        lines: Receiver<Result<Line, Failure>>,
    ) -> (Result<Summary, Failure>, Option<Progress>) {
        let ran = self.send(producer, &lines);
        (ran, self.progress)
    }

    fn send(
        &mut self,
        producer: StreamProducer,
        lines: &Receiver<Result<Line, Failure>>,
    ) -> Result<Summary, Failure> {
        let mut summary = Summary::default();
        let (mut frames, mut next) = (Vec::new(), self.first(lines));
        if next.is_none() && self.pace != Pace::AtOnce {
            return Ok(summary);
        }
        let Some(producer) = self.wait_to_open(producer, next.as_ref())? else {
            return Ok(summary);
        };
        let mut session = self.open(producer, next.as_ref(), &mut frames)?;
        loop {
            if self.refused.take(session.number()) {
                session = self.reopen(session, &mut frames)?;
            }
            session = self.follow_clock(session, &mut frames)?;
            let Some(online) = self.skip_silence(session, next.as_ref(), &mut frames)? else {
                return Ok(summary);
            };
            session = online;
            if let Some(at) = self.ahead(next.as_ref()) {
                self.pass(&mut session, at, &mut frames)?;
                if self.is_over() {
                    break;
                }
                continue;
            }
            if let Some(line) = next.take() {
                self.take(&mut session, line, &mut frames, &mut summary)?;
                if frames.len() < MAX_GATHERED {
                    // More lines may be waiting: write them together.
                    next = lines.try_recv().ok();
                    if next.is_some() {
                        continue;
                    }
                }
            }
            match self.listen(&mut session, lines, &mut frames)? {
                ControlFlow::Continue(line) if !self.stop.is_stopping() => next = line,
                _ => break,
            }
        }
        self.close(session, &mut frames)?;
        Ok(summary)
    }

    /// The next line, if one comes in a moment; else borders. `Break` at the end of the input.
    fn listen(
        &mut self,
        session: &mut StreamSession,
        lines: &Receiver<Result<Line, Failure>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<ControlFlow<(), Option<Result<Line, Failure>>>, Failure> {
        self.keep(session, frames)?;
        if self.outbox.is_closed() {
            // The sender has given up, and says why.
            return Ok(ControlFlow::Break(()));
        }
        match lines.recv_timeout(GATHER) {
            Ok(line) => return Ok(ControlFlow::Continue(Some(line))),
            // With times in the lines, the clock does not count: the next line may be older
            // than now.
            Err(RecvTimeoutError::Timeout) if self.has_times() => {}
            Err(RecvTimeoutError::Timeout) => self.borders(session, clock::now(), frames)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(None))
    }

    /// Encrypts a line as an event, or counts it as refused.
    fn take(
        &mut self,
        session: &mut StreamSession,
        line: Result<Line, Failure>,
        frames: &mut Vec<Vec<u8>>,
        summary: &mut Summary,
    ) -> Result<(), Failure> {
        match line.and_then(|line| self.event(session, line, frames)) {
            Ok(()) => summary.events += 1,
            Err(refused) if refused.category() == Category::Input => {
                tracing::warn!(%refused, "a line was refused");
                summary.refused += 1;
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Whether the process is to stop, or the sender has given up.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_stopping() || self.outbox.is_closed()
    }

    /// Whether lines have times, so that the clock does not count.
    fn has_times(&self) -> bool {
        matches!(self.pace, Pace::Stated | Pace::Paced)
    }

    /// Opens a session: before the first line if the stream is new, else at the
    /// next tick, for which it waits.
    fn open(
        &mut self,
        producer: StreamProducer,
        first: Option<&Result<Line, Failure>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        let now = clock::now();
        let (start, at) = if self.is_new {
            let said = first.and_then(|line| line.as_ref().ok()).and_then(|line| line.time);
            let first = said.unwrap_or(now).floor(self.whole.unwrap_or(self.schema.tick));
            (Start::First, first)
        } else {
            (Start::Again { now }, producer.next_tick(now))
        };
        let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
        let opened = producer.open(start, at, self.reached, rng, &mut sink);
        let session = opened.map_err(|(_, error)| error).blame(Category::Input)?;
        self.is_new = false;
        self.keep(&session, frames)?;
        wait_for(at);
        Ok(session)
    }

    /// The service does not take the session any more. After a part of a pause, another opens,
    /// since many devices may be in this at once. Until then events are lost, but for those that
    /// records hold.
    fn reopen(
        &mut self,
        session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        tracing::warn!(
            lost = session.unclosed(),
            "the service does not take this session; opening a new one"
        );
        std::thread::sleep(Backoff::new(REOPENING).jittered(&mut self.rng));
        if let Some(step) = self.clock_step(&session) {
            // That is why, so the log and the health report have to say it.
            self.steps.say(step);
        }
        self.renew(session, frames)
    }

    /// Drops the session and opens another at the next tick of the clock. The open tick's part of the
    /// records is sent again.
    fn renew(
        &mut self,
        session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        self.reached = session.reached();
        let (producer, _) = session.abandon();
        let mut session = self.open(producer, None, frames)?;
        for line in std::mem::take(&mut self.unsettled) {
            self.event(&mut session, line, frames)?;
        }
        Ok(session)
    }

    /// Where the clock has left the session, another opens: after a step back the running one could
    /// send nothing until the clock has caught up, and after years ahead it would send years of
    /// borders.
    fn follow_clock(
        &mut self,
        mut session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamSession, Failure> {
        let Some(step) = self.clock_step(&session) else { return Ok(session) };
        self.steps.say(step);
        if matches!(step, ClockStep::Ahead(_)) {
            // What was open when the machine fell asleep is complete.
            let border = session.next_border();
            let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
            session.advance(border, rng, &mut sink).blame(Category::Input)?;
            self.settle();
        }
        self.renew(session, frames)
    }

    /// How the clock has left the session, if it has. With times in the lines it does not count.
    pub(super) fn clock_step(&self, session: &StreamSession) -> Option<ClockStep> {
        if self.has_times() {
            return None;
        }
        let tick = self.schema.tick;
        let border = Timestamp(session.next_border().0.saturating_sub(tick.0));
        ClockStep::since(border, clock::now(), tick, session.has_frame_per_event())
    }

    /// The first line; none if the input ends, the process is to stop, or none is waited for.
    fn first(&self, lines: &Receiver<Result<Line, Failure>>) -> Option<Result<Line, Failure>> {
        if self.pace == Pace::AtOnce {
            return lines.try_recv().ok();
        }
        loop {
            match lines.recv_timeout(GATHER) {
                Ok(first) => return Some(first),
                Err(RecvTimeoutError::Timeout) if !self.is_over() => {}
                Err(_) => return None,
            }
        }
    }

    /// All borders up to `to`, written in portions: after a long pause there are many.
    pub(super) fn borders(
        &mut self,
        session: &mut StreamSession,
        to: Timestamp,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let asleep = to.0.saturating_sub(session.next_border().0) / self.schema.tick.0 >= ASLEEP;
        if asleep && !self.has_times() && !session.has_frame_per_event() {
            // The process did not run, so nothing happened here.
            let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
            session.sleep_until(to, rng, &mut sink).blame(Category::Input)?;
            self.settle();
            return Ok(());
        }
        while session.next_border() <= to {
            let some = Span(self.schema.tick.0.saturating_mul(BORDERS));
            let piece = to.min(session.next_border().plus(some));
            let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
            session.advance(piece, rng, &mut sink).blame(Category::Input)?;
            self.settle();
            if frames.len() >= MAX_GATHERED {
                self.keep(session, frames)?;
            }
        }
        Ok(())
    }

    /// A border has followed all events.
    pub(super) fn settle(&mut self) {
        self.done.extend(self.unsettled.drain(..).filter_map(|line| line.record));
    }

    fn event(
        &mut self,
        session: &mut StreamSession,
        line: Line,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let (last, tick) = (session.last(), self.schema.tick);
        let at = match line.time {
            Some(said) => time_of_line(said, last, tick)
                .map_err(|late| Failure::new(Category::Input, late).at(line.place.clone()))?,
            None => after(clock::now(), last, tick),
        };
        if at.0.saturating_sub(last.0) / tick.0 <= MAX_SILENCE {
            // A larger jump of the clock is refused below.
            self.borders(session, at, frames)?;
        }
        let values: Vec<Value<'_>> = line.cells.iter().map(value_of).collect();
        let (encoder, rng) = (&self.encoder, &mut self.rng);
        let sent = session.event(
            at,
            rng,
            |rng, vector| encoder.encode(&values, rng, |word, addend| vector.add(word, addend)),
            &mut |frame| frames.push(frame.to_vec()),
        );
        let has_record = line.record.is_some();
        if sent.is_ok() {
            self.last_event = Some(at);
        }
        match sent {
            Ok(()) if has_record => self.unsettled.push(line),
            Ok(()) => {}
            Err(EventError::Encoding(error)) => {
                self.done.extend(line.record);
                return Err(Failure::new(Category::Input, error.to_string()).at(line.place));
            }
            // The clock leapt. What a record holds is sent by the next start.
            Err(other) => {
                let category = if has_record { Category::Io } else { Category::Input };
                return Err(Failure::new(category, other.to_string()).at(line.place));
            }
        }
        Ok(())
    }

    pub(super) fn keep(
        &mut self,
        session: &StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        if frames.is_empty() {
            return Ok(());
        }
        self.reached = session.reached();
        let done = std::mem::take(&mut self.done);
        self.outbox.put(std::mem::take(frames), self.reached, &done).blame(Category::Io)
    }
}

/// A line whose time is too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its time is not after the last event's, or it is before the session was opened: sort lines by time; after a start, older lines are not sent"
)]
pub struct LateLineError;

/// The time of an event whose line has a time in milliseconds: that time, or just after
/// the last event of the same millisecond.
///
/// # Errors
/// [`LateLineError`] if no such time is after the last event's.
pub fn time_of_line(
    said: Timestamp,
    last: Timestamp,
    tick: Span,
) -> Result<Timestamp, LateLineError> {
    let at = after(said, last, tick);
    let same = at.floor(Span(1000)) == said.floor(Span(1000)) && at.floor(tick) == said.floor(tick);
    if same { Ok(at) } else { Err(LateLineError) }
}

/// The first time from `wanted` on that is after `last` and not on a tick.
fn after(wanted: Timestamp, last: Timestamp, tick: Span) -> Timestamp {
    let at = if wanted > last { wanted } else { last.plus(Span(1)) };
    if at.0.is_multiple_of(tick.0) { at.plus(Span(1)) } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_line_is_refused_and_not_moved() {
        let tick = Span::seconds(1);
        let at = |millis: u64, micros: u64| Timestamp(1000 * millis + micros);
        let last = at(5_500, 0);
        assert_eq!(time_of_line(at(5_600, 0), last, tick), Ok(at(5_600, 0)));
        // Several in one millisecond stand in their order.
        assert_eq!(time_of_line(at(5_500, 0), last, tick), Ok(at(5_500, 1)));
        assert_eq!(time_of_line(at(6_000, 0), last, tick), Ok(at(6_000, 1)), "not on a border");
        for late in [at(5_499, 0), at(4_000, 0), at(0, 0)] {
            assert_eq!(time_of_line(late, last, tick), Err(LateLineError));
        }
        // A thousand in one millisecond, and no more.
        assert_eq!(time_of_line(at(5_500, 0), at(5_500, 999), tick), Err(LateLineError));
        // Not into the next window, however short the tick.
        assert_eq!(time_of_line(at(5_500, 0), at(5_500, 9), Span(10)), Err(LateLineError));
    }
}
