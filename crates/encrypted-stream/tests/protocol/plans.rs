//! What a malicious service may announce, and why it is refused.

use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use alpheus_encrypted_stream::announced::Announced;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment, Role};
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::error::{AnnotationRefused, BadCertificate, PlanFault, PlanRefused};
use alpheus_encrypted_stream::ledger::{LogEvent, Record, Scope, Stamped};
use alpheus_encrypted_stream::messages::{Announcement, ControllerMessage, ServiceMessage};
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan, PopulationBounds};
use alpheus_policy::time::{Span, Timestamp};

use crate::evil::Evil;
use crate::world::{EPOCH, Setup, key, owner_key, policy, stream_id};

fn setup() -> Setup {
    Setup { streams_each: 2, minimum: 2, alpha: Fraction::THIRD, ..Setup::new(3) }
}

/// What controller 0 says to the plan once it was tampered with.
pub fn said(evil: &mut Evil, announcement: &Announcement) -> Result<(), PlanRefused> {
    let signed = Signed::new(announcement, &evil.world.service);
    let message = ServiceMessage::Announcement(signed);
    let key = evil.world.announced.verifying()[0];
    match evil.say(0, Timestamp(EPOCH), &message).unwrap() {
        ControllerMessage::Acceptance(_) => Ok(()),
        ControllerMessage::Refusal(refusal) => Err(refusal.open(&key).unwrap().reason.clone()),
        other => panic!("{other:?}"),
    }
}

fn tampered(tamper: impl FnOnce(&mut Announcement)) -> Result<(), PlanRefused> {
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

fn planned(tamper: impl FnOnce(&mut Plan)) -> Result<(), PlanRefused> {
    tampered(|announcement| tamper(&mut announcement.plan))
}

/// The name of the policy's rule that forbids a plan.
fn rule(tamper: impl FnOnce(&mut Plan)) -> String {
    match planned(tamper) {
        Err(PlanRefused::Policy { violation, .. } | PlanRefused::Form { violation }) => {
            violation.rule
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_plan_as_it_is_is_accepted() {
    assert_eq!(planned(|_| {}), Ok(()));
}

#[test]
fn participants_without_a_certificate_of_the_authority_are_refused() {
    let at = |position| Err(PlanRefused::Certificate { position });
    assert_eq!(tampered(|a| a.certificates.truncate(2)), at(2));
    assert_eq!(tampered(|a| a.certificates.swap(0, 1)), at(0));
    let forged = IdentitySecrets::from_seed(&Secret::from_bytes([88; 32])).request("m");
    let forged = Signed::new(&forged, &key(88));
    assert_eq!(tampered(|a| a.certificates[1] = forged), at(1));
    let service = Certificate {
        role: Role::Service,
        name: "service".into(),
        verifying: key(88).verifying_key(),
        agreement: AgreementPublic([9; 32]),
        sealing: None,
    };
    let service = service.issue(&key(101));
    assert_eq!(tampered(|a| a.certificates[1] = service), at(1));
}

/// Otherwise only those who agree with it would find out, and the others lose them.
#[test]
fn a_key_of_small_order_is_refused_by_all_and_named() {
    let mut seat = IdentitySecrets::from_seed(&Secret::from_bytes([88; 32])).request("m");
    seat.agreement = AgreementPublic([0; 32]);
    let signed = seat.issue(&key(101));
    let refused = Err(PlanRefused::BadKey { position: 1 });
    assert_eq!(tampered(|a| a.certificates[1] = signed), refused);
}

#[test]
fn a_roster_out_of_order_or_a_stream_beyond_it_is_malformed() {
    let roster = Err(PlanRefused::Malformed(PlanFault::Roster));
    let streams = Err(PlanRefused::Malformed(PlanFault::Streams));
    assert_eq!(planned(|plan| plan.roster.swap(0, 1)), roster);
    assert_eq!(planned(|plan| plan.roster.clear()), roster);
    assert_eq!(planned(|plan| plan.streams[5].controller = 3), streams);
    assert_eq!(planned(|plan| plan.streams.swap(2, 3)), streams);
    assert_eq!(planned(|plan| plan.streams[1] = plan.streams[0]), streams);
    assert_eq!(
        planned(|plan| plan.window = Span(0)),
        Err(PlanRefused::Malformed(PlanFault::Window))
    );
    let none = PopulationBounds { min: 3, max: 2 };
    let population = Err(PlanRefused::Malformed(PlanFault::Population));
    assert_eq!(planned(|plan| plan.population = none), population);
    let fraction = Fraction { numerator: 1, denominator: 0 };
    let malformed = Err(PlanRefused::Malformed(PlanFault::Fraction));
    assert_eq!(planned(|plan| plan.alpha = fraction), malformed);
    assert_eq!(planned(|plan| plan.dropout = fraction), malformed);
}

#[test]
fn an_owner_at_two_controllers_is_refused_lest_they_count_twice() {
    let split = planned(|plan| plan.streams[2].owner = plan.streams[0].owner);
    assert_eq!(split, Err(PlanRefused::OwnerSplit { stream: stream_id(2) }));
}

#[test]
fn streams_that_are_not_held_or_are_others_are_refused() {
    let (first, held) = (stream_id(0), stream_id(1));
    let owner = planned(|plan| plan.streams[0].owner = plan.streams[1].owner);
    assert_eq!(owner, Err(PlanRefused::WrongOwner { stream: first }));
    let moved = planned(|plan| {
        plan.streams[2].controller = 0;
    });
    assert_eq!(moved, Err(PlanRefused::NotHeld { stream: stream_id(2) }));
    let schema = planned(|plan| plan.schema.0[0] ^= 1);
    assert!(matches!(schema, Err(PlanRefused::WrongSchema { stream }) if stream == first));
    assert_ne!(first, held);
}

#[test]
fn a_plan_that_asks_more_than_an_owner_allows_is_refused_by_the_rule() {
    assert_eq!(rule(|plan| plan.population.min = 1), "population");
    assert_eq!(rule(|plan| plan.alpha = Fraction { numerator: 1, denominator: 4 }), "alpha");
    let half = Fraction { numerator: 1, denominator: 2 };
    assert_eq!(rule(|plan| plan.dropout = half), "dropout");
    assert_eq!(rule(|plan| plan.window = Span(15_000_000)), "tick");
    assert_eq!(rule(|plan| plan.release.rows.push(vec![0])), "release");
    assert_eq!(rule(|plan| plan.attributes.clear()), "attributes");
}

#[test]
fn masks_that_are_too_thin_are_refused() {
    let thin = Err(PlanRefused::UnsafeMasks);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Single), thin);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Epoch { bits: 1 }), thin);
    assert_eq!(planned(|plan| plan.masks = MaskStrategy::Dream { bits: 0 }), thin);
}

#[test]
fn an_attribute_is_in_one_running_plan() {
    let mut evil = Evil::new(setup());
    let (locked, running) = (stream_id(0), evil.world.id());
    let certificates = evil.world.seats.iter().map(|(_, certificate)| certificate.clone());
    let plan = Plan { nonce: [99; 16], ..evil.world.plan.clone() };
    let announcement = Announcement { plan, certificates: certificates.collect(), consumer: None };
    let refused = said(&mut evil, &announcement);
    assert_eq!(refused, Err(PlanRefused::Locked { stream: locked, plan: running }));
}

#[test]
fn only_the_owner_annotates_and_only_forward() {
    let mut evil = Evil::unannounced(setup());
    let (stream, now) = (stream_id(0), Timestamp(EPOCH));
    let owner = owner_key(stream).verifying_key();
    let other = owner_key(stream_id(1)).verifying_key();
    let signed = evil.world.annotate(stream, 2, policy(&setup()));
    let mut annotate = |key, signed: &_| evil.controllers[0].annotate(now, key, signed).err();
    assert_eq!(annotate(&other, &signed), Some(AnnotationRefused::Unsigned));
    assert_eq!(annotate(&owner, &signed), None);
    let stale = Some(AnnotationRefused::NotLater { given: 2, known: 2 });
    assert_eq!(annotate(&owner, &signed), stale);
    // Signed by another owner for this stream.
    let mut content = signed.open(&owner).unwrap().into_inner();
    content.version = 3;
    content.owner = alpheus_encrypted_stream::annotation::owner_id(&other);
    let theirs = Signed::new(&content, &owner_key(stream_id(1)));
    assert_eq!(annotate(&other, &theirs), Some(AnnotationRefused::WrongOwner));
    let elsewhere = Signed::new(
        &alpheus_encrypted_stream::annotation::Annotation {
            stream: stream_id(4),
            ..content.clone()
        },
        &owner_key(stream_id(1)),
    );
    assert_eq!(annotate(&other, &elsewhere), Some(AnnotationRefused::NotHeld));
}

#[test]
fn a_deployment_takes_only_its_authoritys_word() {
    let evil = Evil::unannounced(setup());
    let world = &evil.world;
    let authority = world.authority.verifying_key();
    let controller = &world.seats[0].1;
    assert_eq!(Deployment::new(authority, controller).err(), Some(BadCertificate::Role));
    let stranger = key(55).verifying_key();
    assert_eq!(Deployment::new(stranger, controller).err(), Some(BadCertificate::Unsigned));
    let secrets = IdentitySecrets::from_seed(&Secret::from_bytes([55; 32]));
    let other = secrets.certified(controller, &world.deployment).err();
    assert_eq!(other, Some(BadCertificate::OtherKeys));
    // A plan that another service announced is not this deployment's.
    let signed = world.announced.signed();
    let content = signed.open(world.deployment.service()).unwrap();
    let forged = Signed::new(&*content, &key(55));
    let refused = Announced::open(&forged, &world.deployment).err();
    assert_eq!(refused, Some(PlanRefused::NotTheService));
}

/// However often the service announces it, and over restarts.
#[test]
fn owners_read_once_that_a_plan_was_accepted() {
    let mut evil = Evil::new(setup());
    let announcement = evil.world.announcement();
    let lines = |evil: &Evil| {
        let own = evil.store.values(Scope::Controller(evil.controllers[0].id()));
        let records = own.iter().map(|value| Stamped::read(value).unwrap().record);
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
