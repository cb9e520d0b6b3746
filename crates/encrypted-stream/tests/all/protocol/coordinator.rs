//! The service's side: what it accepts from controllers, and that a restart does not change
//! what it sends.

use std::collections::BTreeSet;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Signed, SignedMessageError};
use alpheus_encrypted_stream::error::{
    ExclusionError, MessageError, ReleaseError, WindowRefusalError,
};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::messages::{
    Acceptance, ControllerMessage, Presence, ServiceMessage, Token, WindowRefusal,
};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Fraction;
use alpheus_time::Span;

use crate::protocol::net::Net;
use crate::protocol::withdrawals::revoke;
use crate::protocol::world::{Setup, World, after, window};

fn digests(net: &Net, of: impl Fn(&ServiceMessage) -> Option<Digest>) -> BTreeSet<Digest> {
    net.sent.iter().filter_map(|(_, message)| of(message)).collect()
}

fn memberships(net: &Net) -> BTreeSet<Digest> {
    digests(net, |message| match message {
        ServiceMessage::Membership { membership, .. } => Some(membership.digest()),
        _ => None,
    })
}

fn opening_sets(net: &Net) -> BTreeSet<Digest> {
    digests(net, |message| match message {
        ServiceMessage::OpeningSet(set) => Some(set.digest()),
        _ => None,
    })
}

#[test]
fn a_restarted_service_repeats_its_messages() {
    let mut net = Net::new(Setup::new(4));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    // Its store now has M. One controller does not return.
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.asleep = vec![3];
    net.restart_service(after(0).plus(Span::seconds(1)));
    net.timeout(after(0).plus(Span::seconds(4)));
    // Its store also has S, without that controller. The controller returns too late.
    net.lost = |_, _| false;
    net.asleep = vec![];
    net.restart_service(after(0).plus(Span::seconds(5)));
    assert_eq!((memberships(&net).len(), opening_sets(&net).len()), (1, 1));
    let opened = net.outcomes[0].result.as_ref().unwrap();
    assert_eq!((opened.outputs.clone(), opened.population), (net.world.truth(0..3, 0), 3));
    // After the end it remembers the window, and nothing else of it.
    net.restart_service(after(0).plus(Span::seconds(6)));
    assert!(net.coordinator.knows(window(0)));
    assert_eq!(net.store.values(Scope::Service(net.world.id())).len(), 1);
    net.close(1);
    assert_eq!(net.outcomes.len(), 2);
    assert!(net.outcomes[1].result.is_ok());
}

#[test]
fn a_retired_plan_stays_retired_after_a_restart() {
    let mut net = Net::new(Setup::new(2));
    let step = net.coordinator.retire();
    net.run(after(0), step);
    net.restart_service(after(0));
    net.close(0);
    assert!(net.outcomes.is_empty());
}

/// The key that a controller signs with; in these tests a colluder's.
pub fn signing_key(net: &Net, position: u32) -> SigningKey {
    key_of(&net.world, position)
}

/// The key with which a controller signs.
pub fn key_of(world: &World, position: u32) -> SigningKey {
    let seed = [world.seats[position as usize].0; 32];
    SigningKey::from_seed(&derive(&seed, labels::IDENTITY_SIGNING, &[]))
}

/// A window whose tokens have been requested, before any has come.
fn collecting() -> (Net, Token) {
    let mut net = Net::new(Setup::new(3));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    let token = Token {
        plan: net.world.id(),
        window: window(0),
        controller: 1,
        membership: *memberships(&net).first().unwrap(),
        words: vec![7; net.world.plan.release.outputs()],
    };
    (net, token)
}

pub fn receive(net: &mut Net, from: u32, message: &ControllerMessage) -> Result<(), MessageError> {
    let message = net.coordinator.verify(message, from)?;
    let step = net.coordinator.handle(&message, after(0), &net.world)?;
    net.run(after(0), step);
    Ok(())
}

#[test]
fn a_forged_message_in_a_batch_affects_only_its_sender() {
    let (net, token) = collecting();
    let said = |controller: u32, key: u32| {
        let token = Token { controller, ..token.clone() };
        ControllerMessage::Token(Signed::new(&token, &signing_key(&net, key)))
    };
    let messages = [said(0, 0), said(1, 2), said(2, 2), said(0, 0), said(1, 1)];
    let from = [0, 1, 2, 9, 2];
    let placed: Vec<_> = from.into_iter().zip(&messages).collect();
    let together = net.coordinator.verify_all(&placed);
    assert_eq!(together.len(), placed.len());
    for ((from, message), heard) in placed.into_iter().zip(together) {
        let alone = net.coordinator.verify(message, from).map(|_| ());
        assert_eq!(heard.map(|_| ()), alone, "from {from}");
        assert_eq!(alone.is_ok(), from == 0 || (from == 2 && message == &messages[2]));
    }
}

#[test]
fn a_mismatched_token_is_dropped_and_harms_nobody() {
    let (mut net, token) = collecting();
    let key = signing_key(&net, 1);
    let mut refuse = |change: &dyn Fn(&mut Token)| {
        let mut token = token.clone();
        change(&mut token);
        let message = ControllerMessage::Token(Signed::new(&token, &key));
        receive(&mut net, 1, &message).unwrap_err()
    };
    assert_eq!(refuse(&|t| t.plan = PlanId([0; 32])), MessageError::OtherPlan);
    assert_eq!(refuse(&|t| t.window = window(1)), MessageError::UnknownWindow);
    assert_eq!(refuse(&|t| t.membership = Digest([0; 32])), MessageError::Mismatched);
    assert_eq!(refuse(&|t| t.controller = 0), MessageError::Malformed);
    assert_eq!(refuse(&|t| t.words.truncate(1)), MessageError::Malformed);
    // Another controller's token, or one from a position beyond the roster.
    let message = ControllerMessage::Token(Signed::new(&token, &key));
    let forged = MessageError::Rejected(SignedMessageError::Signature);
    assert_eq!(receive(&mut net, 2, &message), Err(forged));
    assert_eq!(receive(&mut net, 9, &message), Err(MessageError::UnknownController));
    // The window continues.
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert!(net.outcomes[0].result.is_ok());
}

#[test]
fn a_colluders_false_token_leads_to_an_error_and_never_to_a_result() {
    let (mut net, token) = collecting();
    // It receives M and sends a token that is not its own.
    let is_membership =
        |message: &ServiceMessage| matches!(message, ServiceMessage::Membership { .. });
    let asked = net.sent.iter().find(|(to, message)| *to == 1 && is_membership(message));
    let heard = net.inbox.open(&asked.unwrap().1).unwrap();
    let step = net.controllers[1].handle(&heard, after(0));
    step.commit(&mut net.store).unwrap();
    let message = ControllerMessage::Token(Signed::new(&token, &signing_key(&net, 1)));
    receive(&mut net, 1, &message).unwrap();
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(net.outcomes[0].result, Err(ReleaseError::CheckWord));
}

#[test]
fn a_presence_that_contradicts_its_summons_is_dropped() {
    let mut net = Net::new(Setup { streams_each: 2, ..Setup::new(2) });
    net.lost = |_, message| matches!(message, ServiceMessage::Summons(_));
    net.close(0);
    let summons = net.sent.iter().find_map(|(to, message)| match message {
        ServiceMessage::Summons(signed) if *to == 0 => Some(signed.digest()),
        _ => None,
    });
    let presence = Presence {
        plan: net.world.id(),
        window: window(0),
        controller: 0,
        summons: summons.unwrap(),
        accepted: vec![0, 1],
        excluded: vec![],
        owners: 2,
        silent: 0,
        mask_key: None,
    };
    let key = signing_key(&net, 0);
    let mut say = |change: &dyn Fn(&mut Presence)| {
        let mut presence = presence.clone();
        change(&mut presence);
        receive(&mut net, 0, &ControllerMessage::Presence(Signed::new(&presence, &key)))
    };
    assert_eq!(say(&|p| p.owners = 3), Err(MessageError::Malformed));
    assert_eq!(say(&|p| p.owners = 1), Err(MessageError::Malformed));
    // The borders show that nobody is silent.
    assert_eq!(say(&|p| p.silent = 1), Err(MessageError::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![1, 0]), Err(MessageError::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![0, 1, 2]), Err(MessageError::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![0]), Err(MessageError::Malformed));
    // A receipt would have it in this order, and its readers would refuse the row.
    let excluded = [1, 0].map(|position| (position, ExclusionError::NotTiled));
    let backwards = |p: &mut Presence| {
        (p.accepted, p.excluded, p.owners) = (vec![], excluded.to_vec(), 0);
    };
    assert_eq!(say(&backwards), Err(MessageError::Malformed));
    assert_eq!(say(&|p| p.summons = Digest([0; 32])), Err(MessageError::Mismatched));
    assert_eq!(say(&|_| {}), Ok(()));
}

#[test]
fn an_outdated_refusal_changes_nothing() {
    let (mut net, token) = collecting();
    let declined = WindowRefusal {
        plan: token.plan,
        window: token.window,
        controller: net.world.plan.roster[1],
        about: Digest([0; 32]),
        reason: WindowRefusalError::AlreadySpent,
    };
    let key = signing_key(&net, 1);
    let message = ControllerMessage::WindowRefusal(Signed::new(&declined, &key));
    assert_eq!(receive(&mut net, 1, &message), Err(MessageError::Mismatched));
    let others = WindowRefusal { controller: net.world.plan.roster[0], ..declined.clone() };
    let message = ControllerMessage::WindowRefusal(Signed::new(&others, &key));
    assert_eq!(receive(&mut net, 1, &message), Err(MessageError::Malformed));
    // A refusal of a current request counts, with its reason.
    let now = WindowRefusal { about: token.membership, ..declined };
    receive(&mut net, 1, &ControllerMessage::WindowRefusal(Signed::new(&now, &key))).unwrap();
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(net.outcomes[0].refused[&WindowRefusalError::AlreadySpent], 1);
    assert_eq!(
        net.outcomes[0].result,
        Err(ReleaseError::ControllerRefused(WindowRefusalError::AlreadySpent))
    );
}

#[test]
fn an_acceptance_must_name_this_plan_and_its_sender() {
    let mut net = Net::new(Setup::new(2));
    let key = signing_key(&net, 0);
    let accept = |plan, controller| {
        ControllerMessage::Acceptance(Signed::new(&Acceptance { plan, controller }, &key))
    };
    let id = net.world.id();
    assert_eq!(receive(&mut net, 0, &accept(PlanId([1; 32]), 0)), Err(MessageError::OtherPlan));
    assert_eq!(receive(&mut net, 0, &accept(id, 1)), Err(MessageError::Malformed));
    assert_eq!(receive(&mut net, 0, &accept(id, 0)), Ok(()));
    assert_eq!(net.coordinator.answer(0), Some(&Ok(())));
}

#[test]
fn a_window_that_waits_for_an_opening_survives_a_restart_after_many_others() {
    let windows = 600;
    let dropout = Fraction { numerator: 2, denominator: 5 };
    let mut net = Net::new(Setup { windows, dropout, ..Setup::new(5) });
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.close(0);
    assert!(net.outcomes.is_empty());
    net.lost = |_, _| false;
    (1..windows).for_each(|number| net.close(number));
    net.restart_service(after(windows));
    net.timeout(after(windows).plus(Span::seconds(60)));
    assert_eq!(net.outcomes.len() as u64, windows);
}

#[test]
fn a_controller_that_refuses_m_excludes_only_itself() {
    let mut net = Net::new(Setup::new(5));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    // An owner withdraws consent between presence and token.
    let stream = net.world.plan.streams[2].stream;
    let step = revoke(&mut net.controllers[2], after(0), stream);
    step.commit(&mut net.store).unwrap();
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet { .. });
    net.timeout(after(0).plus(Span::seconds(1)));
    assert!(net.outcomes.is_empty(), "S without it waits for its openings");
}

#[test]
fn a_controller_that_withholds_openings_is_left_out_after_a_while() {
    let windows = 10;
    let mut net = Net::new(Setup { windows: windows + 1, ..Setup::new(5) });
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    (0..windows).for_each(|number| net.close(number));
    let late = net.outcomes.last().expect("some windows continued");
    assert!(late.result.is_ok());
    assert_eq!(late.excluded.get(&ExclusionError::ControllerAbsent), Some(&1));
    assert!((net.outcomes.len() as u64) < windows, "the first windows wait: all of S is needed");
    // It returns, and nothing is lost.
    net.lost = |_, _| false;
    net.timeout(after(windows).plus(Span::seconds(60)));
    net.close(windows);
    assert_eq!(net.outcomes.len() as u64, windows + 1);
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(net.outcomes.last().is_some_and(|outcome| outcome.excluded.is_empty()));
}
