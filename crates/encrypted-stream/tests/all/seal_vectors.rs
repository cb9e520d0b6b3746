//! Master secrets sealed for controllers, and keys of days sealed for readers, as an independent
//! script writes them (`vectors/seals`): each part of their context counts, and so do both halves
//! of the hybrid key.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::vectors::json::{array, bytes, text};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridKey, HybridPublic, HybridSealed};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_encrypted_stream::certificate::{
    Certificate, Deployment, Party, Recipient, Role, Subject, fingerprint,
};
use alpheus_encrypted_stream::consumer::{Consumer, ConsumerSecrets};
use alpheus_encrypted_stream::controller::{Controller, IdentitySecrets};
use alpheus_encrypted_stream::error::{CertificateError, RawReadError};
use alpheus_encrypted_stream::frame::Frame;
use alpheus_encrypted_stream::grant::{Days, GrantedStream, HandedDays};
use alpheus_encrypted_stream::handover::Purpose;
use alpheus_encrypted_stream::keys::{DAY, MasterSecret};
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start};
use alpheus_policy::ids::{ControllerId, OwnerId, SchemaId, StreamId};
use alpheus_test_support::vectors::ScriptedRng;
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use serde_json::Value;
use std::collections::BTreeSet;
use std::convert::Infallible;

fn cases(file: &str) -> Vec<Value> {
    alpheus_test_support::vectors::cases(&format!("seals/v1/{file}"))
}

fn authority(case: &Value) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes(array(case, "authority")))
}

fn deployment(case: &Value) -> Deployment {
    let authority = authority(case);
    let service = Party::signing(Role::Service, "service", authority.verifying_key());
    let service = service.certify(Subject([0; 16]), &authority);
    Deployment::new(authority.verifying_key(), &service).unwrap()
}

fn certificate(case: &Value) -> Signed<Certificate> {
    postcard::from_bytes(&bytes(case, "certificate")).unwrap()
}

fn opened(case: &Value) -> Verified<Certificate> {
    certificate(case).open(&authority(case).verifying_key()).unwrap()
}

fn seed(case: &Value) -> Secret<32> {
    Secret::from_bytes(array(case, "seed"))
}

fn purpose(case: &Value) -> Purpose {
    Purpose {
        stream: StreamId(array(case, "stream")),
        schema: SchemaId(array(case, "schema")),
        owner: OwnerId(array(case, "owner")),
    }
}

fn controller(case: &Value) -> Controller {
    let deployment = deployment(case);
    let identity = IdentitySecrets::from_seed(&seed(case));
    let identity = identity.certified(&certificate(case), &deployment).unwrap();
    Controller::create(identity, deployment, Timestamp(0)).0
}

/// A sealed secret of a case; `None` if it is too short for one of this kind.
fn sealed(case: &Value) -> Option<HybridSealed> {
    HybridSealed::try_from(bytes(case, "sealed")).ok()
}

#[test]
fn a_master_secret_is_handed_over_as_the_script_does() {
    for case in cases("handover.json") {
        let own = controller(&case);
        let key = HybridPublic::try_from(bytes(&case, "key")).unwrap();
        assert_eq!(own.hybrid(), &key);
        let to = Recipient::new(opened(&case), key).unwrap();
        assert_eq!(fingerprint(to.certificate()), own.id());
        let master = MasterSecret::new(Secret::from_bytes(array(&case, "master")));
        let mut drawn = ScriptedRng(bytes(&case, "randomness"));
        let authority = authority(&case).verifying_key();
        let written = purpose(&case).seal(&authority, &to, &master, &mut drawn).unwrap();
        assert_eq!(Some(&written), sealed(&case).as_ref());
        assert!(drawn.0.is_empty());
        let read = own.open_master(&purpose(&case), &written).unwrap();
        assert!(read.secret() == master.secret());
    }
}

/// Another deployment, controller, owner, stream or schema; the label of before; half of the key
/// alone; what was sealed by X25519 alone; a byte changed.
#[test]
fn a_master_secret_opens_for_nothing_else() {
    let mut seen = BTreeSet::new();
    for case in cases("handover_bad_seal.json") {
        let opens = sealed(&case)
            .and_then(|sealed| controller(&case).open_master(&purpose(&case), &sealed).ok());
        assert!(opens.is_none(), "{}", text(&case, "what"));
        seen.insert(text(&case, "what").to_owned());
    }
    let needed = ["authority", "controller", "owner", "stream", "schema", "label", "classical"];
    let halves = ["without X25519", "without ML-KEM"];
    assert!(needed.iter().chain(&halves).all(|what| seen.contains(*what)), "{seen:?}");
}

fn handed(case: &Value) -> Option<HandedDays> {
    let day = |name: &str| case[name].as_u64().unwrap();
    let days = Days { first: day("first"), last: day("last") };
    Some(HandedDays { days, sealed: sealed(case)? })
}

fn consumer(case: &Value) -> Consumer {
    let secrets = ConsumerSecrets::from_seed(&seed(case));
    secrets.certified(&certificate(case), &deployment(case)).unwrap()
}

fn granted(case: &Value) -> GrantedStream {
    let Purpose { stream, schema, owner } = purpose(case);
    let controller = ControllerId(array(case, "controller"));
    GrantedStream { stream, schema, owner, controller }
}

/// An event at noon of each day, of the stream whose master secret the script hands over.
fn noons(case: &Value, days: &[u64]) -> Vec<Vec<u8>> {
    let (mut frames, Purpose { stream, schema, .. }) = (Vec::new(), purpose(case));
    let master = Secret::from_bytes(array(&cases("handover.json")[0], "master"));
    let producer = Producer::new(&MasterSecret::new(master), stream, schema, Span::DAY, 3).unwrap();
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    let mut sink = |frame: &[u8]| frames.push(frame.to_vec());
    let first = Timestamp(days[0] * DAY);
    let Ok(mut session) = producer.open(Start::First, first, &mut rng, &mut sink) else { panic!() };
    for (number, day) in (0..).zip(days) {
        let encode = |vector: &mut EventVector<'_>| {
            vector.add(0, number);
            Ok::<(), Infallible>(())
        };
        session.event(Timestamp(day * DAY + DAY / 2), encode, &mut sink).unwrap();
    }
    frames.retain(|frame| matches!(Frame::parse(frame), Ok(Frame::Data { .. })));
    frames
}

#[test]
fn keys_of_days_open_as_the_script_seals_them() {
    for case in cases("days.json") {
        let reader = consumer(&case);
        assert_eq!(reader.hybrid().as_bytes(), bytes(&case, "key"));
        let handed = handed(&case).unwrap();
        let keys = reader.raw_reader((&granted(&case), 3), std::slice::from_ref(&handed)).unwrap();
        let all: Vec<u64> = (handed.days.first..=handed.days.last).collect();
        assert_eq!(keys.days().collect::<Vec<_>>(), all);
        // One encapsulation, however many days.
        assert_eq!(handed.sealed.as_bytes().len(), 1120 + 16 * all.len() + 16);
        for (number, frame) in (0..).zip(noons(&case, &all)) {
            let event = keys.read(&Frame::parse(&frame).unwrap()).unwrap().unwrap();
            assert_eq!(event, [number, 0, 0]);
        }
    }
}

#[test]
fn keys_of_days_open_for_nothing_else() {
    let mut seen = BTreeSet::new();
    for case in cases("days_bad_seal.json") {
        seen.insert(text(&case, "what").to_owned());
        let Some(handed) = handed(&case) else { continue };
        let Days { first, last } = handed.days;
        let refused = consumer(&case).raw_reader((&granted(&case), 3), &[handed]).err();
        assert_eq!(
            refused,
            Some(RawReadError::NotForYou { first, last }),
            "{}",
            text(&case, "what")
        );
    }
    let context =
        ["authority", "controller", "reader", "owner", "stream", "schema", "first", "last"];
    let others = ["label", "classical", "without X25519", "without ML-KEM", "days", "no day"];
    assert!(context.iter().chain(&others).all(|what| seen.contains(*what)), "{seen:?}");
}

/// The certificate binds the key, so nobody can put another one in its place.
#[test]
fn a_key_is_the_one_that_the_certificate_names_or_none() {
    let case = &cases("handover.json")[0];
    let authority = authority(case);
    let own = HybridPublic::try_from(bytes(case, "key")).unwrap();
    let with = |hybrid: Option<Digest>| {
        let mut party = opened(case).party.clone();
        party.hybrid = hybrid;
        let signed = party.certify(Subject([1; 16]), &authority);
        signed.open(&authority.verifying_key()).unwrap()
    };
    assert_eq!(Recipient::new(with(None), own.clone()).err(), Some(CertificateError::NoHybrid));
    let other = HybridKey::from_seed(&Secret::from_bytes([7; 32])).public().clone();
    assert_eq!(Recipient::new(opened(case), other).err(), Some(CertificateError::OtherHybrid));
    // The holder of a certificate may be the one who named half a key.
    let mut half = own.as_bytes().to_vec();
    half[1184..].fill(0);
    let half = HybridPublic::try_from(half).unwrap();
    let named = with(Some(half.digest()));
    assert_eq!(Recipient::new(named, half).err(), Some(CertificateError::HalfHybrid));
}
