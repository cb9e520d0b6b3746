//! Sessions end with their day. Windows over midnight combine both days' sessions, and keys
//! of one day reveal nothing of another. Longer sessions of an earlier build are detected
//! and refused.

use alpheus_encrypted_stream::error::{ExclusionError, GrantError};
use alpheus_encrypted_stream::keys::{BorderClaim, BorderKind, StreamKeys};
use alpheus_encrypted_stream::messages::{
    ControllerMessage, Segment, SegmentBorder, Segments, SummonedStream,
};
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::grants::{
    DAY, FIRST, days, fetch, frames_at, many, opened_beside, reader, say,
};
use crate::protocol::world::{Setup, WINDOW, after, master, stream_id, window};
use crate::summoned_borders::segments;

/// The window that begins with the first session and extends over midnight.
const TICKS: u64 = 19;
const MIDNIGHT: Timestamp = Timestamp((FIRST + 1) * DAY);

/// Readers who pool keys of days, for every tick. A tick for which this would fail has no
/// producer.
#[test]
fn readers_who_pool_days_open_no_other_tick() {
    let evil = Evil::unannounced(Setup::new(2));
    let hour = DAY / 24;
    for tick in [hour, 7 * hour, 11 * hour, 23 * hour, DAY, 25 * hour, 36 * hour, 2 * DAY] {
        let Ok(frames) = frames_at(&evil, 7, Span(tick)) else {
            assert!(tick > DAY);
            continue;
        };
        for granted in [&[0, 2][..], &[1, 3], &[0, 4], &[2], &[1, 3, 5], &[0, 1, 4]] {
            let opened = opened_beside(&evil, &frames, granted);
            assert_eq!(opened, [0_u64; 0], "{granted:?}, a tick of {tick}");
        }
    }
}

#[test]
fn a_window_over_midnight_combines_both_days_sessions() {
    let mut evil = Evil::unannounced(Setup { streams_each: 3, windows: 20, ..Setup::new(1) });
    // These do not divide a day.
    let plan = Plan { window: Span(TICKS * WINDOW.0), ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    evil.accept();
    let both = evil.world.plan.window_at(window(0).start);
    assert_eq!((both.start, both.end), (window(0).start, window(TICKS).start));
    let report = evil.world.transformer.close(&evil.world.id(), both, 0).unwrap();
    evil.report.window = both;
    evil.report.complete = report.complete().cloned().collect();
    assert_eq!(evil.report.complete.len(), 3);
    for stream in &evil.report.complete {
        let [before, since] = &segments(stream)[..] else { panic!("{stream:?}") };
        assert_eq!((before.to(), since.from), (MIDNIGHT, MIDNIGHT));
        assert!(before.borders.last().unwrap().closing && since.opening.is_some());
    }
    let now = after(TICKS);
    let streams = evil.streams(0);
    let (digest, presence) = evil.presence_at(0, streams, now);
    assert_eq!(presence.accepted, [0, 1, 2]);
    let draft = Draft { window: both, members: vec![(0, digest, presence.owners)] };
    let token = evil.token_at(0, &draft);
    let sums = evil.add_up(&[0, 1, 2], &[&token], &[]);
    let mut truth = vec![0; sums.len()];
    for number in 0..TICKS {
        let one = evil.world.truth([0, 1, 2], number);
        truth.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
    }
    assert_eq!(sums, truth);
}

/// The closing of the previous day's session is durable before anything depends on it.
#[test]
fn a_controller_restarted_at_midnight_continues() {
    let mut evil = Evil::new(Setup { streams_each: 2, ..Setup::new(1) });
    let draft = evil.gather_at(1);
    evil.token_at(0, &draft);
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, MIDNIGHT, Some(fence));
    let next = evil.gather_at(2);
    let token = evil.token_at(0, &next);
    assert_eq!(evil.add_up(&[0, 1], &[&token], &[]), evil.world.truth([0, 1], 2));
}

/// Stream 0 in a window, from a producer that did not end its session at midnight.
fn runs_on(evil: &Evil, number: u64) -> SummonedStream {
    let keys = StreamKeys::new(&master(stream_id(0)), stream_id(0), evil.world.schema.id());
    let tag = |kind, t| keys.border_tag(&BorderClaim { kind, session: 7, t, count: 0 });
    let over = window(number);
    let word = |t: Timestamp| {
        let position = evil.world.layout.check_word();
        keys.day_key(t.0 / DAY).key_word(7, t, position).unwrap()
    };
    let border = SegmentBorder {
        at: over.end,
        closing: false,
        events: 0,
        tag: tag(BorderKind::Interior, over.end),
    };
    let opening = (number == 1).then(|| tag(BorderKind::Opening, over.start));
    let segments = vec![Segment { session: 7, from: over.start, opening, borders: vec![border] }];
    let check_sum = word(over.end).wrapping_sub(word(over.start));
    let segments = Segments::OfEvents(segments);
    SummonedStream { position: 0, segments, check_sum }
}

fn summon(evil: &mut Evil, number: u64) {
    evil.close(number);
    let stream = runs_on(evil, number);
    let (_, presence) = evil.presence_at(0, vec![stream], after(number));
    assert_eq!((presence.accepted, presence.excluded), (vec![0], vec![]));
}

#[test]
fn keys_of_days_whose_edge_a_session_crosses_are_not_handed_out() {
    let mut evil = Evil::new(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let said = (&doctor, &certificate);
    say(&mut evil, Timestamp(0), said, 1, days(0, 0)).unwrap();
    let now = Timestamp(MIDNIGHT.0 + 2 * DAY);
    summon(&mut evil, 1);
    assert_eq!(fetch(&mut evil, now, &doctor).map(many), Ok(1), "it reaches midnight only");
    summon(&mut evil, 2);
    let crossed = GrantError::SessionCrosses { day: FIRST + 1 };
    for restarts in [false, true] {
        if restarts {
            let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
            evil.restore(0, &store, now, Some(fence));
        }
        let version = 2 + 3 * u64::from(restarts);
        for (more, (first, last), expected) in [
            (0, (0, 0), Err(crossed)),
            (1, (1, 1), Err(crossed)),
            // With both sides of that midnight there is nothing in between.
            (2, (0, 1), Ok(2)),
        ] {
            say(&mut evil, Timestamp(0), said, version + more, days(first, last)).unwrap();
            let handed = fetch(&mut evil, now, &doctor).map(many);
            assert_eq!(handed, expected, "{first} to {last}");
        }
    }
}

/// A border on midnight that does not close is still a border of its session.
#[test]
fn a_session_does_not_begin_inside_another() {
    let mut evil = Evil::new(Setup::new(2));
    summon(&mut evil, 1);
    evil.close(2);
    let streams = evil.streams(0);
    let summons = evil.summons(0, streams);
    let key = evil.world.announced.verifying()[0];
    let Ok(ControllerMessage::Presence(signed)) = evil.ask(0, after(2), &summons) else { panic!() };
    let presence = signed.open(&key).unwrap();
    assert_eq!(presence.excluded, [(0, ExclusionError::SessionOverlap)]);
}
