//! Raw access: whom an owner names reads the days that they name, once these are over, and
//! not an event beside them; and nothing more once the owner says so.

use std::collections::BTreeMap;

use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets};
use alpheus_encrypted_stream::error::{GrantRefused, NotReadable};
use alpheus_encrypted_stream::frame::{Frame, Link};
use alpheus_encrypted_stream::grant::{Days, Grant, HandedDay, RawReader};
use alpheus_encrypted_stream::keys::StreamKeys;
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine, Record, Scope, Stamped};
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start};
use alpheus_encrypted_stream::withdrawal::Withdrawal;
use alpheus_policy::ids::StreamId;
use alpheus_policy::time::Timestamp;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::evil::Evil;
use crate::world::{EPOCH, Setup, master, owner_key, policy, stream_id};

pub const DAY: u64 = 86_400_000_000;
/// The day that the world begins in.
pub const FIRST: u64 = EPOCH / DAY;

fn day(number: u64) -> Timestamp {
    Timestamp((FIRST + number) * DAY)
}

pub fn days(first: u64, last: u64) -> Option<Days> {
    Some(Days::new(FIRST + first, FIRST + last).unwrap())
}

/// A reader and its certificate.
pub fn reader(evil: &Evil, seed: u8, name: &str) -> (Consumer, Signed<Certificate>) {
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([seed; 32]));
    let certificate = secrets.request(name).issue(&evil.world.authority);
    (secrets.certified(&certificate, &evil.world.deployment).unwrap(), certificate)
}

/// The owner of stream 0 says what a reader may read.
pub fn say(
    evil: &mut Evil,
    now: Timestamp,
    (reader, certificate): (&Consumer, &Signed<Certificate>),
    version: u32,
    days: Option<Days>,
) -> Result<(), GrantRefused> {
    let key = owner_key(stream_id(0));
    let grant = Grant { stream: stream_id(0), reader: reader.id(), version, days };
    let signed = Signed::new(&grant, &key);
    let step = evil.controllers[0].grant(now, &key.verifying_key(), &signed, certificate)?;
    step.commit(&mut evil.store).unwrap();
    Ok(())
}

pub fn fetch(
    evil: &mut Evil,
    now: Timestamp,
    reader: &Consumer,
) -> Result<Vec<HandedDay>, GrantRefused> {
    let mut rng = ChaCha20Rng::from_seed([77; 32]);
    let step = evil.controllers[0].hand_out(now, &stream_id(0), &reader.id(), &mut rng)?;
    Ok(step.commit(&mut evil.store).unwrap())
}

/// Two events a day of stream 0, in the middle and close to midnight, for some days.
fn frames_of(evil: &Evil, many: u64) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let (schema, layout) = (&evil.world.schema, &evil.world.layout);
    let producer =
        Producer::for_schema(&master(stream_id(0)), stream_id(0), schema, layout).unwrap();
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    let session = producer.open(Start::First, day(0), &mut rng, &mut sink);
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
    frames
}

fn frames(evil: &Evil) -> Vec<Vec<u8>> {
    frames_of(evil, 4)
}

/// What readers who pool the keys of some days open beside the events of these: sums of
/// other events, between two key vectors of a session that they know.
fn opened_beside(evil: &Evil, frames: &[Vec<u8>], granted: &[u64]) -> Vec<u64> {
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let known = |t: Timestamp| granted.contains(&(t.0 / DAY - FIRST));
    let first = |session: u64, t: Timestamp| {
        let mut word = [0; 1];
        keys.day_key(t.0 / DAY).key_vector(session, t, &mut word).unwrap();
        word[0]
    };
    // By session: how much lies since the last known time, and whether any of it is theirs.
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

/// Monday to one, Friday to another: nothing of the days between.
#[test]
fn readers_who_pool_days_open_no_sum_of_the_days_between() {
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

/// The attack is one: it opens what lies within a day's session, given two times of it.
#[test]
fn a_session_that_outlasts_its_day_would_tell_the_days_between() {
    let evil = Evil::unannounced(Setup::new(2));
    let frames = frames_of(&evil, 5);
    // One session of all days, as an earlier build made it: the same events under its links.
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

/// The first word of each event that a reader reads, and of how many it has no key.
fn read(
    evil: &Evil,
    reader: &Consumer,
    keys: &[HandedDay],
    frames: &[Vec<u8>],
) -> (Vec<u64>, usize) {
    let opened = RawReader::new(reader, (stream_id(0), evil.world.schema.id()), keys).unwrap();
    let (mut events, mut without) = (Vec::new(), 0);
    for bytes in frames {
        match opened.read(&Frame::parse(bytes).unwrap()) {
            Ok(event) => events.extend(event.map(|words| words[0])),
            Err(NotReadable::OtherDay { .. }) => without += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (events, without)
}

#[test]
fn a_reader_reads_the_days_it_is_granted_and_no_other() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let frames = frames(&evil);
    assert_eq!(fetch(&mut evil, day(9), &doctor), Err(GrantRefused::NotGranted));
    let said = (&doctor, &certificate);
    for (version, first, last, events) in [
        (1, 1, 2, vec![102, 103, 104, 105]),
        (2, 1, 1, vec![102, 103]),
        (3, 1, 3, vec![102, 103, 104, 105, 106, 107]),
    ] {
        say(&mut evil, day(0), said, version, days(first, last)).unwrap();
        let keys = fetch(&mut evil, day(9), &doctor).unwrap();
        let handed: Vec<u64> = keys.iter().map(|key| key.day - FIRST).collect();
        assert_eq!(handed, (first..=last).collect::<Vec<_>>());
        let without = 8 - events.len();
        assert_eq!(read(&evil, &doctor, &keys, &frames), (events, without));
        // Nobody else opens them, for this stream or another.
        let (eve, _) = reader(&evil, 32, "eve");
        let schema = evil.world.schema.id();
        let wrong = NotReadable::NotForYou { day: FIRST + first };
        assert_eq!(RawReader::new(&eve, (stream_id(0), schema), &keys).err(), Some(wrong));
        assert_eq!(RawReader::new(&doctor, (stream_id(1), schema), &keys).err(), Some(wrong));
        // A key of one day under the name of another opens nothing.
        let mut swapped = keys.clone();
        swapped[0].day += 1;
        assert!(RawReader::new(&doctor, (stream_id(0), schema), &swapped).is_err());
        // The second day's second event, changed on the way.
        let is_it = |frame: &&Vec<u8>| {
            let frame = Frame::parse(frame).unwrap();
            matches!(frame, Frame::Data { .. }) && frame.t() == Timestamp(day(2).0 - 5)
        };
        let mut flipped = frames.iter().find(is_it).unwrap().clone();
        *flipped.last_mut().unwrap() ^= 1;
        let opened = RawReader::new(&doctor, (stream_id(0), schema), &keys).unwrap();
        let refused = opened.read(&Frame::parse(&flipped).unwrap());
        assert_eq!(refused, Err(NotReadable::CheckWord));
    }
}

/// What has not passed is handed out by nobody, so that it can still be taken back.
#[test]
fn keys_come_day_by_day_until_the_owner_says_no_more() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    say(&mut evil, day(0), said, 5, days(0, 9)).unwrap();
    let last = |evil: &mut Evil, now| fetch(evil, now, &doctor).map(|keys| keys.len());
    assert_eq!(last(&mut evil, Timestamp(day(1).0 - 1)), Err(GrantRefused::NotOver));
    assert_eq!(last(&mut evil, day(1)), Ok(1));
    assert_eq!(last(&mut evil, day(4)), Ok(4));
    // An older word does not come back.
    say(&mut evil, day(4), said, 6, None).unwrap();
    assert_eq!(last(&mut evil, day(9)), Err(GrantRefused::NotGranted));
    let older = say(&mut evil, day(4), said, 5, days(0, 9));
    assert_eq!(older, Err(GrantRefused::NotLater { given: 5, known: 6 }));
    // Also after a restart.
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, day(9), Some(fence));
    assert_eq!(last(&mut evil, day(9)), Err(GrantRefused::NotGranted));
    let older = say(&mut evil, day(4), said, 5, days(0, 9));
    assert_eq!(older, Err(GrantRefused::NotLater { given: 5, known: 6 }));
}

fn handed_lines(evil: &Evil) -> Vec<(String, Days)> {
    let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
    let line = |value: &&[u8]| match Stamped::read(value).unwrap().record {
        Record::Log(LogLine { event: LogEvent::KeysHanded { reader, days }, .. }) => {
            Some((reader, days))
        }
        _ => None,
    };
    own.iter().filter_map(line).collect()
}

/// The log is in the commit that the keys come out of; asked again it grows no more.
#[test]
fn an_owner_reads_in_the_log_what_was_handed_out() {
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
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, day(3), Some(fence));
    fetch(&mut evil, day(3), &doctor).unwrap();
    assert_eq!(handed_lines(&evil), lines, "nor after a restart");
    // Nothing comes out of a step that is not committed.
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    drop(evil.controllers[0].hand_out(day(5), &stream_id(0), &doctor.id(), &mut rng).unwrap());
    assert_eq!(handed_lines(&evil), lines);
}

#[test]
fn consent_that_is_withdrawn_and_keys_that_are_destroyed_end_it() {
    for erase in [false, true] {
        let mut evil = Evil::unannounced(Setup::new(2));
        let (doctor, certificate) = reader(&evil, 31, "doctor");
        let said = (&doctor, &certificate);
        say(&mut evil, day(0), said, 1, days(0, 9)).unwrap();
        let key = owner_key(stream_id(0));
        let signed = Signed::new(&Withdrawal { stream: stream_id(0), erase }, &key);
        let withdrawn = evil.controllers[0].withdraw(day(1), &key.verifying_key(), &signed);
        withdrawn.unwrap().0.commit(&mut evil.store).unwrap();
        for _ in 0..2 {
            assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantRefused::Withdrawn));
            let again = say(&mut evil, day(4), said, 2, days(0, 9));
            assert_eq!(again, Err(GrantRefused::Withdrawn));
            evil.world.erased = if erase { vec![stream_id(0)] } else { vec![] };
            let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
            evil.restore(0, &store, day(4), Some(fence));
        }
    }
}

/// A copy may have lost that the owner said no more: grants from before are void, also
/// once the owner has confirmed the policy.
#[test]
fn an_older_ledger_hands_nothing_out_before_the_owner_grants_again() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    say(&mut evil, day(0), said, 1, days(0, 9)).unwrap();
    let old = evil.store.clone();
    say(&mut evil, day(1), said, 2, None).unwrap();
    evil.restore(0, &old, day(4), None);
    assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantRefused::Unconfirmed));
    let signed = evil.world.annotate(stream_id(0), 1, policy(&evil.world.setup));
    let owner = owner_key(stream_id(0)).verifying_key();
    let step = evil.controllers[0].annotate(day(4), &owner, &signed).unwrap();
    step.commit(&mut evil.store).unwrap();
    assert_eq!(fetch(&mut evil, day(4), &doctor), Err(GrantRefused::Unconfirmed));
    say(&mut evil, day(4), said, 3, days(0, 1)).unwrap();
    assert_eq!(fetch(&mut evil, day(5), &doctor).unwrap().len(), 2);
}

#[test]
fn grants_that_are_not_their_owners_or_of_no_reader_are_refused_by_name() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let (_, others) = reader(&evil, 32, "eve");
    let owner = owner_key(stream_id(0));
    let grant = |stream: StreamId, days| Grant { stream, reader: doctor.id(), version: 1, days };
    let mut ask = |key: &_, grant: &Grant, certificate: &_| {
        let signed = Signed::new(grant, key);
        let key = alpheus_crypto::sign::SigningKey::verifying_key(key);
        evil.controllers[0].grant(day(0), &key, &signed, certificate).err()
    };
    let good = grant(stream_id(0), days(0, 1));
    let stranger = owner_key(stream_id(1));
    assert_eq!(ask(&stranger, &good, &certificate), Some(GrantRefused::WrongOwner));
    let elsewhere = grant(stream_id(1), days(0, 1));
    assert_eq!(ask(&stranger, &elsewhere, &certificate), Some(GrantRefused::NotHeld));
    assert_eq!(ask(&owner, &good, &others), Some(GrantRefused::OtherReader));
    for wrong in [Days { first: 9, last: 8 }, Days { first: 0, last: 4000 }] {
        let refused = ask(&owner, &grant(stream_id(0), Some(wrong)), &certificate);
        assert!(matches!(refused, Some(GrantRefused::Days { .. })), "{refused:?}");
    }
    // A controller's certificate is no consumer's.
    let controllers = evil.world.seats[0].1.clone();
    let signed = Signed::new(&good, &owner);
    let refused = evil.controllers[0].grant(day(0), &owner.verifying_key(), &signed, &controllers);
    assert_eq!(refused.err(), Some(GrantRefused::Certificate));
}
