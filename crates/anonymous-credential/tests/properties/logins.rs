//! One session for each pass and epoch, whoever tries, in whatever order.

use crate::support::{Ledger, SECOND, START, at};
use crate::town::{Broken, SHARDS, Town, logged_in};
use alpheus_anonymous_credential::error::{HolderRefused, Refused};
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::ledger::{DamagedLog, Log};
use alpheus_anonymous_credential::messages::{Login, ReUp};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::sessions::{LookUp, Shard};

#[test]
fn two_devices_with_one_pass_have_one_session() {
    let (mut town, device, session) = logged_in(10);
    let mut other = town.copy(&device);
    let sent = town.show(&mut other, at(2), Which::Running).unwrap();
    assert_eq!(town.log_in(at(2), &sent), Err(Refused::Spent));
    assert!(town.is_live(at(2), session));
}

/// Both are looked up and proven before either is inserted.
#[test]
fn of_two_that_race_one_wins() {
    let mut town = Town::new(1, 11);
    let mut one = town.device(b"ada");
    let mut two = town.copy(&one);
    let first = town.show(&mut one, at(1), Which::Running).unwrap();
    let second = town.show(&mut two, at(1), Which::Running).unwrap();
    let proven = [&first, &second].map(|sent| town.prove(at(1), sent).unwrap().ok().unwrap());
    let (shard, ledger) = town.shard_of(first.session.0);
    let verdicts = proven
        .map(|proven| shard.log_in(at(1), proven).map(|step| step.commit(ledger).unwrap().session));
    assert_eq!(verdicts, [Ok(first.session), Err(Refused::Spent)]);
    // The winner's own bytes, proven twice, are one session.
    let next = town.show(&mut one, at(13), Which::Next).unwrap();
    let proven = [(); 2].map(|()| town.prove(at(13), &next).unwrap().ok().unwrap());
    let (shard, ledger) = town.shard_of(next.session.0);
    for proven in proven {
        let step = shard.log_in(at(13), proven).unwrap();
        assert_eq!(step.commit(ledger).unwrap().session, next.session);
    }
}

#[test]
fn stored_bytes_on_a_new_connection_are_the_same_session() {
    let (mut town, device, session) = logged_in(12);
    let again = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    assert_eq!(town.log_in(at(5), &again).unwrap().session, session);
    // Also once the server has restarted.
    town.restart(Log::Whole, at(6));
    assert_eq!(town.log_in(at(6), &again).unwrap().session, session);
    // But a replay is worth nothing without the key that signs for a connection.
    let shard = &town.shard_of(session.0).0;
    let (nonce, other) = ([1; 32], [2; 32]);
    let signature = device.holder.connect(session, &nonce).unwrap();
    assert!(shard.connect(at(6), session, &nonce, &signature).is_ok());
    assert_eq!(shard.connect(at(6), session, &other, &signature), Err(Refused::Signature));
    let mut town = Town::new(1, 13);
    let mut eve = town.device(b"eve");
    let hers = town.show(&mut eve, at(1), Which::Running).unwrap().session;
    assert_eq!(eve.holder.connect(session, &nonce).err(), Some(HolderRefused::NothingShown));
    assert!(eve.holder.connect(hers, &nonce).is_ok());
}

#[test]
fn nothing_is_acknowledged_before_it_is_durable() {
    let mut town = Town::new(1, 14);
    let mut device = town.device(b"ada");
    let sent = town.show(&mut device, at(1), Which::Running).unwrap();
    let proven = town.prove(at(1), &sent).unwrap().ok().unwrap();
    let login = Login::from_bytes(&sent.bytes, town.service.pinned.limit).unwrap();
    let shard = &mut town.shard_of(sent.session.0).0;
    // The first commit is on its way when a retry arrives: that writes, too.
    let pending = shard.log_in(at(1), proven).unwrap();
    let Ok(LookUp::Same(retry)) = shard.look_up(at(1), login) else { panic!("not the same") };
    assert!(retry.commit(&mut Broken).is_err());
    assert!(pending.commit(&mut Broken).is_err());
    // Killed between verify and acknowledge: the restarted shard knows nothing, and
    // the same bytes get their session.
    town.restart(Log::Whole, at(2));
    assert!(!town.is_live(at(2), sent.session));
    assert_eq!(town.log_in(at(2), &sent).unwrap().session, sent.session);
}

#[test]
fn epochs_open_and_close() {
    let mut town = Town::new(1, 15);
    let mut device = town.device(b"ada");
    // Too early for the next: the holder does not, the shard would not.
    assert_eq!(town.show(&mut device, at(11), Which::Next), Err(HolderRefused::Epoch));
    let sent = town.show(&mut device, at(12), Which::Next).unwrap();
    assert_eq!(town.log_in(at(11), &sent), Err(Refused::Epoch));
    let session = town.log_in(at(12), &sent).unwrap().session;
    // It waits for its epoch.
    assert!(!town.is_live(at(14), session));
    assert!(town.is_live(at(15), session) && town.is_live(at(29), session));
    assert!(!town.is_live(at(30), session));
    // An epoch that is over is over.
    assert_eq!(town.log_in(at(30), &sent), Err(Refused::Epoch));
    // Where a period begins, logins open earlier.
    let before = |seconds: u64| Time(at(0).0 - seconds * SECOND);
    let mut fresh = Town::new(1, 16);
    let mut device = fresh.device(b"ada");
    assert_eq!(fresh.show(&mut device, before(11), Which::Next), Err(HolderRefused::Epoch));
    let sent = fresh.show(&mut device, before(10), Which::Next).unwrap();
    fresh.log_in(before(10), &sent).unwrap();
}

#[test]
fn a_clock_that_goes_back_refuses() {
    let (mut town, mut device, _) = logged_in(17);
    let later = town.show(&mut device, at(31), Which::Running).unwrap();
    let later_session = town.log_in(at(31), &later).unwrap().session;
    // Somebody whose tag falls to the shard that has seen epoch 2.
    let mut account = 0_u64;
    let sent = loop {
        let mut other = town.device(&account.to_be_bytes());
        let sent = town.show(&mut other, at(16), Which::Running).unwrap();
        if sent.session.0.shard(SHARDS) == later_session.0.shard(SHARDS) {
            break sent;
        }
        account += 1;
    };
    for restarted in [false, true] {
        if restarted {
            town.restart(Log::Whole, at(16));
        }
        assert_eq!(town.log_in(at(16), &sent), Err(Refused::ClockStepped));
        let shard = &mut town.shard_of(later_session.0).0;
        assert_eq!(shard.live(at(16), later_session), Err(Refused::ClockStepped));
        assert_eq!(shard.prune(at(16)).err(), Some(Refused::ClockStepped));
    }
    assert!(town.is_live(at(31), later_session));
}

#[test]
fn a_shard_that_may_have_forgotten_serves_only_what_had_not_opened() {
    let (mut town, device, session) = logged_in(18);
    let mut other = town.copy(&device);
    // Wiped or rolled back in epoch 0; epoch 1 had not opened yet.
    town.restart(Log::Doubtful, at(5));
    // Nor does a second restart make it forget that it may have forgotten.
    town.restart(Log::Whole, at(6));
    assert!(!town.is_live(at(6), session));
    let sent = town.show(&mut other, at(6), Which::Running).unwrap();
    assert_eq!(town.log_in(at(6), &sent), Err(Refused::MayHaveForgotten));
    let sent = town.show(&mut other, at(13), Which::Next).unwrap();
    town.log_in(at(13), &sent).unwrap();
    // In the moments when epoch 2 is open for logins, it is not served either.
    town.restart(Log::Doubtful, at(28));
    let sent = town.show(&mut other, at(29), Which::Next).unwrap();
    assert_eq!(town.log_in(at(29), &sent), Err(Refused::MayHaveForgotten));
    let sent = town.show(&mut other, at(43), Which::Next).unwrap();
    town.log_in(at(43), &sent).unwrap();
}

#[test]
fn a_damaged_log_is_not_a_whole_one() {
    let (mut town, _, session) = logged_in(19);
    let pinned = town.pinned();
    let ledger = town.shard_of(session.0).1.clone();
    for (key, value) in &ledger {
        for damaged in [&value[..value.len() - 1], &[9; 7]] {
            let mut ledger = ledger.clone();
            ledger.insert(key.clone(), damaged.to_vec());
            assert!(Shard::restore(pinned.clone(), ledger, Log::Whole, at(2)).is_err());
        }
    }
    // Nor is one that is gone, nor a new one that is in use.
    let restore = |ledger: Ledger, log| Shard::restore(pinned.clone(), ledger, log, at(2)).err();
    assert_eq!(restore(Ledger::new(), Log::Whole), Some(DamagedLog));
    assert_eq!(restore(ledger.clone(), Log::New), Some(DamagedLog));
    assert_eq!(restore(ledger, Log::Whole), None);
    let strange = Ledger::from([(b"strange".to_vec(), Vec::new())]);
    assert!(Shard::restore(pinned, strange, Log::Whole, at(2)).is_err());
}

#[test]
fn logout_ends_a_session_and_its_epoch_stays_burnt() {
    let (mut town, device, session) = logged_in(20);
    let mut eve = town.device(b"eve");
    let hers = town.show(&mut eve, at(1), Which::Running).unwrap();
    town.log_in(at(1), &hers).unwrap();
    // Only the holder ends it.
    let mut forged = eve.holder.log_out(hers.session).unwrap();
    forged.session = session;
    let refused = town.shard_of(session.0).0.log_out(&forged).err();
    assert_eq!(refused, Some(Refused::Signature));
    town.log_out(&device, session).unwrap();
    town.log_out(&device, session).unwrap();
    assert!(!town.is_live(at(2), session));
    let again = device.holder.resend(START).unwrap().commit(&mut Ledger::new()).unwrap();
    assert_eq!(town.log_in(at(2), &again), Err(Refused::Ended));
    let mut other = town.copy(&device);
    let sent = town.show(&mut other, at(2), Which::Running).unwrap();
    assert_eq!(town.log_in(at(2), &sent), Err(Refused::Spent));
    // And it is not there again after a restart.
    town.restart(Log::Whole, at(3));
    assert!(!town.is_live(at(3), session));
}

#[test]
fn a_pass_with_a_limit_is_shown_so_often_and_no_more() {
    let mut town = Town::new(3, 21);
    let mut device = town.device(b"ada");
    let mut copy = town.copy(&device);
    let mut sessions: Vec<_> = (0..3)
        .map(|_| {
            let sent = town.show(&mut device, at(1), Which::Running).unwrap();
            town.log_in(at(1), &sent).unwrap().session
        })
        .collect();
    sessions.dedup();
    assert_eq!(sessions.len(), 3);
    assert_eq!(town.show(&mut device, at(1), Which::Running), Err(HolderRefused::Burnt));
    for _ in 0..3 {
        let sent = town.show(&mut copy, at(1), Which::Running).unwrap();
        assert_eq!(town.log_in(at(1), &sent), Err(Refused::Spent));
    }
    // Nor is such a pass carried on by a re-up.
    assert_eq!(town.carry(&mut device, at(13)), Err(HolderRefused::LimitForbids));
    let (session, tag) = (sessions[0], alpheus_crypto::group::Element::base());
    let forged = ReUp { epoch: START.next(), session, tag, proof: Vec::new() };
    let due = town.shard_of(session.0).0.due(at(13), forged).err();
    assert_eq!(due, Some(Refused::LimitForbids));
}

#[test]
fn what_nobody_can_refer_to_is_pruned() {
    let (mut town, _, session) = logged_in(22);
    let full = town.shard_of(session.0).1.len();
    let prune = |town: &mut Town, seconds| {
        let (shard, ledger) = town.shard_of(session.0);
        shard.prune(at(seconds)).unwrap().commit(ledger).unwrap();
        ledger.len()
    };
    assert_eq!(prune(&mut town, 14), full);
    // The tag is over, the session may be re-upped for one epoch more.
    assert_eq!(prune(&mut town, 16), full - 1);
    assert_eq!(prune(&mut town, 31), full - 2);
}
