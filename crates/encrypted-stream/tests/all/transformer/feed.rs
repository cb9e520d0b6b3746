//! Frames and plans for a transformer. Words are in the clear: it cannot tell.

use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::frame::{Frame, Link};
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_policy::plan::Integrity;
use alpheus_policy::plan::{
    Fraction, MaskStrategy, Plan, PlannedStream, PopulationBounds, Release,
};
use alpheus_policy::schema::Frames;
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};

/// Distance between borders in every test.
pub(crate) const TICK: u64 = 10;
/// A clock that is never behind.
pub(crate) const NOW: Timestamp = Timestamp(1 << 50);

pub(crate) fn shape(words: u16) -> Shape {
    let schema = SchemaId([9; 32]);
    let frames = Frames::Events;
    Shape { schema, words, tick: Span(TICK), events: 50, skew: Span(5), frames }
}

pub(crate) fn stream(number: u32) -> StreamId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    StreamId(id)
}

/// Releases each word but the check word by itself, and the check word.
pub(crate) fn everything(words: u16) -> Release {
    Release { rows: (0..words).map(|word| vec![word]).collect() }
}

pub(crate) fn plan(streams: u32, window: u64, release: Release) -> Plan {
    let planned =
        |number| PlannedStream { stream: stream(number), owner: OwnerId([0; 32]), controller: 0 };
    Plan {
        nonce: [0; 16],
        name: "test".into(),
        consumer: "test".into(),
        sealed_to: None,
        schema: SchemaId([9; 32]),
        group: vec![],
        window: Span(window),
        grace: Span(0),
        from: Timestamp(0),
        release,
        select: ReleasePlan::default(),
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![],
        population: PopulationBounds { min: 1, max: u32::MAX },
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::ZERO,
        delta_exponent: 9,
        masks: MaskStrategy::Single,
        epoch: None,
        roster: vec![ControllerId([0; 32])],
        streams: (0..streams).map(planned).collect(),
    }
}

pub(crate) fn window(start: u64, end: u64) -> Window {
    Window { start: Timestamp(start), end: Timestamp(end) }
}

/// Writes one session's frames.
#[derive(Clone)]
pub(crate) struct Session {
    session: u64,
    last: u64,
    count: u64,
    words: usize,
}

impl Session {
    /// A session that opens at `t`, with its opening frame.
    pub(crate) fn open(session: u64, t: u64, words: u16) -> (Session, Vec<u8>) {
        let opening: Frame<Vec<u64>> =
            Frame::Opening { session, t: Timestamp(t), tag: Tag([session as u8; 16]) };
        (Session { session, last: t, count: 0, words: words.into() }, opening.to_bytes())
    }

    fn link(&mut self, t: u64) -> Link {
        let previous = Timestamp(std::mem::replace(&mut self.last, t));
        Link { session: self.session, previous, t: Timestamp(t) }
    }

    /// An event whose words are all `word`.
    pub(crate) fn data(&mut self, t: u64, word: u64) -> Vec<u8> {
        self.count += 1;
        let words = vec![word; self.words];
        Frame::Data { link: self.link(t), words }.to_bytes()
    }

    pub(crate) fn border(&mut self, t: u64) -> Vec<u8> {
        let (count, words) = (std::mem::take(&mut self.count), vec![0; self.words]);
        Frame::Border { link: self.link(t), count, tag: Tag([0; 16]), words }.to_bytes()
    }

    pub(crate) fn closing(&mut self, t: u64) -> Vec<u8> {
        let (count, words) = (std::mem::take(&mut self.count), vec![0; self.words]);
        Frame::Closing { link: self.link(t), count, tag: Tag([0; 16]), words }.to_bytes()
    }
}

/// Feeds frames of stream `number` from partition 0; all must be accepted.
pub(crate) fn take(transformer: &mut Transformer, number: u32, frames: &[Vec<u8>]) {
    for frame in frames {
        transformer.handle(0, stream(number), frame, NOW).unwrap();
    }
}

/// A stream that is online for `ticks` ticks from 0 on, with `events` events a tick, each
/// of them `word` in all words.
pub(crate) fn frames(session: u64, words: u16, ticks: u64, events: u64, word: u64) -> Vec<Vec<u8>> {
    let (mut session, opening) = Session::open(session, 0, words);
    let mut frames = vec![opening];
    for tick in 0..ticks {
        let times = (1..=events).map(|i| tick * TICK + i);
        frames.extend(times.map(|t| session.data(t, word)));
        let end = (tick + 1) * TICK;
        frames.push(if tick + 1 < ticks { session.border(end) } else { session.closing(end) });
    }
    frames
}
