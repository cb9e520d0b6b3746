//! Epochs with a service that lies.

use alpheus_encrypted_stream::ledger::{Record, StampedRecord};
use alpheus_encrypted_stream::messages::Retirement;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Fraction;

use super::*;
use crate::protocol::copies::show_copy;
use crate::protocol::evil::Evil;
use crate::protocol::world::stream_id;

/// A minimum of three with two colluders: c + min − 1 = 4.
fn guarded(controllers: u32) -> Setup {
    Setup {
        minimum: 3,
        alpha: Fraction::THIRD,
        colluders: 2,
        windows: 3,
        ..Setup::new(controllers)
    }
}

/// The service ends a plan at the first controller.
fn retire(epochs: &mut Epochs, plan: PlanId, now: Timestamp) {
    let retirement = Signed::new(&Retirement { plan }, &epochs.world.service);
    let heard = epochs.inbox.open(&ServiceMessage::Retirement(retirement)).unwrap();
    epochs.controllers[0].handle(&heard, now).commit(&mut epochs.store).unwrap();
}

/// Both lists are honest, over different members.
#[test]
fn a_controller_accepts_one_list_for_an_epoch() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 0..8);
    let (some, all) = (epochs.list(0, entries[..7].to_vec()), epochs.list(0, entries));
    epochs.accept(0, 0, &some).unwrap();
    assert_eq!(epochs.accept(0, 0, &all), Err(PlanRefusalError::OtherList));
    assert_eq!(epochs.accept(0, 0, &some), Ok(()), "the same list again");
    // Nor once the first list's plan has ended.
    let plan = epochs.inbox.open(&ServiceMessage::List(Arc::new(some.clone()))).unwrap();
    let alpheus_encrypted_stream::inbox::InboundMessage::Announcement(Ok(plan)) = plan else {
        panic!("an honest list")
    };
    retire(&mut epochs, plan.id(), after(0));
    assert_eq!(epochs.accept(0, 0, &all), Err(PlanRefusalError::OtherList));
    assert_eq!(epochs.accept(0, 0, &some), Err(PlanRefusalError::Ended));
}

#[test]
fn a_repeated_call_gets_the_same_bytes_and_an_earlier_epoch_none() {
    let mut epochs = Epochs::new(guarded(8));
    let call = ServiceMessage::EpochCall(epochs.call(1));
    let first = epochs.say(0, after(1), &call);
    assert_eq!(epochs.say(0, after(2), &call), first);
    assert_eq!(epochs.attendance(0, 0), Err(WindowRefusalError::AlreadyAttended));
    let early = ServiceMessage::EpochCall(epochs.call(2));
    let key = epochs.key(0);
    let ControllerMessage::WindowRefusal(said) = epochs.say(0, after(1), &early) else { panic!() };
    assert_eq!(said.open(&key).unwrap().reason, WindowRefusalError::NotEnded);
}

/// A list of an epoch is refused once a later one was attended: the member has no more than one
/// list to keep.
#[test]
fn a_list_that_comes_after_the_next_epoch_is_refused() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 0..8);
    let late = epochs.list(0, entries);
    epochs.attendance(0, 1).unwrap();
    assert_eq!(epochs.accept(0, 0, &late), Err(PlanRefusalError::NotAttended));
    assert_eq!(epochs.accept(1, 0, &late), Ok(()), "it attended no later one");
}

#[test]
fn an_entry_that_is_not_what_its_controller_attended_with_is_refused() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..guarded(8) });
    let entries = epochs.entries(0, 0..8);
    // Without one of the two owners.
    let mut fewer = entries.clone();
    fewer[3].owners.pop();
    let fewer = epochs.list(0, fewer);
    assert_eq!(epochs.accept(3, 0, &fewer), Err(PlanRefusalError::EntryChanged { position: 3 }));
    assert_eq!(epochs.accept(4, 0, &fewer), Ok(()), "only its own controller can tell");
    // Under another owner's name.
    let mut renamed = entries.clone();
    renamed[3].owners[0].owner = OwnerId([0; 32]);
    let renamed = epochs.list(0, renamed);
    assert_eq!(epochs.accept(3, 0, &renamed), Err(PlanRefusalError::EntryChanged { position: 3 }));
    // With another key than the certificate's.
    let mut swapped = entries;
    swapped[3].agreement = swapped[4].agreement;
    let swapped = epochs.list(0, swapped);
    assert_eq!(epochs.accept(5, 0, &swapped), Err(PlanRefusalError::EntryKey { position: 3 }));
}

/// A controller attends without a stream that the service has elsewhere, until it has accepted a
/// list. Of what it attended with before, it accepts none.
#[test]
fn a_controller_attends_once_more_with_fewer_streams_and_not_after_a_list() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..guarded(6) });
    let before = epochs.entries(0, 0..6);
    let own = before.iter().position(|entry| entry.owners.len() == 2).unwrap();
    let gone = before[own].owners[0].clone();
    let fewer = epochs.attendance_without(own, 0, gone.streams.clone()).unwrap().entry;
    assert_eq!(fewer.owners, before[own].owners[1..]);
    let old = epochs.list(0, before.clone());
    let position = u32::try_from(own).unwrap();
    assert_eq!(epochs.accept(own, 0, &old), Err(PlanRefusalError::EntryChanged { position }));
    // Nothing comes back within an epoch, not even after a restart.
    let (store, fence) = (epochs.store.clone(), epochs.controllers[own].fence());
    epochs.restore(own, &store, after(0), Some(fence));
    assert_eq!(epochs.attendance(own, 0).unwrap().entry, fewer);
    let mut entries = before.clone();
    entries[own] = fewer.clone();
    let list = epochs.list(0, entries);
    epochs.accept(own, 0, &list).unwrap();
    let all = fewer.owners[0].streams.clone();
    assert_eq!(epochs.attendance_without(own, 0, all).unwrap().entry, fewer, "it is listed");
    // The next epoch is as if nothing had been left out.
    assert_eq!(epochs.attendance(own, 1).unwrap().entry.owners, before[own].owners);
    let all = before[own].owners.iter().flat_map(|listed| listed.streams.clone()).collect();
    let none = epochs.attendance_without(own, 1, all);
    assert_eq!(none, Err(WindowRefusalError::NothingToGive));
}

#[test]
fn an_owner_at_two_controllers_is_refused_with_the_entry() {
    let mut epochs = Epochs::new(guarded(8));
    let mut entries = epochs.entries(0, 0..8);
    // A colluder at position 6 lists the owner of the controller at 2.
    entries[6].owners = entries[2].owners.clone();
    let list = epochs.list(0, entries);
    let refused = Err(PlanRefusalError::OwnerInTwoEntries { position: 6 });
    assert_eq!(epochs.accept(2, 0, &list), refused);
    assert_eq!(epochs.accept(0, 0, &list), refused);
}

#[test]
fn entries_out_of_order_empty_or_with_a_small_order_key_are_refused() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 0..8);
    let mut swapped = entries.clone();
    swapped.swap(1, 2);
    let swapped = epochs.list(0, swapped);
    assert_eq!(epochs.accept(0, 0, &swapped), Err(PlanRefusalError::Entry { position: 2 }));
    let mut twice = entries.clone();
    twice.insert(1, entries[0].clone());
    let twice = epochs.list(0, twice);
    assert_eq!(epochs.accept(0, 0, &twice), Err(PlanRefusalError::Entry { position: 1 }));
    let mut empty = entries.clone();
    empty[7].owners.clear();
    let empty = epochs.list(0, empty);
    assert_eq!(epochs.accept(0, 0, &empty), Err(PlanRefusalError::Entry { position: 7 }));
    let mut small = entries;
    small[4].agreement = alpheus_crypto::agree::AgreementPublic([0; 32]);
    let small = epochs.list(0, small);
    assert_eq!(epochs.accept(0, 0, &small), Err(PlanRefusalError::EntryKey { position: 4 }));
}

/// c colluders with an honest owner: the victim refuses. With c + min − 1 it accepts, as
/// `EXPLAIN` says.
#[test]
fn a_victim_among_colluders_opens_nothing_unless_there_are_as_many_as_explain_says() {
    for (colluders, accepted) in [(1, false), (2, false), (3, false), (4, true)] {
        let mut epochs = Epochs::new(guarded(8));
        let entries = epochs.entries(0, 0..=colluders);
        let victim = epochs.index(&entries[0].controller);
        let list = epochs.list(0, entries);
        let counted = colluders.saturating_sub(1).max(1) as u32;
        let refused = PlanRefusalError::ListTooSmall { counted, needed: 3 };
        // Of two, each might trust the other: its token depends on that.
        let said = epochs.accept(victim, 0, &list);
        if colluders > 1 {
            assert_eq!(said, if accepted { Ok(()) } else { Err(refused) }, "{colluders} colluders");
        } else {
            assert!(said.is_err(), "two owners are below three");
        }
    }
}

/// The service and four colluders read one owner of a plan with c = 2 and a minimum of three.
#[test]
fn with_c_plus_min_minus_one_colluders_one_owner_is_read() {
    let mut epochs = Epochs::new(guarded(8));
    let outcome = epochs.window(0, &|at| at < 5).unwrap();
    let sum = outcome.result.unwrap().outputs;
    let colluders = epochs.truth(1..5, 0);
    let victim: Vec<u64> = sum.iter().zip(&colluders).map(|(all, own)| all - own).collect();
    assert_eq!(victim, epochs.truth([0], 0));
}

#[test]
fn a_controller_is_not_listed_alone_in_a_plan_that_needs_others() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 2..3);
    let list = epochs.list_with(0, entries, MaskStrategy::Single);
    assert_eq!(epochs.accept(2, 0, &list), Err(PlanRefusalError::ListedAlone));
}

#[test]
fn graphs_that_are_too_sparse_or_drawn_for_each_epoch_are_refused() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 0..8);
    let sparse = epochs.list_with(0, entries.clone(), MaskStrategy::Dream { bits: 1 });
    assert_eq!(epochs.accept(0, 0, &sparse), Err(PlanRefusalError::UnsafeMasks));
    let picks = MaskStrategy::Neighbours { picks: 5, cut_off: 1 };
    let picked = epochs.list_with(0, entries, picks);
    assert_eq!(epochs.accept(0, 0, &picked), Err(PlanRefusalError::PicksInEpoch));
}

/// A controller that was left out of the list, or of the call, gives nothing under it.
#[test]
fn a_controller_that_is_not_in_a_list_answers_none_of_its_windows() {
    let mut epochs = Epochs::new(guarded(8));
    let entries = epochs.entries(0, 0..7);
    let list = epochs.list(0, entries);
    assert_eq!(epochs.accept(7, 0, &list), Err(PlanRefusalError::NotInRoster));
    let all = epochs.entries(0, 0..8);
    let with = epochs.list(1, all);
    assert_eq!(epochs.accept(0, 1, &with), Err(PlanRefusalError::NotAttended));
}

/// A query that runs twice, under two names.
#[test]
fn two_families_never_release_one_window_of_a_stream() {
    let mut epochs = Epochs::new(guarded(8));
    let first = epochs.window(0, ALL).unwrap();
    assert!(first.result.is_ok());
    let other = Plan { nonce: [77; 16], ..epochs.terms.clone() };
    epochs.terms = other.clone();
    epochs.caller = new_caller(&epochs.world, &other);
    let outcome = epochs.window(0, ALL).unwrap();
    assert!(outcome.result.is_err(), "all streams are excluded as released");
    assert_eq!(outcome.excluded.get(&ExclusionError::Released), Some(&8));
    assert!(epochs.window(1, ALL).unwrap().result.is_ok());
}

/// The service ends a later epoch before any of its windows. The earlier one still runs, and what
/// it holds is free for no other query.
#[test]
fn an_epoch_that_is_retired_frees_nothing_that_another_holds() {
    let mut epochs = Epochs::new(guarded(8));
    for number in 0..2 {
        let entries = epochs.entries(number, 0..8);
        let listing = epochs.list(number, entries);
        assert_eq!(epochs.accept(0, number, &listing), Ok(()));
        if number == 1 {
            let opened =
                AnnouncedPlan::open_list(&Arc::new(listing), &epochs.world.deployment).unwrap();
            retire(&mut epochs, opened.id(), after(1));
        }
    }
    epochs.terms.nonce = [77; 16];
    assert_eq!(epochs.attendance(0, 0), Err(WindowRefusalError::NothingToGive));
}

/// The service calls for one plan after the other. A controller remembers few of them, and attends
/// no window twice.
#[test]
fn calls_for_many_plans_leave_few_records() {
    let mut epochs = Epochs::new(guarded(8));
    for number in 0..40 {
        epochs.terms.nonce = [number; 16];
        epochs.attendance(0, u64::from(number)).unwrap();
    }
    let own = Scope::Controller(epochs.controllers[0].id());
    let records = epochs.store.values(own).into_iter();
    let records = records.map(|value| StampedRecord::read(value).unwrap().record);
    assert_eq!(records.filter(|record| matches!(record, Record::Attended { .. })).count(), 16);
    let (store, fence) = (epochs.store.clone(), epochs.controllers[0].fence());
    for _ in 0..2 {
        epochs.terms.nonce = [3; 16];
        assert_eq!(epochs.attendance(0, 3), Err(WindowRefusalError::AlreadyAttended));
        epochs.terms.nonce = [77; 16];
        assert_eq!(epochs.attendance(0, 23), Err(WindowRefusalError::AlreadyAttended));
        epochs.terms.nonce = [39; 16];
        assert!(epochs.attendance(0, 39).is_ok(), "the last ones are repeated");
        epochs.restore(0, &store, after(39), Some(fence));
    }
    epochs.terms.nonce = [3; 16];
    assert!(epochs.attendance(0, 40).is_ok());
}

/// A plan of an epoch ends with its last window.
#[test]
fn a_list_covers_the_windows_of_its_epoch_only() {
    let mut epochs = Epochs::new(guarded(8));
    let announced = epochs.gather(0, ALL).unwrap();
    epochs.adopt(&announced);
    for at in 0..8 {
        epochs.say(at, after(0), &announced.message());
    }
    let summons = alpheus_encrypted_stream::messages::Summons {
        plan: announced.id(),
        window: window(1),
        controller: 0,
        streams: vec![],
    };
    let summons = ServiceMessage::Summons(Signed::new(&summons, &epochs.world.service));
    let at = epochs.index(&announced.plan().roster[0]);
    let key = epochs.key(at);
    let ControllerMessage::WindowRefusal(said) = epochs.say(at, after(1), &summons) else {
        panic!("it is another epoch's window")
    };
    assert_eq!(said.open(&key).unwrap().reason, WindowRefusalError::WrongWindow);
}

/// A stream whose device has a copy is not listed until its owner has confirmed.
#[test]
fn a_stream_that_waits_after_a_copy_is_not_attended_with() {
    let mut evil = Evil::new(Setup { streams_each: 2, windows: 6, ..Setup::new(2) }.with_ticks());
    let mut streams = evil.streams(0);
    show_copy(&evil, &mut streams[0]);
    evil.presence(0, streams);
    let retirement = Signed::new(&Retirement { plan: evil.world.id() }, &evil.world.service);
    evil.say(0, after(0), &ServiceMessage::Retirement(retirement));
    let Evil { world, controllers, store, .. } = evil;
    let mut epochs = Epochs::of(world, controllers, store);
    let attended = epochs.attendance(0, 5).unwrap().entry;
    let listed = attended.owners.iter().flat_map(|owner| owner.streams.clone());
    assert_eq!(listed.collect::<Vec<_>>(), [stream_id(1)]);
}
