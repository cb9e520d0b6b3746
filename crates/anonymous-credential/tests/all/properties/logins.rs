//! One session for each pass and epoch, on any device, in any order.

use crate::properties::town::{SHARDS, Town, logged_in};
use crate::support::{Ledger, SECOND, START, at};
use alpheus_anonymous_credential::error::{HolderError, VerifierError};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::ledger::{DamagedLedgerError, StateOrigin};
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::sessions::{LoginLookUp, Shard};
use alpheus_crypto::ledger::FailingLedger;
use alpheus_time::Timestamp;

#[test]
fn two_devices_with_one_pass_have_one_session() {
    let (mut town, device, session) = logged_in(10);
    let mut other = town.copy(&device);
    let sent = town.present(&mut other, Timing::Running, at(2)).unwrap();
    assert_eq!(town.log_in(&sent, at(2)), Err(VerifierError::Spent));
    assert!(town.is_live(session, at(2)));
}

/// Both logins are looked up and proven before either is inserted.
#[test]
fn of_two_racing_logins_one_wins() {
    let mut town = Town::new(1, 11);
    let mut one = town.device(b"ada");
    let mut two = town.copy(&one);
    let first = town.present(&mut one, Timing::Running, at(1)).unwrap();
    let second = town.present(&mut two, Timing::Running, at(1)).unwrap();
    let proven = [&first, &second].map(|sent| town.prove(sent, at(1)).unwrap().ok().unwrap());
    let (shard, ledger) = town.shard_of(first.session.0);
    let verdicts = proven
        .map(|proven| shard.log_in(proven, at(1)).map(|step| step.commit(ledger).unwrap().session));
    assert_eq!(verdicts, [Ok(first.session), Err(VerifierError::Spent)]);
    // The winner's own bytes, proven twice, are one session.
    let next = town.present(&mut one, Timing::Next, at(13)).unwrap();
    let proven = [(); 2].map(|()| town.prove(&next, at(13)).unwrap().ok().unwrap());
    let (shard, ledger) = town.shard_of(next.session.0);
    for proven in proven {
        let step = shard.log_in(proven, at(13)).unwrap();
        assert_eq!(step.commit(ledger).unwrap().session, next.session);
    }
}

#[test]
fn the_same_bytes_on_a_new_connection_are_the_same_session() {
    let (mut town, device, session) = logged_in(12);
    let again = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    assert_eq!(town.log_in(&again, at(5)).unwrap().session, session);
    // Also after the server restarts.
    town.restart(StateOrigin::Intact, at(6));
    assert_eq!(town.log_in(&again, at(6)).unwrap().session, session);
    // But a replay is worthless without the key that signs for a connection.
    let shard = &town.shard_of(session.0).0;
    let (nonce, other) = ([1; 32], [2; 32]);
    let signature = device.holder.connect(session, &nonce).unwrap();
    assert!(shard.connect(session, &nonce, &signature, at(6)).is_ok());
    assert_eq!(shard.connect(session, &other, &signature, at(6)), Err(VerifierError::Signature));
    let mut town = Town::new(1, 13);
    let mut eve = town.device(b"eve");
    let hers = town.present(&mut eve, Timing::Running, at(1)).unwrap().session;
    assert_eq!(eve.holder.connect(session, &nonce).err(), Some(HolderError::NothingPresented));
    assert!(eve.holder.connect(hers, &nonce).is_ok());
}

#[test]
fn nothing_is_acknowledged_before_it_is_durable() {
    let mut town = Town::new(1, 14);
    let mut device = town.device(b"ada");
    let sent = town.present(&mut device, Timing::Running, at(1)).unwrap();
    let proven = town.prove(&sent, at(1)).unwrap().ok().unwrap();
    let login = Login::from_bytes(&sent.bytes, town.service.pinned.limit).unwrap();
    let shard = &mut town.shard_of(sent.session.0).0;
    // A retry arrives before the first commit reaches the disk: it writes, too.
    let pending = shard.log_in(proven, at(1)).unwrap();
    let Ok(LoginLookUp::Same(retry)) = shard.look_up(login, at(1)) else { panic!("not the same") };
    assert!(retry.commit(&mut FailingLedger).is_err());
    assert!(pending.commit(&mut FailingLedger).is_err());
    // A crash between verification and acknowledgement: the restarted shard knows nothing, and
    // the same bytes get their session.
    town.restart(StateOrigin::Intact, at(2));
    assert!(!town.is_live(sent.session, at(2)));
    assert_eq!(town.log_in(&sent, at(2)).unwrap().session, sent.session);
}

#[test]
fn a_login_is_accepted_only_while_its_epoch_is_open() {
    let mut town = Town::new(1, 15);
    let mut device = town.device(b"ada");
    // Too early for the next epoch: the holder refuses, and the shard would.
    assert_eq!(town.present(&mut device, Timing::Next, at(11)), Err(HolderError::Epoch));
    let sent = town.present(&mut device, Timing::Next, at(12)).unwrap();
    assert_eq!(town.log_in(&sent, at(11)), Err(VerifierError::Epoch));
    let session = town.log_in(&sent, at(12)).unwrap().session;
    // The session waits for its epoch.
    assert!(!town.is_live(session, at(14)));
    assert!(town.is_live(session, at(15)) && town.is_live(session, at(29)));
    assert!(!town.is_live(session, at(30)));
    // The epoch is over.
    assert_eq!(town.log_in(&sent, at(30)), Err(VerifierError::Epoch));
    // At the start of a period logins open earlier.
    let before = |seconds: u64| Timestamp(at(0).0 - seconds * SECOND);
    let mut fresh = Town::new(1, 16);
    let mut device = fresh.device(b"ada");
    assert_eq!(fresh.present(&mut device, Timing::Next, before(11)), Err(HolderError::Epoch));
    let sent = fresh.present(&mut device, Timing::Next, before(10)).unwrap();
    fresh.log_in(&sent, before(10)).unwrap();
}

#[test]
fn a_shard_whose_clock_went_back_serves_nothing() {
    let (mut town, mut device, _) = logged_in(17);
    let later = town.present(&mut device, Timing::Running, at(31)).unwrap();
    let later_session = town.log_in(&later, at(31)).unwrap().session;
    // An account whose tag is on the shard that has seen epoch 2.
    let mut account = 0_u64;
    let sent = loop {
        let mut other = town.device(&account.to_be_bytes());
        let sent = town.present(&mut other, Timing::Running, at(16)).unwrap();
        if sent.session.0.shard(SHARDS) == later_session.0.shard(SHARDS) {
            break sent;
        }
        account += 1;
    };
    for restarted in [false, true] {
        if restarted {
            town.restart(StateOrigin::Intact, at(16));
        }
        assert_eq!(town.log_in(&sent, at(16)), Err(VerifierError::ClockStepped));
        let shard = &mut town.shard_of(later_session.0).0;
        assert_eq!(shard.live(later_session, at(16)), Err(VerifierError::ClockStepped));
        assert_eq!(shard.prune(at(16)).err(), Some(VerifierError::ClockStepped));
    }
    assert!(town.is_live(later_session, at(31)));
}

#[test]
fn a_shard_that_may_have_forgotten_serves_only_epochs_that_had_not_opened() {
    let (mut town, device, session) = logged_in(18);
    let mut other = town.copy(&device);
    // The ledger is lost or old in epoch 0, before epoch 1 opened.
    town.restart(StateOrigin::Restored, at(5));
    // After a second restart the shard still knows that it may have forgotten.
    town.restart(StateOrigin::Intact, at(6));
    assert!(!town.is_live(session, at(6)));
    let sent = town.present(&mut other, Timing::Running, at(6)).unwrap();
    assert_eq!(town.log_in(&sent, at(6)), Err(VerifierError::MayHaveForgotten));
    let sent = town.present(&mut other, Timing::Next, at(13)).unwrap();
    town.log_in(&sent, at(13)).unwrap();
    // While epoch 2 is open for logins, it is not served either.
    town.restart(StateOrigin::Restored, at(28));
    let sent = town.present(&mut other, Timing::Next, at(29)).unwrap();
    assert_eq!(town.log_in(&sent, at(29)), Err(VerifierError::MayHaveForgotten));
    let sent = town.present(&mut other, Timing::Next, at(43)).unwrap();
    town.log_in(&sent, at(43)).unwrap();
}

#[test]
fn a_damaged_ledger_is_not_intact() {
    let (mut town, _, session) = logged_in(19);
    let pinned = town.pinned();
    let ledger = town.shard_of(session.0).1.clone();
    for (key, value) in &ledger {
        for damaged in [&value[..value.len() - 1], &[9; 7]] {
            let mut ledger = ledger.clone();
            ledger.insert(key.clone(), damaged.to_vec());
            assert!(Shard::restore(pinned.clone(), ledger, StateOrigin::Intact, at(2)).is_err());
        }
    }
    // Nor is a lost ledger intact, nor one in use new.
    let restore = |ledger: Ledger, log| Shard::restore(pinned.clone(), ledger, log, at(2)).err();
    assert_eq!(restore(Ledger::new(), StateOrigin::Intact), Some(DamagedLedgerError));
    assert_eq!(restore(ledger.clone(), StateOrigin::New), Some(DamagedLedgerError));
    assert_eq!(restore(ledger, StateOrigin::Intact), None);
    let strange = Ledger::from([(b"strange".to_vec(), Vec::new())]);
    assert!(Shard::restore(pinned, strange, StateOrigin::Intact, at(2)).is_err());
}

#[test]
fn a_logout_ends_a_session_and_its_epoch_stays_burnt() {
    let (mut town, device, session) = logged_in(20);
    let mut eve = town.device(b"eve");
    let hers = town.present(&mut eve, Timing::Running, at(1)).unwrap();
    town.log_in(&hers, at(1)).unwrap();
    // Only the holder can end it.
    let mut forged = eve.holder.log_out(hers.session).unwrap();
    forged.session = session;
    let refused = town.shard_of(session.0).0.log_out(&forged).err();
    assert_eq!(refused, Some(VerifierError::Signature));
    town.log_out(&device, session).unwrap();
    town.log_out(&device, session).unwrap();
    assert!(!town.is_live(session, at(2)));
    let again = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    assert_eq!(town.log_in(&again, at(2)), Err(VerifierError::Ended));
    let mut other = town.copy(&device);
    let sent = town.present(&mut other, Timing::Running, at(2)).unwrap();
    assert_eq!(town.log_in(&sent, at(2)), Err(VerifierError::Spent));
    // After a restart it is still ended.
    town.restart(StateOrigin::Intact, at(3));
    assert!(!town.is_live(session, at(3)));
}

#[test]
fn a_pass_is_presented_as_often_as_its_limit_allows() {
    let mut town = Town::new(3, 21);
    let mut device = town.device(b"ada");
    let mut copy = town.copy(&device);
    let mut sessions: Vec<_> = (0..3)
        .map(|_| {
            let sent = town.present(&mut device, Timing::Running, at(1)).unwrap();
            town.log_in(&sent, at(1)).unwrap().session
        })
        .collect();
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
    assert_eq!(town.present(&mut device, Timing::Running, at(1)), Err(HolderError::Burnt));
    for _ in 0..3 {
        let sent = town.present(&mut copy, Timing::Running, at(1)).unwrap();
        assert_eq!(town.log_in(&sent, at(1)), Err(VerifierError::Spent));
    }
    // Such a pass has no re-ups.
    assert_eq!(town.carry(&mut device, at(13)), Err(HolderError::LimitForbids));
    let (session, tag) = (sessions[0], alpheus_crypto::group::Element::base());
    let forged = ReUp { epoch: START.next(), session, tag, proof: Vec::new() };
    let due = town.shard_of(session.0).0.look_up_re_up(forged, at(13)).err();
    assert_eq!(due, Some(VerifierError::LimitForbids));
}

#[test]
fn records_that_no_message_can_refer_to_are_pruned() {
    let (mut town, _, session) = logged_in(22);
    let full = town.shard_of(session.0).1.len();
    let prune = |town: &mut Town, seconds| {
        let (shard, ledger) = town.shard_of(session.0);
        shard.prune(at(seconds)).unwrap().commit(ledger).unwrap();
        ledger.len()
    };
    assert_eq!(prune(&mut town, 14), full);
    // The tag's epoch is over; the session may be re-upped for one more.
    assert_eq!(prune(&mut town, 16), full - 1);
    assert_eq!(prune(&mut town, 31), full - 2);
}
