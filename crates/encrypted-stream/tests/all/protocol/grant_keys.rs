//! Raw access: whose grants count, and which key the days' keys are sealed for.

use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Party, consumer_id};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_encrypted_stream::error::{CertificateError, GrantError};
use alpheus_encrypted_stream::grant::{Days, Grant};
use alpheus_policy::ids::StreamId;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;

use crate::protocol::evil::Evil;
use crate::protocol::grants::{day, days, hand_in, reader, say};
use crate::protocol::identities::{SUBJECT, certified, owner_key};
use crate::protocol::world::{Setup, stream_id};

/// Day keys are sealed to the key that the certificate in the grant names, and to no other.
#[test]
fn a_reader_cannot_ask_for_another_key() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let (eve, _) = reader(&evil, 32, "eve");
    say(&mut evil, day(0), (&doctor, &certificate), 1, days(0, 0)).unwrap();
    let mut rng = ChaCha20Rng::from_seed([77; 32]);
    let asked = (&doctor.id(), eve.hybrid());
    let refused = evil.controllers[0].hand_out(&stream_id(0), asked, day(4), &mut rng);
    assert_eq!(refused.err(), Some(GrantError::OtherHybrid));
    // A reader who has a certificate for half a key gets nothing under it.
    let mut half = doctor.hybrid().as_bytes().to_vec();
    half[1184..].fill(0);
    let half = HybridPublic::try_from(half).unwrap();
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([31; 32]));
    let party = Party { hybrid: Some(half.digest()), ..secrets.request("doctor") };
    let named = party.certify(SUBJECT, &evil.world.authority);
    let id = consumer_id(&evil.world.deployment.consumer(&named).unwrap());
    let grant = Grant { stream: stream_id(0), reader: id, at: day(0), days: days(0, 0) };
    hand_in(&mut evil, day(0), &Signed::new(&grant, &owner_key(stream_id(0))), &named).unwrap();
    let refused = evil.controllers[0].hand_out(&stream_id(0), (&id, &half), day(4), &mut rng);
    assert_eq!(refused.err(), Some(GrantError::HalfHybrid));
}

/// A certificate of before there were hybrid keys is no reader's.
#[test]
fn a_grant_for_a_classical_key_is_refused() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, _) = reader(&evil, 31, "doctor");
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([31; 32]));
    let sealing = Some(SealingPublic([9; 32]));
    let party = Party { sealing, hybrid: None, ..secrets.request("doctor") };
    let old = party.certify(SUBJECT, &evil.world.authority);
    let consumer = evil.world.deployment.consumer(&old);
    assert_eq!(consumer.err(), Some(CertificateError::NoHybrid));
    let refused = say(&mut evil, day(0), (&doctor, &old), 1, days(0, 0));
    assert_eq!(refused, Err(GrantError::Certificate));
}

#[test]
fn grants_by_other_owners_or_for_no_reader_are_refused_with_the_reason() {
    let mut evil = Evil::unannounced(Setup::new(2));
    let (doctor, certificate) = reader(&evil, 31, "doctor");
    let (_, others) = reader(&evil, 32, "eve");
    let owner = owner_key(stream_id(0));
    let grant = |stream: StreamId, days| Grant { stream, reader: doctor.id(), at: day(0), days };
    let mut ask = |key: &_, grant: &Grant, certificate: &_| {
        let signed = Signed::new(grant, key);
        evil.controllers[0].grant(&signed, certificate, &certified(key), day(0)).err()
    };
    let good = grant(stream_id(0), days(0, 1));
    let stranger = owner_key(stream_id(1));
    assert_eq!(ask(&stranger, &good, &certificate), Some(GrantError::WrongOwner));
    let elsewhere = grant(stream_id(1), days(0, 1));
    assert_eq!(ask(&stranger, &elsewhere, &certificate), Some(GrantError::NotHeld));
    assert_eq!(ask(&owner, &good, &others), Some(GrantError::OtherReader));
    for wrong in [Days { first: 9, last: 8 }, Days { first: 0, last: 4000 }] {
        let refused = ask(&owner, &grant(stream_id(0), Some(wrong)), &certificate);
        assert!(matches!(refused, Some(GrantError::Days { .. })), "{refused:?}");
    }
    // A controller's certificate is not a consumer's.
    let controllers = evil.world.seats[0].1.clone();
    let signed = Signed::new(&good, &owner);
    let refused = evil.controllers[0].grant(&signed, &controllers, &certified(&owner), day(0));
    assert_eq!(refused.err(), Some(GrantError::Certificate));
}
