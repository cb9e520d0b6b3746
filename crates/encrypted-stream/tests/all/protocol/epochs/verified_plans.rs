//! Verified plans by epochs: a window's members are those of its list, and sign what its row says.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::ledger::{LogEvent, Record, StampedRecord};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::messages::{
    Closing, ListedOwner, MaskKey, Membership, OpeningSet, Retirement, WindowOutcome,
};
use alpheus_encrypted_stream::receipt::{Receipt, ReceiptError, ReceiptFormatError, SharePart};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::{Fraction, NotVerifiableError};
use alpheus_time::Window;

use super::*;
use crate::protocol::evil::{Draft, Evil};
use crate::protocol::verified::receipt;

fn setup(controllers: u32) -> Setup {
    Setup { minimum: 2, windows: 4, ..Setup::new(controllers) }.verified()
}

/// A window of those who are awake, with its receipt as its reader gets it, and the plan that
/// follows from it.
fn opened(
    epochs: &mut Epochs,
    number: u64,
    awake: &dyn Fn(usize) -> bool,
) -> (Receipt, AnnouncedPlan) {
    let opened = epochs.window(number, awake).unwrap().result.unwrap();
    let receipt = Receipt::from_bytes(&opened.receipt.unwrap().to_bytes()).unwrap();
    let announced = receipt.listed_plan(&epochs.world.deployment).unwrap().unwrap();
    assert_eq!(announced.id(), epochs.listed.as_ref().unwrap().id());
    let row = receipt.verify(&announced, window(number)).unwrap();
    assert_eq!(row.check(&opened.outputs, opened.population), Ok(()));
    (receipt, announced)
}

fn two_windows() -> (Epochs, [(Receipt, AnnouncedPlan); 2]) {
    let mut epochs = Epochs::new(setup(5));
    let both = [opened(&mut epochs, 0, ALL), opened(&mut epochs, 1, ALL)];
    (epochs, both)
}

#[test]
fn rows_hold_over_those_who_are_there() {
    let mut epochs = Epochs::new(setup(8));
    for number in 0..4 {
        let awake = move |at: usize| !(at + number as usize).is_multiple_of(3);
        let (receipt, announced) = opened(&mut epochs, number, &awake);
        let row = receipt.verify(&announced, window(number)).unwrap();
        let there: Vec<usize> = (0..8).filter(|at| awake(*at)).collect();
        assert_eq!(row.words(), epochs.truth(there.clone(), number), "window {number}");
        assert_eq!(row.signers() as usize, there.len());
    }
}

/// Every epoch has another plan. A message for one is useless in another.
#[test]
fn shares_of_another_epoch_are_refused() {
    let (_, [(first, _), (second, plan)]) = two_windows();
    let refused = |change: &dyn Fn(&mut Receipt)| {
        let mut own = second.clone();
        change(&mut own);
        own.verify(&plan, window(1)).unwrap_err()
    };
    let other = |part| ReceiptError::OtherShare { controller: 2, part };
    let share = refused(&|own| own.shares[2] = first.shares[2].clone());
    assert_eq!(share, other(SharePart::Token));
    let token = refused(&|own| own.shares[2].token = first.shares[2].token.clone());
    assert_eq!(token, other(SharePart::Token));
    let opening = refused(&|own| own.shares[2].opening = first.shares[2].opening.clone());
    assert_eq!(opening, other(SharePart::Opening));
    let set = refused(&|own| own.opening_set = first.opening_set.clone());
    assert_eq!(set, ReceiptError::OtherSet);
    let members = refused(&|own| own.membership = first.membership.clone());
    assert_eq!(members, ReceiptError::OtherPlan);
}

#[test]
fn a_receipt_of_another_epoch_is_refused() {
    let (_, [(first, one), (second, two)]) = two_windows();
    assert_eq!(first.verify(&two, window(1)), Err(ReceiptError::OtherList));
    let renamed = Receipt { listing: second.listing.clone(), ..first.clone() };
    assert_eq!(renamed.verify(&two, window(1)), Err(ReceiptError::OtherPlan));
    assert_eq!(first.verify(&one, window(1)), Err(ReceiptError::OtherWindow(window(0))));
    let without = Receipt { listing: None, ..first.clone() };
    assert!(without.listed_plan(&two_windows().0.world.deployment).is_none());
    assert_eq!(without.verify(&one, window(0)), Err(ReceiptError::OtherList));
}

/// M's bits mean other controllers over another list, of the same length or of another one.
#[test]
fn a_bitmap_over_another_list_is_refused() {
    let mut epochs = Epochs::new(setup(6));
    let (first, one) = opened(&mut epochs, 0, &|at| at != 5);
    let (second, _) = opened(&mut epochs, 1, &|at| at != 0);
    let key = epochs.world.service.clone();
    // What the second epoch's members signed, under the first one's list.
    let mut own: Membership = second.membership.dangerous_unverified().unwrap();
    (own.plan, own.window) = (one.id(), window(0));
    let membership = Signed::new(&own, &key);
    let set = |members: RosterSet| {
        let (plan, window, membership) = (one.id(), window(0), membership.digest());
        Some(Signed::new(&OpeningSet { plan, window, membership, set: members }, &key))
    };
    let opening_set = set(own.members.clone());
    let listing = first.listing.clone();
    let moved = Receipt { membership: membership.clone(), opening_set, listing, ..second.clone() };
    let part = SharePart::Token;
    let forged = moved.verify(&one, window(0)).unwrap_err();
    assert_eq!(forged, ReceiptError::Signature { controller: 0, part });
    let longer = Receipt { opening_set: set(RosterSet::of(6, 0..5)), ..moved };
    assert_eq!(longer.verify(&one, window(0)), Err(ReceiptError::NotASubset));
    // Another list of the first epoch, which nobody accepted.
    let entries = epochs.listed_entries(&first)[1..].to_vec();
    let other = Some(Arc::new(epochs.list(0, entries)));
    let relisted = Receipt { listing: other, ..first };
    let other = relisted.listed_plan(&epochs.world.deployment).unwrap().unwrap();
    assert_eq!(relisted.verify(&other, window(0)), Err(ReceiptError::OtherPlan));
}

impl Epochs {
    fn listed_entries(&self, receipt: &Receipt) -> Vec<ListEntry> {
        let list: List = receipt.listing.as_ref().unwrap().list.dangerous_unverified().unwrap();
        list.entries
    }
}

/// All epochs of a day have the same keys for pads, each signed for its own plan. The service cannot
/// have an earlier one for another.
#[test]
fn a_key_that_was_signed_for_another_epoch_is_refused() {
    let mut epochs = Epochs::new(setup(5));
    let (first, one) = opened(&mut epochs, 0, ALL);
    let announced = epochs.gather(1, ALL).unwrap();
    let mut evil = accepted(epochs, 1, &announced, 0..5);
    let draft = evil.gather_at(1);
    let of = |signed: &Signed<MaskKey>| signed.dangerous_unverified().unwrap();
    let (before, now): (Membership, _) = (
        first.membership.dangerous_unverified().unwrap(),
        evil.mask_keys[&draft.members[1].1].clone(),
    );
    let old = before.mask_keys[1].clone();
    let (earlier, current) = (of(&old), of(&now));
    assert_eq!((earlier.plan, current.plan), (one.id(), announced.id()));
    assert_eq!((earlier.key, earlier.begun), (current.key, current.begun), "one key for the day");
    evil.mask_keys.insert(draft.members[1].1, old);
    let replayed = evil.membership(&draft, 0);
    let refused = evil.ask(0, after(1), &replayed);
    assert_eq!(refused, Err(WindowRefusalError::BadMaskKey { position: 1 }));
    evil.mask_keys.insert(draft.members[1].1, now);
    let honest = evil.membership(&draft, 0);
    assert!(matches!(evil.ask(0, after(1), &honest), Ok(ControllerMessage::Token(_))));
}

/// The members of a list that have accepted it, controlled by the test.
fn accepted(
    mut epochs: Epochs,
    number: u64,
    announced: &Arc<AnnouncedPlan>,
    members: std::ops::Range<u32>,
) -> Evil {
    epochs.adopt(announced);
    let Epochs { mut world, controllers, inbox, store, .. } = epochs;
    let (report, mask_keys) = (world.report(number), BTreeMap::new());
    let mut evil = Evil { world, controllers, inbox, store, report, mask_keys };
    for p in members {
        let answer = evil.say(p, after(number), &announced.message());
        assert!(matches!(answer, Some(ControllerMessage::Acceptance(_))));
    }
    evil
}

/// A list names owners of a controller that sleeps, and one more than it has. The others cannot tell. But
/// what it signed for another epoch makes it no member, so a row has the owners of its signers only.
#[test]
fn owners_who_are_listed_and_absent_are_in_no_row() {
    let mut epochs = Epochs::new(setup(5));
    let (first, _) = opened(&mut epochs, 0, ALL);
    let mut entries = epochs.entries(1, 0..4);
    let mut absent = epochs.listed_entries(&first).remove(4);
    absent
        .owners
        .push(ListedOwner { owner: OwnerId([255; 32]), streams: vec![StreamId([255; 16])] });
    entries.push(absent);
    let listing = epochs.list(1, entries);
    let plan = AnnouncedPlan::open_list(&Arc::new(listing.clone()), &epochs.world.deployment);
    let plan = Arc::new(plan.unwrap());
    assert_eq!(plan.owners(4), 2);
    let mut evil = accepted(epochs, 1, &plan, 0..4);
    let members = (0..4).map(|p| {
        let streams = evil.streams(p);
        let (digest, presence) = evil.presence_at(p, streams, after(1));
        (p, digest, presence.owners)
    });
    let draft = Draft { window: window(1), members: members.collect() };
    // M with the sleeper, and the key that it signed in the first epoch.
    let before: Membership = first.membership.dangerous_unverified().unwrap();
    let mut claimed = draft.clone();
    let sleeper = Digest([7; 32]);
    claimed.members.push((4, sleeper, 2));
    evil.mask_keys.insert(sleeper, before.mask_keys[4].clone());
    for p in 0..4 {
        let asked = evil.membership(&claimed, p);
        let refused = evil.ask(p, after(1), &asked);
        assert_eq!(refused, Err(WindowRefusalError::BadMaskKey { position: 4 }));
    }
    let honest = receipt(&mut evil, &draft, &[0, 1, 2, 3]);
    let row = honest.verify(&plan, window(1)).unwrap();
    assert_eq!((row.population(), row.signers()), (4, 4));
    let forged = with_sleeper(&evil, &claimed, (honest, first));
    // The four have signed another M. That is found before it comes to the fifth.
    let part = SharePart::Token;
    let refused = forged.verify(&plan, window(1));
    assert_eq!(refused, Err(ReceiptError::OtherShare { controller: 0, part }));
    // Nor does the sleeper take part once it wakes.
    let woken = evil.say(4, after(1), &ServiceMessage::List(Arc::new(listing)));
    let Some(ControllerMessage::PlanRefusal(said)) = woken else { panic!("{woken:?}") };
    let key = evil.world.announced.verifying()[4];
    assert_eq!(said.open(&key).unwrap().reason, PlanRefusalError::NotAttended);
}

/// A row over five members, with the last one's share of an earlier epoch.
fn with_sleeper(evil: &Evil, claimed: &Draft, (honest, first): (Receipt, Receipt)) -> Receipt {
    let ServiceMessage::Membership { membership, .. } = evil.membership(claimed, 0) else {
        unreachable!()
    };
    let ServiceMessage::OpeningSet(set) = evil.set(claimed, &[0, 1, 2, 3, 4]) else {
        unreachable!()
    };
    let mut forged = Receipt { membership, opening_set: Some(set), ..honest };
    forged.shares.push(first.shares[4].clone());
    forged
}

/// The service makes all hosts forget a query between two of its windows, and calls for it again under the
/// same keys of the day. In the second window controller 0 is asked about no stream.
fn forgotten_between() -> (Evil, Draft, Receipt) {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..setup(5) });
    let (first, _) = opened(&mut epochs, 0, ALL);
    let terms = epochs.terms.clone();
    for nonce in 100..116 {
        epochs.terms.nonce = [nonce; 16];
        epochs.entries(1, 0..5);
    }
    epochs.terms = terms;
    epochs.caller = new_caller(&epochs.world, &epochs.terms);
    let announced = epochs.gather(1, ALL).unwrap();
    let mut evil = accepted(epochs, 1, &announced, 0..5);
    let members = (0..5).map(|p| {
        let streams = if p == 0 { Vec::new() } else { evil.streams(p) };
        let (digest, presence) = evil.presence_at(p, streams, after(1));
        (p, digest, presence.owners)
    });
    let draft = Draft { window: window(1), members: members.collect() };
    (evil, draft, first)
}

/// So the keys of the second window open the first one, which the erased stream was in.
#[test]
fn an_erasure_wipes_the_keys_of_a_query_that_was_forgotten_between_its_windows() {
    let (mut evil, draft, first) = forgotten_between();
    let of = |signed: &Signed<MaskKey>| signed.dangerous_unverified().unwrap().key;
    let before: Membership = first.membership.dangerous_unverified().unwrap();
    assert_eq!(of(&before.mask_keys[0]), of(&evil.mask_keys[&draft.members[0].1]));
    let message = evil.membership(&draft, 0);
    assert!(matches!(evil.ask(0, after(1), &message), Ok(ControllerMessage::Token(_))));
    let plan = evil.world.announced.plan();
    let own = plan.streams.iter().find(|planned| planned.controller == 0).unwrap().stream;
    let (step, _) = evil.controllers[0].erase(&own, after(1)).unwrap();
    step.commit(&mut evil.store).unwrap();
    assert_eq!(evil.ask(0, after(1), &message).map(drop), Err(WindowRefusalError::KeysGone));
}

/// What the owner at controller 2 reads.
fn events(epochs: &Epochs) -> Vec<LogEvent> {
    let values = epochs.store.values(Scope::Controller(epochs.all.roster[2]));
    let read = values.into_iter().map(|value| StampedRecord::read(value).unwrap());
    let events = read.filter_map(|stamped| match stamped.record {
        Record::Log(line) => Some(line.event),
        _ => None,
    });
    events.collect()
}

/// The owners' log says that rows are signed, and of which windows nobody asked their controller.
#[test]
fn owners_read_of_verified_epochs_and_of_windows_that_they_were_not_asked_about() {
    let mut epochs = Epochs::new(setup(5));
    opened(&mut epochs, 0, ALL);
    opened(&mut epochs, 1, &|at| at != 2);
    opened(&mut epochs, 2, ALL);
    let events = events(&epochs);
    let accepted = |event: &LogEvent| {
        matches!(event, LogEvent::PlanAccepted { plan, verified, .. }
            if *plan == epochs.terms.id() && *verified)
    };
    assert_eq!(events.iter().filter(|event| accepted(event)).count(), 1, "{events:?}");
    assert_eq!(unasked(&events), [(epochs.terms.id(), window(1))]);
}

fn unasked(events: &[LogEvent]) -> Vec<(PlanId, Window)> {
    let missed = events.iter().filter_map(|event| match event {
        LogEvent::NotSummoned { plan, windows, .. } => Some((*plan, *windows)),
        _ => None,
    });
    missed.collect()
}

/// They are on its list, and the window passes without a summons: the service says that it failed, or
/// nothing until the next list.
#[test]
fn owners_read_of_a_window_whose_list_they_are_on_and_that_they_were_not_asked_about() {
    for is_ended in [true, false] {
        let mut epochs = Epochs::new(setup(5));
        opened(&mut epochs, 0, ALL);
        let announced = epochs.gather(1, ALL).unwrap();
        epochs.say(2, after(1), &announced.message());
        if is_ended {
            let outcome = WindowOutcome::Failed(ReleaseError::OpeningLost);
            let closing = Closing { plan: announced.id(), window: window(1), outcome };
            let closing = Signed::new(&closing, &epochs.world.service);
            let heard = epochs.inbox.open(&ServiceMessage::Closing(closing)).unwrap();
            let step = epochs.controllers[2].handle(&heard, after(1));
            step.commit(&mut epochs.store).unwrap();
            assert_eq!(unasked(&events(&epochs)), [(epochs.terms.id(), window(1))]);
        }
        let announced = epochs.gather(2, ALL).unwrap();
        epochs.say(2, after(2), &announced.message());
        assert_eq!(unasked(&events(&epochs)), [(epochs.terms.id(), window(1))]);
    }
}

/// A list of another query comes next, and the plan is dropped. If the service has ended the plan before its
/// window was over, nobody was to be asked.
#[test]
fn owners_read_of_it_before_its_plan_is_dropped_for_a_list_of_another_query() {
    let line = |epochs: &Epochs| vec![(epochs.terms.id(), window(1))];
    for (ended, is_missed) in [(None, true), (Some(after(1)), true), (Some(window(1).end), false)] {
        let mut epochs = Epochs::new(setup(5));
        let announced = epochs.gather(1, ALL).unwrap();
        epochs.say(2, window(1).end, &announced.message());
        let expected = if is_missed { line(&epochs) } else { vec![] };
        if let Some(now) = ended {
            let retirement = Retirement { plan: announced.id() };
            let retirement = Signed::new(&retirement, &epochs.world.service);
            let heard = epochs.inbox.open(&ServiceMessage::Retirement(retirement)).unwrap();
            // The message may come twice.
            for now in [now, after(1)] {
                let step = epochs.controllers[2].handle(&heard, now);
                step.commit(&mut epochs.store).unwrap();
            }
        }
        let days = 3 * Span::DAY.0 / (window(0).end.0 - window(0).start.0);
        epochs.terms.nonce = [77; 16];
        epochs.caller = new_caller(&epochs.world, &epochs.terms);
        let next = epochs.gather(days, ALL).unwrap();
        epochs.say(2, after(days), &next.message());
        assert_eq!(epochs.controllers[2].known_plans().collect::<Vec<_>>(), [&next.id()]);
        assert_eq!(unasked(&events(&epochs)), expected, "{ended:?}");
    }
}

#[test]
fn a_receipt_with_a_list_has_one_form() {
    let (_, [(receipt, _), _]) = two_windows();
    let bytes = receipt.to_bytes();
    assert_eq!((bytes[0], Receipt::from_bytes(&bytes).as_ref()), (3, Ok(&receipt)));
    let bad = |bytes: &[u8]| Receipt::from_bytes(bytes).unwrap_err();
    assert_eq!(bad(&bytes[..bytes.len() - 1]), ReceiptFormatError::Malformed);
    assert_eq!(bad(&[bytes.clone(), vec![0]].concat()), ReceiptFormatError::Malformed);
    // A list where the version says that there is none, and none where it says that there is.
    assert_eq!(bad(&[vec![2], bytes[1..].to_vec()].concat()), ReceiptFormatError::Malformed);
    let without = Receipt { listing: None, ..receipt }.to_bytes();
    assert_eq!(bad(&[vec![3], without[1..].to_vec()].concat()), ReceiptFormatError::Malformed);
}

/// A reader of receipts counts as the service, which terms without colluders bound nowhere.
#[test]
fn terms_that_think_of_no_colluders_are_not_verified() {
    let mut epochs = Epochs::new(setup(5));
    epochs.terms = Plan { alpha: Fraction::ZERO, colluders: 0, ..epochs.terms.clone() };
    assert_eq!(epochs.terms.not_verifiable(), Some(NotVerifiableError::NoColluders));
    epochs.caller = new_caller(&epochs.world, &epochs.terms);
    // Owners' policies think of some, so nobody attends.
    let nobody = ReleaseError::QuorumLost { held: 0, needed: 1 };
    assert_eq!(epochs.gather(0, ALL).unwrap_err(), nobody);
}
