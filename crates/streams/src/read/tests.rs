//! `alpheus read` against a service that withholds or forges frames.

use super::*;
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, Role as IdentityRole};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_encrypted_stream::frame::Link;
use alpheus_encrypted_stream::grant::Grant;

/// Frames of a session at these hours: the first opens it, if it may.
fn frames(session: u64, hours: &[u64], opens: bool, closes: bool) -> Vec<Vec<u8>> {
    let at = |hour: u64| Timestamp(hour * DAY / 24);
    let tag = Tag([0; 16]);
    let opening = hours
        .first()
        .filter(|_| opens)
        .map(|hour| Frame::<Vec<u64>>::Opening { session, t: at(*hour), tag }.to_bytes());
    let rest = hours.windows(2).zip(2..).map(|(pair, number)| {
        let link = Link { session, previous: at(pair[0]), t: at(pair[1]) };
        let words = vec![0_u64; 2];
        match closes && number == hours.len() {
            true => Frame::Closing { link, count: 0, tag, words }.to_bytes(),
            false => Frame::Border { link, count: 0, tag, words }.to_bytes(),
        }
    });
    opening.into_iter().chain(rest).collect()
}

fn missing(sessions: &[Vec<Vec<u8>>]) -> Missing {
    let mut own = Sessions { days: [1, 2].into(), ..Sessions::default() };
    for bytes in sessions.iter().flatten() {
        let frame = Frame::parse(bytes).unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(own.note(&frame), Ok(()));
    }
    own.missing()
}

const NOTHING: Missing = Missing { inside: 0, heads: 0, tails: 0, days: 0 };

#[test]
fn missing_frames_are_counted() {
    let monday = || frames(1, &[25, 30, 40, 48], true, true);
    let tuesday = || frames(2, &[48, 60, 72], true, true);
    assert_eq!(missing(&[monday(), tuesday()]), NOTHING);
    let mut gap = monday();
    gap.remove(2);
    assert_eq!(missing(&[gap, tuesday()]), Missing { inside: 1, ..NOTHING });
    let headless = monday().split_off(1);
    assert_eq!(missing(&[headless, tuesday()]), Missing { heads: 1, ..NOTHING });
    let mut cut = tuesday();
    cut.pop();
    assert_eq!(missing(&[monday(), cut]), Missing { tails: 1, ..NOTHING });
    assert_eq!(missing(&[monday()]), Missing { days: 1, ..NOTHING });
    assert_eq!(missing(&[]), Missing { days: 2, ..NOTHING });
    // A session of an earlier build comes from the day before, and goes on after.
    assert_eq!(missing(&[frames(3, &[20, 25, 30, 50, 70, 75], false, false)]), NOTHING);
    let doubled = [monday(), monday().split_off(3)].concat();
    assert_eq!(missing(&[doubled, tuesday()]), Missing { inside: 1, ..NOTHING });
}

/// Whatever the service answers, reading ends, in bounded memory.
#[test]
fn reading_always_ends() {
    assert_eq!((next_offset(7, 9), next_offset(7, 7)), (Ok(Some(9)), Ok(None)));
    assert_eq!(next_offset(7, 6), Err(EndlessReadError::Back { after: 7, next: 6 }));
    let mut own = Sessions::default();
    let mut last = Ok(());
    for session in 0..=MAX_SESSIONS as u64 {
        assert_eq!(last, Ok(()));
        let frame = frames(session, &[25], true, false).remove(0);
        let frame = Frame::parse(&frame).unwrap_or_else(|error| unreachable!("{error}"));
        last = own.note(&frame);
    }
    assert_eq!((last, own.seen.len()), (Err(EndlessReadError::Sessions), MAX_SESSIONS));
}

/// A malformed frame does not hide others.
#[test]
fn malformed_frames_are_counted() {
    let key = |seed: u8| SigningKey::from_seed(&Secret::from_bytes([seed; 32]));
    let (authority, service) = (key(1), key(2).verifying_key());
    let service = Certificate {
        role: IdentityRole::Service,
        name: "service".into(),
        verifying: service,
        agreement: AgreementPublic([9; 32]),
        sealing: None,
    };
    let service = service.issue(&authority);
    let Ok(deployment) = Deployment::new(authority.verifying_key(), &service) else {
        unreachable!()
    };
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([3; 32]));
    let certificate = secrets.request("doctor").issue(&authority);
    let Ok(consumer) = secrets.certified(&certificate, &deployment) else { unreachable!() };
    let schema = "name: T\nstreamAttributes:\n  - {name: x, type: integer}\n";
    let Ok(schema) = Schema::from_yaml(schema) else { unreachable!() };
    let Ok(layout) = Layout::of(&schema) else { unreachable!() };
    let what = (StreamId([1; 16]), schema.id(), layout.words);
    let Ok(keys) = RawReader::new(&consumer, what, &[]) else { unreachable!() };
    let (release, select) = event_columns(&schema, &layout);
    let mut events = Events::new(keys, release, select);
    for bytes in [&[][..], &[0xff], &[0x11; 9]] {
        assert_eq!(events.row(bytes), Ok(None));
    }
    assert_eq!(events.foreign, 3);
    assert!(events.check().is_err());
}

#[test]
fn a_grant_must_be_signed_by_the_expected_owner() {
    let key = |seed: u8| SigningKey::from_seed(&Secret::from_bytes([seed; 32]));
    let (stream, reader) = (StreamId([1; 16]), ConsumerId([2; 32]));
    let grant = Grant { stream, reader, at: Timestamp(7), days: None };
    let signed = Signed::new(&grant, &key(1));
    let given = |owner: &SigningKey| KeysResponse {
        signed: signed.clone(),
        owner: owner.verifying_key(),
        keys: Vec::new(),
    };
    let own = given(&key(1));
    let whose = owner_id(&key(1).verifying_key());
    assert!(check_grant(&own, (stream, reader), Some(whose)).is_ok());
    assert!(check_grant(&own, (stream, reader), None).is_ok());
    let said = |result: Result<(), GrantMismatchError>| result.err().map(|error| error.to_string());
    for (refused, part) in [
        (check_grant(&given(&key(2)), (stream, reader), None), "not signed by the owner"),
        (check_grant(&own, (StreamId([3; 16]), reader), None), "another stream"),
        (check_grant(&own, (stream, ConsumerId([3; 32])), None), "another reader"),
        (check_grant(&own, (stream, reader), Some(OwnerId([9; 32]))), "ask the owner"),
    ] {
        assert!(said(refused).is_some_and(|said| said.contains(part)), "{part}");
    }
}
