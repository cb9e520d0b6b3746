//! The service deletes what it has summed, and nothing else.

use super::world::{Hall, House, Person, Town, at};
use alpheus_streams::server::retention::Retention;
use alpheus_time::Span;

/// Events that the log still holds, and where they start.
fn held(hall: &Hall) -> (u64, u64) {
    let (store, topics) = (hall.store.clone(), &hall.topics);
    (0..topics.partitions)
        .map(|at| store.bounds(&topics.events.partition(at)).unwrap())
        .fold((0, 0), |(held, gone), bounds| {
            (held + bounds.end.0 - bounds.start.0, gone + bounds.start.0)
        })
}

fn sends(town: &mut Town, hall: &mut Hall, person: &mut Person, houses: [&mut House; 2], to: u64) {
    let [first, second] = houses;
    for second_of in to - 4..to {
        town.send(hall, person, second_of, 1);
        let round = hall.turn(at(second_of + 1));
        hall.carry(at(second_of + 1), round, &mut [first, second]);
    }
}

#[test]
fn events_are_deleted_once_summed_and_old_and_not_before() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, _]) = town.two_houses();
    let keep = Span::seconds(24);
    let open =
        |hall: &Hall| Retention::open(hall.store.clone(), hall.topics.clone(), keep).unwrap();
    let mut retention = open(&hall);
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 6);
    // Noted before it is summed durably: none of it may go for that note.
    retention.turn(at(6)).unwrap();
    hall.manager.service.checkpoint().unwrap();
    retention.turn(at(7)).unwrap();
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 10);
    let (all, gone) = held(&hall);
    assert!(all > 0 && gone == 0);
    retention.turn(at(30)).unwrap();
    assert_eq!(held(&hall), (all, 0), "the note of second 6 deletes nothing");
    // The notes outlive a restart.
    retention = open(&hall);
    retention.turn(at(31)).unwrap();
    let (left, gone) = held(&hall);
    assert!(gone > 0 && left > 0 && left + gone == all, "{left} and {gone} of {all}");
    // A restart reads on where it was.
    drop(retention);
    let disk = hall.stop();
    let hall = town.hall(disk);
    assert_eq!(held(&hall), (left, gone));
}
