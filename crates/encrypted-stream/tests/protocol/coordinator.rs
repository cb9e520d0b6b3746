//! The service's side: what it takes from controllers, and that it says the
//! same after a restart.

use std::collections::BTreeSet;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::{Rejected, Signed};
use alpheus_encrypted_stream::error::{Exclusion, Failure, NotTaken, Refused};
use alpheus_encrypted_stream::ledger::Scope;
use alpheus_encrypted_stream::messages::{
    Acceptance, ControllerMessage, Declined, Presence, ServiceMessage, Token,
};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Fraction;
use alpheus_policy::time::Span;

use crate::net::Net;
use crate::world::{Setup, after, window};

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
fn a_service_that_comes_back_says_the_same_again() {
    let mut net = Net::new(Setup::new(4));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    // Its store now has M. One controller does not come back.
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet(_));
    net.asleep = vec![3];
    net.restart_service(after(0).plus(Span::seconds(1)));
    net.timeout(after(0).plus(Span::seconds(4)));
    // And S, without it. Now it does, but its time has passed.
    net.lost = |_, _| false;
    net.asleep = vec![];
    net.restart_service(after(0).plus(Span::seconds(5)));
    assert_eq!((memberships(&net).len(), opening_sets(&net).len()), (1, 1));
    let opened = net.outcomes[0].result.as_ref().unwrap();
    assert_eq!((opened.outputs.clone(), opened.population), (net.world.truth(0..3, 0), 3));
    // After the end it knows the window, and keeps nothing of it but that.
    net.restart_service(after(0).plus(Span::seconds(6)));
    assert!(net.coordinator.knows(window(0)));
    assert_eq!(net.store.values(Scope::Service(net.world.id())).len(), 1);
    net.close(1);
    assert_eq!(net.outcomes.len(), 2);
    assert!(net.outcomes[1].result.is_ok());
}

#[test]
fn a_plan_that_was_retired_stays_so() {
    let mut net = Net::new(Setup::new(2));
    let step = net.coordinator.retire();
    net.run(after(0), step);
    net.restart_service(after(0));
    net.close(0);
    assert!(net.outcomes.is_empty());
}

/// The key that a controller signs with: a colluder's, in these tests.
pub fn signing_key(net: &Net, position: u32) -> SigningKey {
    let seed = [net.world.seats[position as usize].0; 32];
    SigningKey::from_seed(&derive(&seed, labels::IDENTITY_SIGNING, &[]))
}

/// A window in which tokens have been asked for, and none has come.
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

fn receive(net: &mut Net, from: u32, message: &ControllerMessage) -> Result<(), NotTaken> {
    let step = net.coordinator.receive(after(0), from, message, &net.world)?;
    net.run(after(0), step);
    Ok(())
}

#[test]
fn a_forged_message_among_many_keeps_nobody_else_from_being_heard() {
    let (net, token) = collecting();
    let said = |controller: u32, key: u32| {
        let token = Token { controller, ..token.clone() };
        ControllerMessage::Token(Signed::new(&token, &signing_key(&net, key)))
    };
    let messages = [said(0, 0), said(1, 2), said(2, 2), said(0, 0), said(1, 1)];
    let from = [0, 1, 2, 9, 2];
    let placed: Vec<_> = from.into_iter().zip(&messages).collect();
    let together = net.coordinator.hear_all(&placed);
    assert_eq!(together.len(), placed.len());
    for ((from, message), heard) in placed.into_iter().zip(together) {
        let alone = net.coordinator.hear(from, message).map(|_| ());
        assert_eq!(heard.map(|_| ()), alone, "from {from}");
        assert_eq!(alone.is_ok(), from == 0 || (from == 2 && message == &messages[2]));
    }
}

#[test]
fn a_token_that_does_not_fit_is_not_taken_and_harms_nobody() {
    let (mut net, token) = collecting();
    let key = signing_key(&net, 1);
    let mut refuse = |change: &dyn Fn(&mut Token)| {
        let mut token = token.clone();
        change(&mut token);
        let message = ControllerMessage::Token(Signed::new(&token, &key));
        receive(&mut net, 1, &message).unwrap_err()
    };
    assert_eq!(refuse(&|t| t.plan = PlanId([0; 32])), NotTaken::OtherPlan);
    assert_eq!(refuse(&|t| t.window = window(1)), NotTaken::UnknownWindow);
    assert_eq!(refuse(&|t| t.membership = Digest([0; 32])), NotTaken::Mismatched);
    assert_eq!(refuse(&|t| t.controller = 0), NotTaken::Malformed);
    assert_eq!(refuse(&|t| t.words.truncate(1)), NotTaken::Malformed);
    // Another's token, or from nobody in the roster.
    let message = ControllerMessage::Token(Signed::new(&token, &key));
    let forged = NotTaken::Rejected(Rejected::Signature);
    assert_eq!(receive(&mut net, 2, &message), Err(forged));
    assert_eq!(receive(&mut net, 9, &message), Err(NotTaken::UnknownController));
    // The window goes on.
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert!(net.outcomes[0].result.is_ok());
}

#[test]
fn a_colluders_false_token_gives_an_error_and_never_a_result() {
    let (mut net, token) = collecting();
    // It hears of M and gives another token than its own.
    let is_membership =
        |message: &ServiceMessage| matches!(message, ServiceMessage::Membership { .. });
    let asked = net.sent.iter().find(|(to, message)| *to == 1 && is_membership(message));
    let heard = net.inbox.open(&asked.unwrap().1).unwrap();
    let step = net.controllers[1].handle(after(0), &heard);
    step.commit(&mut net.store).unwrap();
    let message = ControllerMessage::Token(Signed::new(&token, &signing_key(&net, 1)));
    receive(&mut net, 1, &message).unwrap();
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(net.outcomes[0].result, Err(Failure::CheckWord));
}

#[test]
fn a_presence_that_contradicts_its_summons_is_not_taken() {
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
    };
    let key = signing_key(&net, 0);
    let mut say = |change: &dyn Fn(&mut Presence)| {
        let mut presence = presence.clone();
        change(&mut presence);
        receive(&mut net, 0, &ControllerMessage::Presence(Signed::new(&presence, &key)))
    };
    assert_eq!(say(&|p| p.owners = 3), Err(NotTaken::Malformed));
    assert_eq!(say(&|p| p.owners = 1), Err(NotTaken::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![1, 0]), Err(NotTaken::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![0, 1, 2]), Err(NotTaken::Malformed));
    assert_eq!(say(&|p| p.accepted = vec![0]), Err(NotTaken::Malformed));
    assert_eq!(say(&|p| p.summons = Digest([0; 32])), Err(NotTaken::Mismatched));
    assert_eq!(say(&|_| {}), Ok(()));
}

#[test]
fn a_refusal_of_what_is_no_longer_asked_changes_nothing() {
    let (mut net, token) = collecting();
    let declined = Declined {
        plan: token.plan,
        window: token.window,
        controller: net.world.plan.roster[1],
        about: Digest([0; 32]),
        reason: Refused::AlreadySpent,
    };
    let key = signing_key(&net, 1);
    let message = ControllerMessage::Declined(Signed::new(&declined, &key));
    assert_eq!(receive(&mut net, 1, &message), Err(NotTaken::Mismatched));
    let others = Declined { controller: net.world.plan.roster[0], ..declined.clone() };
    let message = ControllerMessage::Declined(Signed::new(&others, &key));
    assert_eq!(receive(&mut net, 1, &message), Err(NotTaken::Malformed));
    // Of what is asked, it counts, by its name.
    let now = Declined { about: token.membership, ..declined };
    receive(&mut net, 1, &ControllerMessage::Declined(Signed::new(&now, &key))).unwrap();
    net.lost = |_, _| false;
    net.timeout(after(0).plus(Span::seconds(1)));
    assert_eq!(net.outcomes[0].refused[&Refused::AlreadySpent], 1);
    assert_eq!(net.outcomes[0].result, Err(Failure::ControllerRefused(Refused::AlreadySpent)));
}

#[test]
fn an_acceptance_is_of_this_plan_by_its_sender() {
    let mut net = Net::new(Setup::new(2));
    let key = signing_key(&net, 0);
    let accept = |plan, controller| {
        ControllerMessage::Acceptance(Signed::new(&Acceptance { plan, controller }, &key))
    };
    let id = net.world.id();
    assert_eq!(receive(&mut net, 0, &accept(PlanId([1; 32]), 0)), Err(NotTaken::OtherPlan));
    assert_eq!(receive(&mut net, 0, &accept(id, 1)), Err(NotTaken::Malformed));
    assert_eq!(receive(&mut net, 0, &accept(id, 0)), Ok(()));
    assert_eq!(net.coordinator.answer(0), Some(&Ok(())));
}

#[test]
fn a_window_that_waits_for_an_opening_outlives_a_restart_after_many_others() {
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
fn one_that_refuses_m_costs_only_itself() {
    let mut net = Net::new(Setup::new(5));
    net.lost = |_, message| matches!(message, ServiceMessage::Membership { .. });
    net.close(0);
    // An owner withdraws between presence and token.
    let stream = net.world.plan.streams[2].stream;
    let step = net.controllers[2].revoke(after(0), &stream).unwrap();
    step.commit(&mut net.store).unwrap();
    net.lost = |_, message| matches!(message, ServiceMessage::OpeningSet { .. });
    net.timeout(after(0).plus(Span::seconds(1)));
    assert!(net.outcomes.is_empty(), "S without it waits for its openings");
}

#[test]
fn one_that_withholds_openings_is_left_out_after_a_while() {
    let windows = 10;
    let mut net = Net::new(Setup { windows: windows + 1, ..Setup::new(5) });
    net.lost = |to, message| to == 2 && matches!(message, ServiceMessage::OpeningSet(_));
    (0..windows).for_each(|number| net.close(number));
    let late = net.outcomes.last().expect("some windows went on");
    assert!(late.result.is_ok());
    assert_eq!(late.excluded.get(&Exclusion::ControllerAbsent), Some(&1));
    assert!((net.outcomes.len() as u64) < windows, "the first wait: all of S is needed");
    // It comes back, and nothing is lost.
    net.lost = |_, _| false;
    net.timeout(after(windows).plus(Span::seconds(60)));
    net.close(windows);
    assert_eq!(net.outcomes.len() as u64, windows + 1);
    assert!(net.outcomes.iter().all(|outcome| outcome.result.is_ok()));
    assert!(net.outcomes.last().is_some_and(|outcome| outcome.excluded.is_empty()));
}
