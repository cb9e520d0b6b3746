//! Raw access: a reader named by an owner reads the granted days once they are over, no
//! event of other days, and nothing more once the owner stops the access.

use std::collections::BTreeMap;
use std::slice::from_ref;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets};
use alpheus_encrypted_stream::error::{GrantError, RawReadError};
use alpheus_encrypted_stream::frame::{Frame, Link};
use alpheus_encrypted_stream::grant::{Days, Grant, GrantedStream, HandedDays, RawReader};
use alpheus_encrypted_stream::keys::StreamKeys;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::producer::{EventVector, Producer, SetupError, Start};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use crate::protocol::evil::Evil;
use crate::protocol::identities::{SUBJECT, certified, owner, owner_key};
use crate::protocol::world::{EPOCH, Setup, master, policy, stream_id};

pub const DAY: u64 = 86_400_000_000;
/// The day on which the world begins.
pub const FIRST: u64 = EPOCH / DAY;

pub fn day(number: u64) -> Timestamp {
    Timestamp((FIRST + number) * DAY)
}

pub fn days(first: u64, last: u64) -> Option<Days> {
    Some(Days::new(FIRST + first, FIRST + last).unwrap())
}

/// A reader and its certificate.
pub fn reader(evil: &Evil, seed: u8, name: &str) -> (Consumer, Signed<Certificate>) {
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([seed; 32]));
    let certificate = secrets.request(name).certify(SUBJECT, &evil.world.authority);
    (secrets.certified(&certificate, &evil.world.deployment).unwrap(), certificate)
}

/// The owner of stream 0 grants days to a reader, a few microseconds after `now`.
pub fn say(
    evil: &mut Evil,
    now: Timestamp,
    said: (&Consumer, &Signed<Certificate>),
    later: u64,
    days: Option<Days>,
) -> Result<(), GrantError> {
    let signed = signed(said.0, now.plus(Span(later)), days);
    hand_in(evil, now, &signed, said.1)
}

fn signed(reader: &Consumer, at: Timestamp, days: Option<Days>) -> Signed<Grant> {
    let grant = Grant { stream: stream_id(0), reader: reader.id(), at, days };
    Signed::new(&grant, &owner_key(stream_id(0)))
}

/// Submits a grant; only the owner's signature counts.
pub fn hand_in(
    evil: &mut Evil,
    now: Timestamp,
    signed: &Signed<Grant>,
    certificate: &Signed<Certificate>,
) -> Result<(), GrantError> {
    let owner = owner(stream_id(0));
    let step = evil.controllers[0].grant(signed, certificate, &owner, now)?;
    step.commit(&mut evil.store).unwrap();
    Ok(())
}

pub fn fetch(evil: &mut Evil, now: Timestamp, reader: &Consumer) -> Result<HandedDays, GrantError> {
    let mut rng = ChaCha20Rng::from_seed([77; 32]);
    let step = evil.controllers[0].hand_out(
        &stream_id(0),
        (&reader.id(), reader.hybrid()),
        now,
        &mut rng,
    )?;
    Ok(step.commit(&mut evil.store).unwrap())
}

/// Of how many days keys were handed out.
pub fn many(keys: HandedDays) -> u64 {
    keys.days.last - keys.days.first + 1
}

/// Two events a day of stream 0 for some days, at noon and close to midnight.
fn frames_of(evil: &Evil, many: u64) -> Vec<Vec<u8>> {
    frames_at(evil, many, evil.world.schema.tick).unwrap()
}

/// The same with borders on other ticks, if such a producer exists.
pub fn frames_at(evil: &Evil, many: u64, tick: Span) -> Result<Vec<Vec<u8>>, SetupError> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let (schema, words) = (evil.world.schema.id(), evil.world.layout.words);
    let producer = Producer::new(&master(stream_id(0)), stream_id(0), schema, tick, words)?;
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    let session = producer.open(Start::First, day(0).floor(tick), &mut rng, &mut sink);
    let mut session = session.unwrap_or_else(|refused| panic!("{:?}", refused.error));
    for number in 0..many {
        for (at, value) in [(DAY / 2 + 5, 2 * number), (DAY - 5, 2 * number + 1)] {
            let encode = |vector: &mut EventVector<'_>| {
                vector.add(0, 100 + value);
                Ok::<(), std::convert::Infallible>(())
            };
            session.event(Timestamp(day(number).0 + at), encode, &mut sink).unwrap();
        }
    }
    session.advance(day(many), &mut sink).unwrap();
    Ok(frames)
}

fn frames(evil: &Evil) -> Vec<Vec<u8>> {
    frames_of(evil, 4)
}

/// What readers who pool the keys of some days can open besides the events of those days:
/// sums of other events between two key vectors of a session that they know.
pub fn opened_beside(evil: &Evil, frames: &[Vec<u8>], granted: &[u64]) -> Vec<u64> {
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let known = |t: Timestamp| granted.contains(&(t.0 / DAY).wrapping_sub(FIRST));
    let first = |session: u64, t: Timestamp| {
        let mut word = [0; 1];
        keys.day_key(t.0 / DAY).key_vector(session, t, &mut word).unwrap();
        word[0]
    };
    // By session: the amount since the last known time, and whether any is of other days.
    let mut since: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
    let mut opened = Vec::new();
    for frame in frames {
        let frame = Frame::parse(frame).unwrap();
        let (session, t) = (frame.session(), frame.t());
        if let (Some(words), Some((_, sum, beside))) = (frame.words(), since.get_mut(&session)) {
            *sum = sum.wrapping_add(words.iter().next().unwrap());
            *beside |= matches!(frame, Frame::Data { .. }) && !known(t);
        }
        if known(t) {
            let pad = first(session, t);
            if let Some((from, sum, true)) = since.insert(session, (pad, 0, false)) {
                opened.push(sum.wrapping_add(from).wrapping_sub(pad));
            }
        }
    }
    opened
}

/// Monday to one reader, Friday to another: they learn nothing of the days in between.
#[test]
fn readers_who_pool_days_open_no_sum_of_the_days_in_between() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let frames = frames_of(&evil, 5);
    for (seed, name, granted) in [(31, "doctor", 0), (32, "eve", 4)] {
        let (reader, certificate) = reader(&evil, seed, name);
        say(&mut evil, day(0), (&reader, &certificate), 1, days(granted, granted)).unwrap();
        let keys = fetch(&mut evil, day(9), &reader).unwrap();
        let (own, _) = read(&evil, &reader, &keys, &frames);
        assert_eq!(own, [100 + 2 * granted, 101 + 2 * granted]);
    }
    assert_eq!(opened_beside(&evil, &frames, &[0, 4]), [0_u64; 0]);
    for granted in [&[1, 3][..], &[0, 2, 4], &[2], &[0, 1, 3]] {
        assert_eq!(opened_beside(&evil, &frames, granted), [0_u64; 0], "{granted:?}");
    }
}

/// The attack works: given two times of a session, it opens what lies between them.
#[test]
fn a_session_that_outlasts_its_day_would_reveal_the_days_in_between() {
    let evil = Evil::unannounced(Setup::new(2));
    let frames = frames_of(&evil, 5);
    // One session over all days, as an earlier build produced it: same events, its links.
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let mut last = day(0);
    let words = usize::from(evil.world.layout.words);
    let one_session = frames.iter().filter_map(|frame| {
        let t = Frame::parse(frame).unwrap().t();
        if t <= last {
            return None;
        }
        let (mut cipher, mut old) = (vec![0; words], vec![0; words]);
        keys.day_key(t.0 / DAY).key_vector(7, t, &mut cipher).unwrap();
        keys.day_key(last.0 / DAY).key_vector(7, last, &mut old).unwrap();
        cipher.iter_mut().zip(old).for_each(|(new, old)| *new = new.wrapping_sub(old));
        let within = (t.0 % DAY).checked_sub(DAY / 2).is_some_and(|t| t == 5 || t == DAY / 2 - 5);
        let value = 2 * (t.0 / DAY - FIRST) + u64::from(t.0 % DAY > DAY / 2 + 5);
        cipher[0] = cipher[0].wrapping_add(if within { 100 + value } else { 0 });
        let link = Link { session: 7, previous: std::mem::replace(&mut last, t), t };
        Some(Frame::Data { link, words: cipher }.to_bytes())
    });
    let one_session: Vec<_> = one_session.collect();
    let truth = (2..8).map(|value| 100 + value).sum::<u64>();
    assert_eq!(opened_beside(&evil, &one_session, &[0, 4]), [truth]);
}

/// The description of a stream's events for readers.
fn of(evil: &Evil, stream: u32) -> GrantedStream {
    let stream = stream_id(stream);
    let controller = evil.controllers[0].id();
    GrantedStream { stream, schema: evil.world.schema.id(), owner: owner(stream).id(), controller }
}

/// The keys that a reader opens, for the first controller's stream of this number.
pub fn opened(
    evil: &Evil,
    reader: &Consumer,
    stream: u32,
    keys: &HandedDays,
) -> Result<RawReader, RawReadError> {
    reader.raw_reader((&of(evil, stream), evil.world.layout.words), from_ref(keys))
}

/// The first word of each event that a reader can read, and how many lack a key.
fn read(
    evil: &Evil,
    reader: &Consumer,
    keys: &HandedDays,
    frames: &[Vec<u8>],
) -> (Vec<u64>, usize) {
    let opened = opened(evil, reader, 0, keys).unwrap();
    let (mut events, mut without) = (Vec::new(), 0);
    for bytes in frames {
        match opened.read(&Frame::parse(bytes).unwrap()) {
            Ok(event) => events.extend(event.map(|words| words[0])),
            Err(RawReadError::OtherDay { .. }) => without += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (events, without)
}

#[test]
fn a_reader_reads_only_the_granted_days() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let frames = frames(&evil);
    assert_eq!(fetch(&mut evil, day(9), &doctor), Err(GrantError::NotGranted));
    let said = (&doctor, &certificate);
    for (version, first, last, events) in [
        (1, 1, 2, vec![102, 103, 104, 105]),
        (2, 1, 1, vec![102, 103]),
        (3, 1, 3, vec![102, 103, 104, 105, 106, 107]),
    ] {
        say(&mut evil, day(0), said, version, days(first, last)).unwrap();
        let keys = fetch(&mut evil, day(9), &doctor).unwrap();
        assert_eq!(Some(keys.days), days(first, last));
        let without = 8 - events.len();
        assert_eq!(read(&evil, &doctor, &keys, &frames), (events, without));
        // Nobody else can open them, for this stream or another.
        let (eve, _) = reader(&evil, 32, "eve");
        let wrong = RawReadError::NotForYou { first: FIRST + first, last: FIRST + last };
        assert_eq!(opened(&evil, &eve, 0, &keys).err(), Some(wrong));
        assert_eq!(opened(&evil, &doctor, 1, &keys).err(), Some(wrong));
        // A key of one day in the name of another opens nothing.
        let mut swapped = keys.clone();
        swapped.days = days(first + 1, last + 1).unwrap();
        assert!(opened(&evil, &doctor, 0, &swapped).is_err());
        // The second day's second event, changed in transit.
        let is_it = |frame: &&Vec<u8>| {
            let frame = Frame::parse(frame).unwrap();
            matches!(frame, Frame::Data { .. }) && frame.t() == Timestamp(day(2).0 - 5)
        };
        let mut flipped = frames.iter().find(is_it).unwrap().clone();
        *flipped.last_mut().unwrap() ^= 1;
        let opened = opened(&evil, &doctor, 0, &keys).unwrap();
        let refused = opened.read(&Frame::parse(&flipped).unwrap());
        assert_eq!(refused, Err(RawReadError::CheckWord));
    }
}

/// A key of a day that has not passed is not handed out, so it can still be revoked.
#[test]
fn keys_are_handed_out_day_by_day_until_the_owner_stops_the_access() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    say(&mut evil, day(0), said, 5, days(0, 9)).unwrap();
    let last = |evil: &mut Evil, now| fetch(evil, now, &doctor).map(many);
    assert_eq!(last(&mut evil, Timestamp(day(1).0 - 1)), Err(GrantError::NotOver));
    assert_eq!(last(&mut evil, day(1)), Ok(1));
    assert_eq!(last(&mut evil, day(4)), Ok(4));
    // An older statement does not return.
    say(&mut evil, day(4), said, 6, None).unwrap();
    assert_eq!(last(&mut evil, day(9)), Err(GrantError::NotGranted));
    let older = say(&mut evil, day(4), said, 5, days(0, 9));
    let at = |later| day(4).plus(Span(later));
    assert_eq!(older, Err(GrantError::NotLater { signed_at: at(5), latest: at(6) }));
    // Also after a restart.
    evil.start_again(day(9));
    assert_eq!(last(&mut evil, day(9)), Err(GrantError::NotGranted));
    let older = say(&mut evil, day(4), said, 5, days(0, 9));
    assert_eq!(older, Err(GrantError::NotLater { signed_at: at(5), latest: at(6) }));
}

/// A grant signed by a clock that ran ahead does not outlast its withdrawal.
#[test]
fn stopping_the_access_is_accepted_whenever_it_was_signed() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let minutes = |minutes: u64| Span::seconds(60 * minutes);
    let ahead = signed(&doctor, day(3).plus(minutes(9)), days(0, 9));
    hand_in(&mut evil, day(3), &ahead, &certificate).unwrap();
    assert_eq!(fetch(&mut evil, day(3), &doctor).map(many), Ok(3));
    say(&mut evil, day(3), (&doctor, &certificate), 1, None).unwrap();
    for _ in 0..2 {
        assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::NotGranted));
        // The same grant does not return, nor does one from in between.
        hand_in(&mut evil, day(4), &ahead, &certificate).unwrap();
        assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::NotGranted));
        let between = signed(&doctor, day(3).plus(minutes(5)), days(0, 9));
        let refused = hand_in(&mut evil, day(4), &between, &certificate);
        assert!(matches!(refused, Err(GrantError::NotLater { .. })), "{refused:?}");
        evil.start_again(day(4));
    }
    let far = signed(&doctor, day(4).plus(minutes(11)), days(0, 0));
    let (given, now) = (day(4).plus(minutes(11)), day(4));
    let refused = hand_in(&mut evil, now, &far, &certificate);
    assert_eq!(refused, Err(GrantError::Ahead { signed_at: given, now }));
    say(&mut evil, day(4), (&doctor, &certificate), 1, days(0, 0)).unwrap();
    assert_eq!(fetch(&mut evil, day(4), &doctor).map(many), Ok(1));
    // *No more* from a clock that is years ahead blocks grants for minutes, not for years.
    hand_in(&mut evil, day(4), &signed(&doctor, day(4_000), None), &certificate).unwrap();
    evil.start_again(day(4));
    assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::NotGranted));
    hand_in(&mut evil, given, &far, &certificate).unwrap();
    assert_eq!(fetch(&mut evil, given, &doctor).map(many), Ok(1));
}

/// A repeated statement is not a new one: it does not count again, nor fill the log.
#[test]
fn a_repeated_grant_changes_nothing() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = signed(&doctor, day(0), days(0, 9));
    hand_in(&mut evil, day(0), &said, &certificate).unwrap();
    let before = evil.store.map.len();
    hand_in(&mut evil, day(1), &said, &certificate).unwrap();
    assert_eq!(evil.store.map.len(), before);
}

fn handed_lines(evil: &Evil) -> Vec<(String, Days)> {
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let line = |value: &&[u8]| match StampedRecord::read(value).unwrap().record {
        Record::Log(LogLine { event: LogEvent::KeysHanded { reader, days }, .. }) => {
            Some((reader, days))
        }
        _ => None,
    };
    own.iter().filter_map(line).collect()
}

/// The log line is in the commit that releases the keys. Repeats add no lines.
#[test]
fn the_owners_log_lists_the_keys_handed_out() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    say(&mut evil, day(0), (&doctor, &certificate), 1, days(0, 9)).unwrap();
    let commits = evil.store.commits;
    for now in [day(1), day(1), day(1), day(3), day(3)] {
        fetch(&mut evil, now, &doctor).unwrap();
    }
    assert_eq!(evil.store.commits, commits + 5);
    let name = || "doctor".to_owned();
    let lines = [(name(), days(0, 0).unwrap()), (name(), days(0, 2).unwrap())];
    assert_eq!(handed_lines(&evil), lines);
    evil.start_again(day(3));
    fetch(&mut evil, day(3), &doctor).unwrap();
    assert_eq!(handed_lines(&evil), lines, "nor after a restart");
    // A step that is not committed releases nothing.
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    drop(
        evil.controllers[0]
            .hand_out(&stream_id(0), (&doctor.id(), doctor.hybrid()), day(5), &mut rng)
            .unwrap(),
    );
    assert_eq!(handed_lines(&evil), lines);
    // But what such a step, or a failed commit, would have logged is logged with the keys.
    fetch(&mut evil, day(5), &doctor).unwrap();
    let more = [lines[0].clone(), lines[1].clone(), (name(), days(0, 4).unwrap())];
    assert_eq!(handed_lines(&evil), more);
}

/// A reader without a grant does not learn whether consent was withdrawn.
#[test]
fn strangers_learn_nothing_of_a_stream() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (eve, _) = reader(&evil, 32, "eve");
    let key = owner_key(stream_id(0));
    let signed = Signed::new(&Withdrawal { stream: stream_id(0), erase: false }, &key);
    let withdrawn = evil.controllers[0].withdraw(&signed, &certified(&key), day(1));
    withdrawn.unwrap().0.commit(&mut evil.store).unwrap();
    assert_eq!(fetch(&mut evil, day(4), &eve), Err(GrantError::NotGranted));
    let mut rng = ChaCha20Rng::from_seed([77; 32]);
    let elsewhere =
        evil.controllers[0].hand_out(&stream_id(1), (&eve.id(), eve.hybrid()), day(4), &mut rng);
    assert_eq!(elsewhere.err(), Some(GrantError::NotGranted));
}

/// A truncated frame's last word may be zero: pads do not depend on the length.
#[test]
fn a_truncated_event_is_not_read() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    say(&mut evil, day(0), (&doctor, &certificate), 1, days(0, 0)).unwrap();
    let keys = fetch(&mut evil, day(1), &doctor).unwrap();
    let opened = opened(&evil, &doctor, 0, &keys).unwrap();
    let frames = frames(&evil);
    let data = |frame: &&Vec<u8>| matches!(Frame::parse(frame), Ok(Frame::Data { .. }));
    let whole = frames.iter().find(data).unwrap();
    let expected = usize::from(evil.world.layout.words);
    assert_eq!(opened.read(&Frame::parse(whole).unwrap()).unwrap().unwrap().len(), expected);
    for found in 1..expected {
        let cut = &whole[..whole.len() - 8 * (expected - found)];
        let refused = opened.read(&Frame::parse(cut).unwrap());
        assert_eq!(refused, Err(RawReadError::Length { expected, found }));
    }
    let longer = [whole.as_slice(), &[0; 8]].concat();
    assert!(opened.read(&Frame::parse(&longer).unwrap()).is_err());
}

/// A documented limit: the check word does not show changes of other words.
#[test]
fn a_word_changed_in_transit_is_read_as_changed() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    say(&mut evil, day(0), (&doctor, &certificate), 1, days(0, 0)).unwrap();
    let keys = fetch(&mut evil, day(1), &doctor).unwrap();
    let mut frames = frames(&evil);
    let data = |frame: &&mut Vec<u8>| matches!(Frame::parse(frame), Ok(Frame::Data { .. }));
    let event = frames.iter_mut().find(data).unwrap();
    let words = event.len() - 8 * usize::from(evil.world.layout.words);
    let first = u64::from_le_bytes(event[words..words + 8].try_into().unwrap());
    event[words..words + 8].copy_from_slice(&first.wrapping_add(11).to_le_bytes());
    let (read, _) = read(&evil, &doctor, &keys, &frames);
    assert_eq!(read, [111, 101]);
}

#[test]
fn withdrawn_consent_or_destroyed_keys_end_raw_access() {
    for erase in [false, true] {
        let mut evil = Evil::unannounced(Setup::new(2));
        let (doctor, certificate) = reader(&evil, 31, "doctor");
        let said = (&doctor, &certificate);
        say(&mut evil, day(0), said, 1, days(0, 9)).unwrap();
        let key = owner_key(stream_id(0));
        let signed = Signed::new(&Withdrawal { stream: stream_id(0), erase }, &key);
        let withdrawn = evil.controllers[0].withdraw(&signed, &certified(&key), day(1));
        withdrawn.unwrap().0.commit(&mut evil.store).unwrap();
        for _ in 0..2 {
            assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::Withdrawn));
            let again = say(&mut evil, day(4), said, 2, days(0, 9));
            assert_eq!(again, Err(GrantError::Withdrawn));
            evil.world.erased = if erase { vec![stream_id(0)] } else { vec![] };
            evil.start_again(day(4));
        }
    }
}

/// A copy may have lost that the owner stopped the access. So earlier grants are void, even
/// after the owner has confirmed the policy.
#[test]
fn an_older_ledger_hands_out_nothing_before_the_owner_grants_again() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    let empty = evil.store.clone();
    let first = signed(&doctor, day(0), days(0, 9));
    hand_in(&mut evil, day(0), &first, &certificate).unwrap();
    let old = evil.store.clone();
    say(&mut evil, day(1), said, 2, None).unwrap();
    evil.restore(0, &old, day(4), None);
    assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::Unconfirmed));
    let confirmed = evil.world.annotate(stream_id(0), 1, policy(&evil.world.setup));
    let owner = owner(stream_id(0));
    let step = evil.controllers[0].annotate(&confirmed, &owner, day(4)).unwrap();
    step.commit(&mut evil.store).unwrap();
    assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantError::Unconfirmed));
    // Every reader has the bytes: whichever of them repeats a grant, it is still from before.
    let again = hand_in(&mut evil, day(5), &first, &certificate);
    assert!(matches!(again, Err(GrantError::BeforeRestore { .. })), "{again:?}");
    assert_eq!(fetch(&mut evil, day(5), &doctor), Err(GrantError::Unconfirmed));
    say(&mut evil, day(5), said, 3, days(0, 1)).unwrap();
    assert_eq!(fetch(&mut evil, day(5), &doctor).unwrap().days, days(0, 1).unwrap());
    // A copy that has never known them does not accept them either.
    evil.restore(0, &empty, day(6), None);
    let step = evil.controllers[0].annotate(&confirmed, &owner, day(6)).unwrap();
    step.commit(&mut evil.store).unwrap();
    let again = hand_in(&mut evil, day(7), &first, &certificate);
    assert!(matches!(again, Err(GrantError::BeforeRestore { .. })), "{again:?}");
    assert_eq!(fetch(&mut evil, day(7), &doctor), Err(GrantError::NotGranted));
}
