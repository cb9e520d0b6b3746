//! Controllers that attend an epoch and are not present in its window.

use alpheus_policy::plan::Fraction;

use super::*;

/// Runs an epoch that all attend, and in which these then say nothing more.
fn missing(epochs: &mut Epochs, number: u64, absent: &'static [usize]) -> Outcome {
    let announced = epochs.gather(number, ALL).unwrap();
    epochs.run(number, &announced, &|at| !absent.contains(&at))
}

fn ids(epochs: &Epochs, absent: &[usize]) -> Vec<ControllerId> {
    let mut ids: Vec<_> = absent.iter().map(|at| epochs.all.roster[*at]).collect();
    ids.sort_unstable();
    ids
}

/// Of six, five may collude: all must answer.
#[test]
fn who_attends_and_is_not_present_is_named_if_the_window_lacks_it() {
    let setup = Setup { alpha: Fraction::THIRD, colluders: 8, ..Setup::new(6) };
    let mut epochs = Epochs::new(setup);
    let outcome = missing(&mut epochs, 0, &[4]);
    assert!(matches!(outcome.result, Err(ReleaseError::QuorumLost { .. })), "{outcome:?}");
    assert_eq!(outcome.unopened, ids(&epochs, &[4]));
    assert_eq!(missing(&mut epochs, 1, &[]).unopened, []);
}

/// A window of twelve opens without one.
#[test]
fn who_is_not_needed_is_not_named() {
    let mut epochs = Epochs::new(Setup { minimum: 3, ..Setup::new(12) });
    let outcome = missing(&mut epochs, 0, &[4]);
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.unopened, []);
}

/// Of twelve, four may collude, and seven must count. With two fewer in the list, three may.
#[test]
fn who_makes_a_list_longer_than_its_window_is_named() {
    let setup = Setup { minimum: 7, alpha: Fraction::THIRD, ..Setup::new(12) };
    let mut epochs = Epochs::new(setup);
    let outcome = missing(&mut epochs, 0, &[3, 8]);
    let few = ReleaseError::PopulationTooSmall { counted: 6, needed: 7 };
    assert_eq!(outcome.result, Err(few));
    assert_eq!(outcome.unopened, ids(&epochs, &[3, 8]));
    let outcome = epochs.window(1, &|at| at != 3 && at != 8).unwrap();
    assert!(outcome.result.is_ok(), "without them in the list it opens");
}

/// Too few owners have data, even if all are there.
#[test]
fn nobody_is_named_for_a_window_that_lacks_data() {
    let setup = Setup { minimum: 7, alpha: Fraction::THIRD, ..Setup::new(12) };
    let world = World::with_data(setup, |stream, _| stream < 8);
    let mut store = Memory::default();
    let controllers = (0..12).map(|p| world.controller(p, &mut store)).collect();
    let mut epochs = Epochs::of(world, controllers, store);
    let outcome = missing(&mut epochs, 0, &[3]);
    assert!(matches!(outcome.result, Err(ReleaseError::PopulationTooSmall { .. })), "{outcome:?}");
    assert_eq!(outcome.unopened, []);
}
