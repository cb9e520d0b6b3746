//! Tick frames: known answers from an independent script (`vectors/ticks`), and lies about the
//! claims of a window.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::vectors::json::{array, bytes, hex_list, number, text, word, words};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::{Tag, TagError};
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind, RootPrefix, Statement};
use alpheus_encrypted_stream::tick::frame::{SessionKey, TickFrame, body};
use alpheus_encrypted_stream::tick::opening::{self, OpeningContext, OpeningHead};
use alpheus_encrypted_stream::tick::segment::{self, CheckedSegment, SegmentError};
use alpheus_encrypted_stream::tick::sums::{Blocks, SessionSum, prefix};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::schema::{
    Aggregation, Attribute, AttributeKind, Capacity, Edges, Frames, Schema,
};
use alpheus_test_support::vectors::CountingRng;
use alpheus_time::{Span, Timestamp, Window};
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("ticks/v1/{file}"))
}

/// What a device sends over an anchor, with gaps, until it closes.
fn session() -> Value {
    one("session.json")
}

fn one(file: &str) -> Value {
    alpheus_test_support::vectors::one(&format!("ticks/v1/{file}"))
}

fn keys(case: &Value) -> StreamKeys {
    let master = MasterSecret::new(Secret::from_bytes(array(case, "master")));
    StreamKeys::new(&master, StreamId(array(case, "stream")), SchemaId(array(case, "schema")))
}

fn blocks(case: &Value) -> Blocks {
    let lengths = case["blocks"].as_array().unwrap().iter();
    Blocks::of_lengths(
        &lengths.map(|it| it.as_u64().unwrap().try_into().unwrap()).collect::<Vec<_>>(),
    )
}

fn kind(case: &Value) -> ClaimKind {
    match text(case, "kind") {
        "opening" => ClaimKind::Opening,
        "tick" => ClaimKind::Tick,
        "gap" => ClaimKind::Gap,
        "closing_tick" => ClaimKind::ClosingTick,
        "closing_gap" => ClaimKind::ClosingGap,
        other => panic!("{other}"),
    }
}

fn statement(case: &Value) -> Statement {
    Statement {
        kind: kind(case),
        session: word(case, "session"),
        from: Timestamp(number(case, "from")),
        to: Timestamp(number(case, "to")),
        count: number(case, "count"),
        root: RootPrefix(array(case, "root")),
    }
}

fn claim(case: &Value) -> Claim {
    let Statement { kind, session, from, to, root, .. } = statement(case);
    let (masked_count, tag) = (word(case, "masked_count"), Tag(array(case, "tag")));
    Claim { kind, session, from, to, masked_count, root, tag }
}

fn claims(case: &Value) -> Vec<Claim> {
    case["claims"].as_array().unwrap().iter().map(claim).collect()
}

#[test]
fn roots_match_the_script() {
    let root = |case: &Value| blocks(case).root(&words(case, "words"));
    let good = cases("root.json");
    for case in &good {
        assert_eq!(root(case), Digest(array(case, "root")));
    }
    for file in ["root_bad_word.json", "root_bad_blocks.json", "root_bad_order.json"] {
        cases(file)
            .iter()
            .for_each(|case| assert_ne!(root(case), Digest(array(case, "root")), "{file}"));
    }
}

#[test]
fn claims_match_the_script_and_state_what_the_device_did() {
    for case in cases("claim.json") {
        let (keys, statement) = (keys(&case), statement(&case));
        assert_eq!(keys.claim(&statement), claim(&case));
        assert_eq!(keys.open_claim(&claim(&case)), Ok(statement));
    }
    for part in ["kind", "session", "from", "to", "root", "stream", "schema", "master"] {
        for case in cases(&format!("claim_bad_{part}.json")) {
            assert_eq!(keys(&case).open_claim(&claim(&case)), Err(TagError), "{part}");
        }
    }
    for case in cases("claim_bad_count.json") {
        assert_ne!(keys(&case).claim(&statement(&case)).tag, claim(&case).tag);
    }
}

/// A session as a device makes it, from its keys and what is in the clear in its frames.
#[test]
fn a_session_of_frames_matches_the_script() {
    let case = &session();
    let (mut keys, blocks) = (keys(case), blocks(case));
    let session_key = SessionKey::new(&Secret::from_bytes(array(case, "session_key")));
    let (stream, tick) = (keys.stream(), Span(number(case, "tick")));
    let anchor = Span(number(case, "anchor"));
    let mut sum = SessionSum::new(number(case, "words").try_into().unwrap());
    let mut seen = 0;
    for (frame, expected) in hex_list(case, "frames").iter().zip(claims(case)) {
        assert_eq!(session_key.verify(&stream, frame), Ok(()));
        let mut made = match TickFrame::parse(frame, tick).unwrap() {
            TickFrame::Opening(opening) => {
                assert_eq!(opening.claim(), expected);
                opening_again(case, &opening.head, &keys)
            }
            TickFrame::Tick(claim, words) => {
                assert_eq!(claim, expected);
                let words: Vec<u64> = words.iter().collect();
                let stated = keys.open_claim(&claim).unwrap();
                sum.add(&words, stated.count - sum.events());
                assert_eq!(claim.root, prefix(&blocks.root(sum.words())));
                seen += opened(&mut keys, &claim, &words);
                body(&claim, &words)
            }
            TickFrame::Gap(claim) => {
                assert_eq!(claim, expected);
                body(&claim, &[])
            }
        };
        if expected.ends_period(anchor) {
            sum.restart();
        }
        session_key.finish(&stream, &mut made);
        assert_eq!(made, *frame);
    }
    assert_eq!(seen, (1..=7).map(|number| number * 31 % 97).sum::<u64>());
}

/// The first word of a tick's plaintext. The check word must be zero.
fn opened(keys: &mut StreamKeys, claim: &Claim, words: &[u64]) -> u64 {
    let mut at = |t| {
        let mut vector = vec![0; words.len()];
        keys.key_vector(claim.session, t, &mut vector).unwrap();
        vector
    };
    let (from, to) = (at(claim.from), at(claim.to));
    let open = |word: usize| words[word].wrapping_add(from[word]).wrapping_sub(to[word]);
    assert_eq!(open(words.len() - 1), 0);
    open(0)
}

fn device(case: &Value) -> SigningKey {
    let device = SigningKey::from_seed(&Secret::from_bytes(array(case, "device_seed")));
    assert_eq!(*device.verifying_key().as_bytes(), array::<32>(case, "device"));
    device
}

fn opening_again(case: &Value, head: &OpeningHead, keys: &StreamKeys) -> Vec<u8> {
    let authority = VerifyingKey::from_bytes(array(case, "authority")).unwrap();
    let context =
        OpeningContext { authority: &authority, stream: keys.stream(), schema: keys.schema() };
    let (sealed, certificate) = (array(case, "sealed"), Digest(array(case, "certificate")));
    opening::body(head, &sealed, &certificate, &context, &device(case))
}

#[test]
fn an_opening_is_its_devices_for_one_stream_of_one_deployment() {
    let case = &session();
    let (keys, frames) = (keys(case), hex_list(case, "frames"));
    let parse = |frame: &[u8]| match TickFrame::parse(frame, Span(1)) {
        Ok(TickFrame::Opening(opening)) => {
            (opening.head, opening.certificate, opening.sealed().to_vec())
        }
        other => panic!("{other:?}"),
    };
    let (head, certificate, sealed) = parse(&frames[0]);
    assert_eq!(head.previous.map(|(_, last)| last.floor(Span::DAY) < last), Some(true));
    assert_eq!(certificate, Digest(array(case, "certificate")));
    assert_eq!(sealed, bytes(case, "sealed"));
    let authority = VerifyingKey::from_bytes(array(case, "authority")).unwrap();
    let other = device(case).verifying_key();
    let here =
        OpeningContext { authority: &authority, stream: keys.stream(), schema: keys.schema() };
    let verify = |frame: &[u8], context: &OpeningContext<'_>, key: &VerifyingKey| {
        let Ok(TickFrame::Opening(opening)) = TickFrame::parse(frame, Span(1)) else { panic!() };
        opening.verify(context, key).is_ok()
    };
    assert!(verify(&frames[0], &here, &other));
    assert!(!verify(&frames[0], &here, &authority), "another device");
    let elsewhere = OpeningContext { authority: &other, ..here };
    assert!(!verify(&frames[0], &elsewhere, &other), "another deployment");
    let another = OpeningContext { stream: StreamId([9; 16]), ..here };
    assert!(!verify(&frames[0], &another, &other), "another stream");
    let another = OpeningContext { schema: SchemaId([9; 32]), ..here };
    assert!(!verify(&frames[0], &another, &other), "another schema");
    // Every byte before the signature is signed, and so is the signature itself.
    for at in 1..frames[0].len() - 16 {
        let mut changed = frames[0].clone();
        changed[at] ^= 1;
        if TickFrame::parse(&changed, Span(1)).is_ok() {
            assert!(!verify(&changed, &here, &other), "byte {at}");
        }
    }
}

/// The session's key goes to the service that the device knows, with nothing exchanged.
#[test]
fn only_the_ingest_key_opens_a_sessions_key_and_only_in_its_own_opening() {
    let case = &session();
    let (keys, frames) = (keys(case), hex_list(case, "frames"));
    let Ok(TickFrame::Opening(opening)) = TickFrame::parse(&frames[0], Span(1)) else { panic!() };
    let authority = VerifyingKey::from_bytes(array(case, "authority")).unwrap();
    let here =
        OpeningContext { authority: &authority, stream: keys.stream(), schema: keys.schema() };
    let [ingest, other] = [1, 2].map(|seed| SealingKey::from_seed(&Secret::from_bytes([seed; 32])));
    let key = Secret::from_bytes([7; 32]);
    let sealed_for = |head: &OpeningHead, context: &OpeningContext<'_>| {
        let mut rng = CountingRng(1);
        let sealed = head.seal_key(&key, &ingest.public(), context, &mut rng).unwrap();
        let certificate = Digest(array(case, "certificate"));
        let mut frame = opening::body(head, &sealed, &certificate, &here, &device(case));
        SessionKey::new(&key).finish(&keys.stream(), &mut frame);
        frame
    };
    let opens = |frame: &[u8], by: &SealingKey| {
        let Ok(TickFrame::Opening(opening)) = TickFrame::parse(frame, Span(1)) else { panic!() };
        opening.open_key(by, &here).is_ok_and(|key| key.verify(&keys.stream(), frame).is_ok())
    };
    // As the script sealed it.
    let scripts = SealingKey::from_seed(&Secret::from_bytes(array(case, "ingest_seed")));
    assert!(opens(&frames[0], &scripts));
    let good = sealed_for(&opening.head, &here);
    assert!(opens(&good, &ingest));
    assert!(!opens(&good, &other), "another ingest key");
    let elsewhere = OpeningContext { stream: StreamId([9; 16]), ..here };
    assert!(!opens(&sealed_for(&opening.head, &elsewhere), &ingest), "another stream's");
    // A sealed key that is moved into another opening.
    let later = OpeningHead { session: opening.head.session ^ 1, ..opening.head };
    let mut moved = sealed_for(&later, &here);
    moved[82..82 + 80].copy_from_slice(&good[82..82 + 80]);
    assert!(!opens(&moved, &ingest));
}

/// A proof about one attribute shows nothing of another.
#[test]
fn blocks_hold_words_of_one_attribute_and_cover_every_word() {
    let number = |name: &str, aggregations: &[Aggregation]| Attribute {
        name: name.into(),
        kind: AttributeKind::Number { scale: 0, min: 0, max: 99 },
        unit: String::new(),
        optional: false,
        aggregations: aggregations.to_vec(),
    };
    let edges = Edges::Uniform { lo: 0, width: 5, bins: 20 };
    let schema = Schema {
        attributes: vec![
            number("a", &[Aggregation::Variance, Aggregation::Histogram(edges)]),
            number("b", &[Aggregation::Sum]),
        ],
        capacity: Capacity { population: 1000, events: 100, micro_rate: 0 },
        name: "Blocks".into(),
        version: 1,
        tick: Span::seconds(1),
        shared_count: true,
        frames: Frames::Events,
        metadata: vec![],
        options: vec![],
    };
    let layout = Layout::of(&schema).unwrap();
    let lengths = Blocks::of(&layout).lengths().to_vec();
    assert_eq!(lengths.iter().sum::<u16>(), layout.words);
    assert!(lengths.iter().all(|length| (1..=8).contains(length)), "{lengths:?}");
    // The last two are the event count and the check word.
    assert_eq!(lengths[lengths.len() - 2..], [1, 1]);
    let mut at = 0;
    for length in lengths {
        let owner =
            |word| layout.field_at(word).map(|f| f.statistic.attributes().collect::<Vec<_>>());
        assert!((at..at + length).all(|word| owner(word) == owner(at)), "block at word {at}");
        at += length;
    }
}

#[test]
fn a_frame_counts_for_nothing_without_the_sessions_key() {
    for case in cases("frame_bad_mac.json") {
        let key = SessionKey::new(&Secret::from_bytes(array(&case, "session_key")));
        let stream = StreamId(array(&case, "stream"));
        assert_eq!(
            key.verify(&stream, &bytes(&case, "frame")),
            Err(TagError),
            "{}",
            text(&case, "part")
        );
    }
    let case = &session();
    let key = SessionKey::new(&Secret::from_bytes(array(case, "session_key")));
    let frame = &hex_list(case, "frames")[1];
    assert_eq!(key.verify(&StreamId([9; 16]), frame), Err(TagError), "another stream");
    assert_eq!(key.verify(&keys(case).stream(), &frame[..15]), Err(TagError), "no room for a MAC");
}

#[test]
fn bytes_that_are_no_frame_are_rejected_with_a_specific_error() {
    let names = [
        "empty",
        "kind",
        "old_kind",
        "truncated_opening",
        "long_opening",
        "truncated_tick",
        "no_words",
        "partial_word",
        "long_gap",
        "truncated_gap",
        "gap_back",
        "time",
        "previous_flag",
    ];
    for name in names {
        let case = one(&format!("frame_bad_{name}.json"));
        let error = TickFrame::parse(&bytes(&case, "frame"), Span(10_000_000)).unwrap_err();
        let said = format!("{error:?}");
        assert!(said.contains(text(&case, "error")), "{name}: {said}");
    }
}

fn window(case: &Value) -> Window {
    Window { start: Timestamp(number(case, "from")), end: Timestamp(number(case, "to")) }
}

fn check(case: &Value, claims: &[Claim]) -> Result<CheckedSegment, SegmentError> {
    segment::check(&keys(case), claims, window(case), Span(number(case, "anchor")))
}

#[test]
fn claims_of_a_window_give_its_key_part_and_number_of_events() {
    for case in cases("segment.json") {
        let (what, mut keys) = (text(&case, "what").to_owned(), keys(&case));
        let segment = check(&case, &claims(&case)).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(segment.events, number(&case, "events"), "{what}");
        let words = u16::try_from(number(&case, "words")).unwrap();
        let release = Release { rows: (0..words).map(|word| vec![word]).collect() };
        let mut sum = vec![0_u64; usize::from(words)];
        for span in &segment.spans {
            let part = keys.key_sum(&release, segment.session, span.start, span.end).unwrap();
            sum.iter_mut().zip(part).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
        }
        assert_eq!(sum, self::words(&case, "key_part"), "{what}");
    }
}

fn segment_case(what: &str) -> (Value, Vec<Claim>) {
    let case = cases("segment.json").into_iter().find(|case| text(case, "what") == what).unwrap();
    let claims = claims(&case);
    (case, claims)
}

#[test]
fn claims_that_leave_out_or_move_anything_are_refused() {
    let (case, good) = segment_case("from the opening over an anchor");
    let wrong = |claims: &[Claim]| check(&case, claims).unwrap_err();
    assert_eq!(wrong(&[]), SegmentError::Empty);
    assert_eq!(wrong(&good[1..]), SegmentError::Start);
    assert_eq!(wrong(&good[..2]), SegmentError::End);
    assert_eq!(wrong(&[good[0], good[2]]), SegmentError::MissingAnchor(good[1].to));
    assert_eq!(wrong(&[good[0], good[1], good[1]]), SegmentError::Order(2));
    assert_eq!(wrong(&[good[0], good[2], good[1]]), SegmentError::MissingAnchor(good[1].to));
    for change in [
        |claim: &mut Claim| claim.kind = ClaimKind::Gap,
        |claim: &mut Claim| claim.session ^= 1,
        |claim: &mut Claim| claim.masked_count ^= 1,
        |claim: &mut Claim| claim.root.0[0] ^= 1,
        |claim: &mut Claim| claim.tag.0[15] ^= 1,
    ] {
        let mut claims = good.clone();
        change(&mut claims[2]);
        assert_eq!(wrong(&claims), SegmentError::Forged(2));
    }
}

/// Claims that the device itself made, of other sessions or with impossible counts.
#[test]
fn claims_of_another_session_or_with_falling_counts_are_refused() {
    let (case, good) = segment_case("over a gap");
    let keys = keys(&case);
    let changed = |at: usize, change: fn(&mut Statement)| {
        let mut claims = good.clone();
        let mut statement = keys.open_claim(&claims[at]).unwrap();
        change(&mut statement);
        claims[at] = keys.claim(&statement);
        check(&case, &claims)
    };
    assert_eq!(changed(1, |it| it.session ^= 1), Err(SegmentError::OtherSession(1)));
    assert_eq!(changed(1, |it| it.kind = ClaimKind::Opening), Err(SegmentError::OtherSession(1)));
    assert_eq!(changed(1, |it| it.kind = ClaimKind::ClosingGap), Err(SegmentError::Order(2)));
    assert_eq!(changed(1, |it| it.count = 5), Err(SegmentError::Events(2)));
    assert_eq!(changed(2, |it| it.from = Timestamp(it.from.0 - 1)), Err(SegmentError::Order(2)));
    assert_eq!(changed(0, |it| it.kind = ClaimKind::ClosingTick), Err(SegmentError::Start));
    let closed = changed(2, |it| it.kind = ClaimKind::ClosingTick).unwrap();
    assert!(closed.closed && closed.covers == window(&case));
}

/// Without it the key part would lack the gap, and so would a forged total of events.
#[test]
fn a_gap_that_is_left_out_changes_the_key_part() {
    let (case, good) = segment_case("over a gap");
    let whole = check(&case, &good).unwrap();
    let without = check(&case, &[good[0], good[2]]).unwrap();
    assert_ne!(whole.spans, without.spans);
    assert_eq!(whole.events, without.events);
}
