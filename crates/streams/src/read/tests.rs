//! `alpheus read` against a service that withholds or forges frames.

use super::sessions::{MAX_SESSIONS, MissingFrames};
use super::*;
use alpheus_crypto::hybrid::HybridSealed;
use alpheus_crypto::mac::Tag;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::certificate::{Party, Role as IdentityRole, Subject};
use alpheus_encrypted_stream::consumer::ConsumerSecrets;
use alpheus_encrypted_stream::frame::Link;
use alpheus_encrypted_stream::grant::{Days, Grant, HandedDays};
use alpheus_encrypted_stream::keys::DAY;

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

fn missing(sessions: &[Vec<Vec<u8>>]) -> MissingFrames {
    let mut own = Sessions::of_days([1, 2].into_iter());
    for bytes in sessions.iter().flatten() {
        let frame = Frame::parse(bytes).unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(own.note((&frame).into()), Ok(()));
    }
    own.missing()
}

const NOTHING: MissingFrames = MissingFrames { inside: 0, heads: 0, tails: 0, days: 0 };

#[test]
fn missing_frames_are_counted() {
    let monday = || frames(1, &[25, 30, 40, 48], true, true);
    let tuesday = || frames(2, &[48, 60, 72], true, true);
    assert_eq!(missing(&[monday(), tuesday()]), NOTHING);
    let mut gap = monday();
    gap.remove(2);
    assert_eq!(missing(&[gap, tuesday()]), MissingFrames { inside: 1, ..NOTHING });
    let headless = monday().split_off(1);
    assert_eq!(missing(&[headless, tuesday()]), MissingFrames { heads: 1, ..NOTHING });
    let mut cut = tuesday();
    cut.pop();
    assert_eq!(missing(&[monday(), cut]), MissingFrames { tails: 1, ..NOTHING });
    assert_eq!(missing(&[monday()]), MissingFrames { days: 1, ..NOTHING });
    assert_eq!(missing(&[]), MissingFrames { days: 2, ..NOTHING });
    // A session of an earlier build comes from the day before, and goes on after.
    assert_eq!(missing(&[frames(3, &[20, 25, 30, 50, 70, 75], false, false)]), NOTHING);
    let doubled = [monday(), monday().split_off(3)].concat();
    assert_eq!(missing(&[doubled, tuesday()]), MissingFrames { inside: 1, ..NOTHING });
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
        last = own.note((&frame).into());
    }
    assert_eq!((last, own.seen.len()), (Err(EndlessReadError::Sessions), MAX_SESSIONS));
}

fn deployment(authority: &SigningKey, service: VerifyingKey) -> Deployment {
    let service = Party::signing(IdentityRole::Service, "service", service);
    let service = service.certify(Subject([0; 16]), authority);
    let deployment = Deployment::new(authority.verifying_key(), &service);
    deployment.unwrap_or_else(|error| unreachable!("{error}"))
}

/// A malformed frame does not hide others.
#[test]
fn malformed_frames_are_counted() {
    let key = |seed: u8| SigningKey::from_seed(&Secret::from_bytes([seed; 32]));
    let (authority, service) = (key(1), key(2).verifying_key());
    let deployment = deployment(&authority, service);
    let secrets = ConsumerSecrets::from_seed(&Secret::from_bytes([3; 32]));
    let certificate = secrets.request("doctor").certify(Subject([1; 16]), &authority);
    let Ok(consumer) = secrets.certified(&certificate, &deployment) else { unreachable!() };
    let schema = "name: T\nstreamAttributes:\n  - {name: x, type: integer}\n";
    let Ok(schema) = Schema::from_yaml(schema) else { unreachable!() };
    let Ok(layout) = Layout::of(&schema) else { unreachable!() };
    let granted = GrantedStream {
        stream: StreamId([1; 16]),
        schema: schema.id(),
        owner: OwnerId([4; 32]),
        controller: ControllerId([5; 32]),
    };
    let Ok(keys) = consumer.raw_reader((&granted, layout.words), &[]) else { unreachable!() };
    let mut events = Events::new(keys, &schema, &layout);
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
    let authority = key(9);
    let deployment = deployment(&authority, key(8).verifying_key());
    let keys = || HandedDays {
        days: Days { first: 1, last: 1 },
        sealed: HybridSealed::try_from(vec![0; 1152])
            .unwrap_or_else(|error| unreachable!("{error}")),
    };
    let given = |owner: &SigningKey, role| KeysResponse {
        signed: signed.clone(),
        owner: Party::signing(role, "ada", owner.verifying_key())
            .certify(Subject([1; 16]), &authority),
        controller: Party::signing(role, "ada", owner.verifying_key())
            .certify(Subject([2; 16]), &authority),
        keys: keys(),
    };
    let own = given(&key(1), IdentityRole::Owner);
    let Ok(ada) = deployment.owner(&own.owner) else { unreachable!() };
    let whose = ada.id();
    let check_of = |given: &_, what, whose| check_grant(given, &deployment, what, whose);
    let check = |given: &_, whose| check_of(given, (stream, reader), whose);
    assert!(check(&own, Some(whose)).is_ok());
    assert!(check(&own, None).is_ok());
    let said =
        |result: Result<OwnerId, GrantMismatchError>| result.err().map(|error| error.to_string());
    for (refused, part) in [
        (check(&given(&key(2), IdentityRole::Owner), None), "not signed by the owner"),
        (check(&given(&key(1), IdentityRole::Device), None), "invalid certificate of its owner"),
        (check_of(&own, (StreamId([3; 16]), reader), None), "another stream"),
        (check_of(&own, (stream, ConsumerId([3; 32])), None), "another reader"),
        (check(&own, Some(OwnerId([9; 32]))), "ask the owner"),
    ] {
        assert!(said(refused).is_some_and(|said| said.contains(part)), "{part}");
    }
}
