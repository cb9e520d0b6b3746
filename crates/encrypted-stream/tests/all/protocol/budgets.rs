//! What noise costs owners: charged once, refused when spent, refunded only if nothing was
//! sent, and never lost with an old ledger.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::error::{ExclusionError, ReleaseError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{Record, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{
    Closing, ControllerMessage, ServiceMessage, WindowOutcome,
};
use alpheus_policy::budget::PrivacyLoss;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_time::Timestamp;

use crate::protocol::evil::Evil;
use crate::protocol::identities::{certified, owner};
use crate::protocol::net::Net;
use crate::protocol::noise::{Noise, four, pure, spent};
use crate::protocol::world::{EPOCH, Setup, after, policy, stream_id, window};

#[test]
fn an_exhausted_budget_excludes_only_its_owner_and_names_the_reason() {
    let mut net = Net::unannounced(crate::protocol::world::World::new(four(5, 9)));
    let poorer = policy(&Setup { noise: Some(Noise::new(2)), ..net.world.setup.clone() });
    let (stream, owner) = (stream_id(0), owner(stream_id(0)));
    let signed = net.world.annotate(stream, 2, poorer);
    let step = net.controllers[0].annotate(&signed, &owner, Timestamp(EPOCH)).unwrap();
    step.commit(&mut net.store).unwrap();
    let step = net.coordinator.announce();
    net.run(Timestamp(EPOCH), step);
    (0..4).for_each(|number| net.close(number));
    let left_out = |at: usize| net.outcomes[at].excluded.get(&ExclusionError::BudgetSpent).copied();
    assert_eq!(
        [left_out(0), left_out(1), left_out(2), left_out(3)],
        [None, None, Some(1), Some(1)]
    );
    let population = |at: usize| net.outcomes[at].result.as_ref().unwrap().population;
    assert_eq!([population(1), population(2), population(3)], [4, 3, 3]);
}

/// Windows in progress count: nothing is promised twice.
#[test]
fn many_windows_at_once_do_not_overdraw_a_budget() {
    let mut evil = Evil::new(four(6, 2));
    let presences: Vec<_> = (0..5)
        .map(|number| {
            evil.close(number);
            let streams = evil.streams(0);
            evil.presence_at(0, streams, after(5)).1
        })
        .collect();
    let accepted: Vec<usize> = presences.iter().map(|presence| presence.accepted.len()).collect();
    assert_eq!(accepted, [1, 1, 0, 0, 0]);
    assert_eq!(presences[4].excluded, [(0, ExclusionError::BudgetSpent)]);
    // A window that ends without a token frees its promise.
    close(&mut evil, 1);
    evil.close(5);
    let streams = evil.streams(0);
    assert_eq!(evil.presence_at(0, streams, after(5)).1.accepted, [0]);
}

fn close(evil: &mut Evil, number: u64) {
    let plan = evil.world.id();
    close_of(evil, plan, number, after(9));
}

fn close_of(evil: &mut Evil, plan: PlanId, number: u64, now: Timestamp) {
    let outcome = WindowOutcome::Failed(ReleaseError::OpeningLost);
    let closing = Closing { plan, window: window(number), outcome };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    evil.say(0, now, &closing);
}

#[test]
fn only_windows_that_never_opened_are_refunded() {
    let mut evil = Evil::new(four(3, 9));
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    close(&mut evil, 0);
    assert_eq!(spent(&evil, 0), PrivacyLoss::default());
    // The refund is durable, and the window stays closed.
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, after(0), Some(fence));
    assert_eq!(spent(&evil, 0), PrivacyLoss::default());
    let all = evil.set(&draft, &[0, 1, 2, 3]);
    assert_eq!(evil.ask(0, after(0), &all).err(), Some(WindowRefusalError::Settled));
    let mut evil = Evil::new(four(3, 9));
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let all = evil.set(&draft, &[0, 1, 2, 3]);
    evil.opening(0, &all).unwrap();
    close(&mut evil, 0);
    assert_eq!(spent(&evil, 0), pure(1));
}

/// The token of a lone controller is its opening: what it sent is released, whatever the
/// service says of the window.
#[test]
fn a_lone_controller_is_never_refunded() {
    let alone =
        Setup { controllers: 1, masks: MaskStrategy::Single, alpha: Fraction::ZERO, ..four(3, 9) };
    let mut evil = Evil::new(alone);
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    close(&mut evil, 0);
    assert_eq!(spent(&evil, 0), pure(1));
}

/// A copy from before two windows were spent. Everything that may have been spent since
/// then is charged at the highest rate, also after the owner has confirmed.
#[test]
fn an_older_ledger_counts_possible_losses_as_spent() {
    let mut evil = Evil::new(four(6, 4));
    let old = evil.store.clone();
    for number in 0..2 {
        let draft = evil.gather_at(number);
        evil.token_at(0, &draft);
    }
    let whole = evil.store.clone();
    let fence = evil.controllers[0].fence();
    evil.restore(0, &whole, after(2), Some(fence));
    assert_eq!(spent(&evil, 0), pure(2), "the latest has lost nothing");
    evil.restore(0, &old, after(2), Some(fence));
    // Three windows and a part of a fourth have begun; with the windows at both ends that
    // makes five.
    assert!(spent(&evil, 0).epsilon >= pure(3).epsilon, "{}", spent(&evil, 0));
    // A budget of four has nothing left for a later window.
    confirm(&mut evil, 1);
    (2..6).for_each(|number| evil.close(number));
    let streams = evil.streams(0);
    let presence = evil.presence_at(0, streams, after(5)).1;
    assert_eq!(presence.excluded, [(0, ExclusionError::BudgetSpent)]);
    // The charge is durable, and the same after a trusted restart.
    let (store, fence, before) = (evil.store.clone(), evil.controllers[0].fence(), spent(&evil, 0));
    evil.restore(0, &store, after(5), Some(fence));
    assert_eq!(spent(&evil, 0), before);
}

fn confirm(evil: &mut Evil, version: u32) {
    let policy = policy(&evil.world.setup);
    choose(evil, 0, version, policy, after(2));
}

/// The owner of a stream at controller 0 annotates it.
fn choose(evil: &mut Evil, number: u32, version: u32, policy: ResolvedPolicy, now: Timestamp) {
    let stream = stream_id(number);
    let signed = evil.world.annotate(stream, version, policy);
    let owner = certified(&evil.world.setup.owner_key(stream));
    let step = evil.controllers[0].annotate(&signed, &owner, now).unwrap();
    step.commit(&mut evil.store).unwrap();
}

/// An annotation that the copy had lost may have been looser, so its rate counts as well.
#[test]
fn a_lost_annotation_is_charged_at_its_own_rate() {
    let mut evil = Evil::new(four(6, 4));
    let old = evil.store.clone();
    evil.restore(0, &old, after(2), None);
    let before = spent(&evil, 0);
    confirm(&mut evil, 2);
    assert!(spent(&evil, 0).epsilon > before.epsilon);
}

/// An opening that an older copy has lost is never refunded.
#[test]
fn an_older_ledger_refunds_nothing() {
    let mut evil = Evil::new(four(6, 100));
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let before_opening = evil.store.clone();
    let all = evil.set(&draft, &[0, 1, 2, 3]);
    evil.opening(0, &all).unwrap();
    let fence = evil.controllers[0].fence();
    evil.restore(0, &before_opening, after(0), Some(fence));
    let before = spent(&evil, 0);
    confirm(&mut evil, 1);
    close(&mut evil, 0);
    assert_eq!(spent(&evil, 0), before);
}

/// Accounts stay small: settled charges are added up and stay spent.
#[test]
fn settled_windows_are_added_up_and_stay_spent() {
    let windows = 140;
    let mut net = Net::new(Setup { windows, ..four(windows, 1000) });
    (0..windows).for_each(|number| net.close(number));
    let id = net.controllers[0].id();
    let records = net.store.values(Scope::Controller(id)).len();
    let budgets = net.store.values(Scope::Controller(id)).into_iter();
    let budgets =
        budgets.filter(|v| matches!(StampedRecord::read(v).unwrap().record, Record::Budget(_)));
    assert!(budgets.count() < 110, "of {records}");
    let owner = net.world.plan.streams[0].owner;
    let total = |net: &Net| net.controllers[0].accounts().account(owner, 0).unwrap().total();
    let before = total(&net);
    assert_eq!(before.epsilon, pure(windows).epsilon);
    net.restore_controllers(after(windows), true);
    assert_eq!(total(&net), before);
}

/// Windows that ended before a plan with noise was accepted are not its windows.
#[test]
fn a_plan_with_noise_does_not_release_earlier_windows() {
    let mut evil = Evil::unannounced(four(3, 9));
    let announcement = evil.world.announcement();
    let accepted = window(1).start;
    let answer = evil.say(0, accepted, &announcement);
    assert!(matches!(answer, Some(ControllerMessage::Acceptance(_))));
    let summons = evil.summons(0, evil.streams(0));
    assert_eq!(evil.ask(0, after(1), &summons).err(), Some(WindowRefusalError::BeforeAcceptance));
}

/// Two streams of one owner at each controller.
fn pairs(windows: u64, budget: u64) -> Setup {
    Setup { streams_each: 2, one_owner: true, ..four(windows, budget) }
}

/// A plan over every other stream.
fn half(plan: &Plan, odd: usize) -> Plan {
    let streams = plan.streams.iter().skip(odd).step_by(2).copied().collect();
    Plan { streams, nonce: [50 + u8::from(odd == 1); 16], ..plan.clone() }
}

/// One plan's old windows are added up. Promises to another plan of the same owner stay promised
/// and are paid for, and its windows do not count as past.
#[test]
fn forgetting_one_plan_keeps_the_promises_of_another() {
    let mut evil = Evil::unannounced(pairs(3, 3));
    let whole = evil.world.plan.clone();
    evil.world.take_over(half(&whole, 0));
    evil.accept();
    let other = evil.world.id();
    evil.world.take_over(half(&whole, 1));
    evil.accept();
    evil.report = evil.world.report(0);
    let draft = evil.gather_at(0);
    evil.token_at(0, &draft);
    let draft = evil.gather_at(1);
    (0..96).for_each(|number| close_of(&mut evil, other, number, after(100)));
    let message = evil.membership(&draft, 0);
    let token = evil.ask(0, after(100), &message);
    assert!(matches!(token, Ok(ControllerMessage::Token(_))), "{token:?}");
    assert_eq!(spent(&evil, 0), pure(2));
    // The charge is durable.
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, after(100), Some(fence));
    assert_eq!(spent(&evil, 0), pure(2));
    evil.close(2);
    let streams = evil.streams(0);
    assert_eq!(evil.presence_at(0, streams, after(100)).1.accepted, [0]);
}

/// A window is charged to an owner once, and stays within the budget of each of the owner's
/// streams in it.
#[test]
fn each_streams_own_budget_holds_in_any_order() {
    let mut evil = Evil::unannounced(pairs(3, 100));
    let poorer = policy(&Setup { noise: Some(Noise::new(1)), ..evil.world.setup.clone() });
    choose(&mut evil, 1, 2, poorer, Timestamp(EPOCH));
    evil.accept();
    let left_out =
        [vec![], vec![(1, ExclusionError::BudgetSpent)], vec![(1, ExclusionError::BudgetSpent)]];
    for (number, left_out) in (0..).zip(left_out) {
        evil.close(number);
        let streams = evil.streams(0);
        assert_eq!(evil.presence_at(0, streams, after(number)).1.excluded, left_out, "{number}");
    }
}

/// A window that was free when the controller was present is charged if it no longer is.
#[test]
fn an_annotation_between_presence_and_token_is_charged() {
    let mut evil = Evil::unannounced(four(3, 9));
    let noisy = policy(&evil.world.setup);
    let mut also = policy(&Setup { noise: None, ..evil.world.setup.clone() });
    also.attributes[0].alternatives.extend(noisy.attributes[0].alternatives.clone());
    choose(&mut evil, 0, 2, also, Timestamp(EPOCH));
    evil.accept();
    let draft = evil.gather();
    choose(&mut evil, 0, 3, noisy, after(0));
    evil.token(0, &draft).unwrap();
    assert_eq!(spent(&evil, 0), pure(1));
}

/// A lowered budget also applies to windows that were promised before.
#[test]
fn a_budget_lowered_between_presence_and_token_holds() {
    let mut evil = Evil::new(four(4, 9));
    for number in 0..2 {
        let draft = evil.gather_at(number);
        evil.token_at(0, &draft);
    }
    let draft = evil.gather_at(2);
    let lower = policy(&Setup { noise: Some(Noise::new(2)), ..evil.world.setup.clone() });
    choose(&mut evil, 0, 2, lower, after(2));
    let message = evil.membership(&draft, 0);
    assert_eq!(evil.ask(0, after(2), &message).err(), Some(WindowRefusalError::PolicyChanged));
    assert_eq!(spent(&evil, 0), pure(2));
    // When summoned again, the stream is excluded with the reason.
    let streams = evil.streams(0);
    let presence = evil.presence_at(0, streams, after(2)).1;
    assert_eq!(presence.excluded, [(0, ExclusionError::BudgetSpent)]);
}
