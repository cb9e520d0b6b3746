//! A request is accepted once, as it was sent, in its session's epochs.

use crate::properties::town::{LIMITS, SECOND, SONG, Town, at};
use alpheus_access_pass::error::GatewayError;
use alpheus_access_pass::request::{Stamp, Target};
use alpheus_access_pass::window::WIDTH;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_time::Timestamp;
use proptest::prelude::*;

#[test]
fn a_stolen_header_is_worth_one_request_at_most() {
    let mut town = Town::new(1);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let stolen = stamp;
    assert!(town.request(&stamp, at(2)).is_ok());
    assert_eq!(town.request(&stolen, at(2)), Err(GatewayError::Replayed));
    // A faster thief gets that one request, and no other.
    let stolen = stamper.stamp(&SONG).unwrap();
    for other in [
        Target { method: "POST", ..SONG },
        Target { authority: "other.example:443", ..SONG },
        Target { path: "/songs/8?from=0", ..SONG },
        Target { path: "/songs/7?from=", ..SONG },
    ] {
        let tried = town.service.gateway.admit(&stolen, &other, at(2));
        assert_eq!(tried.err(), Some(GatewayError::Unauthentic), "{other:?}");
    }
    let later = Stamp { counter: stolen.counter + 1, ..stolen };
    assert_eq!(town.request(&later, at(2)), Err(GatewayError::Unauthentic));
    // None of these used the counter up.
    assert!(town.request(&stolen, at(2)).is_ok());
    // Host names are case-insensitive.
    let stamp = stamper.stamp(&SONG).unwrap();
    let upper = Target { authority: "MUSIC.example:443", ..SONG };
    assert!(town.service.gateway.admit(&stamp, &upper, at(2)).is_ok());
}

#[test]
fn a_stamp_is_valid_for_its_own_session_only() {
    let mut town = Town::new(2);
    let (_, mine, mut ours) = town.connected(b"ada");
    let (_, theirs, mut stamper) = town.connected(b"bob");
    assert_ne!(mine, theirs);
    let stamp = Stamp { session: mine, ..stamper.stamp(&SONG).unwrap() };
    assert_eq!(town.request(&stamp, at(2)), Err(GatewayError::Unauthentic));
    assert!(town.request(&ours.stamp(&SONG).unwrap(), at(2)).is_ok());
}

#[test]
fn requests_may_overtake_each_other_within_the_window() {
    let mut town = Town::new(3);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamps: Vec<Stamp> = (0..=WIDTH).map(|_| stamper.stamp(&SONG).unwrap()).collect();
    for stamp in stamps.iter().rev() {
        let expected = stamp.counter > 0;
        assert_eq!(town.request(stamp, at(2)).is_ok(), expected, "{}", stamp.counter);
    }
}

#[test]
fn the_number_of_concurrent_requests_of_a_session_is_limited() {
    let mut town = Town::new(4);
    let (_, session, mut stamper) = town.connected(b"ada");
    let (_, _, mut bobs) = town.connected(b"bob");
    for _ in 0..LIMITS.concurrent {
        assert!(town.service.gateway.admit(&stamper.stamp(&SONG).unwrap(), &SONG, at(2)).is_ok());
    }
    let more = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.service.gateway.admit(&more, &SONG, at(2)).err(), Some(GatewayError::TooMany));
    assert!(town.request(&bobs.stamp(&SONG).unwrap(), at(2)).is_ok(), "others are not held up");
    town.service.gateway.finish(session);
    assert!(town.request(&stamper.stamp(&SONG).unwrap(), at(2)).is_ok());
    // A caller that sees only the start does not count against the limit.
    for _ in 0..10 {
        assert!(town.service.gateway.check(&stamper.stamp(&SONG).unwrap(), &SONG, at(2)).is_ok());
    }
}

#[test]
fn a_session_serves_its_epochs_and_ends_after_an_overlap() {
    let mut town = Town::new(5);
    let (mut device, session, mut stamper) = town.connected(b"ada");
    let mut ask = |town: &mut Town, now| town.request(&stamper.stamp(&SONG).unwrap(), now);
    let end = at(15).plus(LIMITS.overlap);
    assert_eq!(ask(&mut town, at(2)), Ok(end));
    assert_eq!(ask(&mut town, Timestamp(at(15).0 - 1)), Ok(end));
    // Running requests may continue until then; no new ones start.
    assert_eq!(town.service.gateway.until(session), Some(end));
    assert_eq!(ask(&mut town, at(15)), Err(GatewayError::Lapsed));
    // A re-up extends running and new requests.
    let mut town = Town::new(5);
    let (mut device_again, session, mut stamper) = town.connected(b"ada");
    std::mem::swap(&mut device, &mut device_again);
    town.re_up(&mut device, at(13));
    assert_eq!(town.service.gateway.until(session), Some(Timestamp(end.0 + 15 * SECOND)));
    assert!(town.request(&stamper.stamp(&SONG).unwrap(), at(16)).is_ok());
    // A clock that went back by an epoch serves nothing.
    let stamp = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.request(&stamp, at(14)), Err(GatewayError::ClockStepped));
    assert!(town.request(&stamp, at(17)).is_ok());
}

#[test]
fn a_login_ahead_waits_for_its_epoch() {
    let mut town = Town::new(6);
    let mut device = town.device(b"ada");
    town.log_in(&mut device, Timing::Next, at(13));
    let mut stamper = town.connect(&device, at(13)).unwrap();
    let early = town.request(&stamper.stamp(&SONG).unwrap(), at(14));
    assert_eq!(early, Err(GatewayError::NotYet));
    assert!(town.request(&stamper.stamp(&SONG).unwrap(), at(15)).is_ok());
}

#[test]
fn a_logout_ends_a_session_at_once() {
    let mut town = Town::new(7);
    let (device, session, mut stamper) = town.connected(b"ada");
    let (bobs, _, _) = town.connected(b"bob");
    let mut forged = device.holder.log_out(session).unwrap();
    forged.signature = bobs.holder.log_out(town_session(&bobs)).unwrap().signature;
    assert_eq!(town.service.gateway.log_out(&forged), Err(GatewayError::Signature));
    assert!(town.service.gateway.until(session).is_some());
    town.service.gateway.log_out(&device.holder.log_out(session).unwrap()).unwrap();
    assert_eq!(town.service.gateway.until(session), None, "what runs is cut");
    let tried = town.request(&stamper.stamp(&SONG).unwrap(), at(3));
    assert_eq!(tried, Err(GatewayError::Ended));
    assert!(matches!(town.connect(&device, at(3)), Err(GatewayError::Ended)));
    // A verifier that learns of the logout later than this gateway changes nothing.
    town.service.gateway.update(town.service.shard.status(session).unwrap());
    assert_eq!(town.service.gateway.until(session), None);
    // Nor is a verifier asked about it in later epochs.
    assert!(town.service.gateway.knows(session, at(100)));
}

/// The session that a device logged in with.
fn town_session(
    device: &crate::properties::town::Device,
) -> alpheus_anonymous_credential::messages::SessionId {
    let newest = device.holder.newest().unwrap();
    let sent = device.holder.resend(newest).unwrap();
    sent.commit(&mut crate::properties::town::Ledger::new()).unwrap().session
}

#[test]
fn sessions_that_can_serve_no_more_are_deleted() {
    let mut town = Town::new(8);
    let (_, session, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let running = town.service.gateway.admit(&stamp, &SONG, at(2)).unwrap();
    town.service.gateway.prune(at(100));
    assert_eq!(town.service.gateway.len(), 1, "a request still runs");
    assert!(!town.service.gateway.is_empty());
    town.service.gateway.finish(running.session);
    town.service.gateway.prune(at(100));
    assert!(town.service.gateway.is_empty());
    assert_eq!(town.service.gateway.until(session), None);
}

/// One that has not connected here is kept as long as it may be carried on, and no longer.
#[test]
fn a_session_that_may_be_carried_on_is_kept() {
    let mut town = Town::new(10);
    let mut device = town.device(b"ada");
    town.log_in(&mut device, Timing::Running, at(1));
    for (now, kept) in [(at(14), 1), (Timestamp(at(30).0 - 1), 1), (at(30), 0)] {
        town.service.gateway.prune(now);
        assert_eq!(town.service.gateway.len(), kept, "{now:?}");
    }
}

proptest! {
    /// A header has one spelling; everything else is rejected.
    #[test]
    fn a_stamp_that_parses_is_written_the_same(text in "(v1\\.)?[A-Za-z0-9_.-]{0,80}") {
        if let Ok(stamp) = text.parse::<Stamp>() {
            prop_assert_eq!(stamp.to_string(), text);
        }
    }
}

#[test]
fn a_stamp_survives_its_text_form() {
    let mut town = Town::new(9);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let text = stamp.to_string();
    assert_eq!(text.parse(), Ok(stamp));
    for bad in ["", "v1", "v2.a.0.b", &format!("{text}."), &text.replace(".0.", ".00.")] {
        assert_eq!(bad.parse::<Stamp>(), Err(GatewayError::Malformed), "{bad}");
    }
}
