//! Sessions of one stream: what ends one, what continues a window, and which frames conflict.

use super::device::{STREAM, Sender, Service, TICK, at, keys, ticks, window};
use crate::devices::Device;
use alpheus_encrypted_stream::messages::Segments;
use alpheus_encrypted_stream::producer::Start;
use alpheus_encrypted_stream::tick::claim::Claim;
use alpheus_encrypted_stream::transformer::{FrameEffect, IncompleteError, IngestError, Status};
use alpheus_time::{Span, Timestamp};

fn again(sender: &mut Sender, from: u64) {
    sender.open(Start::Again { now: Timestamp(at(from).0 - 1) }, at(from), None);
}

/// An opening that came before the service was away, or that a thief of the device's key sends.
#[test]
fn an_opening_alone_ends_nothing() {
    let mut service = Service::ticks(&[1]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.advance(at(1));
    let first = sender.sent();
    service.take_all(&first);
    let mut other = Sender::ticks(at(1), 2);
    service.take_all(&other.sent());
    // The first session goes on.
    sender.event(at(1).plus(Span(5)), 3);
    sender.advance(at(2));
    service.take_all(&sender.sent());
    assert_eq!(service.open(0, window(0, 1)), Some(vec![0, 0]));
    assert_eq!(service.open(0, window(1, 2)), Some(vec![3, 1]));
    // A session that sends nothing is given up when another opens.
    let mut last = Sender::ticks(at(2), 3);
    last.event(at(2).plus(Span(5)), 4);
    last.advance(at(3));
    let frames = last.sent();
    assert_eq!(service.take(&frames[0]), Ok(FrameEffect::Opened));
    assert_eq!(service.take(&frames[1]), Ok(FrameEffect::Froze(at(3))));
    // Now the first one has died.
    sender.advance(at(3));
    assert_eq!(service.take(&sender.sent()[0]), Err(IngestError::SessionEnded));
    assert_eq!(service.open(0, window(2, 3)), Some(vec![4, 1]));
    other.advance(at(5));
    let gone = service.take(other.sent().last().unwrap());
    assert_eq!(gone.map_err(|error| error.name()), Err("unknown-session"));
}

#[test]
fn a_session_that_died_leaves_its_tick_out_and_no_more() {
    let mut service = Service::ticks(&[1, 3]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(0).plus(Span(1)), 1);
    sender.event(at(1).plus(Span(1)), 2);
    again(&mut sender, 2);
    sender.event(at(2).plus(Span(1)), 4);
    sender.advance(at(6));
    service.take_all(&sender.sent());
    assert_eq!(service.open(0, window(0, 1)), Some(vec![1, 1]));
    let report = service.transformer.close(&service.plans[0].0, window(1, 2), 0).unwrap();
    let died = Status::Incomplete(IncompleteError::SessionDied);
    assert_eq!(report.streams, [(0, died)]);
    assert_eq!(service.open(0, window(2, 3)), Some(vec![4, 1]));
    assert_eq!(service.open(1, window(0, 3)), None);
    assert_eq!(service.open(1, window(3, 6)), Some(vec![0, 0]));
}

/// The device dies in the third tick, and comes back in the fifth: the windows that end and begin
/// while it was away lack a tick each.
#[test]
fn a_gap_at_a_windows_end_is_one_between_sessions() {
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(0).plus(Span(1)), 1);
    sender.advance(at(2));
    again(&mut sender, 4);
    sender.event(at(4).plus(Span(1)), 4);
    sender.advance(at(6));
    let frames = sender.sent();
    for gaps in 0..2 {
        let mut service = Service::ticks(&[3]);
        service.take_all(&frames);
        let mut claims = |window| {
            let report = service.transformer.close(&service.plans[0].0, window, gaps).unwrap();
            let [(0, status)] = &report.streams[..] else { panic!("{report:?}") };
            match status {
                Status::Complete(stream) => match &stream.segments {
                    Segments::OfTicks { claims, .. } => claims.clone(),
                    Segments::OfEvents(_) => unreachable!("a stream of events"),
                },
                other => {
                    assert_eq!(
                        (gaps, other),
                        (0, &Status::Incomplete(IncompleteError::SessionDied))
                    );
                    Vec::new()
                }
            }
        };
        let (before, after) = (claims(window(0, 3)), claims(window(3, 6)));
        if gaps == 0 {
            continue;
        }
        let ends: Vec<Vec<_>> =
            before.iter().map(|own| own.iter().map(|claim| claim.to).collect()).collect();
        assert_eq!(ends, [vec![at(0), at(2)], vec![at(4)]]);
        assert_eq!(before[1], after[0][..1], "the opening of the next session shows it");
    }
}

/// Why the stream is left out of a window of three ticks, of which these frames came.
fn left_out(frames: &[Vec<u8>]) -> IncompleteError {
    let mut service = Service::ticks(&[3]);
    service.take_all(frames);
    let report = service.transformer.close(&service.plans[0].0, window(0, 3), 0).unwrap();
    let reasons: Vec<_> = report.excluded().collect();
    let [(0, reason)] = reasons[..] else { panic!("{reasons:?}") };
    reason
}

#[test]
fn the_first_tick_that_has_not_come_names_the_reason() {
    let mut sender = Sender::ticks(at(0), 1);
    sender.advance(at(6));
    let frames = sender.sent();
    for missing in 1..4 {
        let mut some = frames.clone();
        some.remove(missing);
        assert_eq!(left_out(&some), IncompleteError::MissingBorder, "frame {missing}");
    }
}

/// A plan that begins while the device runs has not seen its earlier ticks.
#[test]
fn ticks_that_came_before_the_plan_are_named_as_such() {
    let mut service = Service::ticks(&[1]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.advance(at(2));
    service.take_all(&sender.sent());
    let plan = super::device::plan(&service.schema, 3);
    let id = service.transformer.register(&plan).unwrap();
    sender.advance(at(3));
    let last = sender.sent();
    let reason = |service: &mut Service| {
        let report = service.transformer.close(&id, window(0, 3), 0).unwrap();
        report.excluded().next().map(|(_, reason)| reason)
    };
    service.take_all(&last);
    assert_eq!(reason(&mut service), Some(IncompleteError::BeforePlan));
}

/// A later tick that is lost counts before one that came before the plan.
#[test]
fn a_lost_tick_is_the_reason_though_earlier_ones_came_before_the_plan() {
    let mut service = Service::ticks(&[1]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.advance(at(6));
    let frames = sender.sent();
    service.take_all(&frames[..2]);
    let plan = super::device::plan(&service.schema, 3);
    let id = service.transformer.register(&plan).unwrap();
    service.take_all(&frames[3..]);
    let report = service.transformer.close(&id, window(0, 3), 0).unwrap();
    let reasons: Vec<_> = report.excluded().collect();
    assert_eq!(reasons, [(0, IncompleteError::MissingBorder)]);
}

/// The device says how far its last session came. Its missing ticks are lost, not unsent.
#[test]
fn a_session_that_a_device_remembers_shows_what_was_lost() {
    let frames = |lost: bool, remembers: bool| {
        let mut sender = Sender::ticks(at(0), 1);
        sender.advance(at(1));
        let Some(Device::Ticks(session)) = &sender.device else { panic!() };
        let number = session.number();
        let sent = sender.sent();
        let last = if lost { at(2) } else { at(1) };
        let now = Timestamp(at(2).0 - 1);
        sender.open(Start::Again { now }, at(2), remembers.then_some((number, last)));
        sender.advance(at(6));
        [sent, sender.sent()].concat()
    };
    assert_eq!(left_out(&frames(true, true)), IncompleteError::MissingBorder);
    assert_eq!(left_out(&frames(false, true)), IncompleteError::SessionDied);
    assert_eq!(left_out(&frames(true, false)), IncompleteError::SessionDied);
}

/// The session's parts before and after a tick that an owner tolerates to be missing.
#[test]
fn a_window_may_lack_as_many_ticks_as_are_tolerated() {
    let mut service = Service::ticks(&[3]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(0).plus(Span(1)), 1);
    sender.event(at(1).plus(Span(1)), 2);
    again(&mut sender, 2);
    sender.event(at(2).plus(Span(1)), 4);
    sender.advance(at(3));
    service.take_all(&sender.sent());
    let (id, plan) = service.plans[0].clone();
    let report = service.transformer.close(&id, window(0, 3), 1).unwrap();
    let stream = report.complete().next().unwrap();
    let Segments::OfTicks { claims, conflict: None, .. } = &stream.segments else { panic!() };
    let parts: Vec<_> = claims.iter().map(|own| (own[0].to, own.last().unwrap().to)).collect();
    assert_eq!(parts, [(at(0), at(1)), (at(2), at(3))]);
    let mut rows = service.transformer.sum(&id, window(0, 3), &[0]).unwrap();
    for own in claims {
        let (from, to) = (own[0].to, own.last().unwrap().to);
        let part = keys(&ticks()).key_sum(&plan.release, own[0].session, from, to).unwrap();
        rows.iter_mut().zip(part).for_each(|(row, part)| *row = row.wrapping_add(part));
    }
    assert_eq!(rows, [5, 2, 0]);
}

/// Two devices from one snapshot have the same session and keys.
#[test]
fn a_second_frame_for_a_tick_is_reported_and_the_first_stands() {
    let mut service = Service::ticks(&[1]);
    let device = || Sender::ticks(at(0), 1);
    let (mut one, mut copy) = (device(), device());
    one.event(at(0).plus(Span(1)), 1);
    one.advance(at(3));
    copy.event(at(0).plus(Span(2)), 7);
    copy.advance(at(1));
    copy.sleep(at(3));
    let (one, copy) = (one.sent(), copy.sent());
    service.take_all(&one);
    assert_eq!(service.take(&one[0]), Err(IngestError::SessionKnown));
    for (number, frame) in (1..).zip(&one[1..]) {
        assert_eq!(service.take(frame), Err(IngestError::Frozen), "frame {number}");
    }
    assert_eq!(service.take(&copy[1]), Err(IngestError::Conflicting));
    // A gap over two ticks that have come.
    assert_eq!(service.take(&copy[2]), Err(IngestError::Conflicting));
    let (id, _) = service.plans[0];
    let report = service.transformer.close(&id, window(0, 1), 0).unwrap();
    let stream = report.complete().next().unwrap().clone();
    let Segments::OfTicks { conflict: Some(pair), .. } = &stream.segments else { panic!() };
    let genuine = |claim: &Claim| keys(&ticks()).open_claim(claim).is_ok();
    assert!(pair.iter().all(genuine) && pair[0].tag != pair[1].tag && pair[0].to == pair[1].to);
    assert_eq!(service.transformer.sum(&id, window(0, 1), &[0]).map(|rows| rows.len()), Ok(3));
    assert_eq!(service.open(0, window(1, 2)), Some(vec![0, 0]), "the first frames stand");
}

/// The controller alone can tell whether both claims are the device's. So one pair, which a thief of the
/// ingest key may have made, does not keep the others from it.
#[test]
fn conflicting_claims_of_a_session_are_shown_in_turn() {
    let mut service = Service::ticks(&[1]);
    let (mut one, mut copy) = (Sender::ticks(at(0), 1), Sender::ticks(at(0), 1));
    for tick in 0..3 {
        one.event(at(tick).plus(Span(1)), 1);
        copy.event(at(tick).plus(Span(2)), 7);
    }
    one.advance(at(3));
    copy.advance(at(3));
    service.take_all(&one.sent());
    for frame in &copy.sent()[1..] {
        assert_eq!(service.take(frame), Err(IngestError::Conflicting));
    }
    let (id, _) = service.plans[0];
    let mut shown = |number| {
        let report = service.transformer.close(&id, window(number, number + 1), 0).unwrap();
        let stream = report.complete().next().unwrap().clone();
        let Segments::OfTicks { conflict: Some(pair), .. } = stream.segments else { panic!() };
        assert!(pair[0].to == pair[1].to && pair[0].tag != pair[1].tag);
        pair[0].to
    };
    let mut ends: Vec<_> = (0..3).map(&mut shown).collect();
    ends.sort_unstable();
    assert_eq!(ends, [at(1), at(2), at(3)]);
}

/// A window starts and ends anywhere in a device's sleep.
#[test]
fn windows_in_into_and_out_of_a_gap_are_whole() {
    let mut service = Service::ticks(&[1, 2]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(0).plus(Span(1)), 1);
    sender.advance(at(1));
    sender.sleep(at(5));
    sender.sleep(at(6));
    sender.event(at(6).plus(Span(1)), 2);
    sender.advance(at(8));
    service.take_all(&sender.sent());
    let expected = |tick: u64| match tick {
        0 => vec![1, 1],
        6 => vec![2, 1],
        _ => vec![0, 0],
    };
    for tick in 0..8 {
        assert_eq!(service.open(0, window(tick, tick + 1)), Some(expected(tick)), "tick {tick}");
    }
    for tick in [0, 2, 4, 6] {
        let rows = service.open(1, window(tick, tick + 2));
        assert_eq!(rows, Some(expected(tick)), "from tick {tick}");
    }
}

#[test]
fn a_session_does_not_open_in_the_past_of_its_stream_and_not_twice() {
    let mut service = Service::ticks(&[1]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.advance(at(4));
    service.take_all(&sender.sent());
    let opening = |at, seed| Sender::ticks(at, seed).sent().remove(0);
    assert_eq!(service.take(&opening(at(3), 2)), Err(IngestError::Backdated));
    assert_eq!(service.take(&opening(at(4), 3)), Ok(FrameEffect::Opened));
    assert_eq!(service.take(&opening(at(4), 3)), Err(IngestError::SessionKnown));
}

#[test]
fn frames_off_the_tick_ahead_of_the_clock_or_after_the_end_are_refused() {
    let mut service = Service::ticks(&[1]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.close(at(2));
    let sent = sender.sent();
    service.take_all(&sent);
    let now = Timestamp(at(1).0);
    let frame = service.ingest.check(
        STREAM,
        &sent[2],
        |_| None,
        |session| service.transformer.opening(&STREAM, session),
    );
    let taken = service.transformer.handle_tick(0, &frame.unwrap(), now);
    assert_eq!(taken, Err(IngestError::Future));
    // A device with another tick under the same keys.
    let mut schema = ticks();
    schema.tick = Span(TICK / 2);
    let mut other = Service::ticks(&[1]);
    let mut half = Sender::new(schema, at(0), 4);
    half.advance(Timestamp(at(0).0 + TICK / 2));
    for frame in half.sent() {
        // The schema's id is another.
        assert!(matches!(other.take(&frame), Err(IngestError::NotAuthentic(_))));
    }
}
