//! A producer's guarantees, whatever its clock and its caller do.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use alpheus_crypto::mac::Tag;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::keys::{
    BorderClaim, BorderKind, MAX_WORDS, MasterSecret, StreamKeys,
};
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, OpenError, Producer, Session, SetupError, Start,
    TimeError, VectorError,
};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use proptest::prelude::*;
use std::collections::HashSet;
use std::convert::Infallible;

const DAY: u64 = 86_400_000_000;
const TICK: u64 = 1000;
const WORDS: u16 = 5;
const START: Timestamp = Timestamp(1_700_000_000 * TICK);

fn master() -> MasterSecret {
    MasterSecret::new(Secret::from_bytes([1; 32]))
}

fn producer() -> Producer {
    let (stream, schema) = (StreamId([2; 16]), SchemaId([3; 32]));
    Producer::new(&master(), stream, schema, Span(TICK), WORDS).unwrap()
}

fn keys() -> StreamKeys {
    StreamKeys::new(&master(), StreamId([2; 16]), SchemaId([3; 32]))
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn at(offset: i64) -> Timestamp {
    Timestamp(START.0.checked_add_signed(offset).unwrap())
}

/// Adds 1 to the first word.
fn one(vector: &mut EventVector<'_>) -> Result<(), Infallible> {
    vector.add(0, 1);
    Ok(())
}

fn open(frames: &mut Vec<Vec<u8>>, seed: u64) -> Session {
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    producer().open(Start::First, START, &mut rng(seed), sink).unwrap()
}

fn event(session: &mut Session, t: Timestamp, frames: &mut Vec<Vec<u8>>) -> Result<(), TimeError> {
    match session.event(t, one, &mut |frame: &[u8]| frames.push(frame.to_vec())) {
        Ok(()) => Ok(()),
        Err(EventError::Time(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

fn parsed(frames: &[Vec<u8>]) -> Vec<FrameView<'_>> {
    frames.iter().map(|bytes| FrameView::parse(bytes).unwrap()).collect()
}

/// The plaintext of an event, decrypted with the keys that a controller also has.
fn decrypt(frame: &FrameView<'_>) -> Vec<u64> {
    let (link, words) = (frame.link().unwrap(), frame.words().unwrap());
    let (mut new, mut old) = (vec![0; words.len()], vec![0; words.len()]);
    keys().key_vector(link.session, link.t, &mut new).unwrap();
    keys().key_vector(link.session, link.previous, &mut old).unwrap();
    let pads = new.iter().zip(&old);
    words.iter().zip(pads).map(|(c, (n, o))| c.wrapping_sub(*n).wrapping_add(*o)).collect()
}

#[test]
fn equal_repeated_and_backward_times_are_rejected_without_effect() {
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    event(&mut session, at(5), &mut frames).unwrap();
    event(&mut session, at(7), &mut frames).unwrap();
    for t in [at(7), at(5), at(6), at(0), at(-1), Timestamp(0)] {
        let error = event(&mut session, t, &mut frames);
        assert_eq!(error, Err(TimeError::NotAscending { t, last: at(7) }));
    }
    assert_eq!(frames.len(), 3, "nothing was sent for them");
    event(&mut session, at(8), &mut frames).unwrap();
    let link = parsed(&frames)[3].link().unwrap();
    assert_eq!((link.previous, link.t), (at(7), at(8)));
    assert_eq!(session.unclosed(), 3);
}

#[test]
fn every_tick_has_a_border_that_counts_the_events_before_it() {
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    for offset in [1, 999, 1001, 4999] {
        event(&mut session, at(offset), &mut frames).unwrap();
    }
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.advance(at(6500), sink).unwrap();
    session.close(at(8000), sink).unwrap();
    let claims: Vec<_> = parsed(&frames).iter().filter_map(FrameView::claim).collect();
    let summary: Vec<_> =
        claims.iter().map(|(claim, _)| (claim.t.0 - START.0, claim.count, claim.kind)).collect();
    use BorderKind::{Closing, Interior, Opening};
    let expected = [
        (0, 0, Opening),
        (1000, 2, Interior),
        (2000, 1, Interior),
        (3000, 0, Interior),
        (4000, 0, Interior),
        (5000, 1, Interior),
        (6000, 0, Interior),
        (7000, 0, Interior),
        (8000, 0, Closing),
    ];
    assert_eq!(summary, expected);
    for (claim, tag) in &claims {
        assert_eq!(keys().verify_border(claim, tag), Ok(()));
    }
}

/// The borders of a run across midnights: session, kind, ticks since the start.
fn borders_of(tick: u64, start: u64, ticks: u64) -> Vec<(u64, BorderKind, u64)> {
    let (stream, schema) = (StreamId([2; 16]), SchemaId([3; 32]));
    let producer = Producer::new(&master(), stream, schema, Span(tick), WORDS).unwrap();
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let mut session = producer.open(Start::First, Timestamp(start), &mut rng(3), sink).unwrap();
    let first = session.number();
    session.advance(Timestamp(start + ticks * tick), sink).unwrap();
    let claims = parsed(&frames).into_iter().filter_map(|frame| frame.claim()).collect::<Vec<_>>();
    let border = |(claim, tag): &(BorderClaim, Tag)| {
        assert_eq!(keys().verify_border(claim, tag), Ok(()));
        (claim.session.wrapping_sub(first), claim.kind, (claim.t.0 - start) / tick)
    };
    claims.iter().map(border).collect()
}

/// No session has events of two days, so the key of one day reveals no sums of another.
#[test]
fn a_session_ends_with_its_day() {
    use BorderKind::{Closing, Interior, Opening};
    let hours = DAY / 4;
    let day =
        |session, first: u64| [1, 2, 3].map(|border| (session, Interior, first + border)).to_vec();
    let edge = |session, at| vec![(session + 1, Opening, at), (session, Closing, at)];
    let whole = [vec![(0, Opening, 0)], day(0, 0), edge(0, 4), day(1, 4), edge(1, 8)].concat();
    assert_eq!(borders_of(hours, 20_000 * DAY, 8), whole);
    // If ticks do not divide a day, the session ends at the first border of the next.
    let odd = 7 * DAY / 16;
    let from = (20_000 * DAY).next_multiple_of(odd);
    let session_of = |at: u64| (from + at * odd) / DAY - from / DAY;
    for (session, kind, at) in borders_of(odd, from, 40) {
        let ends = at > 0 && session_of(at) > session_of(at - 1);
        let expected = match kind {
            Opening => session_of(at),
            Closing => session_of(at) - 1,
            Interior => session_of(at - 1),
        };
        assert_eq!(session, expected, "border {at}");
        assert_eq!(kind != Interior, ends || at == 0, "border {at}");
    }
}

/// No session has key vectors both before and after a day, so the day's sum stays hidden,
/// whatever the tick.
#[test]
fn no_session_spans_three_days() {
    for tick in [DAY / 24 * 25, DAY / 2 * 3, 2 * DAY] {
        let (stream, schema) = (StreamId([2; 16]), SchemaId([3; 32]));
        let producer = Producer::new(&master(), stream, schema, Span(tick), WORDS);
        assert_eq!(producer.map(|_| ()), Err(SetupError::Tick(Span(tick))));
    }
    for tick in [DAY, DAY - 1000, DAY / 24 * 23, 7 * DAY / 16, DAY / 3] {
        let start = (20_000 * DAY).next_multiple_of(tick);
        let mut ends = std::collections::BTreeMap::new();
        for (session, _, border) in borders_of(tick, start, 40) {
            let day = (start + border * tick) / DAY;
            let (_, last) = ends.entry(session).or_insert((day, day));
            *last = day;
        }
        for (first, last) in ends.values() {
            assert!(last - first <= 1, "a tick of {tick}");
        }
    }
}

#[test]
fn borders_add_nothing_and_check_words_are_zero() {
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    for offset in [1, 2, 1500, 3200] {
        event(&mut session, at(offset), &mut frames).unwrap();
    }
    session.close(at(5000), &mut |frame: &[u8]| frames.push(frame.to_vec())).unwrap();
    for frame in &parsed(&frames)[1..] {
        let is_data = matches!(frame, Frame::Data { .. });
        assert_eq!(decrypt(frame), [u64::from(is_data), 0, 0, 0, 0]);
    }
}

#[test]
fn data_is_never_on_a_tick_and_a_session_opens_and_closes_only_on_one() {
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    let on_tick = event(&mut session, at(2000), &mut frames);
    assert_eq!(on_tick, Err(TimeError::OnATick { t: at(2000) }));
    assert_eq!(frames.len(), 1, "not even the border before it");
    let refused = session.close(at(1001), &mut |_: &[u8]| ()).unwrap_err();
    refused.state.close(at(1000), &mut |_: &[u8]| ()).unwrap();
    let off = producer().open(Start::First, at(1), &mut rng(1), &mut |_: &[u8]| ());
    assert_eq!(off.unwrap_err().error, OpenError::NotATick { at: at(1), tick: Span(TICK) });
}

#[test]
fn a_failed_encoding_leaves_no_trace() {
    #[derive(Debug, PartialEq)]
    struct OutOfBounds;
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let fails = |vector: &mut EventVector<'_>| {
        vector.add(0, 77);
        Err(OutOfBounds)
    };
    let error = session.event(at(5), fails, &mut sink);
    assert_eq!(error, Err(EventError::Encoding(OutOfBounds)));
    assert_eq!((session.last(), session.unclosed()), (START, 0));
    session.event(at(5), one, &mut sink).unwrap();
    assert_eq!(frames.len(), 2);
    assert_eq!(decrypt(&parsed(&frames)[1]), [1, 0, 0, 0, 0]);
}

/// The key vector of the failed time must not be subtracted from itself at the next
/// attempt, nor replace the last event's at the next border.
#[test]
fn a_panicking_encoding_leaves_no_trace() {
    let mut frames = Vec::new();
    let mut session = open(&mut frames, 1);
    event(&mut session, at(3), &mut frames).unwrap();
    for t in [at(5), at(5), at(900)] {
        let attempt = std::panic::AssertUnwindSafe(|| {
            let encode = |_: &mut EventVector<'_>| -> Result<(), Infallible> { panic!("encoding") };
            session.event(t, encode, &mut |_: &[u8]| ())
        });
        assert!(std::panic::catch_unwind(attempt).is_err());
    }
    event(&mut session, at(5), &mut frames).unwrap();
    let refused = session.event(at(7), |_| Err(()), &mut |_: &[u8]| ());
    assert_eq!(refused, Err(EventError::Encoding(())));
    session.close(at(1000), &mut |frame: &[u8]| frames.push(frame.to_vec())).unwrap();
    let frames = parsed(&frames);
    assert_eq!(frames.len(), 4);
    let plain: Vec<u64> = frames[1..].iter().map(|frame| decrypt(frame)[0]).collect();
    assert_eq!(plain, [1, 1, 0]);
    assert!(frames[1..].iter().all(|frame| decrypt(frame)[1..] == [0; 4]));
}

#[test]
fn the_check_word_cannot_be_written() {
    let mut session = open(&mut Vec::new(), 1);
    let mut error = |word: u16| {
        let encode = |vector: &mut EventVector<'_>| -> Result<(), Infallible> {
            vector.add(word, 0);
            vector.add(0, 1);
            Ok(())
        };
        let sink = &mut |_: &[u8]| panic!("a rejected event was sent");
        session.event(at(5), encode, sink).unwrap_err()
    };
    let check = EventError::Vector(VectorError::CheckWord { word: WORDS - 1 });
    assert_eq!(error(WORDS - 1), check);
    let beyond = VectorError::OutOfRange { word: WORDS, words: usize::from(WORDS) };
    assert_eq!(error(WORDS), EventError::Vector(beyond));
}

#[test]
fn only_a_stream_without_a_session_may_be_back_dated() {
    let sink = &mut |_: &[u8]| ();
    let back_dated =
        |at, now| producer().open(Start::Again { now }, at, &mut rng(1), &mut |_: &[u8]| ());
    for now in [at(1), at(999), at(1000)] {
        let error = back_dated(START, now).unwrap_err().error;
        assert_eq!(error, OpenError::BackDated { at: START, earliest: at(1000) });
        back_dated(at(1000), now).unwrap();
    }
    back_dated(START, START).unwrap();
    let closed = open(&mut Vec::new(), 1).close(at(1000), sink).unwrap();
    let again = closed.open(Start::First, at(9000), &mut rng(2), sink).unwrap_err();
    assert_eq!(again.error, OpenError::NotTheFirst);
    again.state.open(Start::Again { now: at(1) }, at(1000), &mut rng(2), sink).unwrap();
}

#[test]
fn a_clock_jump_requires_a_new_session() {
    let mut frames = Vec::new();
    let mut session = producer()
        .with_max_silence(10)
        .open(Start::First, START, &mut rng(1), &mut |_: &[u8]| ())
        .unwrap();
    event(&mut session, at(10_999), &mut frames).unwrap();
    let jumped = event(&mut session, at(21_001), &mut frames);
    assert_eq!(jumped, Err(TimeError::JumpedAhead { ticks: 11, limit: 10 }));
    let number = session.number();
    let now = at(-5_000_000);
    let opening = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let session = session.reopen(now, now, &mut rng(2), opening).unwrap();
    assert_ne!(session.number(), number);
    assert!(matches!(parsed(&frames).last(), Some(Frame::Opening { .. })));
}

/// A clock that was set years ahead would fill memory and disk with borders.
#[test]
fn one_call_makes_no_more_borders_than_a_silence_may_have() {
    let mut frames = Vec::new();
    let open = |frames: &mut Vec<Vec<u8>>| {
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        producer().with_max_silence(10).open(Start::First, START, &mut rng(1), sink).unwrap()
    };
    let mut session = open(&mut frames);
    let years = START.plus(Span(100 * 365 * DAY));
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    assert!(matches!(session.advance(years, sink), Err(TimeError::JumpedAhead { limit: 10, .. })));
    session.advance(at(10_999), sink).unwrap();
    assert_eq!(frames.len(), 11, "the opening and ten borders");
    let mut frames = Vec::new();
    let session = open(&mut frames);
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let far = session.close(years, sink).unwrap_err().error;
    assert!(matches!(far, CloseError::Time(TimeError::JumpedAhead { limit: 10, .. })), "{far:?}");
    assert_eq!(frames.len(), 1);
}

#[test]
fn sizes_and_ticks_beyond_the_limits_are_rejected() {
    let made = |tick, words| {
        let ids = (StreamId([2; 16]), SchemaId([3; 32]));
        Producer::new(&master(), ids.0, ids.1, Span(tick), words).map(|_| ())
    };
    assert_eq!(made(TICK, 0), Err(SetupError::Words(0)));
    assert_eq!(made(TICK, 8193), Err(SetupError::Words(8193)));
    assert_eq!(made(TICK, u16::try_from(MAX_WORDS).unwrap()), Ok(()));
    assert_eq!(made(0, 1), Err(SetupError::Tick(Span(0))));
    assert_eq!(made(1, 1), Err(SetupError::Tick(Span(1))));
    assert_eq!(made(2, 1), Ok(()));
}

#[test]
fn the_last_time_leaves_room_for_a_closing_border() {
    let last_tick = Timestamp((Timestamp::LIMIT.0 - 1) / TICK * TICK);
    let before = Timestamp(last_tick.0 - TICK);
    let sink = &mut |_: &[u8]| ();
    let refused = producer().open(Start::First, last_tick, &mut rng(1), sink).unwrap_err();
    assert_eq!(refused.error, OpenError::BeyondLimit { at: last_tick });
    let mut session = refused.state.open(Start::First, before, &mut rng(1), sink).unwrap();
    event(&mut session, Timestamp(last_tick.0 - 1), &mut Vec::new()).unwrap();
    let t = Timestamp(last_tick.0 + 1);
    let beyond = event(&mut session, t, &mut Vec::new());
    assert_eq!(beyond, Err(TimeError::BeyondLimit { t }));
    assert_eq!(session.advance(last_tick, sink), Err(TimeError::BeyondLimit { t: last_tick }));
    session.close(last_tick, sink).unwrap();
}

#[test]
fn debug_shows_no_key() {
    let session = open(&mut Vec::new(), 1);
    let mut pad = [0; 5];
    keys().key_vector(session.number(), START, &mut pad).unwrap();
    let shown = format!("{session:?} {:?}", producer());
    let secrets = pad.iter().map(|word| format!("{word}")).chain([format!("{:?}", [1u8; 32])]);
    assert!(secrets.into_iter().all(|secret| !shown.contains(&secret)), "{shown}");
}

proptest! {
    /// For any times in any order, no time of a session is used twice, the links form a
    /// chain without gaps, and borders are exactly on the ticks.
    #[test]
    fn any_times_result_in_one_chain(offsets in prop::collection::vec(-2000i64..20_000, 0..60)) {
        let mut frames = Vec::new();
        let mut session = open(&mut frames, 1);
        for offset in offsets {
            let _refused_or_sent = event(&mut session, at(offset), &mut frames);
        }
        let until = session.next_border();
        session.close(until, &mut |frame: &[u8]| frames.push(frame.to_vec())).unwrap();
        let frames = parsed(&frames);
        let times: HashSet<Timestamp> = frames.iter().map(Frame::t).collect();
        prop_assert_eq!(times.len(), frames.len());
        for pair in frames.windows(2) {
            prop_assert_eq!(pair[1].link().unwrap().previous, pair[0].t());
        }
        for frame in &frames {
            let is_border = !matches!(frame, Frame::Data { .. });
            prop_assert_eq!(is_border, frame.t().0.is_multiple_of(TICK));
        }
        let borders = frames.iter().filter_map(Frame::claim).count() as u64;
        prop_assert_eq!(borders, (until.0 - START.0) / TICK + 1);
    }

    /// The sum of a session's ciphertexts opens, under its first and last key vector, to
    /// the sum of its plaintexts.
    #[test]
    fn a_sessions_sum_opens_to_the_sum_of_its_plaintexts(events in prop::collection::vec((1u64..3000, any::<[u64; 4]>()), 1..40)) {
        let mut frames = Vec::new();
        let mut session = open(&mut frames, 1);
        let (mut t, mut expected) = (START, [0u64; 5]);
        for (step, values) in events {
            t = Timestamp(t.0 + step + u64::from((t.0 + step).is_multiple_of(TICK)));
            let encode = |vector: &mut EventVector<'_>| -> Result<(), Infallible> {
                (0..).zip(values).for_each(|(word, value)| vector.add(word, value));
                Ok(())
            };
            session.event(t, encode, &mut |frame: &[u8]| frames.push(frame.to_vec())).unwrap();
            expected.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        let (number, end) = (session.number(), session.next_border());
        session.close(end, &mut |frame: &[u8]| frames.push(frame.to_vec())).unwrap();
        let (mut sum, mut digest) = (vec![0; 5], 0u64);
        for frame in &parsed(&frames)[1..] {
            frame.words().unwrap().add_to(&mut sum).unwrap();
            digest = digest.wrapping_add(frame.link().unwrap().digest());
        }
        let (mut first, mut last) = ([0; 5], [0; 5]);
        keys().key_vector(number, START, &mut first).unwrap();
        keys().key_vector(number, end, &mut last).unwrap();
        for ((sum, first), last) in sum.iter_mut().zip(first).zip(last) {
            *sum = sum.wrapping_add(first).wrapping_sub(last);
        }
        prop_assert_eq!(sum, expected);
        let h = |t: Timestamp| alpheus_crypto::hash::link(number, t.0);
        prop_assert_eq!(digest, h(end).wrapping_sub(h(START)));
    }
}
