//! Raw access to a stream with one frame a tick: ticks of the granted days, and of no other.

use alpheus_encrypted_stream::error::RawReadError;
use alpheus_encrypted_stream::grant::{HandedDays, RawReader};
use alpheus_encrypted_stream::producer::{EventVector, Start, TickProducer, TickSession};
use alpheus_encrypted_stream::tick::frame::TickFrame;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use crate::devices;
use crate::protocol::evil::Evil;
use crate::protocol::grants::{self, DAY, FIRST, days, fetch, reader, say};
use crate::protocol::world::{Setup, master, stream_id};

/// Microseconds after the start of a day number.
fn at(number: u64, micros: u64) -> Timestamp {
    Timestamp((FIRST + number) * DAY + micros)
}

fn event(
    session: &mut TickSession,
    t: Timestamp,
    value: u64,
    rng: &mut ChaCha20Rng,
    frames: &mut Vec<Vec<u8>>,
) {
    let encode = |vector: &mut EventVector<'_>| {
        vector.add(0, value);
        Ok::<(), std::convert::Infallible>(())
    };
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.sleep_until(Timestamp(t.0 - t.0 % 10_000_000), rng, sink).unwrap();
    session.event(t, encode).unwrap();
}

/// Three events a day of stream 0: in its first tick, at noon, and in its last tick.
fn frames(evil: &Evil, many: u64) -> Vec<Vec<u8>> {
    let (schema, layout) = (&evil.world.schema, &evil.world.layout);
    let secrets = devices::secrets(&evil.world.authority.verifying_key());
    let stream = stream_id(0);
    let producer = TickProducer::for_schema(&master(stream), stream, schema, layout, secrets);
    let (mut frames, mut rng) = (Vec::new(), ChaCha20Rng::from_seed([8; 32]));
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let opened = producer.unwrap().open(Start::First, at(0, 0), None, &mut rng, &mut sink);
    let mut session = opened.unwrap_or_else(|refused| panic!("{:?}", refused.error));
    for number in 0..many {
        for (micros, value) in [(5, 1), (DAY / 2 + 5, 2), (DAY - 5, 3)] {
            let value = 100 + 10 * number + value;
            event(&mut session, at(number, micros), value, &mut rng, &mut frames);
        }
    }
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    session.advance(at(many, 0), &mut rng, sink).unwrap();
    frames
}

/// The first word of each tick with events that is read, and how many ticks lack a key.
fn read(evil: &Evil, keys: &RawReader, frames: &[Vec<u8>]) -> (Vec<u64>, usize) {
    let (mut sums, mut without) = (Vec::new(), 0);
    for frame in frames {
        let TickFrame::Tick(claim, words) =
            TickFrame::parse(frame, evil.world.schema.tick).unwrap()
        else {
            continue;
        };
        match keys.read_tick(&claim, &words) {
            Ok(sum) => sums.extend(Some(sum[0]).filter(|sum| *sum > 0)),
            Err(RawReadError::OtherDay { .. }) => without += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (sums, without)
}

fn opened(evil: &Evil, seed: u8, keys: &HandedDays) -> RawReader {
    grants::opened(evil, &reader(evil, seed, "doctor").0, 0, keys).unwrap()
}

#[test]
fn a_reader_reads_the_ticks_of_the_granted_days_but_the_last_one() {
    let mut evil = Evil::unannounced(Setup::new(2).with_ticks());
    let frames = frames(&evil, 4);
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    for (version, first, last, sums) in [
        (1, 1, 1, vec![111, 112]),
        (2, 1, 2, vec![111, 112, 113, 121, 122]),
        (3, 0, 3, vec![101, 102, 103, 111, 112, 113, 121, 122, 123, 131, 132]),
    ] {
        say(&mut evil, at(0, 0), said, version, days(first, last)).unwrap();
        let handed = fetch(&mut evil, at(9, 0), &doctor).unwrap();
        let keys = opened(&evil, 31, &handed);
        let without = 12 - sums.len();
        assert_eq!(read(&evil, &keys, &frames), (sums, without));
    }
}

#[test]
fn a_changed_or_moved_tick_is_no_tick_of_the_stream() {
    let mut evil = Evil::unannounced(Setup::new(2).with_ticks());
    let frames = frames(&evil, 1);
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    say(&mut evil, at(0, 0), (&doctor, &certificate), 1, days(0, 0)).unwrap();
    let handed = fetch(&mut evil, at(9, 0), &doctor).unwrap();
    let keys = opened(&evil, 31, &handed);
    let tick = evil.world.schema.tick;
    let noon = frames.iter().find(|frame| match TickFrame::parse(frame, tick).unwrap() {
        TickFrame::Tick(claim, _) => claim.from == at(0, DAY / 2),
        _ => false,
    });
    let TickFrame::Tick(claim, words) = TickFrame::parse(noon.unwrap(), tick).unwrap() else {
        unreachable!()
    };
    assert!(keys.read_tick(&claim, &words).is_ok());
    let mut moved = claim;
    (moved.from, moved.to) = (claim.from.plus(tick), claim.to.plus(tick));
    assert_eq!(keys.read_tick(&moved, &words), Err(RawReadError::CheckWord));
    let mut other = claim;
    other.session ^= 1;
    assert_eq!(keys.read_tick(&other, &words), Err(RawReadError::CheckWord));
    let mut flipped = noon.unwrap().clone();
    let mac = 16;
    let last = flipped.len() - mac - 1;
    flipped[last] ^= 1;
    let TickFrame::Tick(claim, words) = TickFrame::parse(&flipped, tick).unwrap() else {
        unreachable!()
    };
    assert_eq!(keys.read_tick(&claim, &words), Err(RawReadError::CheckWord));
}

/// Readers who pool days know no two pads of a session that have a tick of another day between.
#[test]
fn readers_who_pool_days_open_no_sum_of_ticks_in_between() {
    let evil = Evil::unannounced(Setup::new(2).with_ticks());
    let frames = frames(&evil, 5);
    for granted in [&[0, 4][..], &[1, 3], &[0, 2, 4], &[2], &[0, 1, 3]] {
        let known = |t: Timestamp| granted.contains(&(t.0 / DAY).wrapping_sub(FIRST));
        // The session of the last known pad, and whether an unknown one has followed.
        let mut since: Option<(u64, bool)> = None;
        for frame in &frames {
            let (claim, is_tick) = match TickFrame::parse(frame, evil.world.schema.tick).unwrap() {
                TickFrame::Opening(opening) => (opening.claim(), false),
                TickFrame::Gap(claim) => (claim, false),
                TickFrame::Tick(claim, _) => (claim, true),
            };
            if !known(claim.to) {
                let same = since.filter(|(session, _)| *session == claim.session);
                since = same.map(|(session, beside)| (session, beside || is_tick));
                continue;
            }
            if let Some((session, beside)) = since.replace((claim.session, false)) {
                assert!(session != claim.session || !beside, "{granted:?}: {claim:?}");
            }
        }
    }
}
