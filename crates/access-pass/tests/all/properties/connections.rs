//! Who may connect a session, and that nobody gets in between.

use crate::properties::town::{Device, SONG, Town, at};
use alpheus_access_pass::client::{AcknowledgedSession, connect};
use alpheus_access_pass::error::{ClientError, GatewayError};
use alpheus_access_pass::gateway::{CHALLENGE_LIFE, Gateway};
use alpheus_access_pass::messages::{Acknowledgement, Challenge, Connect, ConnectResponse, Hello};
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::schedule::Epoch;
use alpheus_anonymous_credential::sessions::SessionStatus;
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_time::Timestamp;
use proptest::prelude::*;

/// The same message, replayed on another connection, neither resets the counters nor gives the
/// thief a key.
#[test]
fn a_challenge_is_answered_once() {
    let mut town = Town::new(20);
    let (device, _, mut first) = town.connected(b"ada");
    let used = first.stamp(&SONG).unwrap();
    assert!(town.request(&used, at(2)).is_ok());
    let hello = town.service.gateway.hello(at(2), &mut town.rng);
    let (message, connecting) =
        connect(&device.holder, &device.served(), &hello, &mut town.rng).unwrap();
    let connected = town.service.gateway.connect(&message, at(2)).unwrap();
    let mut second = connecting.finish(&connected).unwrap();
    let stamp = second.stamp(&SONG).unwrap();
    assert!(town.request(&stamp, at(2)).is_ok());
    assert_eq!(town.service.gateway.connect(&message, at(2)), Err(GatewayError::Challenge));
    assert_eq!(town.request(&stamp, at(2)), Err(GatewayError::Replayed));
    // The first connection has ended.
    let old = first.stamp(&SONG).unwrap();
    assert_eq!(town.request(&old, at(2)), Err(GatewayError::Unauthentic));
    // A message that was held back does not replace a later connection.
    let early = town.service.gateway.hello(at(2), &mut town.rng);
    let (held, _) = connect(&device.holder, &device.served(), &early, &mut town.rng).unwrap();
    town.connect(&device, at(3)).unwrap();
    assert_eq!(town.service.gateway.connect(&held, at(3)), Err(GatewayError::Challenge));
}

/// A session that was renewed at another gateway is forgotten here, and asked about again. Its answer here
/// is not forgotten as long as the challenge is valid: the same message would begin with the
/// same key and unused counters.
#[test]
fn a_forgotten_session_does_not_answer_a_challenge_again() {
    let mut town = Town::new(28);
    let mut device = town.device(b"ada");
    let session = town.log_in(&mut device, Timing::Running, at(14));
    let hello = town.service.gateway.hello(at(14), &mut town.rng);
    let (message, connecting) =
        connect(&device.holder, &device.served(), &hello, &mut town.rng).unwrap();
    let connected = town.service.gateway.connect(&message, at(14)).unwrap();
    let stamp = connecting.finish(&connected).unwrap().stamp(&SONG).unwrap();
    assert!(town.request(&stamp, at(14)).is_ok());
    town.service.gateway.prune(at(31));
    let known = town.service.shard.status(session).unwrap();
    let renewed = SessionStatus { epoch: known.epoch.next().next(), ..known };
    town.service.gateway.update(renewed);
    assert_eq!(town.service.gateway.connect(&message, at(31)), Err(GatewayError::Challenge));
    assert_eq!(town.request(&stamp, at(31)), Err(GatewayError::Replayed));
    // It is forgotten in the end.
    town.service.gateway.prune(at(120));
    assert!(town.service.gateway.is_empty());
}

#[test]
fn a_challenge_must_be_this_gateways_and_fresh() {
    let mut town = Town::new(21);
    let (device, _, _) = town.connected(b"ada");
    let attempt = |town: &mut Town, hello: &Hello, now| {
        let (message, _) = connect(&device.holder, &device.served(), hello, &mut town.rng).unwrap();
        town.service.gateway.connect(&message, now).err()
    };
    let hello = town.service.gateway.hello(at(2), &mut town.rng);
    let late = Timestamp(at(2).0 + CHALLENGE_LIFE.0 + 1);
    let before = Timestamp(at(2).0 - 1);
    let forged = Hello { challenge: Challenge([0; 32]), ..hello };
    for (hello, now) in [(hello, before), (forged, at(2)), (hello, late)] {
        let asked = town.service.gateway.verify_challenge(&hello.challenge, now);
        assert_eq!(asked, Err(GatewayError::Challenge));
        let refused = attempt(&mut town, &hello, now);
        assert_eq!(refused, Some(GatewayError::Challenge));
    }
    // It may be answered until its last moment.
    let last = Timestamp(at(2).0 + CHALLENGE_LIFE.0);
    assert_eq!(town.service.gateway.verify_challenge(&hello.challenge, last), Ok(()));
    assert_eq!(attempt(&mut town, &hello, last), None);
    let others =
        Gateway::new(town.service.pinned.clone(), crate::properties::town::LIMITS, &mut town.rng);
    let theirs = others.hello(at(50), &mut town.rng);
    assert_eq!(attempt(&mut town, &theirs, at(50)), Some(GatewayError::Challenge));
}

/// A verifier's earlier answer arrives late, after its answer about the next epoch.
#[test]
fn the_epoch_that_a_session_has_reached_never_goes_back() {
    let mut town = Town::new(26);
    let (mut device, session, _) = town.connected(b"ada");
    let earlier = town.service.shard.status(session).unwrap();
    town.re_up(&mut device, at(13));
    let later = town.service.shard.status(session).unwrap();
    assert!(later.epoch > earlier.epoch);
    let gateway = &mut town.service.gateway;
    gateway.update(later);
    let until = gateway.until(session);
    gateway.update(earlier);
    assert_eq!(gateway.until(session), until);
    assert!(gateway.knows(session, at(16)));
}

/// A login whose answer was lost is sent again, when its holder has already begun another session.
#[test]
fn an_acknowledgement_is_for_what_was_sent() {
    let mut town = Town::new(27);
    let mut device = town.device(b"ada");
    let compared = town.service.pinned.compare(&town.service.pinned.fingerprint()).unwrap();
    let nothing = alpheus_crypto::hash::Digest([0; 32]);
    let mut present = |device: &mut Device, now| {
        let sent =
            device.holder.log_in(Timing::Running, &compared, &nothing, now, &mut town.rng).unwrap();
        sent.commit(&mut device.store).unwrap()
    };
    let (first, second) = (present(&mut device, at(1)), present(&mut device, at(16)));
    let carried = device.holder.re_up(at(28), &mut town.rng).unwrap();
    let carried = carried.commit(&mut device.store).unwrap();
    let check = |sent, session, epoch| {
        AcknowledgedSession::check(&device.holder, sent, &Acknowledgement { session, epoch })
            .map(drop)
    };
    assert_eq!(check(&first, first.session, first.epoch), Ok(()));
    let other = check(&first, second.session, second.epoch);
    assert_eq!(other, Err(ClientError::OtherSession));
    // Nor is it for an epoch before the one that was asked for.
    assert_eq!(check(&carried, carried.session, carried.epoch), Ok(()));
    let before = check(&carried, carried.session, second.epoch);
    assert_eq!(before, Err(ClientError::OtherSession));
}

/// A party in between substitutes its own agreement key.
#[test]
fn nobody_gets_in_between() {
    let mut town = Town::new(22);
    let (device, _, _) = town.connected(b"ada");
    let mallory = AgreementKey::random(&mut town.rng);
    let hello = town.service.gateway.hello(at(2), &mut town.rng);
    // Towards the gateway.
    let (message, connecting) =
        connect(&device.holder, &device.served(), &hello, &mut town.rng).unwrap();
    let swapped = Connect { agreement: mallory.public(), ..message };
    assert_eq!(town.service.gateway.connect(&swapped, at(2)), Err(GatewayError::Signature));
    let low = Connect { agreement: AgreementPublic([0; 32]), ..message };
    assert_eq!(town.service.gateway.connect(&low, at(2)), Err(GatewayError::Signature));
    // Towards the client.
    let connected = town.service.gateway.connect(&message, at(2)).unwrap();
    let later = ConnectResponse { until: Timestamp(connected.until.0 + 1), ..connected };
    assert!(matches!(connecting.finish(&later), Err(ClientError::Unconfirmed)));
    let hello = town.service.gateway.hello(at(2), &mut town.rng);
    let hers = Hello { agreement: mallory.public(), ..hello };
    let (message, _) = connect(&device.holder, &device.served(), &hers, &mut town.rng).unwrap();
    assert_eq!(town.service.gateway.connect(&message, at(2)), Err(GatewayError::Signature));
    let low = Hello { agreement: AgreementPublic([0; 32]), ..hello };
    let refused = connect(&device.holder, &device.served(), &low, &mut town.rng).err();
    assert!(matches!(refused, Some(ClientError::Agreement(_))));
}

#[test]
fn only_its_holder_connects_a_session() {
    let mut town = Town::new(23);
    let (ada, hers, _) = town.connected(b"ada");
    let (bob, _, _) = town.connected(b"bob");
    let hello = town.service.gateway.hello(at(2), &mut town.rng);
    assert!(connect(&bob.holder, &ada.served(), &hello, &mut town.rng).is_err(), "no key for it");
    let (message, _) = connect(&bob.holder, &bob.served(), &hello, &mut town.rng).unwrap();
    let stolen = Connect { session: hers, ..message };
    assert_eq!(town.service.gateway.connect(&stolen, at(2)), Err(GatewayError::Signature));
}

/// A gateway that suspects that one session follows another acknowledges the old one in place of
/// the new one. The client does not connect it.
#[test]
fn a_session_is_connected_only_if_it_was_acknowledged_as_sent() {
    let mut town = Town::new(25);
    let (mut device, before, _) = town.connected(b"ada");
    town.re_up(&mut device, at(13));
    let compared = town.service.pinned.compare(&town.service.pinned.fingerprint()).unwrap();
    let nothing = alpheus_crypto::hash::Digest([0; 32]);
    let sent = device.holder.log_in(Timing::Running, &compared, &nothing, at(31), &mut town.rng);
    let sent = sent.unwrap().commit(&mut device.store).unwrap();
    device.holder.prune().commit(&mut device.store).unwrap();
    let check = |session, epoch| {
        AcknowledgedSession::check(&device.holder, &sent, &Acknowledgement { session, epoch })
            .map(|_| ())
    };
    assert_eq!(check(sent.session, sent.epoch), Ok(()));
    let earlier = Epoch(sent.epoch.0 - 1);
    for (session, epoch) in [
        (before, sent.epoch),
        (before, earlier),
        (sent.session, earlier),
        (sent.session, sent.epoch.next()),
        (sent.session, Epoch(u64::MAX)),
    ] {
        assert_eq!(check(session, epoch), Err(ClientError::OtherSession), "{epoch:?}");
    }
    // The old session's key still exists; only the comparison prevents its use.
    assert!(device.holder.connect(before, &[0; 32]).is_ok());
}

/// A gateway forgets everything in a restart. Clients get a new challenge, and the verifier
/// reports their sessions again.
#[test]
fn after_a_restart_a_gateway_serves_the_same_sessions() {
    let mut town = Town::new(24);
    let (device, session, mut stamper) = town.connected(b"ada");
    town.service.gateway =
        Gateway::new(town.service.pinned.clone(), crate::properties::town::LIMITS, &mut town.rng);
    assert!(!town.service.gateway.knows(session, at(2)));
    let stamp = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.request(&stamp, at(2)), Err(GatewayError::NoSession));
    assert!(matches!(town.connect(&device, at(2)), Err(GatewayError::NoSession)));
    town.service.gateway.update(town.service.shard.status(session).unwrap());
    assert_eq!(town.request(&stamp, at(2)), Err(GatewayError::NotConnected));
    let mut stamper = town.connect(&device, at(2)).unwrap();
    assert!(town.request(&stamper.stamp(&SONG).unwrap(), at(2)).is_ok());
    assert!(
        town.service.gateway.knows(session, at(2)) && !town.service.gateway.knows(session, at(16))
    );
}

proptest! {
    #[test]
    fn messages_decode_to_what_was_encoded(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = [
            Hello::from_bytes(&bytes).map(|m| m.to_bytes()),
            Connect::from_bytes(&bytes).map(|m| m.to_bytes()),
            ConnectResponse::from_bytes(&bytes).map(|m| m.to_bytes()),
            Acknowledgement::from_bytes(&bytes).map(|m| m.to_bytes()),
        ];
        let read = all.into_iter().flatten();
        read.for_each(|again| assert_eq!(again, bytes));
    }
}

#[test]
fn messages_have_one_length() {
    type Reads = fn(&[u8]) -> bool;
    let reads: [(usize, Reads); 4] = [
        (96, |bytes| Hello::from_bytes(bytes).is_ok()),
        (160, |bytes| Connect::from_bytes(bytes).is_ok()),
        (24, |bytes| ConnectResponse::from_bytes(bytes).is_ok()),
        (40, |bytes| Acknowledgement::from_bytes(bytes).is_ok()),
    ];
    for (length, reads) in reads {
        let read: Vec<usize> = (0..200).filter(|n| reads(&vec![1; *n])).collect();
        assert_eq!(read, [length]);
    }
}
