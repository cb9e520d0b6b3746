//! Who may speak for a session, on which connection, and that nobody gets in
//! between.

use crate::town::{SONG, Town, at};
use alpheus_access_pass::client::{Served, connect};
use alpheus_access_pass::error::{ClientRefused, Denied};
use alpheus_access_pass::gateway::{CHALLENGE_LIFE, Gateway};
use alpheus_access_pass::messages::{Acknowledgement, Challenge, Connect, Connected, Hello};
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::schedule::{Epoch, Time};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use proptest::prelude::*;

/// The same message again, on another connection: it neither starts the counters
/// anew nor gives the thief a key.
#[test]
fn a_connection_is_answered_once() {
    let mut town = Town::new(20);
    let (device, _, mut first) = town.connected(b"ada");
    let used = first.stamp(&SONG).unwrap();
    assert!(town.request(at(2), &used).is_ok());
    let hello = town.gateway.hello(at(2), &mut town.rng);
    let (message, connecting) =
        connect(&device.holder, &device.served(), &hello, &mut town.rng).unwrap();
    let connected = town.gateway.connect(at(2), &message).unwrap();
    let mut second = connecting.finish(&connected).unwrap();
    let stamp = second.stamp(&SONG).unwrap();
    assert!(town.request(at(2), &stamp).is_ok());
    assert_eq!(town.gateway.connect(at(2), &message), Err(Denied::Challenge));
    assert_eq!(town.request(at(2), &stamp), Err(Denied::Replayed));
    // The first connection is over.
    let old = first.stamp(&SONG).unwrap();
    assert_eq!(town.request(at(2), &old), Err(Denied::Unauthentic));
    // A message that was held back does not take the session over from a later one.
    let early = town.gateway.hello(at(2), &mut town.rng);
    let (held, _) = connect(&device.holder, &device.served(), &early, &mut town.rng).unwrap();
    town.connect(&device, at(3)).unwrap();
    assert_eq!(town.gateway.connect(at(3), &held), Err(Denied::Challenge));
}

#[test]
fn a_challenge_is_this_gateways_and_fresh() {
    let mut town = Town::new(21);
    let (device, _, _) = town.connected(b"ada");
    let attempt = |town: &mut Town, hello: &Hello, now| {
        let (message, _) = connect(&device.holder, &device.served(), hello, &mut town.rng).unwrap();
        town.gateway.connect(now, &message).err()
    };
    let hello = town.gateway.hello(at(2), &mut town.rng);
    let late = Time(at(2).0 + CHALLENGE_LIFE + 1);
    let before = Time(at(2).0 - 1);
    let forged = Hello { challenge: Challenge([0; 32]), ..hello };
    for (hello, now) in [(hello, before), (forged, at(2)), (hello, late)] {
        let refused = attempt(&mut town, &hello, now);
        assert_eq!(refused, Some(Denied::Challenge));
    }
    let others = Gateway::new(town.pinned.clone(), crate::town::LIMITS, &mut town.rng);
    let theirs = others.hello(at(50), &mut town.rng);
    assert_eq!(attempt(&mut town, &theirs, at(50)), Some(Denied::Challenge));
}

/// Somebody in between puts in an agreement key of its own.
#[test]
fn nobody_gets_in_between() {
    let mut town = Town::new(22);
    let (device, _, _) = town.connected(b"ada");
    let mallory = AgreementKey::random(&mut town.rng);
    let hello = town.gateway.hello(at(2), &mut town.rng);
    // Towards the gateway.
    let (message, connecting) =
        connect(&device.holder, &device.served(), &hello, &mut town.rng).unwrap();
    let swapped = Connect { agreement: mallory.public(), ..message };
    assert_eq!(town.gateway.connect(at(2), &swapped), Err(Denied::Signature));
    let low = Connect { agreement: AgreementPublic([0; 32]), ..message };
    assert_eq!(town.gateway.connect(at(2), &low), Err(Denied::Signature));
    // Towards the client.
    let connected = town.gateway.connect(at(2), &message).unwrap();
    let later = Connected { until: Time(connected.until.0 + 1), ..connected };
    assert!(matches!(connecting.finish(&later), Err(ClientRefused::Unconfirmed)));
    let hello = town.gateway.hello(at(2), &mut town.rng);
    let hers = Hello { agreement: mallory.public(), ..hello };
    let (message, _) = connect(&device.holder, &device.served(), &hers, &mut town.rng).unwrap();
    assert_eq!(town.gateway.connect(at(2), &message), Err(Denied::Signature));
    let low = Hello { agreement: AgreementPublic([0; 32]), ..hello };
    let refused = connect(&device.holder, &device.served(), &low, &mut town.rng).err();
    assert!(matches!(refused, Some(ClientRefused::Agreement(_))));
}

#[test]
fn only_the_holder_speaks_for_a_session() {
    let mut town = Town::new(23);
    let (ada, hers, _) = town.connected(b"ada");
    let (bob, _, _) = town.connected(b"bob");
    let hello = town.gateway.hello(at(2), &mut town.rng);
    assert!(connect(&bob.holder, &ada.served(), &hello, &mut town.rng).is_err(), "no key for it");
    let (message, _) = connect(&bob.holder, &bob.served(), &hello, &mut town.rng).unwrap();
    let stolen = Connect { session: hers, ..message };
    assert_eq!(town.gateway.connect(at(2), &stolen), Err(Denied::Signature));
}

/// A gateway that suspects that a session follows another acknowledges the old one
/// in place of the new one: nothing speaks for it.
#[test]
fn a_session_is_spoken_for_only_if_it_was_acknowledged_as_it_was_sent() {
    let mut town = Town::new(25);
    let (mut device, before, _) = town.connected(b"ada");
    town.re_up(&mut device, at(13));
    let compared = town.pinned.compare(&town.pinned.fingerprint()).unwrap();
    let nothing = alpheus_crypto::hash::Digest([0; 32]);
    let sent = device.holder.log_in(at(31), Which::Running, &compared, &nothing, &mut town.rng);
    let sent = sent.unwrap().commit(&mut device.store).unwrap();
    device.holder.prune().commit(&mut device.store).unwrap();
    let check = |session, epoch| {
        Served::check(&device.holder, &sent, &Acknowledgement { session, epoch }).map(|_| ())
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
        assert_eq!(check(session, epoch), Err(ClientRefused::OtherSession), "{epoch:?}");
    }
    // Its key is there still: it is the comparison that keeps it from being used.
    assert!(device.holder.connect(before, &[0; 32]).is_ok());
}

/// A gateway that restarts knows nothing: clients ask for a new challenge, and
/// the verifier tells it of their sessions again.
#[test]
fn a_gateway_that_restarts_serves_on() {
    let mut town = Town::new(24);
    let (device, session, mut stamper) = town.connected(b"ada");
    town.gateway = Gateway::new(town.pinned.clone(), crate::town::LIMITS, &mut town.rng);
    assert!(!town.gateway.knows(at(2), session));
    let stamp = stamper.stamp(&SONG).unwrap();
    assert_eq!(town.request(at(2), &stamp), Err(Denied::NoSession));
    assert!(matches!(town.connect(&device, at(2)), Err(Denied::NoSession)));
    town.gateway.note(town.shard.standing(session).unwrap());
    assert_eq!(town.request(at(2), &stamp), Err(Denied::NotConnected));
    let mut stamper = town.connect(&device, at(2)).unwrap();
    assert!(town.request(at(2), &stamper.stamp(&SONG).unwrap()).is_ok());
    assert!(town.gateway.knows(at(2), session) && !town.gateway.knows(at(16), session));
}

proptest! {
    #[test]
    fn messages_are_read_as_they_are_written(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = [
            Hello::from_bytes(&bytes).map(|m| m.to_bytes()),
            Connect::from_bytes(&bytes).map(|m| m.to_bytes()),
            Connected::from_bytes(&bytes).map(|m| m.to_bytes()),
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
        (24, |bytes| Connected::from_bytes(bytes).is_ok()),
        (40, |bytes| Acknowledgement::from_bytes(bytes).is_ok()),
    ];
    for (length, reads) in reads {
        let read: Vec<usize> = (0..200).filter(|n| reads(&vec![1; *n])).collect();
        assert_eq!(read, [length]);
    }
}
