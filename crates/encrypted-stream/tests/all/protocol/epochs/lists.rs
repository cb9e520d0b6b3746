//! Lists of a thousand controllers, of which few to all are there.

use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_encrypted_stream::certificate::{Party, Subject, fingerprint};
use alpheus_encrypted_stream::controller::IdentitySecrets;
use alpheus_encrypted_stream::error::MessageError;
use alpheus_encrypted_stream::messages::ListedOwner;
use alpheus_policy::plan::Fraction;

use super::*;
use crate::protocol::identities::authority;

/// A controller that only attends, with one owner.
struct Phone {
    key: SigningKey,
    certificate: Signed<Certificate>,
    entry: ListEntry,
}

impl Phone {
    fn new(world: &World, number: u32) -> Self {
        let mut seed = [11; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let key = SigningKey::from_seed(&Secret::from_bytes(seed));
        let secrets = IdentitySecrets::from_seed(&Secret::from_bytes(seed));
        let request = secrets.request(format!("phone {number}"));
        let party = Party { verifying: key.verifying_key(), ..request };
        let certificate = party.certify(Subject([6; 16]), &authority());
        let opened = world.deployment.controller(&certificate).unwrap();
        let (controller, agreement) = (fingerprint(&opened), opened.party.agreement.unwrap());
        let entry = ListEntry { controller, agreement, owners: vec![owner(number)] };
        Self { key, certificate, entry }
    }

    fn attendance(&self, terms: &Plan) -> Signed<Attendance> {
        let (terms, entry) = (terms.id(), self.entry.clone());
        let attendance = Attendance { terms, window: window(0), windows: 1, entry };
        Signed::new(&attendance, &self.key)
    }
}

fn owner(number: u32) -> ListedOwner {
    let (mut owner, mut stream) = ([1; 32], [2; 16]);
    owner[..4].copy_from_slice(&number.to_be_bytes());
    stream[..4].copy_from_slice(&number.to_be_bytes());
    ListedOwner { owner: OwnerId(owner), streams: vec![StreamId(stream)] }
}

/// A caller of the first epoch that has called these.
fn calling(world: &World, terms: &Plan, phones: &[Phone]) -> Caller {
    let mut caller = new_caller(world, terms);
    let certificates: Vec<_> = phones.iter().map(|phone| phone.certificate.clone()).collect();
    let step = caller.call(window(0), &certificates, after(0));
    step.commit(&mut Memory::default()).unwrap();
    caller
}

fn attend(caller: &mut Caller, terms: &Plan, phone: &Phone) -> Vec<EpochOutput> {
    let (id, owner) = (phone.entry.controller, phone.entry.owners[0].owner);
    let placed = |_: &StreamId| Some((owner, id));
    let attended = caller.verify(id, &phone.attendance(terms), placed).unwrap();
    caller.attend(attended, after(0)).commit(&mut Memory::default()).unwrap()
}

fn world() -> (World, Plan) {
    let setup = Setup { minimum: 10, alpha: Fraction::THIRD, colluders: 8, ..Setup::new(2) };
    let world = World::new(setup);
    let (roster, streams, masks) = (vec![], vec![], MaskStrategy::Single);
    let terms = Plan { roster, streams, masks, ..world.plan.clone() };
    (world, terms)
}

/// The list of an epoch that all of these attend, of which the first ones are listed last.
fn roster_with_last(phones: &[Phone], last: usize) -> usize {
    let (world, terms) = world();
    let mut caller = new_caller(&world, &terms);
    let ids = phones[..last].iter().map(|phone| phone.entry.controller);
    caller.list_last(ids.collect());
    let certificates: Vec<_> = phones.iter().map(|phone| phone.certificate.clone()).collect();
    let step = caller.call(window(0), &certificates, after(0));
    step.commit(&mut Memory::default()).unwrap();
    let outputs = phones.iter().flat_map(|phone| attend(&mut caller, &terms, phone)).last();
    let Some(EpochOutput::Listed(announced)) = outputs else { panic!("{outputs:?}") };
    announced.plan().roster.len()
}

/// Ten owners are needed besides ten that may collude.
#[test]
fn who_is_listed_last_is_in_a_list_only_if_there_is_none_without() {
    let world = world().0;
    let phones: Vec<Phone> = (0..30).map(|number| Phone::new(&world, number)).collect();
    assert_eq!(roster_with_last(&phones, 0), 30);
    assert_eq!(roster_with_last(&phones, 3), 27);
    assert_eq!(roster_with_last(&phones, 25), 30);
}

#[test]
fn of_a_thousand_controllers_few_to_all_make_a_list_or_an_explanation() {
    let (world, terms) = world();
    let phones: Vec<Phone> = (0..1000).map(|number| Phone::new(&world, number)).collect();
    for (percent, tolerated) in
        [(1, None), (3, Some(10)), (10, Some(33)), (50, Some(166)), (100, Some(333))]
    {
        let present = 10 * percent;
        let mut caller = calling(&world, &terms, &phones);
        let mut outputs = Vec::new();
        for phone in &phones[..present] {
            outputs.extend(attend(&mut caller, &terms, phone));
        }
        if let Some(late) = caller.deadline() {
            outputs.extend(caller.poll(late).commit(&mut Memory::default()).unwrap());
        }
        match (outputs.pop(), tolerated) {
            (Some(EpochOutput::NotListed { reason, .. }), None) => {
                // Eight of ten may collude.
                let few = ReleaseError::PopulationTooSmall { counted: 2, needed: 10 };
                assert_eq!(reason, few, "{percent} %");
            }
            (Some(EpochOutput::Listed(announced)), Some(tolerated)) => {
                let plan = announced.plan();
                assert_eq!((plan.roster.len(), plan.tolerated()), (present, tolerated));
                let quorum = announced.min_opening(present as u32);
                assert!(2 * quorum > present as u32 + tolerated, "{percent} %");
                assert!(quorum - tolerated >= 10, "what may fail leaves enough owners");
                let sparse = matches!(plan.masks, MaskStrategy::Dream { .. });
                assert_eq!(sparse, present >= 300, "{}", plan.masks);
            }
            (other, _) => panic!("{percent} %: {other:?}"),
        }
    }
}

#[test]
fn attendances_of_others_or_for_others_are_dropped() {
    let (world, terms) = world();
    let phones: Vec<Phone> = (0..20).map(|number| Phone::new(&world, number)).collect();
    let caller = calling(&world, &terms, &phones);
    let verify = |from: &Phone, signed: &Signed<Attendance>, owner: OwnerId, at: ControllerId| {
        caller.verify(from.entry.controller, signed, |_| Some((owner, at))).err()
    };
    let (one, two) = (&phones[0], &phones[1]);
    let (owner, id) = (one.entry.owners[0].owner, one.entry.controller);
    let signed = one.attendance(&terms);
    assert_eq!(verify(one, &signed, owner, id), None);
    assert!(matches!(verify(two, &signed, owner, id), Some(MessageError::Rejected(_))));
    let lying = Phone { entry: two.entry.clone(), ..Phone::new(&world, 0) };
    let said = verify(one, &lying.attendance(&terms), owner, id);
    assert_eq!(said, Some(MessageError::Malformed), "another's entry");
    let other = Plan { nonce: [9; 16], ..terms.clone() };
    assert_eq!(verify(one, &one.attendance(&other), owner, id), Some(MessageError::OtherPlan));
    let stranger = Phone::new(&world, 99);
    let said = verify(&stranger, &stranger.attendance(&terms), owner, id);
    assert_eq!(said, Some(MessageError::UnknownController));
}

/// A controller attends; streams are placed as `guards` says.
fn attend_as(
    caller: &mut Caller,
    terms: &Plan,
    phone: &Phone,
    guards: impl Fn(&StreamId) -> Option<(OwnerId, ControllerId)>,
) -> Vec<EpochOutput> {
    let id = phone.entry.controller;
    let attended = caller.verify(id, &phone.attendance(terms), guards).unwrap();
    caller.attend(attended, after(0)).commit(&mut Memory::default()).unwrap()
}

/// What the only output asks its only receiver to leave out.
fn asked(outputs: &[EpochOutput], world: &World, phone: &Phone) -> Vec<StreamId> {
    let [EpochOutput::Call { to, message }] = outputs else { panic!("{outputs:?}") };
    assert_eq!(to, &[phone.entry.controller]);
    let ServiceMessage::EpochCall(call) = message else { panic!("{message:?}") };
    call.open(world.deployment.service()).unwrap().without.clone()
}

/// An owner whose streams are at two controllers takes part with the first. That costs the
/// other owners of the second nothing.
#[test]
fn an_owner_with_two_homes_costs_others_nothing() {
    let (world, terms) = world();
    let mut phones: Vec<Phone> = (0..30).map(|number| Phone::new(&world, number)).collect();
    let second = ListedOwner { owner: phones[0].entry.owners[0].owner, ..owner(40) };
    let ours = owner(29);
    phones[29].entry.owners = vec![second.clone(), ours.clone()];
    phones[29].entry.owners.sort_unstable_by_key(|listed| listed.owner);
    let mut caller = calling(&world, &terms, &phones);
    for phone in &phones[..29] {
        assert_eq!(attend(&mut caller, &terms, phone).len(), 0);
    }
    let id = phones[29].entry.controller;
    let placed = |stream: &StreamId| {
        Some(if second.streams[0] == *stream { (second.owner, id) } else { (ours.owner, id) })
    };
    let outputs = attend_as(&mut caller, &terms, &phones[29], placed);
    assert_eq!(asked(&outputs, &world, &phones[29]), second.streams);
    // It repeats itself, and is not asked once more.
    assert_eq!(attend_as(&mut caller, &terms, &phones[29], placed).len(), 0);
    phones[29].entry.owners = vec![ours.clone()];
    let outputs = attend_as(&mut caller, &terms, &phones[29], placed);
    let [EpochOutput::Listed(announced)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(announced.plan().roster.len(), 30);
    assert!(announced.plan().streams.iter().any(|planned| planned.owner == ours.owner));
}

/// A stream that is placed elsewhere, whose placement has not arrived, or whose owner's
/// certificate is revoked, costs the other owners of its controller nothing.
#[test]
fn a_stream_that_the_service_does_not_place_there_costs_others_nothing() {
    let (world, terms) = world();
    let (elsewhere, ours) = (owner(40), owner(0));
    for known in [None, Some(elsewhere.owner)] {
        let mut phones: Vec<Phone> = (0..20).map(|number| Phone::new(&world, number)).collect();
        phones[0].entry.owners = vec![ours.clone(), elsewhere.clone()];
        let (id, other) = (phones[0].entry.controller, phones[1].entry.controller);
        let placed = |stream: &StreamId| match elsewhere.streams[0] == *stream {
            true => known.map(|owner| (owner, other)),
            false => Some((ours.owner, id)),
        };
        let mut caller = calling(&world, &terms, &phones);
        for phone in &phones[1..] {
            assert_eq!(attend(&mut caller, &terms, phone).len(), 0);
        }
        let outputs = attend_as(&mut caller, &terms, &phones[0], placed);
        assert_eq!(asked(&outputs, &world, &phones[0]), elsewhere.streams);
        let step = caller.ask();
        let asked_again = step.commit(&mut Memory::default()).unwrap();
        let own = asked_again.iter().filter(|output| match output {
            EpochOutput::Call { to, .. } => to.contains(&id),
            _ => false,
        });
        assert_eq!(own.count(), 1, "{asked_again:?}");
        phones[0].entry.owners = vec![ours.clone()];
        let outputs = attend_as(&mut caller, &terms, &phones[0], placed);
        let [EpochOutput::Listed(announced)] = &outputs[..] else { panic!("{outputs:?}") };
        assert_eq!(announced.plan().streams.len(), 20);
    }
}

/// All phones have answered, so nobody waits for the deadline.
#[test]
fn the_first_attendance_of_a_controller_stands() {
    let (world, terms) = world();
    let mut phones: Vec<Phone> = (0..20).map(|number| Phone::new(&world, number)).collect();
    let mut caller = calling(&world, &terms, &phones);
    attend(&mut caller, &terms, &phones[0]);
    phones[0].entry.owners[0].streams.push(StreamId([200; 16]));
    let all = phones.iter().flat_map(|phone| attend(&mut caller, &terms, phone));
    let outputs: Vec<_> = all.collect();
    let [EpochOutput::Listed(announced)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(announced.plan().streams.len(), 20);
}

/// A controller whose streams the service finds misplaced one after the other is called again a few times,
/// and then it is absent.
#[test]
fn a_controller_is_called_a_few_times_to_leave_streams_out() {
    let (world, terms) = world();
    let mut phones: Vec<Phone> = (0..20).map(|number| Phone::new(&world, number)).collect();
    let mut owners: Vec<ListedOwner> = (40..60).map(owner).collect();
    owners.push(owner(0));
    owners.sort_unstable_by_key(|listed| listed.owner);
    let (id, mut calls) = (phones[0].entry.controller, 0);
    let mut caller = calling(&world, &terms, &phones);
    while owners.len() > 1 {
        phones[0].entry.owners = owners.clone();
        // Of all its streams, the service knows the last one only elsewhere.
        let misplaced = owners.last().unwrap().streams[0];
        let (known, here) = (owners.clone(), id);
        let placed = move |stream: &StreamId| {
            let listed = known.iter().find(|listed| listed.streams.contains(stream))?;
            (*stream != misplaced).then_some((listed.owner, here))
        };
        let outputs = attend_as(&mut caller, &terms, &phones[0], placed);
        if outputs.is_empty() {
            break;
        }
        assert!(asked(&outputs, &world, &phones[0]).contains(&misplaced));
        (calls, _) = (calls + 1, owners.pop());
    }
    assert_eq!(calls, 8);
    let all = phones[1..].iter().flat_map(|phone| attend(&mut caller, &terms, phone));
    assert_eq!(all.count(), 0, "it has not attended");
    let late = caller.deadline().unwrap();
    let outputs = caller.poll(late).commit(&mut Memory::default()).unwrap();
    let [EpochOutput::Listed(announced)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(announced.plan().roster.len(), 19, "nobody else is missing");
}
