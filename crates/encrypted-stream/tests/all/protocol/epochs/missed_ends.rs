//! Controllers that sleep when their epoch ends: the message that it has is lost.

use super::restarts::left_out;
use super::*;

fn setup() -> Setup {
    Setup { minimum: 3, windows: 3, ..Setup::new(6) }
}

/// The epoch of a window, whose list all accept. Nobody hears how it ends.
fn listed(epochs: &mut Epochs, number: u64) -> Arc<AnnouncedPlan> {
    let announced = epochs.gather(number, ALL).unwrap();
    for at in 0..epochs.controllers.len() {
        let answer = epochs.say(at, after(number), &announced.message());
        assert!(matches!(answer, ControllerMessage::Acceptance(_)), "{answer:?}");
    }
    announced
}

/// Whether a controller attends a window for another query over the same attribute.
fn attends_another(epochs: &mut Epochs, at: usize, number: u64) -> bool {
    let terms = Plan { nonce: [9; 16], ..epochs.terms.clone() };
    let (window, answer_by, without) = (window(number), after(number), vec![]);
    let call = EpochCall { terms, window, windows: 1, answer_by, without };
    let call = Signed::new(&call, &epochs.world.service);
    let answer = epochs.say(at, after(number), &ServiceMessage::EpochCall(call));
    matches!(answer, ControllerMessage::Attendance(_))
}

#[test]
fn an_epoch_holds_attributes_for_its_own_window_alone() {
    let mut epochs = Epochs::new(setup());
    listed(&mut epochs, 1);
    assert!(!attends_another(&mut epochs, 2, 1), "two queries would release one window");
    assert!(attends_another(&mut epochs, 2, 2));
    // A fixed plan has windows of every time.
    let world = &epochs.world;
    let fixed = Plan { nonce: [8; 16], ..epochs.all.clone() };
    let fixed =
        crate::protocol::world::announce(&fixed, &world.seats, &world.service, &world.deployment);
    let answer = epochs.controllers[2].handle_announcement(&fixed, after(2));
    assert!(matches!(answer.err(), Some(PlanRefusalError::Locked { .. })));
}

/// It is over two days later. Windows that it may have released stay released.
#[test]
fn an_epoch_whose_end_was_missed_ends_by_itself() {
    let mut epochs = Epochs::new(setup());
    listed(&mut epochs, 0);
    listed(&mut epochs, 1);
    assert_eq!(epochs.controllers[1].known_plans().count(), 2);
    let days = 3 * 24 * 3600 * 1_000_000;
    let later = days / (window(0).end.0 - window(0).start.0);
    let last = listed(&mut epochs, later);
    assert_eq!(epochs.controllers[1].known_plans().collect::<Vec<_>>(), [&last.id()]);
    let key = epochs.world.service.clone();
    let mut coordinator = Coordinator::new(last, key, Timing::default());
    let step = coordinator.retire();
    epochs.deliver(&mut coordinator, after(later), step, ALL, &mut None);
    let (store, fence) = (epochs.store.clone(), epochs.controllers[1].fence());
    epochs.restore(1, &store, after(later), Some(fence));
    for at in [0, 1] {
        let left = left_out(&mut epochs, at, after(later), 0..2);
        assert_eq!(left, [ExclusionError::Released; 2], "{at}");
    }
}
