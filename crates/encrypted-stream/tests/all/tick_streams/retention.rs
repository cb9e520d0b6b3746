//! What the service keeps of a stream with one frame a tick, and how much of it.

use super::device::{Sender, Service, TICK, at, window};
use alpheus_encrypted_stream::messages::Segments;
use alpheus_encrypted_stream::producer::Start;
use alpheus_encrypted_stream::transformer::IngestError;
use alpheus_time::{Span, Timestamp};

/// Bytes that are stored of a service.
fn stored(service: &Service) -> usize {
    service.transformer.snapshot(Vec::new()).unwrap().len()
}

/// A plan of ten seconds beside one of a day needs a claim for each of its windows, but only
/// until they are closed.
#[test]
fn a_long_window_beside_a_short_one_keeps_claims_at_anchors_alone() {
    let day = Span::DAY.0 / TICK;
    let from = Timestamp(at(0).0.next_multiple_of(Span::DAY.0));
    let first = (from.0 - at(0).0) / TICK;
    let mut service = Service::ticks(&[1, day]);
    let mut sender = Sender::ticks(at(0), 1);
    for tick in 0..2000 {
        sender.advance(at(tick + 1));
        service.take_all(&sender.sent());
        assert_eq!(service.open(0, window(tick, tick + 1)), Some(vec![0, 0]), "tick {tick}");
    }
    sender.advance(at(first + day));
    service.take_all(&sender.sent());
    let stream = service.close(1, window(first, first + day)).unwrap();
    let Segments::OfTicks { claims, .. } = stream.segments else { panic!() };
    // The opening, and one at each anchor.
    assert_eq!(claims.iter().map(Vec::len).collect::<Vec<_>>(), [1 + day as usize / 3]);
}

#[test]
fn a_stream_that_no_plan_needs_keeps_little() {
    let mut service = Service::ticks(&[]);
    let mut sender = Sender::ticks(at(0), 1);
    let mut most = 0;
    for tick in 0..600 {
        if tick % 3 == 0 {
            sender.sleep(at(tick + 1));
        } else {
            sender.advance(at(tick + 1));
        }
        if tick % 50 == 49 {
            let now = Timestamp(at(tick + 1).0 + 1);
            sender.open(Start::Again { now }, at(tick + 2), None);
        }
        for frame in sender.sent() {
            let _ = service.take(&frame);
        }
        most = most.max(stored(&service));
    }
    assert!(most < 3000, "{most} bytes");
}

/// Every frame is a gap of its own, far more than a window's.
#[test]
fn a_device_that_wakes_too_often_is_refused_and_others_are_not() {
    let mut service = Service::ticks(&[5000]);
    let mut sender = Sender::ticks(at(13), 1);
    let mut refused = 0;
    for tick in 13..2000 {
        sender.sleep(at(tick + 1));
        for frame in sender.sent() {
            match service.take(&frame) {
                Ok(_) => {}
                Err(IngestError::TooManyGaps) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 500, "{refused}");
    assert!(stored(&service) < 200_000, "{} bytes", stored(&service));
}

/// Every other tick is missing: what has come is in many pieces.
#[test]
fn a_stream_with_many_holes_keeps_a_bounded_number_of_pieces() {
    let mut service = Service::ticks(&[5000]);
    let mut sender = Sender::ticks(at(13), 1);
    sender.advance(at(4000));
    let frames = sender.sent();
    let mut most = 0;
    for (place, frame) in frames.iter().enumerate() {
        if place % 2 == 0 {
            let _ = service.take(frame);
            most = most.max(stored(&service));
        }
    }
    assert!(most < 300_000, "{most} bytes");
}

/// The window before was closed without it, but the next one starts with its claim.
#[test]
fn a_late_tick_still_starts_the_next_window() {
    let mut service = Service::ticks(&[2]);
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(1).plus(Span(1)), 8);
    sender.event(at(2).plus(Span(1)), 9);
    sender.advance(at(4));
    let sent = sender.sent();
    service.take_all(&sent[..1]);
    assert_eq!(service.open(0, window(0, 2)), None);
    assert_eq!(service.take(&sent[1]), Err(IngestError::Late));
    service.take_all(&sent[2..]);
    assert_eq!(service.open(0, window(2, 4)), Some(vec![9, 1]));
}
