//! A re-up carries no credential: it moves a live session from its recorded
//! tag, and nothing else. Crashes, logouts and second devices in between.

use crate::support::{Ledger, SECOND, START, at};
use crate::town::{Broken, Town, logged_in};
use alpheus_anonymous_credential::error::{HolderRefused, Refused};
use alpheus_anonymous_credential::holder::{Outgoing, Which};
use alpheus_anonymous_credential::ledger::Log;
use alpheus_anonymous_credential::messages::ReUp;
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_anonymous_credential::sessions::Due;

#[test]
fn a_session_goes_on_from_epoch_to_epoch() {
    let (mut town, mut device, session) = logged_in(30);
    for epoch in 0..5 {
        let now = at(13 + 15 * epoch);
        let sent = town.carry(&mut device, now).unwrap();
        let done = town.re_up(now, &sent, None).unwrap().unwrap();
        assert_eq!((done.session, done.epoch), (session, Epoch(START.0 + epoch + 1)));
        // It serves the epoch that runs, and then the next.
        assert!(town.is_live(now, session) && town.is_live(at(16 + 15 * epoch), session));
        // The same again, on another connection, after a restart: the same answer.
        town.restart(Log::Whole, now);
        assert!(town.is_live(at(16 + 15 * epoch), session));
        assert_eq!(town.re_up(now, &sent, None), Ok(Some(done)));
    }
    // Too early for the holder, and too early for the shard.
    assert_eq!(town.carry(&mut device, at(80)), Err(HolderRefused::Epoch));
}

/// The server dies after each of its commits; the client sends its bytes again.
#[test]
fn wherever_the_server_dies_the_same_bytes_go_through_and_nobody_elses() {
    for dies in 0..3 {
        let (mut town, mut device, session) = logged_in(31);
        let mut other = town.copy(&device);
        let sent = town.carry(&mut device, at(13)).unwrap();
        assert_eq!(town.re_up(at(13), &sent, Some(dies)), Ok(None));
        town.restart(Log::Whole, at(13));
        // The friend tries to get in between.
        let theirs = town.show(&mut other, at(13), Which::Next).unwrap();
        let tries = town.log_in(at(13), &theirs);
        if dies > 0 {
            assert_eq!(tries, Err(Refused::Spent), "reserved, died at {dies}");
        }
        let again = device.holder.resend(START.next()).unwrap();
        assert_eq!(again.commit(&mut Ledger::new()).unwrap(), sent);
        let ours = town.re_up(at(14), &sent, None);
        assert_eq!(ours.is_ok(), tries.is_err(), "one of them, died at {dies}: {ours:?}");
        assert_ne!(town.is_live(at(16), session), town.is_live(at(16), theirs.session));
    }
}

#[test]
fn login_and_re_up_from_two_devices_are_one_session() {
    let (mut town, mut device, session) = logged_in(32);
    let mut other = town.copy(&device);
    // The login was first.
    let theirs = town.show(&mut other, at(12), Which::Next).unwrap();
    town.log_in(at(12), &theirs).unwrap();
    let sent = town.carry(&mut device, at(13)).unwrap();
    assert_eq!(town.re_up(at(13), &sent, None), Err(Refused::Spent));
    assert!(town.is_live(at(14), session) && !town.is_live(at(16), session));
    assert!(town.is_live(at(16), theirs.session));
    // Then the re-up is first.
    let next = town.carry(&mut other, at(28)).unwrap();
    town.re_up(at(28), &next, None).unwrap();
    let late = town.show(&mut device, at(28), Which::Next).unwrap();
    assert_eq!(town.log_in(at(28), &late), Err(Refused::Spent));
    // Whoever was locked out gets in an epoch later.
    let later = town.show(&mut device, at(43), Which::Next).unwrap();
    town.log_in(at(43), &later).unwrap();
}

#[test]
fn a_logout_before_the_move_wins() {
    let (mut town, mut device, session) = logged_in(33);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(at(13), re_up).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(at(13), proven).unwrap().commit(ledger).unwrap();
    town.log_out(&device, session).unwrap();
    let advanced = town.shard_of(session.0).0.advance(at(13), reserved).err();
    assert_eq!(advanced, Some(Refused::Ended));
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let due = town.shard_of(session.0).0.due(at(13), re_up).err();
    assert_eq!(due, Some(Refused::Ended));
    assert!(!town.is_live(at(16), session));
    // The tag stays reserved: no other session comes of it in that epoch.
    let mut other = town.copy(&device);
    let theirs = town.show(&mut other, at(13), Which::Next).unwrap();
    assert_eq!(town.log_in(at(13), &theirs), Err(Refused::Spent));
}

/// Two re-ups raced, from the same recorded tag: the second finds it moved.
#[test]
fn the_move_is_from_the_recorded_tag_only() {
    let (mut town, mut device, session) = logged_in(34);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = [(); 2].map(|()| town.prove_re_up(at(13), re_up.clone()).unwrap());
    for proven in proven {
        let (shard, ledger) = town.shard_of(tag);
        let reserved = shard.reserve(at(13), proven).unwrap().commit(ledger).unwrap();
        let (shard, ledger) = town.shard_of(session.0);
        let moved = shard.advance(at(13), reserved).unwrap().commit(ledger).unwrap();
        let (shard, ledger) = town.shard_of(tag);
        shard.activate(moved).unwrap().commit(ledger).unwrap();
    }
    // Held back until the session is two epochs on, a re-up comes to nothing.
    let stale = town.carry(&mut device, at(28)).unwrap();
    let stale_re_up = ReUp::from_bytes(&stale.bytes).unwrap();
    let held = town.prove_re_up(at(28), stale_re_up.clone()).unwrap();
    town.re_up(at(28), &stale, None).unwrap();
    let next = town.carry(&mut device, at(43)).unwrap();
    town.re_up(at(43), &next, None).unwrap();
    let shard = town.tag_of(&stale_re_up);
    let (shard, ledger) = town.shard_of(shard);
    let reserved = shard.reserve(at(44), held).unwrap().commit(ledger).unwrap();
    let refused = town.shard_of(session.0).0.advance(at(44), reserved).err();
    assert_eq!(refused, Some(Refused::NotCurrent));
}

#[test]
fn no_step_is_taken_before_the_one_before_is_durable() {
    let (mut town, mut device, session) = logged_in(35);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(at(13), re_up.clone()).unwrap();
    let reserve = town.shard_of(tag).0.reserve(at(13), proven).unwrap();
    assert!(reserve.commit(&mut Broken).is_err());
    town.restart(Log::Whole, at(13));
    // The move is on its way to the disk when a retry arrives: that writes, too.
    let proven = town.prove_re_up(at(13), re_up.clone()).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(at(13), proven).unwrap().commit(ledger).unwrap();
    let shard = &mut town.shard_of(session.0).0;
    let advance = shard.advance(at(13), reserved).unwrap();
    let Ok(Due::Moved(retry)) = shard.due(at(13), re_up) else { panic!("not moved") };
    assert!(retry.commit(&mut Broken).is_err());
    assert!(advance.commit(&mut Broken).is_err());
    town.restart(Log::Whole, at(13));
    assert!(!town.is_live(at(16), session));
    assert!(town.re_up(at(13), &sent, None).unwrap().is_some());
    assert!(town.is_live(at(16), session));
}

/// Epochs skipped, sessions unknown or ended, other epochs than the next.
#[test]
fn a_re_up_is_from_the_epoch_before() {
    let (mut town, mut device, session) = logged_in(36);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let skipped = ReUp { epoch: Epoch(START.0 + 2), ..ReUp::from_bytes(&sent.bytes).unwrap() };
    let skipped = Outgoing { session, epoch: skipped.epoch, bytes: skipped.to_bytes() };
    assert_eq!(town.re_up(at(13), &skipped, None), Err(Refused::Epoch));
    assert_eq!(town.re_up(at(28), &skipped, None), Err(Refused::NotCurrent));
    // Late, but within the next epoch: what was not acknowledged comes through.
    let late = town.re_up(at(29), &sent, None).unwrap();
    assert_eq!(late.map(|done| done.epoch), Some(START.next()));
    assert_eq!(town.re_up(at(30), &sent, None), Err(Refused::Epoch));
    let (mut town, mut device, _) = logged_in(37);
    town.carry(&mut device, at(13)).unwrap();
    // The session lapsed: the holder logs in.
    assert_eq!(town.carry(&mut device, at(60)), Err(HolderRefused::NothingShown));
    let sent = town.show(&mut device, at(60), Which::Running).unwrap();
    town.log_in(at(60), &sent).unwrap();
}

/// A pass of yesterday must not live on by re-ups.
#[test]
fn no_re_up_crosses_the_border_of_a_period() {
    let last = 86_400 - 15;
    let mut town = Town::new(1, 38);
    let mut device = town.device(b"ada");
    let sent = town.show(&mut device, at(last), Which::Running).unwrap();
    let session = town.log_in(at(last), &sent).unwrap().session;
    let border = at(last + 10);
    assert_eq!(town.carry(&mut device, border), Err(HolderRefused::NeedsLogin));
    assert_eq!(town.show(&mut device, border, Which::Next), Err(HolderRefused::OtherPeriod));
    // Nor does the service take one from a holder that tries.
    let element = alpheus_crypto::group::Element::base();
    let forged = ReUp { epoch: Epoch(START.0 + 5760), session, tag: element, proof: Vec::new() };
    let forged = Outgoing { session, epoch: forged.epoch, bytes: forged.to_bytes() };
    assert_eq!(town.re_up(border, &forged, None), Err(Refused::NeedsLogin));
    assert!(town.is_live(Time(at(last + 15).0 - SECOND), session));
    assert!(!town.is_live(at(last + 15), session));
}

/// The tag's shard loses its log between the reservation and the activation.
#[test]
fn a_reservation_that_is_forgotten_is_not_activated() {
    let (mut town, mut device, session) = logged_in(39);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(at(13), re_up).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(at(13), proven).unwrap().commit(ledger).unwrap();
    let (shard, ledger) = town.shard_of(session.0);
    let moved = shard.advance(at(13), reserved).unwrap().commit(ledger).unwrap();
    town.restart(Log::Doubtful, at(13));
    let refused = town.shard_of(tag).0.activate(moved).err();
    assert_eq!(refused, Some(Refused::MayHaveForgotten));
    // And nobody else gets in with that epoch's tag.
    let mut other = town.copy(&device);
    let theirs = town.show(&mut other, at(14), Which::Next).unwrap();
    assert_eq!(town.log_in(at(14), &theirs), Err(Refused::MayHaveForgotten));
}
