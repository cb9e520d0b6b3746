//! A re-up carries no credential. It moves a live session from its recorded tag, and does
//! nothing else, whatever crashes, logouts and other devices interfere.

use crate::properties::town::{Town, logged_in};
use crate::support::{Ledger, SECOND, START, at};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::{OutboundMessage, Timing};
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::messages::ReUp;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::ReUpLookUp;
use alpheus_crypto::ledger::FailingLedger;
use alpheus_time::Timestamp;

#[test]
fn a_session_is_carried_from_epoch_to_epoch() {
    let (mut town, mut device, session) = logged_in(30);
    for epoch in 0..5 {
        let now = at(13 + 15 * epoch);
        let sent = town.carry(&mut device, now).unwrap();
        let done = town.re_up(&sent, None, now).unwrap().unwrap();
        assert_eq!((done.session, done.epoch), (session, Epoch(START.0 + epoch + 1)));
        // It serves the running epoch, and then the next.
        assert!(town.is_live(session, now) && town.is_live(session, at(16 + 15 * epoch)));
        // The same bytes on another connection, after a restart, get the same answer.
        town.restart(StateOrigin::Intact, now);
        assert!(town.is_live(session, at(16 + 15 * epoch)));
        assert_eq!(town.re_up(&sent, None, now), Ok(Some(done)));
    }
    // Too early for the holder and for the shard.
    assert_eq!(town.carry(&mut device, at(80)), Err(HolderError::Epoch));
}

/// The server crashes after each of its commits; the client resends its bytes.
#[test]
fn wherever_the_server_crashes_the_same_bytes_succeed_and_no_others() {
    for dies in 0..3 {
        let (mut town, mut device, session) = logged_in(31);
        let mut other = town.copy(&device);
        let sent = town.carry(&mut device, at(13)).unwrap();
        assert_eq!(town.re_up(&sent, Some(dies), at(13)), Ok(None));
        town.restart(StateOrigin::Intact, at(13));
        // The friend tries to get in between.
        let theirs = town.present(&mut other, Timing::Next, at(13)).unwrap();
        let tries = town.log_in(&theirs, at(13));
        if dies > 0 {
            assert_eq!(tries, Err(VerifierError::Spent), "reserved, died at {dies}");
        }
        let again = device.holder.resend(START.next()).unwrap();
        assert_eq!(again.commit(&mut Ledger::new()).unwrap(), sent);
        let ours = town.re_up(&sent, None, at(14));
        assert_eq!(ours.is_ok(), tries.is_err(), "one of them, died at {dies}: {ours:?}");
        assert_ne!(town.is_live(session, at(16)), town.is_live(theirs.session, at(16)));
    }
}

#[test]
fn login_and_re_up_from_two_devices_are_one_session() {
    let (mut town, mut device, session) = logged_in(32);
    let mut other = town.copy(&device);
    // The login was first.
    let theirs = town.present(&mut other, Timing::Next, at(12)).unwrap();
    town.log_in(&theirs, at(12)).unwrap();
    let sent = town.carry(&mut device, at(13)).unwrap();
    assert_eq!(town.re_up(&sent, None, at(13)), Err(VerifierError::Spent));
    assert!(town.is_live(session, at(14)) && !town.is_live(session, at(16)));
    assert!(town.is_live(theirs.session, at(16)));
    // Then the re-up is first.
    let next = town.carry(&mut other, at(28)).unwrap();
    town.re_up(&next, None, at(28)).unwrap();
    let late = town.present(&mut device, Timing::Next, at(28)).unwrap();
    assert_eq!(town.log_in(&late, at(28)), Err(VerifierError::Spent));
    // The device that was locked out gets in an epoch later.
    let later = town.present(&mut device, Timing::Next, at(43)).unwrap();
    town.log_in(&later, at(43)).unwrap();
}

#[test]
fn a_logout_before_the_move_wins() {
    let (mut town, mut device, session) = logged_in(33);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(re_up, at(13)).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(proven, at(13)).unwrap().commit(ledger).unwrap();
    town.log_out(&device, session).unwrap();
    let advanced = town.shard_of(session.0).0.advance(reserved, at(13)).err();
    assert_eq!(advanced, Some(VerifierError::Ended));
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let due = town.shard_of(session.0).0.look_up_re_up(re_up, at(13)).err();
    assert_eq!(due, Some(VerifierError::Ended));
    assert!(!town.is_live(session, at(16)));
    // The tag stays reserved, and no other session gets it in that epoch.
    let mut other = town.copy(&device);
    let theirs = town.present(&mut other, Timing::Next, at(13)).unwrap();
    assert_eq!(town.log_in(&theirs, at(13)), Err(VerifierError::Spent));
}

/// Two re-ups from the same recorded tag race. The second finds it moved.
#[test]
fn a_session_moves_from_its_recorded_tag_only() {
    let (mut town, mut device, session) = logged_in(34);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = [(); 2].map(|()| town.prove_re_up(re_up.clone(), at(13)).unwrap());
    for proven in proven {
        let (shard, ledger) = town.shard_of(tag);
        let reserved = shard.reserve(proven, at(13)).unwrap().commit(ledger).unwrap();
        let (shard, ledger) = town.shard_of(session.0);
        let moved = shard.advance(reserved, at(13)).unwrap().commit(ledger).unwrap();
        let (shard, ledger) = town.shard_of(tag);
        shard.activate(moved).unwrap().commit(ledger).unwrap();
    }
    // A re-up that was held back until the session is two epochs on does nothing.
    let stale = town.carry(&mut device, at(28)).unwrap();
    let stale_re_up = ReUp::from_bytes(&stale.bytes).unwrap();
    let held = town.prove_re_up(stale_re_up.clone(), at(28)).unwrap();
    town.re_up(&stale, None, at(28)).unwrap();
    let next = town.carry(&mut device, at(43)).unwrap();
    town.re_up(&next, None, at(43)).unwrap();
    let shard = town.tag_of(&stale_re_up);
    let (shard, ledger) = town.shard_of(shard);
    let reserved = shard.reserve(held, at(44)).unwrap().commit(ledger).unwrap();
    let refused = town.shard_of(session.0).0.advance(reserved, at(44)).err();
    assert_eq!(refused, Some(VerifierError::NotCurrent));
}

#[test]
fn no_step_of_a_re_up_precedes_the_commit_of_the_one_before() {
    let (mut town, mut device, session) = logged_in(35);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(re_up.clone(), at(13)).unwrap();
    let reserve = town.shard_of(tag).0.reserve(proven, at(13)).unwrap();
    assert!(reserve.commit(&mut FailingLedger).is_err());
    town.restart(StateOrigin::Intact, at(13));
    // A retry arrives before the move reaches the disk: it writes, too.
    let proven = town.prove_re_up(re_up.clone(), at(13)).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(proven, at(13)).unwrap().commit(ledger).unwrap();
    let shard = &mut town.shard_of(session.0).0;
    let advance = shard.advance(reserved, at(13)).unwrap();
    let Ok(ReUpLookUp::Moved(retry)) = shard.look_up_re_up(re_up, at(13)) else {
        panic!("not moved")
    };
    assert!(retry.commit(&mut FailingLedger).is_err());
    assert!(advance.commit(&mut FailingLedger).is_err());
    town.restart(StateOrigin::Intact, at(13));
    assert!(!town.is_live(session, at(16)));
    assert!(town.re_up(&sent, None, at(13)).unwrap().is_some());
    assert!(town.is_live(session, at(16)));
}

/// Skipped epochs, unknown or ended sessions, and epochs other than the next.
#[test]
fn a_re_up_must_come_from_the_previous_epoch() {
    let (mut town, mut device, session) = logged_in(36);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let skipped = ReUp { epoch: Epoch(START.0 + 2), ..ReUp::from_bytes(&sent.bytes).unwrap() };
    let skipped = OutboundMessage { session, epoch: skipped.epoch, bytes: skipped.to_bytes() };
    assert_eq!(town.re_up(&skipped, None, at(13)), Err(VerifierError::Epoch));
    assert_eq!(town.re_up(&skipped, None, at(28)), Err(VerifierError::NotCurrent));
    // Late, but within the next epoch: an unacknowledged re-up succeeds.
    let late = town.re_up(&sent, None, at(29)).unwrap();
    assert_eq!(late.map(|done| done.epoch), Some(START.next()));
    assert_eq!(town.re_up(&sent, None, at(30)), Err(VerifierError::Epoch));
    let (mut town, mut device, _) = logged_in(37);
    town.carry(&mut device, at(13)).unwrap();
    // The session lapsed, so the holder logs in.
    assert_eq!(town.carry(&mut device, at(60)), Err(HolderError::NothingPresented));
    let sent = town.present(&mut device, Timing::Running, at(60)).unwrap();
    town.log_in(&sent, at(60)).unwrap();
}

/// Yesterday's pass must not stay alive through re-ups.
#[test]
fn no_re_up_crosses_the_border_of_a_period() {
    let last = 86_400 - 15;
    let mut town = Town::new(1, 38);
    let mut device = town.device(b"ada");
    let sent = town.present(&mut device, Timing::Running, at(last)).unwrap();
    let session = town.log_in(&sent, at(last)).unwrap().session;
    let border = at(last + 10);
    assert_eq!(town.carry(&mut device, border), Err(HolderError::NeedsLogin));
    assert_eq!(town.present(&mut device, Timing::Next, border), Err(HolderError::OtherPeriod));
    // The service accepts none from a holder that tries.
    let element = alpheus_crypto::group::Element::base();
    let forged = ReUp { epoch: Epoch(START.0 + 5760), session, tag: element, proof: Vec::new() };
    let forged = OutboundMessage { session, epoch: forged.epoch, bytes: forged.to_bytes() };
    assert_eq!(town.re_up(&forged, None, border), Err(VerifierError::NeedsLogin));
    assert!(town.is_live(session, Timestamp(at(last + 15).0 - SECOND)));
    assert!(!town.is_live(session, at(last + 15)));
}

/// The tag's shard loses its ledger between reservation and activation.
#[test]
fn a_forgotten_reservation_is_not_activated() {
    let (mut town, mut device, session) = logged_in(39);
    let sent = town.carry(&mut device, at(13)).unwrap();
    let re_up = ReUp::from_bytes(&sent.bytes).unwrap();
    let tag = town.tag_of(&re_up);
    let proven = town.prove_re_up(re_up, at(13)).unwrap();
    let (shard, ledger) = town.shard_of(tag);
    let reserved = shard.reserve(proven, at(13)).unwrap().commit(ledger).unwrap();
    let (shard, ledger) = town.shard_of(session.0);
    let moved = shard.advance(reserved, at(13)).unwrap().commit(ledger).unwrap();
    town.restart(StateOrigin::Restored, at(13));
    let refused = town.shard_of(tag).0.activate(moved).err();
    assert_eq!(refused, Some(VerifierError::MayHaveForgotten));
    // Nobody else gets in with that epoch's tag.
    let mut other = town.copy(&device);
    let theirs = town.present(&mut other, Timing::Next, at(14)).unwrap();
    assert_eq!(town.log_in(&theirs, at(14)), Err(VerifierError::MayHaveForgotten));
}
