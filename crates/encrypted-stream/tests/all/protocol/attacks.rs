//! What a malicious service may try with a window, and what it gets.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::merkle::Proof;
use alpheus_crypto::signed_message::{Signed, SignedMessageError};
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::error::{RestoreError, WindowRefusalError};
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::ledger::{Fence, Scope};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{ControllerMessage, Membership, ServiceMessage, Summons};
use alpheus_policy::plan::{Fraction, Plan, PopulationBounds};
use alpheus_time::{Span, Timestamp, Window};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::identities::owner;
use crate::protocol::withdrawals::revoke;
use crate::protocol::world::{
    EPOCH, Memory, Setup, WINDOW, after, key, policy, start, stream_id, window,
};

/// Three controllers with two owners each; one of them may collude.
fn three() -> Evil {
    let setup = Setup { streams_each: 2, alpha: Fraction::THIRD, ..Setup::new(3) };
    Evil::new(setup)
}

/// Five controllers; none may collude and two may drop out.
fn five() -> Evil {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Evil::new(Setup { dropout, ..Setup::new(5) })
}

#[test]
fn the_same_request_gets_the_same_bytes() {
    let mut evil = three();
    let draft = evil.gather();
    let (message, set) = (evil.membership(&draft, 0), evil.set(&draft, &[0, 1, 2]));
    let first = evil.ask(0, after(0), &message).unwrap();
    assert_eq!(evil.ask(0, after(9), &message).unwrap(), first);
    let opening = evil.ask(0, after(0), &set).unwrap();
    assert_eq!(evil.ask(0, after(9), &set).unwrap(), opening);
}

#[test]
fn a_second_membership_for_a_window_is_refused() {
    let mut evil = five();
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let mut other = draft.clone();
    other.members.pop();
    assert_eq!(evil.token(0, &other), Err(WindowRefusalError::AlreadySpent));
}

#[test]
fn controllers_with_different_memberships_do_not_open_together() {
    let mut evil = five();
    let draft = evil.gather();
    let mut other = draft.clone();
    other.members.pop();
    let tokens: Vec<_> =
        (0..4).map(|p| evil.token(p, if p < 2 { &draft } else { &other }).unwrap()).collect();
    // One S names one M; a member with another M refuses it.
    let set = evil.set(&draft, &[0, 1, 2, 3]);
    let first = evil.opening(0, &set).unwrap();
    let second = evil.opening(1, &set).unwrap();
    assert_eq!(evil.opening(2, &set), Err(WindowRefusalError::OtherMembership));
    let others = evil.set(&other, &[0, 1, 2, 3]);
    let openings =
        [first, second, evil.opening(2, &others).unwrap(), evil.opening(3, &others).unwrap()];
    let (tokens, openings): (Vec<_>, Vec<_>) = (tokens.iter().collect(), openings.iter().collect());
    assert_ne!(evil.add_up(&[0, 1, 2, 3], &tokens, &openings).last(), Some(&0));
}

#[test]
fn controllers_with_different_opening_sets_do_not_open_together() {
    let mut evil = five();
    let draft = evil.gather();
    let tokens: Vec<_> = (0..5).map(|p| evil.token(p, &draft).unwrap()).collect();
    let (all, four) = (evil.set(&draft, &[0, 1, 2, 3, 4]), evil.set(&draft, &[0, 1, 2, 3]));
    let mut openings = vec![];
    for p in 0..5 {
        openings.push(evil.opening(p, if p < 2 { &all } else { &four }));
    }
    assert_eq!(openings[4], Err(WindowRefusalError::NotInOpeningSet));
    // Nobody answers a second set.
    assert_eq!(evil.opening(0, &four), Err(WindowRefusalError::AlreadyOpened));
    assert_eq!(evil.opening(2, &all), Err(WindowRefusalError::AlreadyOpened));
    // Answers to different sets do not open together: to four, to all, to any.
    let openings: Vec<_> = openings.iter().flatten().collect();
    let tokens: Vec<_> = tokens.iter().take(4).collect();
    let sum = evil.add_up(&[0, 1, 2, 3], &tokens, &openings);
    assert_ne!(sum.last(), Some(&0));
    // Four equal answers would have opened.
    let mut honest = five();
    let draft = honest.gather();
    let tokens: Vec<_> = (0..5).map(|p| honest.token(p, &draft).unwrap()).collect();
    let four = honest.set(&draft, &[0, 1, 2, 3]);
    let openings: Vec<_> = (0..4).map(|p| honest.opening(p, &four).unwrap()).collect();
    let (tokens, openings): (Vec<_>, Vec<_>) =
        (tokens.iter().take(4).collect(), openings.iter().collect());
    let sum = honest.add_up(&[0, 1, 2, 3], &tokens, &openings);
    assert_eq!(sum, honest.world.truth(0..4, 0));
}

#[test]
fn a_late_token_stays_hidden() {
    let mut evil = five();
    let draft = evil.gather();
    let tokens: Vec<_> = (0..5).map(|p| evil.token(p, &draft).unwrap()).collect();
    // The fifth token is withheld, the four are opened, and then it turns up.
    let four = evil.set(&draft, &[0, 1, 2, 3]);
    let openings: Vec<_> = (0..4).map(|p| evil.opening(p, &four).unwrap()).collect();
    let (with_late, openings): (Vec<_>, Vec<_>) =
        (tokens.iter().collect(), openings.iter().collect());
    let sum = evil.add_up(&[0, 1, 2, 3, 4], &with_late, &openings);
    assert_ne!(sum.last(), Some(&0));
    let late = evil.add_up(&[4], &[&tokens[4]], &[]);
    assert_ne!(late.last(), Some(&0));
    // Neither those who opened nor the fifth alone answers a set that includes it.
    let all = evil.set(&draft, &[0, 1, 2, 3, 4]);
    assert_eq!(evil.opening(0, &all), Err(WindowRefusalError::AlreadyOpened));
    let alone = evil.set(&draft, &[4]);
    assert_eq!(
        evil.opening(4, &alone),
        Err(WindowRefusalError::BelowQuorum { held: 1, needed: 3 })
    );
}

#[test]
fn claiming_that_all_others_dropped_out_yields_no_unmasked_token() {
    let mut evil = three();
    let mut draft = evil.gather();
    draft.members.retain(|(p, ..)| *p == 0);
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::BelowQuorum { held: 1, needed: 3 }));
}

#[test]
fn a_lowered_population_is_refused_in_membership_and_opening_set() {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    let mut evil = Evil::new(Setup { minimum: 5, dropout, ..Setup::new(5) });
    let draft = evil.gather();
    let mut four = draft.clone();
    four.members.pop();
    let too_small = WindowRefusalError::PopulationTooSmall { counted: 4, needed: 5 };
    assert_eq!(evil.token(0, &four), Err(too_small));
    for p in 0..5 {
        evil.token(p, &draft).unwrap();
    }
    let set = evil.set(&draft, &[0, 1, 2, 3]);
    assert_eq!(evil.opening(0, &set), Err(too_small));
}

#[test]
fn owners_invented_by_a_colluder_do_not_count() {
    let mut evil = Evil::new(Setup { minimum: 4, alpha: Fraction::THIRD, ..Setup::new(4) });
    let draft = evil.gather();
    let refused = WindowRefusalError::PopulationTooSmall { counted: 3, needed: 4 };
    assert_eq!(evil.token(0, &draft), Err(refused));
    let mut invented = draft.clone();
    invented.members[3].2 = 1_000;
    assert_eq!(evil.token(0, &invented), Err(WindowRefusalError::OwnersInvented));
}

#[test]
fn a_misstated_count_of_owners_is_refused() {
    let mut evil = three();
    let mut draft = evil.gather();
    draft.members[0].2 += 1;
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::OwnersMisstated));
}

#[test]
fn a_population_above_the_plans_bound_is_refused() {
    let mut evil = Evil::unannounced(Setup { streams_each: 2, ..Setup::new(3) });
    let population = PopulationBounds { max: 5, ..evil.world.plan.population };
    let plan = Plan { population, ..evil.world.plan.clone() };
    evil.world.take_over(plan);
    evil.accept();
    let draft = evil.gather();
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::PopulationTooLarge));
}

#[test]
fn a_membership_must_contain_the_signed_presence() {
    let mut evil = three();
    let draft = evil.gather();
    let mut other = draft.clone();
    other.members[0].1 = draft.members[1].1;
    assert_eq!(evil.token(0, &other), Err(WindowRefusalError::PresenceMisstated));
    // Nor does another member's position in the tree work.
    let message = evil.membership(&draft, 1);
    assert_eq!(evil.token_for(0, &message), Err(WindowRefusalError::PresenceMisstated));
    // Nor does its own presence in another member's position.
    let mut swapped = draft.clone();
    (swapped.members[0].1, swapped.members[1].1) = (draft.members[1].1, draft.members[0].1);
    let message = evil.membership(&swapped, 1);
    assert_eq!(evil.token_for(0, &message), Err(WindowRefusalError::PresenceMisstated));
}

#[test]
fn a_membership_without_the_controller_or_its_presence_is_refused() {
    let mut evil = three();
    let mut draft = evil.gather();
    draft.members.remove(0);
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::NotAMember));
    let mut silent = three();
    let members = vec![(0, Digest([0; 32]), 2), (1, Digest([0; 32]), 2)];
    let draft = Draft { window: window(0), members };
    assert_eq!(silent.token(0, &draft), Err(WindowRefusalError::NotPresent));
}

#[test]
fn a_membership_with_inconsistent_numbers_is_refused() {
    let mut evil = three();
    let draft = evil.gather();
    let forms: [(u32, Vec<u32>); 3] = [(3, vec![2, 2]), (4, vec![2, 2, 2, 2]), (2, vec![2, 2])];
    for (roster, owners) in forms {
        let membership = Membership {
            plan: evil.world.id(),
            window: draft.window,
            members: RosterSet::full(roster),
            owners,
            root: Digest([0; 32]),
            mask_keys: Vec::new(),
        };
        let membership = Signed::new(&membership, &evil.world.service);
        let proof = Proof { index: 0, size: 1, path: vec![] };
        let message = ServiceMessage::Membership { membership, proof };
        assert_eq!(evil.token_for(0, &message), Err(WindowRefusalError::MalformedMembership));
    }
}

#[test]
fn an_opening_set_must_contain_the_controller_and_lie_within_the_membership() {
    let mut evil = five();
    let mut draft = evil.gather();
    draft.members.pop();
    let before = evil.set(&draft, &[0, 1, 2]);
    assert_eq!(evil.opening(0, &before), Err(WindowRefusalError::NoToken));
    evil.token(0, &draft).unwrap();
    let (without, beyond) = (evil.set(&draft, &[1, 2, 3]), evil.set(&draft, &[0, 1, 2, 4]));
    assert_eq!(evil.opening(0, &without), Err(WindowRefusalError::NotInOpeningSet));
    assert_eq!(evil.opening(0, &beyond), Err(WindowRefusalError::NotASubset));
    let few = evil.set(&draft, &[0, 1]);
    assert_eq!(evil.opening(0, &few), Err(WindowRefusalError::BelowQuorum { held: 2, needed: 3 }));
}

#[test]
fn a_plan_with_one_controller_has_nothing_to_open() {
    let mut evil = Evil::new(Setup::new(1));
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let set = evil.set(&draft, &[0]);
    assert_eq!(evil.opening(0, &set), Err(WindowRefusalError::NothingToOpen));
}

#[test]
fn a_window_that_is_not_over_or_not_of_the_plan_is_refused() {
    let mut evil = three();
    let streams = evil.streams(0);
    let summons = evil.summons(0, streams);
    let early = Timestamp(after(0).0 - 1);
    assert_eq!(evil.ask(0, early, &summons), Err(WindowRefusalError::NotEnded));
    let half = Span(WINDOW.0 / 2);
    let shifted = Window { start: window(0).start.plus(half), end: window(0).end.plus(half) };
    let double = Window { start: window(0).start, end: window(1).end };
    let before = Window { start: Timestamp(EPOCH - WINDOW.0), end: Timestamp(EPOCH) };
    for wrong in [shifted, double, before] {
        let (plan, controller) = (evil.world.id(), 0);
        let summons = Summons { plan, window: wrong, controller, streams: vec![] };
        let summons = ServiceMessage::Summons(Signed::new(&summons, &evil.world.service));
        assert_eq!(evil.ask(0, after(5), &summons), Err(WindowRefusalError::WrongWindow));
    }
}

#[test]
fn a_request_for_another_plan_or_controller_is_refused() {
    let mut evil = three();
    let streams = evil.streams(1);
    let others = evil.summons(1, streams);
    assert_eq!(evil.ask(0, after(0), &others), Err(WindowRefusalError::NotForMe));
    let other = three_with_seed(9);
    let streams = other.streams(0);
    let summons = other.summons(0, streams);
    assert_eq!(evil.ask(0, after(0), &summons), Err(WindowRefusalError::UnknownPlan));
}

fn three_with_seed(seed: u8) -> Evil {
    Evil::new(Setup { seed, streams_each: 2, alpha: Fraction::THIRD, ..Setup::new(3) })
}

#[test]
fn a_message_that_the_service_did_not_sign_is_rejected() {
    let mut evil = three();
    let draft = evil.gather();
    let ServiceMessage::OpeningSet(set) = evil.set(&draft, &[0, 1, 2]) else { panic!() };
    let content = set.open(&evil.world.service.verifying_key()).unwrap();
    let forged = ServiceMessage::OpeningSet(Signed::new(&*content, &key(77)));
    assert_eq!(evil.inbox.open(&forged).err(), Some(SignedMessageError::Signature));
    // Every truncation of a message, and every other kind of message, is refused.
    let bytes = postcard::to_allocvec(&ServiceMessage::OpeningSet(set)).unwrap();
    for cut in 0..bytes.len() {
        let heard = postcard::from_bytes::<ServiceMessage>(&bytes[..cut]);
        assert!(heard.is_err(), "cut at {cut}");
    }
    for kind in [1, 4, 5] {
        let mut other = bytes.clone();
        other[0] = kind;
        let heard = postcard::from_bytes::<ServiceMessage>(&other).unwrap();
        assert_eq!(evil.inbox.open(&heard).err(), Some(SignedMessageError::Signature));
    }
}

#[test]
fn another_deployments_service_is_refused_despite_a_valid_signature() {
    let mut evil = three();
    let streams = evil.streams(0);
    let ServiceMessage::Summons(summons) = evil.summons(0, streams) else { panic!() };
    let content = summons.open(&evil.world.service.verifying_key()).unwrap();
    let other = Signed::new(&*content, &key(77));
    let verified = other.open(&key(77).verifying_key()).unwrap();
    let refused = evil.controllers[0].handle_summons(&verified, after(0));
    assert_eq!(refused.err(), Some(WindowRefusalError::NotTheService));
}

#[test]
fn a_summons_after_the_spend_changes_nothing() {
    let mut evil = three();
    let draft = evil.gather();
    let token = evil.token(0, &draft).unwrap();
    let one = evil.streams(0).into_iter().take(1).collect();
    let summons = evil.summons(0, one);
    assert_eq!(evil.ask(0, after(0), &summons), Err(WindowRefusalError::AlreadySpent));
    assert_eq!(evil.token(0, &draft), Ok(token));
}

#[test]
fn a_revocation_between_token_and_opening_stops_the_opening() {
    let mut evil = three();
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let step = revoke(&mut evil.controllers[0], after(0), stream_id(0));
    step.commit(&mut evil.store).unwrap();
    let set = evil.set(&draft, &[0, 1, 2]);
    assert_eq!(evil.opening(0, &set), Err(WindowRefusalError::PolicyChanged));
    // What was sent before is not sent again either.
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::PolicyChanged));
}

/// A controller restored from a store, at a time, with or without a fence.
fn restore(
    evil: &Evil,
    store: &Memory,
    now: Timestamp,
    fence: Option<Fence>,
) -> Result<Controller, RestoreError> {
    let world = &evil.world;
    let host = HostRecords::read(store.values(Scope::Host), &world.deployment)?;
    let identity = world.identity(0);
    let values = store.values(Scope::Controller(identity.id()));
    let deployment = world.deployment.clone();
    Controller::restore(identity, deployment, world.held(0), &host, values, now, start(fence))
        .map(|(controller, _)| controller)
}

#[test]
fn a_crash_between_spend_and_send_leads_to_the_same_token() {
    let mut evil = three();
    let draft = evil.gather();
    let (message, set) = (evil.membership(&draft, 0), evil.set(&draft, &[0, 1, 2]));
    let token = evil.ask(0, after(0), &message).unwrap();
    let fence = Some(evil.controllers[0].fence());
    evil.controllers[0] = restore(&evil, &evil.store, after(0), fence).unwrap();
    assert_eq!(evil.ask(0, after(0), &message).unwrap(), token);
    let mut other = draft.clone();
    other.members.pop();
    assert_eq!(evil.token(0, &other), Err(WindowRefusalError::AlreadySpent));
    // Openings of tokens in the ledger stay available while the fence is valid. Openings in
    // the ledger are repeated even without it, if the ledger shows that the fence had them, once the
    // owners have confirmed.
    let opening = evil.ask(0, after(0), &set).unwrap();
    let signed = evil.world.annotate(stream_id(0), 2, policy(&evil.world.setup));
    let step = evil.controllers[0].annotate(&signed, &owner(stream_id(0)), after(0)).unwrap();
    step.commit(&mut evil.store).unwrap();
    evil.controllers[0] = restore(&evil, &evil.store, after(0), None).unwrap();
    for stream in [stream_id(0), stream_id(1)] {
        let signed = evil.world.annotate(stream, 3, policy(&evil.world.setup));
        let owner = owner(stream);
        let step = evil.controllers[0].annotate(&signed, &owner, after(0)).unwrap();
        step.commit(&mut evil.store).unwrap();
    }
    assert_eq!(evil.ask(0, after(0), &set).unwrap(), opening);
    let narrower = evil.set(&draft, &[0, 1]);
    assert_eq!(evil.opening(0, &narrower), Err(WindowRefusalError::AlreadyOpened));
}

#[test]
fn after_an_old_ledger_no_closed_window_is_released() {
    let mut evil = three();
    let old = evil.store.clone();
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let fence = evil.controllers[0].fence();
    let (begun, later) = (evil.world.report(1), evil.world.report(2));
    let first = evil.report.clone();
    for fence in [None, Some(fence)] {
        evil.report = first.clone();
        evil.controllers[0] = restore(&evil, &old, after(0), fence).unwrap();
        let streams = evil.streams(0);
        let summons = evil.summons(0, streams);
        assert_eq!(evil.ask(0, after(0), &summons), Err(WindowRefusalError::CountsAsReleased));
        let mut other = draft.clone();
        other.members.pop();
        assert_eq!(evil.token(0, &other), Err(WindowRefusalError::CountsAsReleased));
        // Windows that had begun may overlap those of a lost plan; later ones are released.
        evil.report = begun.clone();
        let streams = evil.streams(0);
        let summons = evil.summons(0, streams);
        assert_eq!(evil.ask(0, after(1), &summons), Err(WindowRefusalError::CountsAsReleased));
        evil.report = later.clone();
        let streams = evil.streams(0);
        let summons = evil.summons(0, streams);
        assert!(evil.ask(0, after(2), &summons).is_ok());
    }
}

#[test]
fn a_service_that_never_closes_a_window_does_not_fill_the_memory() {
    let mut evil = Evil::new(Setup::new(1));
    let summon = |evil: &mut Evil, number| {
        evil.report.window = window(number);
        let summons = evil.summons(0, vec![]);
        evil.ask(0, after(2000), &summons).map(|_| ())
    };
    for number in 0..1100 {
        assert_eq!(summon(&mut evil, number), Ok(()));
    }
    assert_eq!(summon(&mut evil, 0), Err(WindowRefusalError::Settled), "the oldest are forgotten");
    assert_eq!(summon(&mut evil, 1099), Ok(()));
}

#[test]
fn keys_without_their_own_ledger_cannot_start() {
    let mut evil = three();
    evil.gather();
    let empty = restore(&evil, &Memory::default(), after(0), None);
    assert_eq!(empty.err(), Some(RestoreError::NoLedger));
    // Another controller's records under this controller's prefix.
    let (own, other) = (evil.controllers[0].id(), evil.controllers[1].id());
    let (own, other) = (Scope::Controller(own).prefix(), Scope::Controller(other).prefix());
    let mut mixed: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (key, value) in &evil.store.map {
        if let Some(rest) = key.strip_prefix(other.as_slice()) {
            mixed.insert([own.as_slice(), rest].concat(), value.clone());
        }
    }
    let store = Memory { map: mixed, commits: 0 };
    assert_eq!(restore(&evil, &store, after(0), None).err(), Some(RestoreError::OtherController));
    // A damaged record makes the ledger unreadable.
    let mut damaged = evil.store.clone();
    let key = damaged.map.keys().find(|key| key.starts_with(&own)).unwrap().clone();
    damaged.map.get_mut(&key).unwrap().pop();
    let refused = restore(&evil, &damaged, after(0), None).err();
    assert!(matches!(refused, Some(RestoreError::BadRecord { .. })));
}

#[test]
fn messages_without_a_request_get_no_answer() {
    let mut evil = three();
    let draft = evil.gather();
    let message = evil.membership(&draft, 0);
    let answer = evil.say(0, after(0), &message).unwrap();
    // A token of controller 0 is not one of controller 1.
    let ControllerMessage::Token(token) = answer else { panic!() };
    let other = evil.world.announced.verifying()[1];
    assert_eq!(token.open(&other).err(), Some(SignedMessageError::Signature));
    let elsewhere = Inbox::new(three_with_seed(2).world.deployment).open(&message);
    assert!(elsewhere.is_ok(), "one deployment, one service");
}
