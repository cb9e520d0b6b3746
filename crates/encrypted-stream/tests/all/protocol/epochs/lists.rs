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
    let malformed = Some(MessageError::Malformed);
    assert_eq!(verify(one, &signed, OwnerId([0; 32]), id), malformed, "another's stream");
    assert_eq!(verify(one, &signed, owner, two.entry.controller), malformed, "placed elsewhere");
    let other = Plan { nonce: [9; 16], ..terms.clone() };
    assert_eq!(verify(one, &one.attendance(&other), owner, id), Some(MessageError::OtherPlan));
    let stranger = Phone::new(&world, 99);
    let said = verify(&stranger, &stranger.attendance(&terms), owner, id);
    assert_eq!(said, Some(MessageError::UnknownController));
}

/// An owner whose streams are at two controllers takes part with the larger one.
#[test]
fn an_owner_with_two_homes_is_listed_once() {
    let (world, terms) = world();
    let mut phones: Vec<Phone> = (0..30).map(|number| Phone::new(&world, number)).collect();
    let mut second = owner(29);
    second.owner = phones[0].entry.owners[0].owner;
    phones[29].entry.owners = vec![second];
    let mut caller = calling(&world, &terms, &phones);
    let outputs: Vec<_> =
        phones.iter().flat_map(|phone| attend(&mut caller, &terms, phone)).collect();
    let [EpochOutput::Listed(announced)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(announced.plan().roster.len(), 29);
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
