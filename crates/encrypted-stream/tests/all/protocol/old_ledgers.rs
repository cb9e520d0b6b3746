//! Ledgers restored from older copies: what they have lost counts as released, whichever
//! plan, opening set or later copy is tried.

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::controller::Controller;
use alpheus_encrypted_stream::error::{AnnotationError, WindowRefusalError};
use alpheus_encrypted_stream::ledger::{Fence, Scope, StampedRecord};
use alpheus_encrypted_stream::messages::{ControllerMessage, Retirement, ServiceMessage, Token};
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_time::{Span, Timestamp};

use crate::protocol::evil::{Draft, Evil};
use crate::protocol::identities::owner;
use crate::protocol::withdrawals::revoke;
use crate::protocol::world::{
    EPOCH, GRACE, Memory, Setup, WINDOW, after, policy, start, stream_id, window,
};

fn three() -> Evil {
    Evil::new(Setup { streams_each: 2, alpha: Fraction::THIRD, ..Setup::new(3) })
}

fn five() -> Evil {
    let dropout = Fraction { numerator: 2, denominator: 5 };
    Evil::new(Setup { dropout, ..Setup::new(5) })
}

/// A controller is restored, and its owners confirm their policies at once.
fn come_back(evil: &mut Evil, p: u32, store: &Memory, now: Timestamp, fence: Option<Fence>) {
    evil.restore(p, store, now, fence);
    let each = evil.world.setup.streams_each;
    (p * each..(p + 1) * each).for_each(|stream| annotate(evil, stream, 100, now));
}

/// The owner of a stream submits an annotation with the same policy as before.
fn annotate(evil: &mut Evil, stream: u32, version: u32, now: Timestamp) {
    let (id, controller) = (stream_id(stream), stream / evil.world.setup.streams_each);
    let signed = evil.world.annotate(id, version, policy(&evil.world.setup));
    let owner = owner(id);
    let step = evil.controllers[controller as usize].annotate(&signed, &owner, now).unwrap();
    step.commit(&mut evil.store).unwrap();
}

/// The first controller's answer to a summons for window 0 with one of its streams.
fn asked_for_one_stream(evil: &mut Evil) -> Result<ControllerMessage, WindowRefusalError> {
    let streams = evil.streams(0).into_iter().take(1).collect();
    let summons = evil.summons(0, streams);
    evil.ask(0, after(0), &summons)
}

fn retire(evil: &mut Evil, p: u32, now: Timestamp) {
    let plan = evil.world.id();
    let retirement = Signed::new(&Retirement { plan }, &evil.world.service);
    evil.say(p, now, &ServiceMessage::Retirement(retirement));
}

/// Window 0 is released, the ledger is restored from before that, and another plan requests
/// the same time with one stream less.
fn second_release(
    change: impl Fn(&Plan) -> Plan,
    when: Timestamp,
) -> Result<Token, WindowRefusalError> {
    let mut evil = Evil::new(Setup { streams_each: 3, ..Setup::new(1) });
    let old = evil.store.clone();
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let fence = evil.controllers[0].fence();
    come_back(&mut evil, 0, &old, after(0), Some(fence));
    assert_eq!(asked_for_one_stream(&mut evil), Err(WindowRefusalError::CountsAsReleased));
    retire(&mut evil, 0, after(0));
    let plan = change(&evil.world.plan);
    evil.world.take_over(plan);
    let announcement = evil.world.announcement();
    let said = evil.say(0, when, &announcement);
    assert!(matches!(said, Some(ControllerMessage::Acceptance(_))), "{said:?}");
    let window = evil.world.plan.window_at(window(0).start);
    let report = evil.world.transformer.close(&evil.world.id(), window, 0).unwrap();
    evil.report.window = window;
    evil.report.complete = report.complete().take(2).cloned().collect();
    let summons = evil.summons(0, evil.streams(0));
    let key = evil.world.announced.verifying()[0];
    let ControllerMessage::Presence(signed) = evil.ask(0, when, &summons)? else { panic!() };
    let presence = signed.open(&key).unwrap();
    assert_eq!(presence.accepted, [0, 1]);
    let draft = Draft { window, members: vec![(0, signed.digest(), presence.owners)] };
    let message = evil.membership(&draft, 0);
    match evil.ask(0, when, &message)? {
        ControllerMessage::Token(token) => Ok(token.open(&key).unwrap().into_inner()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_plan_with_more_grace_gets_no_window_that_had_begun() {
    let grace = Span(GRACE.0 + 1);
    let change = |plan: &Plan| Plan { nonce: [50; 16], grace, ..plan.clone() };
    let again = second_release(change, after(0).plus(Span(1)));
    assert_eq!(again.err(), Some(WindowRefusalError::CountsAsReleased));
}

#[test]
fn another_plan_with_longer_windows_gets_no_window_that_had_begun() {
    let window = Span(2 * WINDOW.0);
    let change = |plan: &Plan| Plan { nonce: [51; 16], window, ..plan.clone() };
    let again = second_release(change, after(5));
    assert_eq!(again.err(), Some(WindowRefusalError::CountsAsReleased));
}

#[test]
fn a_later_copy_does_not_pass_for_the_latest_after_an_older_one() {
    let mut evil = three();
    let older = evil.store.clone();
    let draft = evil.gather();
    (2..8).for_each(|version| annotate(&mut evil, 0, version, after(0)));
    let later = evil.store.clone();
    evil.token(0, &draft).unwrap();
    for store in [older, later] {
        let fence = evil.controllers[0].fence();
        come_back(&mut evil, 0, &store, after(0), Some(fence));
        assert_eq!(asked_for_one_stream(&mut evil), Err(WindowRefusalError::CountsAsReleased));
    }
}

/// Without its fence, an older copy begins a new history. A newer copy of the previous
/// history has higher numbers, but knows nothing of the new one.
#[test]
fn a_copy_of_another_history_does_not_pass_for_the_latest() {
    let mut evil = three();
    let old = evil.store.clone();
    (2..40).for_each(|version| annotate(&mut evil, 0, version, after(0)));
    let newer = evil.store.clone();
    come_back(&mut evil, 0, &old, Timestamp(EPOCH), None);
    let draft = evil.gather();
    evil.token(0, &draft).unwrap();
    let fence = evil.controllers[0].fence();
    come_back(&mut evil, 0, &newer, after(0), Some(fence));
    assert_eq!(asked_for_one_stream(&mut evil), Err(WindowRefusalError::CountsAsReleased));
}

/// A whole host is restored from a copy between tokens and openings.
#[test]
fn no_second_set_is_opened_when_the_ledger_lacks_the_first() {
    let mut evil = five();
    let draft = evil.gather();
    (0..5).for_each(|p| assert!(evil.token(p, &draft).is_ok()));
    let old = evil.store.clone();
    let all = evil.set(&draft, &[0, 1, 2, 3, 4]);
    (0..5).for_each(|p| assert!(evil.opening(p, &all).is_ok()));
    let four = evil.set(&draft, &[0, 1, 2, 3]);
    for p in 0..5 {
        let fence = evil.controllers[p as usize].fence();
        come_back(&mut evil, p, &old, after(0), Some(fence));
        assert!(evil.token(p, &draft).is_ok(), "the ledger holds it");
        assert_eq!(evil.opening(p, &four), Err(WindowRefusalError::CountsAsReleased));
    }
}

/// The last sequence number of the first controller's ledger.
fn last(evil: &Evil, store: &Memory) -> u64 {
    let own = store.values(Scope::Controller(evil.controllers[0].id()));
    own.into_iter().map(|value| StampedRecord::read(value).unwrap().sequence).max().unwrap()
}

/// A controller is killed between the commit of an opening and the fence, and copied. An older copy takes
/// its place and opens another set. Put back, the first is as long as the other, or longer. It is not
/// taken for the latest, and does not repeat what never left it; nor does it without any fence.
#[test]
fn a_copy_from_inside_of_a_commit_repeats_no_opening() {
    for knows_fence in [true, false] {
        let mut evil = five();
        let draft = evil.gather();
        (0..5).for_each(|p| assert!(evil.token(p, &draft).is_ok()));
        let (older, fence) = (evil.store.clone(), evil.controllers[0].fence());
        let all = evil.set(&draft, &[0, 1, 2, 3, 4]);
        for _ in 0..5 {
            let heard = evil.inbox.open(&all).unwrap();
            let step = evil.controllers[0].handle(&heard, after(0));
            assert_eq!(step.commit(&mut evil.store).unwrap().len(), 1);
        }
        let unfenced = evil.store.clone();
        come_back(&mut evil, 0, &older, after(0), Some(fence));
        let four = evil.set(&draft, &[0, 1, 2, 3]);
        assert!(evil.opening(0, &four).is_ok(), "the older copy was the latest for its fence");
        let seen = evil.controllers[0].fence();
        assert!(last(&evil, &unfenced) >= seen.sequence, "it is as long");
        come_back(&mut evil, 0, &unfenced, after(0), knows_fence.then_some(seen));
        assert!(evil.token(0, &draft).is_ok(), "what the fence had is repeated");
        assert_eq!(evil.opening(0, &all), Err(WindowRefusalError::CountsAsReleased));
        assert_eq!(evil.opening(0, &four), Err(WindowRefusalError::CountsAsReleased));
        // It stays so: the next start trusts the ledger.
        evil.start_again(after(0));
        assert_eq!(evil.opening(0, &all), Err(WindowRefusalError::CountsAsReleased));
    }
}

/// The same crash, and the ledger is simply started again: the same answer leaves.
#[test]
fn an_opening_that_was_committed_and_not_fenced_is_repeated_by_its_own_ledger() {
    let mut evil = five();
    let draft = evil.gather();
    (0..5).for_each(|p| assert!(evil.token(p, &draft).is_ok()));
    let fence = evil.controllers[0].fence();
    let all = evil.set(&draft, &[0, 1, 2, 3, 4]);
    let heard = evil.inbox.open(&all).unwrap();
    let step = evil.controllers[0].handle(&heard, after(0));
    let first = step.commit(&mut evil.store).unwrap().pop();
    for _ in 0..2 {
        // Killed once more before the fence, too.
        let store = evil.store.clone();
        evil.restore(0, &store, after(0), Some(fence));
        assert_eq!(evil.say(0, after(0), &all), first);
    }
}

#[test]
fn after_an_old_ledger_nothing_is_released_before_the_owner_confirms() {
    let mut evil = Evil::new(Setup { streams_each: 2, windows: 5, ..Setup::new(1) });
    let old = evil.store.clone();
    let step = revoke(&mut evil.controllers[0], after(0), stream_id(0));
    step.commit(&mut evil.store).unwrap();
    let fence = evil.controllers[0].fence();
    evil.restore(0, &old, after(0), Some(fence));
    evil.world.report(1);
    assert_eq!(accepted(&mut evil, 2), [0; 0], "the revocation is forgotten");
    // The other owner confirms while window 3 is in progress, and the confirmation lasts.
    annotate(&mut evil, 1, 1, window(3).start.plus(Span(1)));
    let (store, fence) = (evil.store.clone(), evil.controllers[0].fence());
    evil.restore(0, &store, after(3), Some(fence));
    assert_eq!(accepted(&mut evil, 3), [0; 0], "another choice may have been in force");
    assert_eq!(accepted(&mut evil, 4), [1]);
}

/// Streams of a window that the only controller accepts.
fn accepted(evil: &mut Evil, number: u64) -> Vec<u32> {
    evil.report = evil.world.report(number);
    let streams = evil.streams(0);
    evil.presence_at(0, streams, after(number)).1.accepted
}

/// Answers from before a restore are not sent again against an owner's will that the ledger may
/// have lost. The ledger was written on after the fence had the token, so it is known to have left.
#[test]
fn repeated_answers_also_wait_for_the_owners() {
    let mut evil = three();
    let draft = evil.gather();
    let token = evil.token(0, &draft).unwrap();
    annotate(&mut evil, 0, 2, after(0));
    let store = evil.store.clone();
    evil.restore(0, &store, after(0), None);
    assert_eq!(evil.token(0, &draft), Err(WindowRefusalError::PolicyChanged));
    annotate(&mut evil, 0, 2, after(0));
    annotate(&mut evil, 1, 1, after(0));
    assert_eq!(evil.token(0, &draft), Ok(token));
}

#[test]
fn an_owner_confirms_the_known_annotation_or_a_later_one() {
    let mut evil = three();
    annotate(&mut evil, 0, 2, after(0));
    let (stream, old) = (stream_id(0), evil.store.clone());
    let owner = owner(stream);
    let again = |evil: &mut Evil, version, minimum| {
        let policy = policy(&Setup { minimum, ..evil.world.setup.clone() });
        let signed = evil.world.annotate(stream, version, policy);
        evil.restore(0, &old, after(0), None);
        evil.controllers[0].annotate(&signed, &owner, after(0)).map(|_| ())
    };
    let stale = |version| Err(AnnotationError::NotLater { version, current: 2 });
    assert_eq!(again(&mut evil, 2, 1), Ok(()));
    assert_eq!(again(&mut evil, 3, 5), Ok(()));
    assert_eq!(again(&mut evil, 2, 5), stale(2), "one version says one thing");
    assert_eq!(again(&mut evil, 1, 1), stale(1));
}

/// A controller whose ledger is lost completely, or that has old keys without one.
#[test]
fn keys_older_than_their_ledger_release_no_window_that_had_begun() {
    let mut evil = Evil::new(Setup { windows: 3, ..Setup::new(1) });
    let (identity, deployment) = (evil.world.identity(0), evil.world.deployment.clone());
    let (mut controller, step) = Controller::create_again(identity, deployment, after(0), 1);
    evil.store = Memory::default();
    step.commit(&mut evil.store).unwrap();
    evil.world.held(0).into_iter().for_each(|stream| controller.hold(stream));
    evil.controllers[0] = controller;
    annotate(&mut evil, 0, 1, after(0));
    let announcement = evil.world.announcement();
    let said = evil.say(0, after(0), &announcement);
    assert!(matches!(said, Some(ControllerMessage::Acceptance(_))), "{said:?}");
    assert_eq!(asked_for_one_stream(&mut evil), Err(WindowRefusalError::CountsAsReleased));
    evil.world.report(1);
    assert_eq!(accepted(&mut evil, 2), [0]);
}

#[test]
fn a_closed_window_stays_closed_after_a_restart() {
    use alpheus_encrypted_stream::error::ReleaseError;
    use alpheus_encrypted_stream::messages::{Closing, WindowOutcome};
    let mut evil = three();
    let draft = evil.gather();
    (0..3).for_each(|p| drop(evil.token(p, &draft).unwrap()));
    let all = evil.set(&draft, &[0, 1, 2]);
    let (plan, outcome) = (evil.world.id(), WindowOutcome::Failed(ReleaseError::OpeningLost));
    let closing = Closing { plan, window: window(0), outcome };
    let closing = ServiceMessage::Closing(Signed::new(&closing, &evil.world.service));
    evil.say(0, after(0), &closing);
    assert_eq!(evil.opening(0, &all).err(), Some(WindowRefusalError::Settled));
    let fence = evil.controllers[0].fence();
    let store = evil.store.clone();
    evil.restore(0, &store, after(0), Some(fence));
    assert_eq!(evil.opening(0, &all).err(), Some(WindowRefusalError::Settled));
}

#[test]
fn a_stream_that_is_handed_over_after_the_restart_is_still_revoked() {
    use alpheus_encrypted_stream::controller::HostRecords;
    let mut evil = three();
    let step = revoke(&mut evil.controllers[0], after(0), stream_id(0));
    step.commit(&mut evil.store).unwrap();
    let fence = evil.controllers[0].fence();
    let world = &evil.world;
    let host = HostRecords::read(evil.store.values(Scope::Host), &world.deployment).unwrap();
    let identity = world.identity(0);
    let values = evil.store.values(Scope::Controller(identity.id()));
    let (mut controller, _) = Controller::restore(
        identity,
        world.deployment.clone(),
        vec![],
        &host,
        values,
        after(0),
        start(Some(fence)),
    )
    .unwrap();
    world.held(0).into_iter().for_each(|held| controller.hold(held));
    let signed = world.annotate(stream_id(0), 1, policy(&world.setup));
    let owner = owner(stream_id(0));
    let taken = controller.annotate(&signed, &owner, after(0)).map(|_| ());
    assert_eq!(taken, Err(AnnotationError::Revoked));
}

#[test]
fn later_trust_does_not_count_for_earlier_windows() {
    let mut evil = Evil::new(Setup { minimum: 2, alpha: Fraction::THIRD, ..Setup::new(2) });
    let draft = evil.gather();
    let refused = evil.token(0, &draft).err();
    assert!(matches!(refused, Some(WindowRefusalError::PopulationTooSmall { .. })), "{refused:?}");
    // Long after the window, the owner begins to trust the other controller.
    let mut trusting = policy(&evil.world.setup);
    trusting.attributes[0].alternatives[0].trusted = vec![evil.world.plan.roster[1]];
    let signed = evil.world.annotate(stream_id(0), 2, trusting);
    let owner = owner(stream_id(0));
    let step = evil.controllers[0].annotate(&signed, &owner, after(5)).unwrap();
    step.commit(&mut evil.store).unwrap();
    let again = evil.token(0, &draft).err();
    assert!(matches!(again, Some(WindowRefusalError::PopulationTooSmall { .. })), "{again:?}");
}
