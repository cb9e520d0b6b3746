//! What a malicious service may announce, and why it is refused.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Deployment, Party, Role, Subject};
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::error::{
    AnnotationError, CertificateError, PlanRefusalError, PlanShapeError,
};
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{Announcement, ControllerMessage, ServiceMessage};
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan, PopulationBounds};
use alpheus_time::{Span, Timestamp};

use crate::protocol::evil::Evil;
use crate::protocol::identities::{SUBJECT, owner, owner_key};
use crate::protocol::world::{EPOCH, Setup, World, key, policy, stream_id};

fn setup() -> Setup {
    Setup { streams_each: 2, minimum: 2, alpha: Fraction::THIRD, ..Setup::new(3) }
}

/// Controller 0's answer to the plan after tampering.
pub fn said(evil: &mut Evil, announcement: &Announcement) -> Result<(), PlanRefusalError> {
    let signed = Signed::new(announcement, &evil.world.service);
    let message = ServiceMessage::Announcement(signed);
    let key = evil.world.announced.verifying()[0];
    match evil.say(0, Timestamp(EPOCH), &message).unwrap() {
        ControllerMessage::Acceptance(_) => Ok(()),
        ControllerMessage::PlanRefusal(refusal) => Err(refusal.open(&key).unwrap().reason.clone()),
        other => panic!("{other:?}"),
    }
}

fn tampered(tamper: impl FnOnce(&mut Announcement)) -> Result<(), PlanRefusalError> {
    let mut evil = Evil::unannounced(setup());
    let certificates = evil.world.seats.iter().map(|(_, certificate)| certificate.clone());
    let mut announcement = Announcement {
        plan: evil.world.plan.clone(),
        certificates: certificates.collect(),
        consumer: None,
    };
    tamper(&mut announcement);
    said(&mut evil, &announcement)
}

fn planned(tamper: impl FnOnce(&mut Plan)) -> Result<(), PlanRefusalError> {
    tampered(|announcement| tamper(&mut announcement.plan))
}

/// The policy rule that forbids a plan.
fn rule(tamper: impl FnOnce(&mut Plan)) -> String {
    match planned(tamper) {
        Err(PlanRefusalError::Policy { violation, .. } | PlanRefusalError::Form { violation }) => {
            violation.rule
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_unchanged_plan_is_accepted() {
    assert_eq!(planned(|_| {}), Ok(()));
}

#[test]
fn participants_without_a_certificate_of_the_authority_are_refused() {
    let at = |position| Err(PlanRefusalError::Certificate { position });
    assert_eq!(tampered(|a| a.certificates.truncate(2)), at(2));
    assert_eq!(tampered(|a| a.certificates.swap(0, 1)), at(0));
    let forged = IdentitySecrets::from_seed(&Secret::from_bytes([88; 32])).request("m");
    let forged = forged.certify(SUBJECT, &key(88));
    assert_eq!(tampered(|a| a.certificates[1] = forged), at(1));
    let service = Party::signing(Role::Service, "service", key(88).verifying_key());
    let service = service.certify(SUBJECT, &key(101));
    assert_eq!(tampered(|a| a.certificates[1] = service), at(1));
}

/// Otherwise only controllers that agree with it would find out, and the others would lose
/// them.
#[test]
fn a_key_of_small_order_is_refused_by_all_with_its_position() {
    let mut seat = IdentitySecrets::from_seed(&Secret::from_bytes([88; 32])).request("m");
    seat.agreement = Some(AgreementPublic([0; 32]));
    let signed = seat.certify(SUBJECT, &key(101));
    let refused = Err(PlanRefusalError::BadKey { position: 1 });
    assert_eq!(tampered(|a| a.certificates[1] = signed), refused);
}

#[test]
fn a_roster_out_of_order_or_a_stream_beyond_it_is_malformed() {
    let roster = Err(PlanRefusalError::Malformed(PlanShapeError::Roster));
    let streams = Err(PlanRefusalError::Malformed(PlanShapeError::Streams));
    assert_eq!(planned(|plan| plan.roster.swap(0, 1)), roster);
    assert_eq!(planned(|plan| plan.roster.clear()), roster);
    assert_eq!(planned(|plan| plan.streams[5].controller = 3), streams);
    assert_eq!(planned(|plan| plan.streams.swap(2, 3)), streams);
    assert_eq!(planned(|plan| plan.streams[1] = plan.streams[0]), streams);
    assert_eq!(
        planned(|plan| plan.window = Span(0)),
        Err(PlanRefusalError::Malformed(PlanShapeError::Window))
    );
    let none = PopulationBounds { min: 3, max: 2 };
    let population = Err(PlanRefusalError::Malformed(PlanShapeError::Population));
    assert_eq!(planned(|plan| plan.population = none), population);
    let fraction = Fraction { numerator: 1, denominator: 0 };
    let malformed = Err(PlanRefusalError::Malformed(PlanShapeError::Fraction));
    assert_eq!(planned(|plan| plan.alpha = fraction), malformed);
    assert_eq!(planned(|plan| plan.dropout = fraction), malformed);
}

#[test]
fn an_owner_at_two_controllers_is_refused_because_they_would_count_twice() {
    let split = planned(|plan| plan.streams[2].owner = plan.streams[0].owner);
    assert_eq!(split, Err(PlanRefusalError::OwnerSplit { stream: stream_id(2) }));
}

#[test]
fn streams_not_held_or_of_other_owners_are_refused() {
    let (first, held) = (stream_id(0), stream_id(1));
    let owner = planned(|plan| plan.streams[0].owner = plan.streams[1].owner);
    assert_eq!(owner, Err(PlanRefusalError::WrongOwner { stream: first }));
    let moved = planned(|plan| {
        plan.streams[2].controller = 0;
    });
    assert_eq!(moved, Err(PlanRefusalError::NotHeld { stream: stream_id(2) }));
    let schema = planned(|plan| plan.schema.0[0] ^= 1);
    assert!(matches!(schema, Err(PlanRefusalError::WrongSchema { stream }) if stream == first));
    assert_ne!(first, held);
}

#[test]
fn a_plan_beyond_an_owners_policy_is_refused_with_the_rule() {
    assert_eq!(rule(|plan| plan.population.min = 1), "population");
    assert_eq!(rule(|plan| plan.alpha = Fraction { numerator: 1, denominator: 4 }), "alpha");
    let half = Fraction { numerator: 1, denominator: 2 };
    assert_eq!(rule(|plan| plan.dropout = half), "dropout");
    assert_eq!(rule(|plan| plan.window = Span(15_000_000)), "tick");
    assert_eq!(rule(|plan| plan.release.rows.push(vec![0])), "release");
    assert_eq!(rule(|plan| plan.attributes.clear()), "attributes");
}

#[test]
fn masks_that_are_too_weak_are_refused() {
    let thin = Err(PlanRefusalError::UnsafeMasks);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Single), thin);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Epoch { bits: 1 }), thin);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Dream { bits: 0 }), thin);
}

#[test]
fn an_attribute_is_in_at_most_one_running_plan() {
    let mut evil = Evil::new(setup());
    let (locked, running) = (stream_id(0), evil.world.id());
    let certificates = evil.world.seats.iter().map(|(_, certificate)| certificate.clone());
    let plan = Plan { nonce: [99; 16], ..evil.world.plan.clone() };
    let announcement = Announcement { plan, certificates: certificates.collect(), consumer: None };
    let refused = said(&mut evil, &announcement);
    assert_eq!(refused, Err(PlanRefusalError::Locked { stream: locked, plan: running }));
}

#[test]
fn only_the_owner_annotates_and_only_with_later_versions() {
    let mut evil = Evil::unannounced(setup());
    let (stream, now) = (stream_id(0), Timestamp(EPOCH));
    let (owner, other) = (owner(stream), owner(stream_id(1)));
    let signed = evil.world.annotate(stream, 2, policy(&setup()));
    let mut annotate = |key, signed: &_| evil.controllers[0].annotate(signed, key, now).err();
    assert_eq!(annotate(&other, &signed), Some(AnnotationError::Unsigned));
    assert_eq!(annotate(&owner, &signed), None);
    let stale = Some(AnnotationError::NotLater { version: 2, current: 2 });
    assert_eq!(annotate(&owner, &signed), stale);
    // Signed by another owner for this stream.
    let mut content = signed.open(owner.key()).unwrap().into_inner();
    content.version = 3;
    content.owner = other.id();
    let theirs = Signed::new(&content, &owner_key(stream_id(1)));
    assert_eq!(annotate(&other, &theirs), Some(AnnotationError::WrongOwner));
    let elsewhere = Signed::new(
        &alpheus_encrypted_stream::annotation::Annotation {
            stream: stream_id(4),
            ..content.clone()
        },
        &owner_key(stream_id(1)),
    );
    assert_eq!(annotate(&other, &elsewhere), Some(AnnotationError::NotHeld));
}

/// Somebody with one certificate and many keys is one owner, and each key that is not in it
/// is nobody's.
#[test]
fn one_certificate_is_one_owner() {
    let world = World::new(setup());
    let party = |seed| Party::signing(Role::Owner, "ada", key(seed).verifying_key());
    let opened = |signed: &_| world.deployment.owner(signed);
    let first = opened(&party(1).certify(Subject([1; 16]), &world.authority)).unwrap();
    // Renewed with another key, it is the same owner; another subject is another owner.
    let renewed = opened(&party(2).certify(Subject([1; 16]), &world.authority)).unwrap();
    let second = opened(&party(1).certify(Subject([2; 16]), &world.authority)).unwrap();
    assert_eq!(first.id(), renewed.id());
    assert_ne!(first.id(), second.id());
    // Nobody certifies themselves, and other roles are no owners.
    let own = party(3).certify(Subject([1; 16]), &key(3));
    assert_eq!(opened(&own).err(), Some(CertificateError::Unsigned));
    let device = Party { role: Role::Device, ..party(1) };
    let device = device.certify(Subject([1; 16]), &world.authority);
    assert_eq!(opened(&device).err(), Some(CertificateError::Role));
    assert_eq!(opened(&world.seats[0].1).err(), Some(CertificateError::Role));
    // A role has its own keys and no others.
    let agreement = Some(AgreementPublic([9; 32]));
    let more = Party { agreement, ..party(1) }.certify(Subject([1; 16]), &world.authority);
    assert_eq!(opened(&more).err(), Some(CertificateError::KeysOfRole));
    let as_controller = |party| {
        let party = Party { role: Role::Controller, ..party };
        world.deployment.controller(&party.certify(Subject([1; 16]), &world.authority)).err()
    };
    let hybrid = Some(Digest([3; 32]));
    let fewer = as_controller(Party { hybrid, ..party(1) });
    assert_eq!(fewer, Some(CertificateError::KeysOfRole));
    // As before there were hybrid keys: what is sealed would rest on X25519 alone.
    let sealing = Some(SealingPublic([9; 32]));
    let classical = as_controller(Party { agreement, sealing, ..party(1) });
    assert_eq!(classical, Some(CertificateError::NoHybrid));
    let both = as_controller(Party { agreement, sealing, hybrid, ..party(1) });
    assert_eq!(both, Some(CertificateError::KeysOfRole));
    // The id is bound to the deployment: elsewhere the same subject is somebody else.
    let elsewhere = Party::signing(Role::Service, "service", key(102).verifying_key());
    let elsewhere = elsewhere.certify(SUBJECT, &key(77));
    let elsewhere = Deployment::new(key(77).verifying_key(), &elsewhere).unwrap();
    let same = elsewhere.owner(&party(1).certify(Subject([1; 16]), &key(77))).unwrap();
    assert_ne!(first.id(), same.id());
}

#[test]
fn a_deployment_trusts_only_its_own_authority() {
    let evil = Evil::unannounced(setup());
    let world = &evil.world;
    let authority = world.authority.verifying_key();
    let controller = &world.seats[0].1;
    assert_eq!(Deployment::new(authority, controller).err(), Some(CertificateError::Role));
    let stranger = key(55).verifying_key();
    assert_eq!(Deployment::new(stranger, controller).err(), Some(CertificateError::Unsigned));
    let secrets = IdentitySecrets::from_seed(&Secret::from_bytes([55; 32]));
    let other = secrets.certified(controller, &world.deployment).err();
    assert_eq!(other, Some(CertificateError::OtherKeys));
    // A plan announced by another service does not belong to this deployment.
    let ServiceMessage::Announcement(signed) = world.announced.message() else { panic!() };
    let content = signed.open(world.deployment.service()).unwrap();
    let forged = Signed::new(&*content, &key(55));
    let refused = AnnouncedPlan::open(&forged, &world.deployment).err();
    assert_eq!(refused, Some(PlanRefusalError::NotTheService));
}

/// However often the service announces it, and across restarts.
#[test]
fn owners_read_once_that_a_plan_was_accepted() {
    let mut evil = Evil::new(setup());
    let announcement = evil.world.announcement();
    let lines = |evil: &Evil| {
        let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
        let records = own.iter().map(|value| StampedRecord::read(value).unwrap().record);
        let accepted = |record: &Record| matches!(record, Record::Log(line) if matches!(line.event, LogEvent::PlanAccepted { .. }));
        records.filter(accepted).count()
    };
    for later in 1..5 {
        evil.say(0, Timestamp(EPOCH + later), &announcement);
        assert_eq!(lines(&evil), 1);
        let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
        evil.restore(0, &store, Timestamp(EPOCH + later), Some(fence));
    }
}
