//! Frames count only if the stream's device sent them in a session that it opened here.

use super::device::{STREAM, Sender, Service, TICK, at, rng, ticks, window};
use crate::devices;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::producer::{OpeningSecrets, Start};
use alpheus_encrypted_stream::tick::frame::SessionKey;
use alpheus_encrypted_stream::tick::ingest::{AuthenticityError, Ingest};
use alpheus_encrypted_stream::transformer::{FrameEffect, IngestError};
use alpheus_policy::ids::StreamId;
use alpheus_time::Span;
use chacha20::rand_core::Rng;

fn refused(error: AuthenticityError) -> Result<FrameEffect, IngestError> {
    Err(IngestError::NotAuthentic(error))
}

/// A device with two events in the first of three ticks.
fn sender() -> Sender {
    let mut sender = Sender::ticks(at(0), 1);
    sender.event(at(0).plus(Span(1)), 5);
    sender.event(at(0).plus(Span(2)), 6);
    sender.advance(at(3));
    sender
}

#[test]
fn nobody_else_ends_a_session_or_counts_for_anything() {
    let mut service = Service::ticks(&[1]);
    let sent = sender().sent();
    service.take_all(&sent[..2]);
    // Another device's opening, closing and tick, each with that device's own key.
    let stranger = OpeningSecrets {
        device: SigningKey::from_seed(&Secret::from_bytes([77; 32])),
        ..devices::secrets(&devices::authority())
    };
    let mut other = Sender::ticks(at(0), 9);
    other.sent();
    other.open_with(Start::First, at(2), None, stranger);
    other.close(at(3));
    let theirs = other.sent();
    assert_eq!(service.take(&theirs[0]), refused(AuthenticityError::BadSignature));
    assert_eq!(service.take(&theirs[1]), refused(AuthenticityError::UnknownSession));
    // The session's own frames under another key, and a closing that somebody made up.
    let forged = |frame: &[u8]| {
        let mut forged = frame[..frame.len() - 16].to_vec();
        SessionKey::new(&Secret::from_bytes([1; 32])).finish(&STREAM, &mut forged);
        forged
    };
    let closing = |frame: &[u8]| [&[0x23], &frame[1..]].concat();
    for frame in [forged(&sent[2]), forged(&closing(&sent[2])), closing(&sent[2])] {
        assert_eq!(service.take(&frame), refused(AuthenticityError::BadMac));
    }
    // The session goes on as if nothing had come.
    service.take_all(&sent[2..]);
    for (number, rows) in [(0, [11, 2]), (1, [0, 0]), (2, [0, 0])] {
        assert_eq!(service.open(0, window(number, number + 1)), Some(rows.to_vec()));
    }
}

#[test]
fn every_byte_of_a_frame_is_authenticated() {
    let sent = sender().sent();
    for (place, frame) in sent.iter().take(2).enumerate() {
        for at in 0..frame.len() {
            let mut service = Service::ticks(&[1]);
            service.take_all(&sent[..place]);
            let mut changed = frame.clone();
            changed[at] ^= 1;
            let taken = service.take(&changed);
            assert!(matches!(taken, Err(IngestError::NotAuthentic(_))), "byte {at}: {taken:?}");
            assert_eq!(service.take(frame).map(|_| ()), Ok(()), "after byte {at}");
        }
    }
}

#[test]
fn a_frame_counts_for_its_own_stream_schema_and_deployment_alone() {
    let sent = sender().sent();
    let schema = ticks();
    let check = |ingest: &mut Ingest, stream, frame: &[u8]| {
        let device = |_: &Digest| Some(devices::device_key().verifying_key());
        ingest.check(stream, frame, device, |_| Some(&sent[0])).map(|_| ())
    };
    let (authority, tick) = (devices::authority(), schema.tick);
    let mut here = devices::ingest(authority, schema.id(), tick);
    assert_eq!(check(&mut here, STREAM, &sent[0]), Ok(()));
    assert_eq!(check(&mut here, STREAM, &sent[1]), Ok(()));
    let other = StreamId([8; 16]);
    assert_eq!(check(&mut here, other, &sent[0]), Err(AuthenticityError::BadSignature));
    assert_eq!(check(&mut here, other, &sent[1]), Err(AuthenticityError::BadSessionKey));
    let mut there = devices::ingest(devices::device_key().verifying_key(), schema.id(), tick);
    assert_eq!(check(&mut there, STREAM, &sent[0]), Err(AuthenticityError::BadSignature));
    let events = super::device::schema(alpheus_policy::schema::Frames::Events).id();
    let mut there = devices::ingest(authority, events, tick);
    assert_eq!(check(&mut there, STREAM, &sent[0]), Err(AuthenticityError::BadSignature));
}

#[test]
fn an_opening_needs_a_known_device_and_a_known_ingest_key() {
    let open = |change: fn(&mut OpeningSecrets)| {
        let mut secrets = devices::secrets(&devices::authority());
        change(&mut secrets);
        let mut sender = Sender::ticks(at(0), 1);
        sender.sent();
        sender.open_with(Start::First, at(0), None, secrets);
        Service::ticks(&[1]).take(&sender.sent()[0])
    };
    assert_eq!(open(|_| ()), Ok(FrameEffect::Opened));
    let unknown = open(|secrets| secrets.certificate = Digest([9; 32]));
    assert_eq!(unknown, refused(AuthenticityError::UnknownDevice));
    let unknown = open(|secrets| secrets.ingest = Digest([9; 32]));
    assert_eq!(unknown, refused(AuthenticityError::UnknownIngestKey));
    // A device that hears of an unknown key opens another session, so that needs the device's signature.
    let forged = open(|secrets| {
        secrets.ingest = Digest([9; 32]);
        secrets.device = SigningKey::from_seed(&Secret::from_bytes([77; 32]));
    });
    assert_eq!(forged, refused(AuthenticityError::BadSignature));
    let other = open(|secrets| {
        secrets.ingest_key = SealingKey::from_seed(&Secret::from_bytes([2; 32])).public();
    });
    assert_eq!(other, refused(AuthenticityError::BadSessionKey));
}

/// Keys of sessions are in memory only. Openings are stored sealed.
#[test]
fn after_a_restart_frames_are_checked_by_the_stored_opening() {
    let sent = sender().sent();
    let mut service = Service::ticks(&[1]);
    service.take_all(&sent[..2]);
    let bytes = service.transformer.snapshot(Vec::new()).unwrap();
    // What the device drew: the session's number, then its key.
    let drawn = &mut rng(1);
    let _ = drawn.next_u64();
    let key = Secret::<32>::random(drawn);
    assert!(!bytes.windows(32).any(|part| part == key.expose()));
    let mut again = Service::ticks(&[]);
    again.transformer =
        alpheus_encrypted_stream::transformer::Transformer::restore(&bytes).unwrap();
    let mut changed = sent[2].clone();
    changed[70] ^= 1;
    assert_eq!(again.take(&changed), refused(AuthenticityError::BadMac));
    assert_eq!(again.take(&sent[2]), Ok(FrameEffect::Froze(at(2))));
    // A service that was emptied knows no session.
    let mut emptied = Service::ticks(&[1]);
    assert_eq!(emptied.take(&sent[3]), refused(AuthenticityError::UnknownSession));
    // A service whose ingest key was replaced says so, and the device opens another session.
    again.ingest = Ingest::new(devices::authority(), ticks().id(), Span(TICK), []);
    assert_eq!(again.take(&sent[3]), refused(AuthenticityError::UnknownIngestKey));
}

#[test]
fn frames_of_the_other_kind_are_refused() {
    let events = super::device::schema(alpheus_policy::schema::Frames::Events);
    let mut sender = Sender::new(events.clone(), at(0), 1);
    sender.advance(at(1));
    let mut service = Service::ticks(&[1]);
    for frame in sender.sent() {
        let now = at(100);
        let taken = service.transformer.handle(0, STREAM, &frame, now);
        assert_eq!(taken, Err(IngestError::OtherFrames));
        assert!(matches!(service.take(&frame), Err(IngestError::NotAuthentic(_))));
    }
    let mut service = Service::new(events, &[1]);
    assert!(matches!(service.take(&self::sender().sent()[0]), Err(IngestError::Malformed(_))));
}
