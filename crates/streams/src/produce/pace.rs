//! How a device keeps to the times of its lines: it waits for them, is online for whole windows, and
//! goes offline in long silences.

use super::clock_steps::wait_for;
use super::lines::Line;
use super::live_device::{GATHER, LiveDevice, Pace};
use alpheus_encrypted_stream::producer::Start;
use alpheus_node::clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_stream_runtime::stream_producer::{StreamProducer, StreamSession};
use alpheus_time::Timestamp;
use std::time::Duration;

/// With whole windows: after a silence of more ticks than this, a stream goes offline and comes
/// back, since a border for each tick would be useless.
const LONG_SILENCE: u64 = 10_000;
/// The shortest pause between two looks at the clock.
const SHORT: Duration = Duration::from_millis(1);

impl LiveDevice {
    /// Waits for the window of the first line, where the session opens. None if the process is to
    /// stop.
    pub(super) fn wait_to_open(
        &self,
        producer: StreamProducer,
        first: Option<&Result<Line, Failure>>,
    ) -> Result<Option<StreamProducer>, Failure> {
        let said = first.and_then(|line| line.as_ref().ok()).and_then(|line| line.time);
        let (Some(said), Some(whole), Pace::Paced, true) =
            (said, self.whole, self.pace, self.is_new)
        else {
            return Ok(Some(producer));
        };
        self.inform(said.floor(whole))?;
        Ok(self.reaches(said.floor(whole)).then_some(producer))
    }

    /// The time of the next line, if it is to be waited for.
    pub(super) fn ahead(&self, next: Option<&Result<Line, Failure>>) -> Option<Timestamp> {
        let time = next?.as_ref().ok()?.time?;
        (self.pace == Pace::Paced && time > clock::now()).then_some(time)
    }

    /// A part of the time before the next line, in which nothing happens.
    pub(super) fn pass(
        &mut self,
        session: &mut StreamSession,
        next: Timestamp,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        self.borders(session, clock::now().min(next), frames)?;
        self.keep(session, frames)?;
        self.inform_of(session)?;
        std::thread::sleep(clock::until(next).clamp(SHORT, GATHER));
        Ok(())
    }

    /// Where the next line is far: ends the session with its last window, and opens another at the
    /// window of that line. None if the process is to stop.
    pub(super) fn skip_silence(
        &mut self,
        session: StreamSession,
        next: Option<&Result<Line, Failure>>,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<Option<StreamSession>, Failure> {
        match self.after_silence(&session, next) {
            Some(at) => self.skip(session, at, frames),
            None => Ok(Some(session)),
        }
    }

    /// The next line's time, if the stream goes offline until then.
    fn after_silence(
        &self,
        session: &StreamSession,
        next: Option<&Result<Line, Failure>>,
    ) -> Option<Timestamp> {
        let (whole, time) = (self.whole?, next?.as_ref().ok()?.time?);
        let silence = time.0.saturating_sub(session.last().0) / self.schema.tick.0;
        let apart = time.floor(whole) > self.end_of(session);
        (silence > LONG_SILENCE && apart).then_some(time)
    }

    fn skip(
        &mut self,
        session: StreamSession,
        next: Timestamp,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<Option<StreamSession>, Failure> {
        let producer = self.end(session, frames)?;
        let at = next.floor(self.whole.unwrap_or(self.schema.tick));
        while self.pace == Pace::Paced && clock::now() < at {
            if self.is_over() {
                return Ok(None);
            }
            self.inform(at)?;
            std::thread::sleep(clock::until(at).min(GATHER));
        }
        let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
        let opened = producer.open(Start::Again { now: at }, at, self.reached, rng, &mut sink);
        let session = opened.map_err(|(_, error)| error).blame(Category::Input)?;
        self.keep(&session, frames)?;
        Ok(Some(session))
    }

    /// Where the session ends, if no further event comes.
    fn end_of(&self, session: &StreamSession) -> Timestamp {
        let next = session.next_border();
        match (self.whole, self.last_event) {
            (Some(whole), Some(last)) => next.max(last.floor(whole).plus(whole)),
            _ => next,
        }
    }

    /// Waits until this time; no longer once the process is to stop.
    fn reaches(&self, at: Timestamp) -> bool {
        while clock::now() < at {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(clock::until(at).min(GATHER));
        }
        true
    }

    /// Says how far everything has arrived, where nothing waits to be sent.
    fn inform_of(&self, session: &StreamSession) -> Result<(), Failure> {
        let last = Timestamp(session.next_border().0.saturating_sub(self.schema.tick.0));
        self.inform(last)
    }

    /// Nothing of before this time is still to come.
    fn inform(&self, reached: Timestamp) -> Result<(), Failure> {
        match &self.progress {
            Some(progress) if self.outbox.is_empty() => progress.set(reached),
            _ => Ok(()),
        }
    }

    /// Ends the session for good.
    pub(super) fn close(
        &mut self,
        session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        self.end(session, frames).map(drop)
    }

    /// Ends the session at the end of its tick, or of its last window, for which it waits.
    fn end(
        &mut self,
        mut session: StreamSession,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<StreamProducer, Failure> {
        let mut at = self.end_of(&session);
        // A clock that was set back would hold it up.
        let is_left = |device: &Self, own: &_| device.clock_step(own).is_some();
        while clock::now() < at && !self.is_over() && !is_left(self, &session) {
            match self.whole {
                Some(_) => self.pass(&mut session, Timestamp(at.0 - 1), frames)?,
                None => std::thread::sleep(clock::until(at).clamp(SHORT, GATHER)),
            }
        }
        if clock::now() < at {
            at = session.next_border();
        }
        // A sender that has given up says why.
        if !self.outbox.is_closed() && !is_left(self, &session) {
            wait_for(at);
        }
        self.borders(&mut session, Timestamp(at.0 - 1), frames)?;
        let reached = session.reached().map(|(number, _)| (number, at));
        let (rng, mut sink) = (&mut self.rng, |frame: &[u8]| frames.push(frame.to_vec()));
        let closed = session.close(at, rng, &mut sink);
        let producer = closed.map_err(|(_, error)| error).blame(Category::Input)?;
        self.settle();
        self.reached = reached;
        let done = std::mem::take(&mut self.done);
        self.outbox.put(std::mem::take(frames), reached, &done).blame(Category::Io)?;
        Ok(producer)
    }
}
