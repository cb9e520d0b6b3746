//! A producer of tick frames: known answers, and its guarantees whatever its clock does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::devices;
use crate::vectors::json::{array, hex_list, number, word};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, MAX_SILENCE, MAX_SLEEP, OpenError, OpeningSecrets,
    SetupError, Start, TickProducer, TickSession, TickShape, TimeError, VectorError,
};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind};
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_encrypted_stream::tick::opening::OpeningHead;
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{SeedableRng, TryCryptoRng, TryRng};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

const DAY: u64 = Span::DAY.0;
const TICK: u64 = 10_000_000;
const START: Timestamp = Timestamp(19_675 * DAY + DAY / 2);
const STREAM: StreamId = StreamId([2; 16]);
const SCHEMA: SchemaId = SchemaId([3; 32]);

fn master() -> MasterSecret {
    MasterSecret::new(Secret::from_bytes([1; 32]))
}

fn keys() -> StreamKeys {
    StreamKeys::new(&master(), STREAM, SCHEMA)
}

fn shape(tick: u64, anchor: u64) -> TickShape {
    TickShape { tick: Span(tick), anchor: Span(anchor), blocks: Blocks::of_lengths(&[2, 1, 1]) }
}

fn producer(tick: u64) -> TickProducer {
    let secrets = devices::secrets(&devices::authority());
    TickProducer::new(&master(), STREAM, SCHEMA, shape(tick, 6 * tick), secrets).unwrap()
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn open(tick: u64, at: Timestamp, seed: u64, frames: &mut Vec<Vec<u8>>) -> TickSession {
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    producer(tick).open(Start::First, at, None, &mut rng(seed), sink).unwrap()
}

fn one(vector: &mut EventVector<'_>) -> Result<(), Infallible> {
    vector.add(0, 1);
    Ok(())
}

fn at(ticks: u64, more: u64) -> Timestamp {
    Timestamp(START.0 + ticks * TICK + more)
}

fn parse(frame: &[u8], tick: u64) -> TickFrame<'_> {
    TickFrame::parse(frame, Span(tick)).unwrap()
}

fn claims(frames: &[Vec<u8>], tick: u64) -> Vec<Claim> {
    let claim = |frame: &Vec<u8>| match parse(frame, tick) {
        TickFrame::Opening(opening) => opening.claim(),
        TickFrame::Tick(claim, _) | TickFrame::Gap(claim) => claim,
    };
    frames.iter().map(claim).collect()
}

fn head(frame: &[u8]) -> OpeningHead {
    match parse(frame, 1) {
        TickFrame::Opening(opening) => opening.head,
        other => panic!("{other:?}"),
    }
}

/// A session's number, then its key, then anything.
struct Script {
    number: u64,
    key: Option<[u8; 32]>,
    rest: ChaCha20Rng,
}

impl TryRng for Script {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rest.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.number)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        match self.key.take() {
            Some(key) => out.copy_from_slice(&key),
            None => self.rest.try_fill_bytes(out)?,
        }
        Ok(())
    }
}

impl TryCryptoRng for Script {}

/// Event `number` of the script.
fn scripted(number: u64) -> impl Fn(&mut EventVector<'_>) -> Result<(), Infallible> {
    move |vector| {
        (0..20_u16).for_each(|at| vector.add(at, (number * 31 + u64::from(at)) % 97));
        Ok(())
    }
}

fn device_of(case: &Value) -> TickProducer {
    let lengths = case["blocks"].as_array().unwrap().iter();
    let lengths: Vec<u16> = lengths.map(|n| n.as_u64().unwrap().try_into().unwrap()).collect();
    let shape = TickShape {
        tick: Span(number(case, "tick")),
        anchor: Span(number(case, "anchor")),
        blocks: Blocks::of_lengths(&lengths),
    };
    let secrets = OpeningSecrets {
        device: SigningKey::from_seed(&Secret::from_bytes(array(case, "device_seed"))),
        certificate: Digest(array(case, "certificate")),
        authority: VerifyingKey::from_bytes(array(case, "authority")).unwrap(),
        ingest: Digest(array(case, "ingest_key")),
        ingest_key: devices::ingest_key().public(),
    };
    let master = MasterSecret::new(Secret::from_bytes(array(case, "master")));
    let (stream, schema) = (StreamId(array(case, "stream")), SchemaId(array(case, "schema")));
    TickProducer::new(&master, stream, schema, shape, secrets).unwrap()
}

#[test]
fn a_device_sends_the_frames_of_the_script() {
    let case = alpheus_test_support::vectors::one("ticks/v1/session.json");
    let (opened, tick) = (number(&case, "opened"), number(&case, "tick"));
    let expected = hex_list(&case, "frames");
    let script = (word(&case, "session"), Some(array(&case, "session_key")));
    let rng = &mut Script { number: script.0, key: script.1, rest: rng(1) };
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let at = |ticks: u64| Timestamp(opened + ticks * tick);
    let previous = head(&expected[0]).previous;
    let producer = device_of(&case);
    let mut session = producer.open(Start::First, at(0), previous, rng, sink).unwrap();
    // Events in a tick, by the tick's number; asleep in two stretches.
    for (start, events) in [(0, &[1, 2][..]), (1, &[3]), (2, &[]), (5, &[4]), (14, &[5, 6, 7])] {
        if start > 3 {
            session.sleep_until(at(start), rng, sink).unwrap();
        }
        for event in events {
            session.event(Timestamp(at(start).0 + event), scripted(*event)).unwrap();
        }
        session.advance(at(start + 1), rng, sink).unwrap();
    }
    session.close(at(16), rng, sink).unwrap();
    assert_eq!(frames.len(), expected.len());
    assert_eq!(head(&frames[0]), head(&expected[0]));
    assert_eq!(frames[1..], expected[1..]);
}

#[test]
fn a_device_that_was_asleep_sends_one_frame_for_all_that_passed() {
    let (mut frames, rng) = (Vec::new(), &mut rng(1));
    let mut session = open(TICK, START, 1, &mut frames);
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.event(at(0, 5), one).unwrap();
    // Within the open tick nothing has passed.
    session.sleep_until(at(0, 9), rng, sink).unwrap();
    assert_eq!(session.unclosed(), 1);
    session.sleep_until(at(4, 9), rng, sink).unwrap();
    session.sleep_until(at(7, 0), rng, sink).unwrap();
    session.event(at(7, 1), one).unwrap();
    session.advance(at(9, 0), rng, sink).unwrap();
    let found = claims(&frames, TICK);
    let spans: Vec<_> = found
        .iter()
        .map(|claim| (claim.kind, (claim.from.0 - START.0) / TICK, (claim.to.0 - START.0) / TICK))
        .collect();
    use ClaimKind::{Gap, Opening, Tick};
    let expected =
        [(Opening, 0, 0), (Tick, 0, 1), (Gap, 1, 4), (Gap, 4, 7), (Tick, 7, 8), (Tick, 8, 9)];
    assert_eq!(spans, expected);
    let counts: Vec<u64> =
        found.iter().map(|claim| keys().open_claim(claim).unwrap().count).collect();
    // A period of six ticks ends in the second gap.
    assert_eq!(counts, [0, 1, 1, 1, 1, 1]);
}

/// A clock that was set years ahead would fill memory with openings and gaps.
#[test]
fn a_sleep_of_years_is_refused_and_a_shorter_one_costs_two_frames_a_day() {
    let (mut frames, rng) = (Vec::new(), &mut rng(1));
    let mut session = open(TICK, START, 1, &mut frames);
    let years = START.plus(Span(50 * 365 * DAY));
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let limit = MAX_SLEEP.0 / TICK;
    let ticks = 50 * 365 * DAY / TICK;
    let refused = Err(TimeError::JumpedAhead { ticks, limit });
    assert_eq!(session.sleep_until(years, rng, sink), refused);
    let refused = Err(TimeError::JumpedAhead { ticks, limit: MAX_SILENCE });
    assert_eq!(session.advance(years, rng, sink), refused);
    // Nothing was encrypted: the session goes on.
    session.sleep_until(START.plus(MAX_SLEEP), rng, sink).unwrap();
    let far = session.close(years, rng, sink).unwrap_err().error;
    assert!(matches!(far, CloseError::Time(TimeError::JumpedAhead { .. })), "{far:?}");
    let days = usize::try_from(MAX_SLEEP.0 / DAY).unwrap();
    assert_eq!(frames.len(), 2 + 2 * days, "an opening and a gap for each day");
}

#[test]
fn an_event_that_is_refused_leaves_no_trace() {
    let (mut frames, rng) = (Vec::new(), &mut rng(1));
    let mut session = open(TICK, START, 1, &mut frames);
    session.event(at(0, 5), one).unwrap();
    for t in [at(0, 5), at(0, 1), START, Timestamp(0)] {
        let refused = session.event(t, one).unwrap_err();
        assert_eq!(refused, EventError::Time(TimeError::NotAscending { t, last: at(0, 5) }));
    }
    let t = at(1, 0);
    assert_eq!(session.event(t, one), Err(EventError::Time(TimeError::OnATick { t })));
    let (t, border) = (at(1, 1), at(1, 0));
    assert_eq!(session.event(t, one), Err(EventError::Time(TimeError::TickOver { t, border })));
    let failing = |vector: &mut EventVector<'_>| {
        vector.add(0, 77);
        Err("no")
    };
    assert_eq!(session.event(at(0, 6), failing), Err(EventError::Encoding("no")));
    for (word, error) in [
        (3, VectorError::CheckWord { word: 3 }),
        (4, VectorError::OutOfRange { word: 4, words: 4 }),
    ] {
        let wrong = |vector: &mut EventVector<'_>| {
            vector.add(1, 5);
            vector.add(word, 1);
            Ok::<(), Infallible>(())
        };
        assert_eq!(session.event(at(0, 6), wrong), Err(EventError::Vector(error)));
    }
    session.event(at(0, 6), one).unwrap();
    session.advance(at(1, 0), rng, &mut |frame| frames.push(frame.to_vec())).unwrap();
    assert_eq!(keys().open_claim(&claims(&frames, TICK)[1]).unwrap().count, 2);
    assert_eq!(decrypt(&frames[1], TICK), [2, 0, 0, 0]);
}

/// The plaintext of a tick, with the keys that a controller also has.
fn decrypt(frame: &[u8], tick: u64) -> Vec<u64> {
    let TickFrame::Tick(claim, words) = parse(frame, tick) else { panic!("not a tick") };
    let (mut new, mut old) = (vec![0; words.len()], vec![0; words.len()]);
    keys().key_vector(claim.session, claim.to, &mut new).unwrap();
    keys().key_vector(claim.session, claim.from, &mut old).unwrap();
    let pads = new.iter().zip(&old);
    words.iter().zip(pads).map(|(c, (n, o))| c.wrapping_sub(*n).wrapping_add(*o)).collect()
}

/// Whatever the tick, and whether the device is awake at midnight or asleep.
#[test]
fn a_session_ends_with_its_day_and_the_next_has_a_fresh_number() {
    for tick in [DAY / 4, 7 * DAY / 16, DAY - 1000, DAY] {
        for asleep in [false, true] {
            let (mut frames, rng) = (Vec::new(), &mut rng(7));
            let start = Timestamp((20_000 * DAY).next_multiple_of(tick));
            let mut session = open(tick, start, 3, &mut frames);
            let end = Timestamp(start.0 + 40 * tick);
            let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
            if asleep {
                session.sleep_until(end, rng, sink).unwrap();
            } else {
                session.advance(end, rng, sink).unwrap();
            }
            assert_eq!(session.reached().1, end);
            check_days(&frames, tick);
        }
    }
}

fn check_days(frames: &[Vec<u8>], tick: u64) {
    let found = claims(frames, tick);
    let mut running = found[0];
    let mut at = 0;
    let mut numbers = HashSet::from([running.session]);
    while let Some(claim) = found.get(at + 1) {
        at += 1;
        if claim.kind != ClaimKind::Opening {
            assert_eq!(claim.session, running.session);
            // Only a claim that closes ends in the next day.
            let ends = claim.to.0 / DAY != running.to.0 / DAY;
            assert_eq!(ends, claim.kind.is_closing(), "{claim:?}");
            assert!(claim.to.0 / DAY <= running.to.0 / DAY + 1, "no session spans three days");
            continue;
        }
        // The next session opens where this one closes, and before it does.
        let Some(closing) = found.get(at + 1) else { panic!("no closing after {claim:?}") };
        assert!(closing.kind.is_closing() && closing.to == claim.to, "{closing:?}");
        assert_eq!(closing.session, running.session);
        assert!(closing.to.0 / DAY != running.to.0 / DAY, "{closing:?}");
        assert_eq!(head(&frames[at]).previous, Some((running.session, claim.to)));
        assert!(numbers.insert(claim.session));
        assert_ne!(claim.session, running.session.wrapping_add(1), "it is drawn");
        (running, at) = (*claim, at + 1);
    }
    assert!(numbers.len() > 2);
}

/// Copies of one running device have the same numbers until midnight, and then never.
#[test]
fn copies_of_a_device_part_at_midnight() {
    let midnight = Timestamp(START.0.next_multiple_of(DAY));
    let numbers = |seed: u64| {
        let mut session = open(TICK, START, 1, &mut Vec::new());
        session.sleep_until(midnight, &mut rng(seed), &mut |_: &[u8]| ()).unwrap();
        session.number()
    };
    assert_ne!(numbers(11), numbers(12));
}

#[test]
fn a_session_opens_where_it_may_and_states_the_one_before() {
    let (mut frames, rng) = (Vec::new(), &mut rng(5));
    let mut session = open(TICK, START, 1, &mut frames);
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.advance(at(3, 1), rng, sink).unwrap();
    let reached = session.reached();
    assert_eq!(reached.1, at(3, 0));
    let producer = session.abandon();
    let refused = producer.open(Start::First, at(4, 0), None, rng, sink).unwrap_err();
    assert_eq!(refused.error, OpenError::NotTheFirst);
    let now = at(3, 5);
    let refused = refused.state.open(Start::Again { now }, at(3, 0), None, rng, sink).unwrap_err();
    assert_eq!(refused.error, OpenError::BackDated { at: at(3, 0), earliest: at(4, 0) });
    let refused = refused.state.open(Start::Again { now }, at(4, 1), None, rng, sink).unwrap_err();
    assert_eq!(refused.error, OpenError::NotATick { at: at(4, 1), tick: Span(TICK) });
    refused.state.open(Start::Again { now }, at(4, 0), Some(reached), rng, sink).unwrap();
    assert_eq!(head(frames.last().unwrap()).previous, Some(reached));
    assert_eq!(head(&frames[0]).previous, None);
}

#[test]
fn what_the_cipher_cannot_encrypt_is_no_producer() {
    let make = |shape: TickShape, ingest: SealingPublic| {
        let secrets =
            OpeningSecrets { ingest_key: ingest, ..devices::secrets(&devices::authority()) };
        TickProducer::new(&master(), STREAM, SCHEMA, shape, secrets).map(|_| ()).unwrap_err()
    };
    let good = devices::ingest_key().public();
    let words = TickShape { blocks: Blocks::of_lengths(&[]), ..shape(TICK, TICK) };
    assert_eq!(make(words, good), SetupError::Words(0));
    assert_eq!(make(shape(DAY + 1, DAY + 1), good), SetupError::Tick(Span(DAY + 1)));
    assert_eq!(make(shape(TICK, TICK + 1), good), SetupError::Tick(Span(TICK + 1)));
    assert_eq!(make(shape(TICK, 0), good), SetupError::Tick(Span(0)));
    assert_eq!(make(shape(TICK, TICK), SealingPublic([0; 32])), SetupError::Ingest);
}

/// What happens to a device.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Event(u64),
    Awake(u64),
    Asleep(u64),
    Crash(u64),
    Close(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (1..3 * TICK).prop_map(Happens::Event),
        (0..40 * TICK).prop_map(Happens::Awake),
        (0..4000 * TICK).prop_map(Happens::Asleep),
        (0..2 * TICK).prop_map(Happens::Crash),
        (1..3_u64).prop_map(Happens::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A pad that is used twice would show the difference of two sums.
    #[test]
    fn no_border_of_a_session_is_ever_sent_twice(
        steps in proptest::collection::vec(happens(), 1..60),
        seed in any::<u64>(),
    ) {
        let (mut frames, rng) = (Vec::new(), &mut rng(!seed));
        let mut now = START;
        let mut session = open(TICK, START, seed, &mut frames);
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        for step in steps {
            let again = |producer: TickProducer, now: Timestamp, reached, rng: &mut ChaCha20Rng, sink: &mut dyn FnMut(&[u8])| {
                let at = producer.next_tick(now);
                producer.open(Start::Again { now }, at, reached, rng, &mut |f: &[u8]| sink(f)).unwrap()
            };
            match step {
                Happens::Event(after) => {
                    now = now.plus(Span(after));
                    session.advance(now, rng, sink).unwrap();
                    // The time may be on a tick, or at one that has passed.
                    let _ = session.event(now, one);
                }
                Happens::Awake(span) => {
                    now = now.plus(Span(span));
                    session.advance(now, rng, sink).unwrap();
                }
                Happens::Asleep(span) => {
                    now = now.plus(Span(span));
                    session.sleep_until(now, rng, sink).unwrap();
                }
                Happens::Crash(span) => {
                    now = now.plus(Span(span));
                    let reached = Some(session.reached());
                    session = again(session.abandon(), now, reached, rng, sink);
                    now = now.max(session.last());
                }
                Happens::Close(ticks) => {
                    let end = Timestamp(session.next_border().0 + (ticks - 1) * TICK);
                    now = now.max(end);
                    let reached = Some(session.reached());
                    session = again(session.close(end, rng, sink).unwrap(), now, reached, rng, sink);
                    now = now.max(session.last());
                }
            }
        }
        each_border_once(&frames)?;
    }
}

/// Each border of a session comes once, follows the one before, and opens to an empty check word.
fn each_border_once(frames: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let (mut sent, mut last) = (HashSet::new(), HashMap::new());
    for claim in claims(frames, TICK) {
        prop_assert!(sent.insert((claim.session, claim.to)), "{:?}", claim);
        prop_assert!(keys().open_claim(&claim).is_ok());
        let before = last.insert(claim.session, claim.to);
        if claim.kind != ClaimKind::Opening {
            prop_assert_eq!(before, Some(claim.from));
        }
    }
    for frame in frames {
        if let TickFrame::Tick(..) = parse(frame, TICK) {
            prop_assert_eq!(decrypt(frame, TICK)[1..].to_vec(), vec![0, 0, 0]);
        }
    }
    Ok(())
}
