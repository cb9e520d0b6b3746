//! Crashes and old copies between call, list and window.

use std::collections::BTreeSet;
use std::ops::Range;

use alpheus_encrypted_stream::ledger::{Record, StampedRecord};
use alpheus_encrypted_stream::messages::Summons;
use alpheus_policy::ids::PlanId;

use super::*;
use crate::protocol::world::announce;

fn setup() -> Setup {
    Setup { minimum: 3, windows: 3, ..Setup::new(6) }
}

#[test]
fn a_controller_that_crashes_attends_again_with_the_same_bytes() {
    let mut epochs = Epochs::new(setup());
    let call = ServiceMessage::EpochCall(epochs.call(0));
    let first = epochs.say(2, after(0), &call);
    let (store, fence) = (epochs.store.clone(), epochs.controllers[2].fence());
    epochs.restore(2, &store, after(0), Some(fence));
    assert_eq!(epochs.say(2, after(0), &call), first);
    assert_eq!(epochs.attendance(2, 1).unwrap().window, window(1));
}

#[test]
fn a_list_that_was_accepted_before_a_crash_stays_the_only_one() {
    let mut epochs = Epochs::new(setup());
    let entries = epochs.entries(0, 0..6);
    let (some, all) = (epochs.list(0, entries[..5].to_vec()), epochs.list(0, entries));
    epochs.accept(1, 0, &some).unwrap();
    let (store, fence) = (epochs.store.clone(), epochs.controllers[1].fence());
    epochs.restore(1, &store, after(0), Some(fence));
    assert_eq!(epochs.accept(1, 0, &all), Err(PlanRefusalError::OtherList));
    assert_eq!(epochs.accept(1, 0, &some), Ok(()));
}

/// The copy knows neither the list nor the attendance of the epoch.
#[test]
fn a_restored_controller_attends_no_epoch_that_began_before() {
    let mut epochs = Epochs::new(setup());
    let old = epochs.store.clone();
    let entries = epochs.entries(0, 0..6);
    let list = epochs.list(0, entries);
    epochs.accept(1, 0, &list).unwrap();
    epochs.restore(1, &old, after(0), None);
    assert_eq!(epochs.attendance(1, 0), Err(WindowRefusalError::CountsAsReleased));
    assert_eq!(epochs.accept(1, 0, &list), Err(PlanRefusalError::EpochBeforeRestore));
    assert_eq!(epochs.attendance(1, 1), Err(WindowRefusalError::CountsAsReleased), "it had begun");
    // The owner has not confirmed what the old copy knows.
    assert_eq!(epochs.attendance(1, 2), Err(WindowRefusalError::NothingToGive));
}

/// The copy has the attendance, and not the list that was accepted since.
#[test]
fn a_copy_from_between_attendance_and_list_accepts_none() {
    let mut epochs = Epochs::new(setup());
    let entries = epochs.entries(0, 0..6);
    let between = epochs.store.clone();
    let (some, all) = (epochs.list(0, entries[..5].to_vec()), epochs.list(0, entries));
    epochs.accept(1, 0, &some).unwrap();
    epochs.restore(1, &between, after(0), None);
    assert_eq!(epochs.accept(1, 0, &all), Err(PlanRefusalError::EpochBeforeRestore));
    assert_eq!(epochs.attendance(1, 0), Err(WindowRefusalError::CountsAsReleased));
}

/// Members crash after the list, and the window goes on.
#[test]
fn a_window_opens_although_its_members_crash_after_the_list() {
    let mut epochs = Epochs::new(setup());
    let announced = epochs.gather(0, ALL).unwrap();
    for at in 0..6 {
        epochs.say(at, after(0), &announced.message());
        let (store, fence) = (epochs.store.clone(), epochs.controllers[at].fence());
        epochs.restore(at, &store, after(0), Some(fence));
    }
    let opened = epochs.run(0, &announced, ALL).result.unwrap();
    assert_eq!(opened.outputs, epochs.truth(0..6, 0));
}

#[test]
fn a_restarted_service_repeats_the_list_and_draws_none_again() {
    let mut epochs = Epochs::new(setup());
    let first = epochs.gather(0, &|at| at < 4).unwrap();
    let values = epochs.store.values(Scope::Service(epochs.terms.id()));
    epochs.caller = new_caller(&epochs.world, &epochs.terms).restore(values).unwrap();
    // All are awake now, and nobody is asked.
    let again = epochs.gather(0, ALL).unwrap();
    assert_eq!(again.id(), first.id());
    assert_eq!(again.controllers(), 4);
    let failed = epochs.gather(1, &|at| at < 1).unwrap_err();
    let values = epochs.store.values(Scope::Service(epochs.terms.id()));
    epochs.caller = new_caller(&epochs.world, &epochs.terms).restore(values).unwrap();
    assert_eq!(epochs.gather(1, ALL).unwrap_err(), failed, "an epoch without a list stays so");
    let call = |epochs: &mut Epochs| {
        let step = epochs.caller.call(window(0), &epochs.certificates(), after(2));
        step.commit(&mut epochs.store).unwrap()
    };
    let fixed = call(&mut epochs);
    assert!(matches!(&fixed[..], [EpochOutput::Listed(list)] if list.id() == first.id()));
    // Once its row is out, the list is deleted, and the epoch is over.
    let row = Step::new(epochs.caller.end(window(0).start), ());
    row.commit(&mut epochs.store).unwrap();
    assert!(call(&mut epochs).is_empty(), "an epoch that is over");
}

/// What must be durable is: nothing leaves before its commit.
#[test]
fn attendance_and_list_are_in_the_ledger_before_they_leave() {
    let mut epochs = Epochs::new(setup());
    let (call, key) = (ServiceMessage::EpochCall(epochs.call(0)), epochs.key(0));
    let heard = epochs.inbox.open(&call).unwrap();
    let step = epochs.controllers[0].handle(&heard, after(0));
    let before = epochs.store.map.clone();
    let said = step.commit(&mut epochs.store).unwrap();
    let ControllerMessage::Attendance(signed) = &said[0] else { panic!("{said:?}") };
    assert!(epochs.store.map.len() > before.len());
    assert_eq!(signed.open(&key).unwrap().terms, epochs.terms.id());
}

/// How many records of a controller there are beside the lines of its log.
fn records(epochs: &Epochs, at: usize) -> usize {
    let values = epochs.store.values(Scope::Controller(epochs.controllers[at].id()));
    let is_log = |value: &&[u8]| {
        matches!(
            StampedRecord::read(value).unwrap().record,
            Record::Log(_) | Record::Session { .. } | Record::Sets { .. }
        )
    };
    values.into_iter().filter(|value| !is_log(value)).count()
}

/// Why a controller leaves its stream out of these windows of a plan of another family.
pub(super) fn left_out(
    epochs: &mut Epochs,
    at: usize,
    now: Timestamp,
    windows: Range<u64>,
) -> Vec<ExclusionError> {
    let world = &epochs.world;
    let announced = announce(&epochs.all, &world.seats, &world.service, &world.deployment);
    let step = epochs.controllers[at].handle_announcement(&announced, now).unwrap();
    step.commit(&mut epochs.store).unwrap();
    epochs.adopt(&announced);
    let (plan, key) = (announced.id(), epochs.key(at));
    let presence = |number| {
        let closed = epochs.world.transformer.close(&plan, window(number), 0).unwrap();
        let own = closed.complete().filter(|stream| stream.position as usize == at);
        let streams = own.cloned().collect();
        let summons = Summons { plan, window: window(number), controller: at as u32, streams };
        let signed = Signed::new(&summons, &epochs.world.service);
        match epochs.say(at, now, &ServiceMessage::Summons(signed)) {
            ControllerMessage::Presence(signed) => signed.open(&key).unwrap().excluded[0].1,
            other => panic!("{other:?}"),
        }
    };
    windows.map(presence).collect()
}

/// Plans of epochs that are over are dropped, and what they released stays released, for a plan
/// of another family as well.
#[test]
fn ended_epochs_leave_one_span_and_no_plan() {
    let mut epochs = Epochs::new(Setup { windows: 6, ..setup() });
    let mut sizes = Vec::new();
    for number in 0..4 {
        assert!(epochs.window(number, ALL).unwrap().result.is_ok(), "window {number}");
        sizes.push(records(&epochs, 1));
    }
    assert!(sizes[1] == sizes[2] && sizes[2] == sizes[3], "{sizes:?}");
    assert_eq!(epochs.controllers[1].known_plans().count(), 1, "the last epoch's");
    let (store, fence) = (epochs.store.clone(), epochs.controllers[1].fence());
    epochs.restore(1, &store, after(4), Some(fence));
    for at in [0, 1] {
        assert_eq!(
            left_out(&mut epochs, at, after(9), 0..4),
            [ExclusionError::Released; 4],
            "{at}"
        );
    }
}

#[test]
fn lists_that_no_controller_knows_are_deleted_at_the_start_of_their_host() {
    let mut epochs = Epochs::new(Setup { windows: 6, ..setup() });
    for number in 0..3 {
        epochs.window(number, ALL).unwrap();
    }
    let host = |epochs: &Epochs| {
        HostRecords::read(epochs.store.values(Scope::Host), &epochs.world.deployment).unwrap()
    };
    let known: BTreeSet<PlanId> =
        epochs.controllers.iter().flat_map(|own| own.known_plans().copied()).collect();
    assert_eq!(known.len(), 1);
    let gone = host(&epochs).forget_plans(&known);
    assert_eq!(gone.len(), 2);
    Step::new(gone, ()).commit(&mut epochs.store).unwrap();
    assert_eq!(host(&epochs).forget_plans(&known).len(), 0);
    assert!(known.iter().all(|plan| host(&epochs).plan(plan).is_some()));
}
