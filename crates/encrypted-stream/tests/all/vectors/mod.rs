//! Known answers for keys, frames, sessions and window sums, from an independent script:
//! `vectors/encrypted-stream`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

pub(crate) mod json;

use alpheus_crypto::mac::{Tag, TagError};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::keys::{BorderClaim, BorderKind, MasterSecret, StreamKeys};
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, Producer, Session, Start,
};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::plan::Release;
use alpheus_time::{Span, Timestamp};
use json::{array, bytes, cases, expected_error, hex_list, number, text, variant, word, words};
use rand_core::{TryCryptoRng, TryRng};
use serde_json::Value;
use std::convert::Infallible;

/// Always draws the same session number, for known answers.
struct FixedRng(u64);

impl TryRng for FixedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        panic!("a session number has 64 bits")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        panic!("a session number is drawn as a word")
    }
}

impl TryCryptoRng for FixedRng {}

fn master(case: &Value) -> MasterSecret {
    MasterSecret::new(Secret::from_bytes(array(case, "master")))
}

fn stream(case: &Value) -> (StreamId, SchemaId) {
    (StreamId(array(case, "stream")), SchemaId(array(case, "schema")))
}

fn keys(case: &Value) -> StreamKeys {
    let (stream, schema) = stream(case);
    StreamKeys::new(&master(case), stream, schema)
}

#[test]
fn key_vectors_match_the_script() {
    for case in cases("key_vector.json") {
        let (session, t) = (word(&case, "session"), Timestamp(number(&case, "t")));
        let expected = words(&case, "words");
        let mut found = vec![1; expected.len()];
        let mut keys = keys(&case);
        keys.key_vector(session, t, &mut found).unwrap();
        assert_eq!(found, expected);
        for (position, expected) in (0..).zip(&expected) {
            assert_eq!(keys.key_word(session, t, position), Ok(*expected));
        }
        let day = keys.day_key(number(&case, "day"));
        day.key_vector(session, t, &mut found).unwrap();
        assert_eq!(found, expected);
    }
}

fn border(case: &Value) -> Result<(), String> {
    let kind = match text(case, "kind") {
        "opening" => BorderKind::Opening,
        "interior" => BorderKind::Interior,
        "closing" => BorderKind::Closing,
        other => panic!("unknown kind of border: {other}"),
    };
    let (session, t) = (word(case, "session"), Timestamp(number(case, "t")));
    let claim = BorderClaim { kind, session, t, count: number(case, "count") };
    keys(case).verify_border(&claim, &Tag(array(case, "tag"))).map_err(|TagError| "BadTag".into())
}

#[test]
fn valid_borders_verify_and_altered_ones_do_not() {
    for case in cases("border.json") {
        assert_eq!(border(&case), Ok(()));
    }
    for kind in ["kind", "session", "time", "count", "stream", "schema", "master"] {
        for case in cases(&format!("border_bad_{kind}.json")) {
            assert_eq!(border(&case), Err(expected_error(&case)), "{kind}");
        }
    }
}

/// Adds a whole vector without its zero words, such as the check word.
fn add_all(vector: &mut EventVector<'_>, plain: &[u64]) {
    for (position, word) in (0..).zip(plain).filter(|(_, word)| **word != 0) {
        vector.add(position, *word);
    }
}

#[test]
fn a_session_matches_byte_for_byte() {
    for case in cases("session.json") {
        let (stream, schema) = stream(&case);
        let tick = Span(number(&case, "tick"));
        let words_of_event = u16::try_from(number(&case, "words")).unwrap();
        let producer = Producer::new(&master(&case), stream, schema, tick, words_of_event).unwrap();

        let mut frames: Vec<Vec<u8>> = Vec::new();
        let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
        let start = Timestamp(number(&case, "start"));
        let mut rng = FixedRng(word(&case, "session"));
        let mut session = producer.open(Start::First, start, &mut rng, &mut sink).unwrap();
        for event in case["events"].as_array().unwrap() {
            let plain = words(event, "plain");
            let encode = |vector: &mut EventVector<'_>| -> Result<(), Infallible> {
                add_all(vector, &plain);
                Ok(())
            };
            session.event(Timestamp(number(event, "t")), encode, &mut sink).unwrap();
        }
        session.close(Timestamp(number(&case, "close")), &mut sink).unwrap();
        assert_eq!(frames, hex_list(&case, "frames"));
    }
}

#[test]
fn window_sums_open_under_their_tokens() {
    for case in cases("window.json") {
        let (from, to) = (Timestamp(number(&case, "from")), Timestamp(number(&case, "to")));
        let expected = words(&case, "sum");
        let (mut sum, mut digest, mut count) = (vec![0; expected.len()], 0u64, 0);
        for bytes in hex_list(&case, "frames") {
            let frame = FrameView::parse(&bytes).unwrap();
            if from < frame.t() && frame.t() <= to {
                frame.words().unwrap().add_to(&mut sum).unwrap();
                digest = digest.wrapping_add(frame.link().unwrap().digest());
                count += u64::from(matches!(frame, Frame::Data { .. }));
            }
        }
        assert_eq!((&sum, digest), (&expected, word(&case, "link_digest")));
        assert_eq!(count, number(&case, "count"));

        let (mut keys, session) = (keys(&case), word(&case, "session"));
        let release = Release { rows: serde_json::from_value(case["release"].clone()).unwrap() };
        let token = keys.key_sum(&release, session, from, to).unwrap();
        assert_eq!(token, words(&case, "token"));
        let mut result = token;
        release.add(&sum, &mut result);
        assert_eq!(result, words(&case, "result"));

        let check = u16::try_from(sum.len() - 1).unwrap();
        let check_sum = *sum.last().unwrap();
        assert_eq!(keys.check_word_opens(session, (from, to), check, check_sum), Ok(true));
        assert_eq!(keys.check_word_opens(session, (from, to), check, check_sum ^ 1), Ok(false));
    }
}

#[test]
fn frames_round_trip() {
    for case in cases("session.json") {
        for bytes in hex_list(&case, "frames") {
            let view = FrameView::parse(&bytes).unwrap();
            let owned: Frame<Vec<u64>> = view.map(|words| words.iter().collect());
            assert_eq!(owned.to_bytes(), bytes);
        }
    }
}

#[test]
fn invalid_frames_are_rejected_with_a_specific_error() {
    let kinds = "empty kind truncated trailing partial_word no_words too_many_words time order";
    for kind in kinds.split(' ') {
        for case in cases(&format!("frame_bad_{kind}.json")) {
            let mut frame = bytes(&case, "frame");
            let zeros = case["zeros"].as_u64().unwrap_or(0);
            frame.resize(frame.len() + usize::try_from(zeros).unwrap(), 0);
            let refusal = FrameView::parse(&frame).map_err(variant).err();
            assert_eq!(refusal, Some(expected_error(&case)), "{kind}");
        }
    }
}

/// The first error for a list of events, and for a closing if there is one.
fn first_error(case: &Value) -> Option<String> {
    let start = number(case, "start");
    let at = |offset: &Value| Timestamp(start.wrapping_add_signed(offset.as_i64().unwrap()));
    let master = MasterSecret::new(Secret::from_bytes([1; 32]));
    let tick = Span(number(case, "tick"));
    let producer = Producer::new(&master, StreamId([2; 16]), SchemaId([3; 32]), tick, 2).unwrap();
    let sink = &mut |_: &[u8]| ();
    let mut session: Session =
        producer.open(Start::First, Timestamp(start), &mut FixedRng(7), sink).unwrap();
    for offset in case["events"].as_array().unwrap() {
        let encode = |_: &mut EventVector<'_>| Ok::<(), Infallible>(());
        match session.event(at(offset), encode, sink) {
            Ok(()) => {}
            Err(EventError::Time(error)) => return Some(variant(error)),
            Err(other) => return Some(variant(other)),
        }
    }
    if case["close"].is_null() {
        return None;
    }
    match session.close(at(&case["close"]), sink).err()?.error {
        CloseError::Time(error) => Some(variant(error)),
        other => Some(variant(other)),
    }
}

#[test]
fn invalid_times_are_rejected_with_a_specific_error() {
    let kinds = "equal_time backward_time before_opening at_opening before_border on_tick jump \
                 beyond_limit close_off_tick close_early";
    for kind in kinds.split_whitespace() {
        for case in cases(&format!("producer_bad_{kind}.json")) {
            assert_eq!(first_error(&case), Some(expected_error(&case)), "{kind}");
        }
    }
}
