//! Plans of many families: a service may ask every time under another name.

use alpheus_encrypted_stream::ledger::{LogEvent, Record, StampedRecord};

use super::restarts::left_out;
use super::*;

fn setup() -> Setup {
    Setup { minimum: 3, windows: 8, ..Setup::new(6) }
}

/// From now on the service asks the same under another name.
fn rename(epochs: &mut Epochs, nonce: u8) {
    epochs.terms.nonce = [nonce; 16];
    epochs.caller = new_caller(&epochs.world, &epochs.terms);
}

/// A list that follows from what these controllers attend with now.
fn listing(epochs: &mut Epochs, number: u64) -> Arc<Listing> {
    let entries = epochs.entries(number, 0..epochs.controllers.len());
    Arc::new(epochs.list(number, entries))
}

fn announced(epochs: &Epochs, listing: &Arc<Listing>) -> Arc<AnnouncedPlan> {
    Arc::new(AnnouncedPlan::open_list(listing, &epochs.world.deployment).unwrap())
}

fn accepted_by_all(epochs: &mut Epochs, number: u64, listing: &Listing) {
    for at in 0..epochs.controllers.len() {
        assert_eq!(epochs.accept(at, number, listing), Ok(()), "{at}");
    }
}

fn restart_all(epochs: &mut Epochs, now: Timestamp) {
    for at in 0..epochs.controllers.len() {
        let (store, fence) = (epochs.store.clone(), epochs.controllers[at].fence());
        epochs.restore(at, &store, now, Some(fence));
    }
}

/// Each window is asked for under a name of its own. A controller's records do not grow, and released
/// windows stay released.
#[test]
fn plans_of_epochs_that_have_ended_are_dropped_whatever_family_comes_next() {
    let mut epochs = Epochs::new(setup());
    let mut first = None;
    for number in 0..6 {
        rename(&mut epochs, 50 + number as u8);
        let outcome = epochs.window(number, ALL).unwrap();
        assert!(outcome.result.is_ok(), "window {number}");
        first.get_or_insert(epochs.listed.clone().unwrap());
        assert_eq!(epochs.controllers[1].known_plans().count(), 1, "window {number}");
    }
    // The list of a plan that is dropped is not accepted again.
    let first = first.unwrap();
    let key = epochs.key(1);
    for _ in 0..2 {
        let ControllerMessage::PlanRefusal(said) = epochs.say(1, after(6), &first.message()) else {
            panic!("its plan has ended")
        };
        assert_eq!(said.open(&key).unwrap().reason, PlanRefusalError::Ended);
        restart_all(&mut epochs, after(6));
    }
    assert_eq!(left_out(&mut epochs, 1, after(9), 0..6), [ExclusionError::Released; 6]);
}

/// The service tells nobody that an epoch is over. Two days later its plan is over all the same: it
/// answers nothing, and the next list of any family ends it.
#[test]
fn plans_whose_end_was_missed_end_by_themselves_whatever_family_comes_next() {
    let mut epochs = Epochs::new(setup());
    let mut lists = Vec::new();
    for number in 0..3 {
        rename(&mut epochs, 50 + number as u8);
        let list = listing(&mut epochs, number);
        accepted_by_all(&mut epochs, number, &list);
        lists.push(list);
    }
    assert_eq!(epochs.controllers[1].known_plans().count(), 3);
    let days = 3 * Span::DAY.0 / (window(0).end.0 - window(0).start.0);
    // One that goes on for two days, and then not.
    let summons = alpheus_encrypted_stream::messages::Summons {
        plan: announced(&epochs, &lists[2]).id(),
        window: window(2),
        controller: 1,
        streams: vec![],
    };
    let summons = ServiceMessage::Summons(Signed::new(&summons, &epochs.world.service));
    let roster = announced(&epochs, &lists[2]).plan().roster.clone();
    let at = epochs.index(&roster[1]);
    let said = |epochs: &mut Epochs, now| epochs.say(at, now, &summons);
    assert!(matches!(said(&mut epochs, after(3)), ControllerMessage::Presence(_)));
    let key = epochs.key(at);
    let ControllerMessage::WindowRefusal(refused) = said(&mut epochs, after(days)) else {
        panic!("it is long over")
    };
    assert_eq!(refused.open(&key).unwrap().reason, WindowRefusalError::PlanEnded);
    rename(&mut epochs, 77);
    let list = listing(&mut epochs, days);
    accepted_by_all(&mut epochs, days, &list);
    let last = announced(&epochs, &list).id();
    assert_eq!(epochs.controllers[1].known_plans().collect::<Vec<_>>(), [&last]);
}

/// After an outage of days the lists of its windows come late, those of two queries in turn.
#[test]
fn an_epoch_whose_list_comes_late_has_as_much_time_as_any() {
    let mut epochs = Epochs::new(setup());
    let late = after(3 * Span::DAY.0 / (window(0).end.0 - window(0).start.0));
    let mut plans = Vec::new();
    for number in 0..2 {
        rename(&mut epochs, 50 + number as u8);
        let list = listing(&mut epochs, number);
        for at in 0..6 {
            let answer = epochs.say(at, late, &ServiceMessage::List(Arc::clone(&list)));
            assert!(matches!(answer, ControllerMessage::Acceptance(_)), "{answer:?}");
        }
        plans.push(announced(&epochs, &list));
    }
    assert_eq!(epochs.controllers[1].known_plans().count(), 2);
    restart_all(&mut epochs, late);
    assert_eq!(epochs.controllers[1].known_plans().count(), 2);
    let opened = epochs.run(0, &plans[0], ALL).result.unwrap();
    assert_eq!(opened.outputs, epochs.truth(0..6, 0));
}

/// Two queries call for one window before either has a list. A stream is in the first one. The second
/// opens over the streams that only it has, and costs nobody else anything.
#[test]
fn of_two_families_that_were_attended_together_the_second_leaves_held_streams_out() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..setup() });
    let firsts: Vec<StreamId> =
        epochs.all.streams.iter().step_by(2).map(|own| own.stream).collect();
    // The first query leaves out each controller's first stream.
    let mut some: Vec<ListEntry> =
        (0..6).map(|at| epochs.attendance_without(at, 0, firsts.clone()).unwrap().entry).collect();
    some.sort_by_key(|entry| entry.controller);
    let first = Arc::new(epochs.list(0, some));
    let terms = epochs.terms.clone();
    rename(&mut epochs, 77);
    let second = listing(&mut epochs, 0);
    accepted_by_all(&mut epochs, 0, &second.as_ref().clone());
    // The other way round: now the second query holds all, and the first has nothing left.
    epochs.terms = terms;
    accepted_by_all(&mut epochs, 0, &first.as_ref().clone());
    restart_all(&mut epochs, after(0));
    let plan = announced(&epochs, &first);
    let outcome = epochs.run(0, &plan, ALL);
    assert_eq!(outcome.excluded.get(&ExclusionError::HeldElsewhere), Some(&6));
    assert!(outcome.result.is_err());
    let plan = announced(&epochs, &second);
    let outcome = epochs.run(0, &plan, ALL);
    assert_eq!(outcome.excluded.get(&ExclusionError::HeldElsewhere), None);
    assert_eq!(outcome.result.unwrap().outputs, epochs.truth(0..6, 0));
}

/// The same, where the query with fewer streams has its list first.
#[test]
fn a_list_with_a_held_stream_opens_over_the_others() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..setup() });
    let firsts: Vec<StreamId> =
        epochs.all.streams.iter().step_by(2).map(|own| own.stream).collect();
    let mut some: Vec<ListEntry> =
        (0..6).map(|at| epochs.attendance_without(at, 0, firsts.clone()).unwrap().entry).collect();
    some.sort_by_key(|entry| entry.controller);
    let first = Arc::new(epochs.list(0, some));
    rename(&mut epochs, 77);
    let second = listing(&mut epochs, 0);
    epochs.terms.nonce = epochs.all.nonce;
    accepted_by_all(&mut epochs, 0, &first.as_ref().clone());
    epochs.terms.nonce = [77; 16];
    accepted_by_all(&mut epochs, 0, &second.as_ref().clone());
    restart_all(&mut epochs, after(0));
    let (one, two) = (announced(&epochs, &first), announced(&epochs, &second));
    let outcome = epochs.run(0, &two, ALL);
    assert_eq!(outcome.excluded.get(&ExclusionError::HeldElsewhere), Some(&6));
    let own = |offset: usize| (0..6).map(move |at| 2 * at + offset).collect::<Vec<_>>();
    assert_eq!(outcome.result.unwrap().outputs, epochs.world.truth(own(0), 0));
    let outcome = epochs.run(0, &one, ALL);
    assert_eq!(outcome.result.unwrap().outputs, epochs.world.truth(own(1), 0));
    // Both have ended, and each stream was released once.
    rename(&mut epochs, 88);
    let outcome = epochs.window(0, ALL).unwrap();
    assert_eq!(outcome.excluded.get(&ExclusionError::Released), Some(&12));
}

/// A service that asks under a new name each time has no earlier list of that name.
#[test]
fn a_list_that_shrinks_is_in_the_owners_log_under_another_name_too() {
    let mut epochs = Epochs::new(Setup { minimum: 3, windows: 4, ..Setup::new(12) });
    epochs.window(0, ALL).unwrap();
    restart_all(&mut epochs, after(0));
    rename(&mut epochs, 77);
    epochs.window(1, &|at| at < 5).unwrap();
    let own = Scope::Controller(epochs.controllers[1].id());
    let records = epochs.store.values(own).into_iter();
    let small = records.filter_map(|value| match StampedRecord::read(value).unwrap().record {
        Record::Log(line) => match line.event {
            LogEvent::SmallList { listed, most, .. } => Some((listed, most)),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(small.collect::<Vec<_>>(), [(5, 12)]);
}
