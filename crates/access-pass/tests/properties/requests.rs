//! A request counts once, as it was sent, in its session's epochs.

use crate::town::{LIMITS, SECOND, SONG, Town, at};
use alpheus_access_pass::error::Denied;
use alpheus_access_pass::request::{Stamp, Target};
use alpheus_access_pass::window::WIDTH;
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::schedule::Time;
use proptest::prelude::*;

#[test]
fn a_stolen_header_is_worth_one_request_at_most() {
    let mut town = Town::new(1);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let stolen = stamp;
    assert!(town.request(at(2), &stamp).is_ok());
    assert_eq!(town.request(at(2), &stolen), Err(Denied::Replayed));
    // A thief that is faster has that one request, and none like it.
    let stolen = stamper.stamp(&SONG).unwrap();
    for other in [
        Target { method: "POST", ..SONG },
        Target { authority: "other.example:443", ..SONG },
        Target { path: "/songs/8?from=0", ..SONG },
        Target { path: "/songs/7?from=", ..SONG },
    ] {
        let tried = town.gateway.admit(at(2), &stolen, &other);
        assert_eq!(tried.err(), Some(Denied::Unauthentic), "{other:?}");
    }
    let later = Stamp { counter: stolen.counter + 1, ..stolen };
    assert_eq!(town.request(at(2), &later), Err(Denied::Unauthentic));
    // Nothing of this used the counter up.
    assert!(town.request(at(2), &stolen).is_ok());
    // Names of hosts have no case.
    let stamp = stamper.stamp(&SONG).unwrap();
    let upper = Target { authority: "MUSIC.example:443", ..SONG };
    assert!(town.gateway.admit(at(2), &stamp, &upper).is_ok());
}

#[test]
fn anothers_session_is_no_way_in() {
    let mut town = Town::new(2);
    let (_, mine, mut ours) = town.connected(b"ada");
    let (_, theirs, mut stamper) = town.connected(b"bob");
    assert_ne!(mine, theirs);
    let stamp = Stamp { session: mine, ..stamper.stamp(&SONG).unwrap() };
    assert_eq!(town.request(at(2), &stamp), Err(Denied::Unauthentic));
    assert!(town.request(at(2), &ours.stamp(&SONG).unwrap()).is_ok());
}

#[test]
fn requests_overtake_each_other_but_not_by_much() {
    let mut town = Town::new(3);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamps: Vec<Stamp> = (0..=WIDTH).map(|_| stamper.stamp(&SONG).unwrap()).collect();
    for stamp in stamps.iter().rev() {
        let expected = stamp.counter > 0;
        assert_eq!(town.request(at(2), stamp).is_ok(), expected, "{}", stamp.counter);
    }
}

#[test]
fn so_many_requests_of_a_session_run_at_once() {
    let mut town = Town::new(4);
    let (_, session, mut stamper) = town.connected(b"ada");
    let (_, _, mut bobs) = town.connected(b"bob");
    for _ in 0..LIMITS.concurrent {
        assert!(town.gateway.admit(at(2), &stamper.stamp(&SONG).unwrap(), &SONG).is_ok());
    }
    let more = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.gateway.admit(at(2), &more, &SONG).err(), Some(Denied::TooMany));
    assert!(town.request(at(2), &bobs.stamp(&SONG).unwrap()).is_ok(), "others are not held up");
    town.gateway.finish(session);
    assert!(town.request(at(2), &stamper.stamp(&SONG).unwrap()).is_ok());
    // Who sees only the start counts against nothing.
    for _ in 0..10 {
        assert!(town.gateway.check(at(2), &stamper.stamp(&SONG).unwrap(), &SONG).is_ok());
    }
}

#[test]
fn a_session_serves_its_epochs_and_ends_with_an_overlap() {
    let mut town = Town::new(5);
    let (mut device, session, mut stamper) = town.connected(b"ada");
    let mut ask = |town: &mut Town, now| town.request(now, &stamper.stamp(&SONG).unwrap());
    let end = Time(at(15).0 + LIMITS.overlap);
    assert_eq!(ask(&mut town, at(2)), Ok(end));
    assert_eq!(ask(&mut town, Time(at(15).0 - 1)), Ok(end));
    // What runs may go on until then; nothing new is opened.
    assert_eq!(town.gateway.until(session), Some(end));
    assert_eq!(ask(&mut town, at(15)), Err(Denied::Lapsed));
    // A re-up carries on what runs and what comes.
    let mut town = Town::new(5);
    let (mut device_again, session, mut stamper) = town.connected(b"ada");
    std::mem::swap(&mut device, &mut device_again);
    town.re_up(&mut device, at(13));
    assert_eq!(town.gateway.until(session), Some(Time(end.0 + 15 * SECOND)));
    assert!(town.request(at(16), &stamper.stamp(&SONG).unwrap()).is_ok());
    // A clock that goes back by an epoch serves nothing.
    let stamp = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.request(at(14), &stamp), Err(Denied::ClockStepped));
    assert!(town.request(at(17), &stamp).is_ok());
}

#[test]
fn a_login_ahead_waits_for_its_epoch() {
    let mut town = Town::new(6);
    let mut device = town.device(b"ada");
    town.log_in(&mut device, at(13), Which::Next);
    let mut stamper = town.connect(&device, at(13)).unwrap();
    let early = town.request(at(14), &stamper.stamp(&SONG).unwrap());
    assert_eq!(early, Err(Denied::NotYet));
    assert!(town.request(at(15), &stamper.stamp(&SONG).unwrap()).is_ok());
}

#[test]
fn logout_ends_it_at_once() {
    let mut town = Town::new(7);
    let (device, session, mut stamper) = town.connected(b"ada");
    let (bobs, _, _) = town.connected(b"bob");
    let mut forged = device.holder.log_out(session).unwrap();
    forged.signature = bobs.holder.log_out(town_session(&bobs)).unwrap().signature;
    assert_eq!(town.gateway.log_out(&forged), Err(Denied::Signature));
    assert!(town.gateway.until(session).is_some());
    town.gateway.log_out(&device.holder.log_out(session).unwrap()).unwrap();
    assert_eq!(town.gateway.until(session), None, "what runs is cut");
    let tried = town.request(at(3), &stamper.stamp(&SONG).unwrap());
    assert_eq!(tried, Err(Denied::Ended));
    assert!(matches!(town.connect(&device, at(3)), Err(Denied::Ended)));
    // A verifier that heard of the logout later than this gateway changes nothing.
    town.gateway.note(town.shard.standing(session).unwrap());
    assert_eq!(town.gateway.until(session), None);
}

/// The session that a device logged in with.
fn town_session(device: &crate::town::Device) -> alpheus_anonymous_credential::messages::SessionId {
    let newest = device.holder.newest().unwrap();
    let sent = device.holder.resend(newest).unwrap();
    sent.commit(&mut crate::town::Ledger::new()).unwrap().session
}

#[test]
fn what_can_serve_no_more_is_forgotten() {
    let mut town = Town::new(8);
    let (_, session, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let running = town.gateway.admit(at(2), &stamp, &SONG).unwrap();
    town.gateway.prune(at(100));
    assert_eq!(town.gateway.len(), 1, "a request still runs");
    town.gateway.finish(running.session);
    town.gateway.prune(at(100));
    assert!(town.gateway.is_empty());
    assert_eq!(town.gateway.until(session), None);
}

proptest! {
    /// A header has one spelling, and whatever else comes is refused.
    #[test]
    fn stamps_are_read_as_they_are_written(text in "(v1\\.)?[A-Za-z0-9_.-]{0,80}") {
        if let Ok(stamp) = text.parse::<Stamp>() {
            prop_assert_eq!(stamp.to_string(), text);
        }
    }
}

#[test]
fn a_stamp_comes_back_from_its_text() {
    let mut town = Town::new(9);
    let (_, _, mut stamper) = town.connected(b"ada");
    let stamp = stamper.stamp(&SONG).unwrap();
    let text = stamp.to_string();
    assert_eq!(text.parse(), Ok(stamp));
    for bad in ["", "v1", "v2.a.0.b", &format!("{text}."), &text.replace(".0.", ".00.")] {
        assert_eq!(bad.parse::<Stamp>(), Err(Denied::Malformed), "{bad}");
    }
}
