//! The transformer: additions a second, and memory for open windows.

use crate::BenchError;
use crate::floors;
use crate::measure::Effort;
use crate::plans;
use crate::report::{Figure, Goal};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{Producer, Session, Start};
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::plan::{Fraction, Plan, PlannedStream, Release};
use alpheus_policy::schema::Frames;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use std::convert::Infallible;

/// Words of the paper's fitness application, and the check word.
const WORDS: u16 = 683 + 1;
const TICK: Span = Span::seconds(10);
const START: Timestamp = Timestamp(1_700_000_000_000_000);
/// Data events of a stream in a window.
const EVENTS: u64 = 8;

/// Additions a second over 1,200 streams; bytes for each stream with an open
/// window at up to `most_streams`.
pub(crate) fn figures(
    effort: Effort,
    most_streams: u32,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    say("transformer: additions over 1,200 streams");
    let mut figures = additions(effort, 1_200)?;
    for streams in [1_200, 10_000, 100_000].into_iter().filter(|streams| *streams <= most_streams) {
        say(&format!("transformer: memory at {streams} streams"));
        figures.extend(memory(streams)?);
    }
    Ok(figures)
}

/// All data frames of a window, in the order of their times.
fn additions(effort: Effort, streams: u32) -> Result<Vec<Figure>, BenchError> {
    let mut recorded = RecordedFrames::new(streams)?;
    let opening = recorded.take();
    for event in 0..EVENTS {
        recorded.event_everywhere(event)?;
    }
    let data = recorded.take();
    let mut sums = floors::sums::Sums::new(streams as usize, usize::from(WORDS));
    let plan = plan(streams);
    let mut refused = 0;
    // Opening the sessions again for each run is not what is measured.
    let fresh = || {
        let mut transformer = Transformer::new(shape(), 1);
        // Without a plan that wants them, no words would be added.
        let registered = transformer.register(&plan);
        debug_assert!(registered.is_ok());
        for (stream, frame) in &opening {
            let opened = transformer.handle(0, stream_id(*stream), frame, START);
            debug_assert!(opened.is_ok());
        }
        transformer
    };
    let compared = effort.compare_after(
        || data.iter().for_each(|(stream, frame)| sums.add(*stream as usize, frame)),
        fresh,
        |transformer| {
            for (stream, frame) in &data {
                let added = transformer.handle(0, stream_id(*stream), frame, START);
                refused += usize::from(added.is_err());
            }
        },
    );
    if refused > 0 {
        return Err(BenchError::Transformer);
    }
    let each = compared.per(data.len());
    let name = format!("an addition of {} words, {streams} streams", WORDS - 1);
    let rate = format!("additions a second and core, {streams} streams");
    Ok(vec![
        Figure::compared("transformer", name, "ns", each),
        Figure::alone("transformer", rate, "1/s", 1e9 / each.ours)
            .with_goal(Goal::AtLeast(700_000.0)),
    ])
}

/// Bytes for each stream of a plan with one window open, the second of three.
/// Those before it must have left nothing.
fn memory(streams: u32) -> Result<[Figure; 2], BenchError> {
    let (plan, before) = (plan(streams), resident());
    let mut transformer = Transformer::new(shape(), 1);
    transformer.register(&plan).map_err(|_| BenchError::Transformer)?;
    // The same frames for every stream: only controllers check whose they are,
    // and no memory but the transformer's grows with the streams.
    let mut frames = Vec::new();
    let mut producer = session(0, &mut |frame| frames.push(frame.to_vec()))?;
    let everywhere = |frames: &mut Vec<Vec<u8>>, transformer: &mut Transformer| {
        let fed = (0..streams).try_for_each(|stream| feed(transformer, stream, frames));
        frames.clear();
        fed
    };
    everywhere(&mut frames, &mut transformer)?;
    let (mut most, mut most_resident) = (0, 0);
    for window in 0..3 {
        let end = Timestamp(START.0 + (window + 1) * TICK.0);
        let at = Timestamp(end.0 - TICK.0 / 2);
        producer
            .event(at, nothing, &mut |frame| frames.push(frame.to_vec()))
            .map_err(|_| BenchError::Transformer)?;
        everywhere(&mut frames, &mut transformer)?;
        most = most.max(transformer.footprint());
        most_resident = most_resident.max(resident());
        producer
            .advance(end, &mut |frame| frames.push(frame.to_vec()))
            .map_err(|_| BenchError::Transformer)?;
        everywhere(&mut frames, &mut transformer)?;
        let (id, window) = (plan.id(), plan.window_at(Timestamp(end.0 - TICK.0)));
        transformer.close(&id, window, 0).map_err(|_| BenchError::Transformer)?;
        transformer.finish(&id, window);
    }
    let goal = 1.2 * 8.0 * f64::from(WORDS) + 256.0;
    let figure = |what: &str, bytes: usize| {
        let name = format!("{what} for each stream with an open window, {streams} streams");
        Figure::alone("transformer", name, "bytes", bytes as f64 / f64::from(streams))
    };
    Ok([
        figure("memory", most).with_goal(Goal::AtMost(goal)),
        figure("resident memory", most_resident.saturating_sub(before)),
    ])
}

/// Bytes of this process in memory.
pub(crate) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn feed(transformer: &mut Transformer, stream: u32, frames: &[Vec<u8>]) -> Result<(), BenchError> {
    frames.iter().try_for_each(|frame| {
        transformer
            .handle(0, stream_id(stream), frame, Timestamp(START.0 + 100 * TICK.0))
            .map(|_| ())
            .map_err(|_| BenchError::Transformer)
    })
}

/// Frames of many streams, with the stream of each.
struct RecordedFrames {
    sessions: Vec<Session>,
    frames: Vec<(u32, Vec<u8>)>,
}

impl RecordedFrames {
    fn new(streams: u32) -> Result<RecordedFrames, BenchError> {
        let mut frames = Vec::new();
        let sessions = (0..streams)
            .map(|stream| session(stream, &mut |frame| frames.push((stream, frame.to_vec()))))
            .collect::<Result<_, _>>()?;
        Ok(RecordedFrames { sessions, frames })
    }

    fn event_everywhere(&mut self, event: u64) -> Result<(), BenchError> {
        let t = Timestamp(START.0 + (event + 1) * TICK.0 / (EVENTS + 2));
        for (stream, session) in (0..).zip(&mut self.sessions) {
            session
                .event(t, nothing, &mut |frame| self.frames.push((stream, frame.to_vec())))
                .map_err(|_| BenchError::Transformer)?;
        }
        Ok(())
    }

    fn take(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.frames)
    }
}

fn session(stream: u32, sink: &mut impl FnMut(&[u8])) -> Result<Session, BenchError> {
    let master = MasterSecret::new(Secret::from_bytes([1; 32]));
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&stream.to_be_bytes());
    Producer::new(&master, stream_id(stream), SchemaId([0; 32]), TICK, WORDS)
        .map_err(|_| BenchError::Transformer)?
        .open(Start::First, START, &mut ChaCha12Rng::from_seed(seed), sink)
        .map_err(|_| BenchError::Transformer)
}

/// An event whose words are all zero: to a transformer one ciphertext is as
/// good as another.
fn nothing(_: &mut alpheus_encrypted_stream::producer::EventVector<'_>) -> Result<(), Infallible> {
    Ok(())
}

fn stream_id(stream: u32) -> StreamId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&stream.to_be_bytes());
    StreamId(id)
}

fn shape() -> Shape {
    let (schema, tick) = (SchemaId([0; 32]), TICK);
    let (events, skew, frames) = (1_000, Span::seconds(60), Frames::Events);
    Shape { schema, words: WORDS, tick, events, skew, frames }
}

/// A plan that releases ten words and the check word.
fn plan(streams: u32) -> Plan {
    let stream = |stream| PlannedStream {
        stream: stream_id(stream),
        owner: OwnerId([0; 32]),
        controller: 0,
    };
    Plan {
        window: TICK,
        grace: Span(0),
        from: START,
        release: Release { rows: (0..10).chain([WORDS - 1]).map(|word| vec![word]).collect() },
        dropout: Fraction::ZERO,
        roster: vec![ControllerId([0; 32])],
        streams: (0..streams).map(stream).collect(),
        ..plans::blank(streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_within_its_bound() {
        let [figure, _] = memory(200).unwrap();
        assert_eq!(figure.met, Some(true), "{figure:?}");
    }
}
