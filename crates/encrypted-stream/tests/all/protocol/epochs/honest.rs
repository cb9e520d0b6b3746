//! Epochs of one window with an honest service: who is there takes part, and who comes later
//! is in from the next epoch.

use alpheus_encrypted_stream::ledger::{LogEvent, Record, StampedRecord};
use alpheus_policy::plan::Fraction;

use super::*;
use crate::protocol::identities::certified;
use crate::protocol::withdrawals::revoke;

/// Twelve people with a telephone each.
fn phones() -> Setup {
    Setup { minimum: 3, windows: 4, ..Setup::new(12) }
}

#[test]
fn half_of_the_controllers_may_sleep_in_every_window() {
    let mut epochs = Epochs::new(phones());
    for number in 0..4 {
        let awake = move |at: usize| (at + number as usize).is_multiple_of(2);
        let outcome = epochs.window(number, &awake).unwrap();
        let opened = outcome.result.unwrap();
        let expected = epochs.truth((0..12).filter(|at| awake(*at)), number);
        assert_eq!((opened.outputs, opened.population), (expected, 6), "window {number}");
    }
}

#[test]
fn a_window_opens_over_the_listed_or_says_why_not() {
    // t = 3: with c = 2 and α = ⅓, four count as two.
    let setup = Setup { alpha: Fraction::THIRD, colluders: 2, windows: 2, ..phones() };
    let mut epochs = Epochs::new(setup);
    let few = epochs.window(0, &|at| at < 4).unwrap_err();
    assert_eq!(few, ReleaseError::PopulationTooSmall { counted: 2, needed: 3 });
    let outcome = epochs.window(1, &|at| at < 5).unwrap();
    assert_eq!(outcome.result.unwrap().population, 5);
}

#[test]
fn nobody_and_one_alone_open_nothing() {
    let mut epochs = Epochs::new(phones());
    let lost = |held| ReleaseError::QuorumLost { held, needed: held + 1 };
    assert_eq!(epochs.window(0, &|_| false).unwrap_err(), lost(0));
    assert_eq!(epochs.window(1, &|at| at == 7).unwrap_err(), lost(1));
    // Where the minimum is one and nobody colludes, one alone may open.
    let mut epochs = Epochs::new(Setup { minimum: 1, ..phones() });
    let outcome = epochs.window(0, &|at| at == 7).unwrap();
    assert_eq!(outcome.result.unwrap().outputs, epochs.truth([7], 0));
}

#[test]
fn a_controller_that_fails_after_the_list_is_left_out_of_the_window() {
    let mut epochs = Epochs::new(Setup { dropout: Fraction::FIFTH, ..phones() });
    let announced = epochs.gather(0, ALL).unwrap();
    let outcome = epochs.run(0, &announced, &|at| at != 3);
    assert_eq!(outcome.result.unwrap().outputs, epochs.truth((0..12).filter(|at| *at != 3), 0));
}

/// The owner's stream is handed over while the query runs.
#[test]
fn an_owner_who_comes_later_is_in_from_the_next_epoch() {
    let mut epochs = Epochs::new(phones());
    let late = epochs.all.streams.iter().find(|planned| planned.controller == 5).copied().unwrap();
    let now = Timestamp(EPOCH);
    let (empty, step) =
        Controller::create(epochs.world.identity(5), epochs.world.deployment.clone(), now);
    step.commit(&mut epochs.store).unwrap();
    epochs.controllers[5] = empty;
    let first = epochs.window(0, ALL).unwrap().result.unwrap();
    assert_eq!(first.outputs, epochs.truth((0..12).filter(|at| *at != 5), 0));

    for held in epochs.held(5) {
        epochs.controllers[5].hold(held);
    }
    let signed = epochs.world.annotate(late.stream, 1, policy(&epochs.world.setup));
    let owner = certified(&epochs.world.setup.owner_key(late.stream));
    let step = epochs.controllers[5].annotate(&signed, &owner, window(1).start).unwrap();
    step.commit(&mut epochs.store).unwrap();
    let second = epochs.window(1, ALL).unwrap().result.unwrap();
    assert_eq!(second.outputs, epochs.truth(0..12, 1));
}

/// The owner revokes after the list is fixed: the controller excludes the stream.
#[test]
fn an_owner_who_leaves_is_out_from_the_next_window() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, one_owner: false, ..phones() });
    let gone = epochs.all.streams.iter().find(|planned| planned.controller == 5).copied().unwrap();
    let announced = epochs.gather(0, ALL).unwrap();
    let step = revoke(&mut epochs.controllers[5], after(0), gone.stream);
    step.commit(&mut epochs.store).unwrap();
    let opened = epochs.run(0, &announced, ALL).result.unwrap();
    let streams = |all: std::ops::Range<usize>| all.filter(|at| *at != 10).collect::<Vec<_>>();
    assert_eq!(opened.outputs, epochs.world.truth(streams(0..24), 0));
    let opened = epochs.window(1, ALL).unwrap().result.unwrap();
    let listed = epochs.listed.as_ref().unwrap().plan();
    assert!(listed.streams.iter().all(|planned| planned.stream != gone.stream));
    assert_eq!(opened.outputs, epochs.world.truth(streams(0..24), 1));
}

/// A choice that forbids a window between its token and its opening ends the window, and costs the
/// host later ones. So an owner who changes it for the fourth time in a day waits, and the host's
/// other owners do not.
#[test]
fn an_owner_who_keeps_changing_the_choice_waits_and_the_host_goes_on() {
    let mut epochs = Epochs::new(Setup { streams_each: 2, ..phones() });
    let stream = epochs.held(5)[0].stream;
    let listed = |epochs: &mut Epochs, number| {
        let owners = epochs.attendance(5, number).unwrap().entry.owners;
        owners.iter().any(|listed| listed.streams.contains(&stream))
    };
    let owner = certified(&epochs.world.setup.owner_key(stream));
    let change = |epochs: &mut Epochs, version| {
        let signed = epochs.world.annotate(stream, version, policy(&epochs.world.setup));
        let step = epochs.controllers[5].annotate(&signed, &owner, after(0)).unwrap();
        step.commit(&mut epochs.store).unwrap();
    };
    (2..=4).for_each(|version| change(&mut epochs, version));
    assert!(listed(&mut epochs, 1));
    let announced = epochs.gather(1, ALL).unwrap();
    change(&mut epochs, 5);
    let outcome = epochs.run(1, &announced, ALL);
    let streams = |all: std::ops::Range<usize>| all.filter(|at| *at != 10).collect::<Vec<_>>();
    assert_eq!(outcome.result.unwrap().outputs, epochs.world.truth(streams(0..24), 1));
    assert!(!listed(&mut epochs, 2));
    let (store, fence) = (epochs.store.clone(), epochs.controllers[5].fence());
    epochs.restore(5, &store, after(2), Some(fence));
    assert!(!listed(&mut epochs, 3), "a restart forgets no change");
    let day = Span::DAY.0 / crate::protocol::world::WINDOW.0;
    assert!(!listed(&mut epochs, day - 1));
    assert!(listed(&mut epochs, day));
}

/// Two hundred controllers, of which 1 to 100 % are there.
#[test]
fn windows_open_at_every_presence() {
    let setup =
        Setup { minimum: 10, alpha: Fraction::THIRD, colluders: 8, windows: 5, ..Setup::new(200) };
    let mut epochs = Epochs::new(setup);
    for (number, percent) in (0..).zip([1, 3, 10, 50, 100]) {
        let present = 2 * percent;
        let outcome = epochs.window(number, &|at| at < present);
        // t = 8 of twenty: twelve count.
        if present < 18 {
            // Of two, each may trust the other. Of six, five may collude.
            let counted = if present == 2 { 2 } else { 1 };
            let few = ReleaseError::PopulationTooSmall { counted, needed: 10 };
            assert_eq!(outcome.unwrap_err(), few, "{percent} %");
            continue;
        }
        let opened = outcome.unwrap().result.unwrap();
        assert_eq!(opened.outputs, epochs.truth(0..present, number), "{percent} %");
    }
}

/// Owners read of a list that has less than half of the controllers of an earlier one.
#[test]
fn a_list_that_shrinks_is_in_the_owners_log() {
    let mut epochs = Epochs::new(phones());
    let small = |epochs: &Epochs| {
        let own = Scope::Controller(epochs.controllers[1].id());
        let records = epochs.store.values(own).into_iter();
        let events = records.filter_map(|value| match StampedRecord::read(value).unwrap().record {
            Record::Log(line) => Some(line.event),
            _ => None,
        });
        let small = events.filter_map(|event| match event {
            LogEvent::SmallList { window, listed, most, .. } => Some((window, listed, most)),
            _ => None,
        });
        small.collect::<Vec<_>>()
    };
    for (number, present) in [(0, 12), (1, 6)] {
        epochs.window(number, &|at| at < present).unwrap();
        assert!(small(&epochs).is_empty(), "{present}");
    }
    epochs.window(2, &|at| at < 5).unwrap();
    assert_eq!(small(&epochs), [(window(2), 5, 12)]);
    // The list again, and a restart: the line is there once.
    let listed = epochs.listed.clone().unwrap();
    let (store, fence) = (epochs.store.clone(), epochs.controllers[1].fence());
    epochs.restore(1, &store, after(2), Some(fence));
    epochs.say(1, after(2), &listed.message());
    assert_eq!(small(&epochs).len(), 1);
    epochs.window(3, &|at| at < 5).unwrap();
    assert_eq!(small(&epochs), [(window(2), 5, 12), (window(3), 5, 12)]);
}
