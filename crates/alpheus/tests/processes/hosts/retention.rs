//! The service deletes what it has summed, and old results; hosts delete old lines of owners'
//! logs. Nobody deletes anything else.

use super::ended_plans::two_plans;
use super::world::{Hall, House, Person, Town, at};
use alpheus_encrypted_stream::ledger::{LogEvent, LogLine};
use alpheus_stream_runtime::results::{KeptResults, Row};
use alpheus_streams::controller::guard::LogKeeper;
use alpheus_streams::server::retention::Retention;
use alpheus_time::Span;
use std::time::Duration;

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

fn rows(hall: &Hall) -> Vec<Row> {
    hall.manager.service.results().unwrap()
}

#[test]
fn results_are_deleted_for_their_number_and_their_age() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, _]) = town.two_houses();
    let open = |hall: &Hall, limits: (Span, u64)| {
        let keep = Span::seconds(10_000);
        let events = Retention::open(hall.store.clone(), hall.topics.clone(), keep);
        events.unwrap().with_results(limits).unwrap()
    };
    for to in [6, 10, 14] {
        sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], to);
    }
    let all = rows(&hall);
    assert!(all.len() > 3, "{all:?}");
    let mut retention = open(&hall, (Span::seconds(10_000), 2));
    retention.turn(at(14)).unwrap();
    assert_eq!(rows(&hall), all[all.len() - 2..]);
    let deleted = all.len() as u64 - 2;
    assert_eq!(retention.kept_results(), KeptResults { kept: 2, deleted });
    let mut retention = open(&hall, (Span::seconds(24), 1_000));
    retention.turn(at(20)).unwrap();
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 18);
    retention.turn(at(37)).unwrap();
    assert!(rows(&hall).len() > 2);
    // The notes outlive a restart.
    let mut retention = open(&hall, (Span::seconds(24), 1_000));
    retention.turn(at(44)).unwrap();
    let left = rows(&hall);
    let later = |row: &Row| row.window_start >= all[all.len() - 1].window_end;
    assert!(!left.is_empty() && left.iter().all(later), "{left:?}");
}

/// Old rows go once a note of them is old, which the service makes when it runs again.
#[test]
fn plans_stay_with_rows_that_stay_longer_since_the_service_was_away() {
    let (town, hall, [plan, _]) = two_plans();
    let mut hall = town.hall_at(hall.stop(), at(1000));
    let open = |hall: &Hall| {
        let events = Retention::open(hall.store.clone(), hall.topics.clone(), Span::seconds(9));
        let rows = events.unwrap().with_results((Span::seconds(24), 1_000)).unwrap();
        rows.with_receipts(Span::seconds(24)).unwrap()
    };
    let mut retention = open(&hall);
    let look = |retention: &mut Retention, hall: &mut Hall, second: u64| {
        retention.turn(at(second)).unwrap();
        let deleted = retention.has_deleted();
        if deleted {
            hall.manager.forget_ended().unwrap();
        }
        let bounds = hall.store.bounds(&hall.topics.results.partition(0)).unwrap();
        let kept = hall.manager.announcement(&plan).unwrap().is_some();
        (deleted, bounds.start < bounds.end, kept)
    };
    // It may have been deleted before the start.
    assert_eq!(look(&mut retention, &mut hall, 1000), (true, true, true));
    assert_eq!(look(&mut retention, &mut hall, 1010), (false, true, true), "none is old");
    retention.turn(at(1030)).unwrap();
    assert!(hall.manager.announcement(&plan).unwrap().is_some());
    // A service that stops then deletes the plan when it runs again.
    drop(retention);
    let mut hall = town.hall_at(hall.stop(), at(1100));
    assert_eq!(look(&mut open(&hall), &mut hall, 1100), (true, false, false));
}

fn log(house: &mut House, person: &Person) -> Vec<LogLine> {
    house.guard().log(&person.name, &person.stream).unwrap().read().unwrap()
}

/// The host starts again, and looks at its owners' logs.
fn tended(town: &mut Town, house: &mut House, limits: (Span, u64), second: u64) {
    house.guard = None;
    let guard = town.wake(house, at(second)).unwrap();
    house.guard = Some(guard.keeping_logs(LogKeeper::new(limits)));
    house.guard().tend_logs(at(second), Duration::ZERO).unwrap();
}

#[test]
fn logs_of_owners_keep_lines_up_to_an_age_and_a_size_and_what_a_restart_needs() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, _]) = town.two_houses();
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 6);
    let all = log(&mut first, &alice);
    assert!(all.len() > 4, "{all:?}");
    let large = 1 << 30;
    tended(&mut town, &mut first, (Span::seconds(100), large), 7);
    assert_eq!(log(&mut first, &alice), all);
    // Of a plan that runs, and of windows that may be asked for, all lines stay.
    tended(&mut town, &mut first, (Span::seconds(1), large), 8);
    let left = log(&mut first, &alice);
    let changed = |line: &&LogLine| !matches!(line.event, LogEvent::PolicyChanged { .. });
    assert_eq!(left, all.iter().filter(changed).cloned().collect::<Vec<_>>());
    tended(&mut town, &mut first, (Span::seconds(1000), 1), 8);
    assert_eq!(log(&mut first, &alice), left);
    // The ledger is still known to be the latest: nobody has to confirm anything.
    tended(&mut town, &mut first, (Span::seconds(1000), large), 8);
    let before = rows(&hall).len();
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 12);
    let new = rows(&hall).split_off(before);
    assert!(new.iter().any(|row| row.population == 1), "{new:?}");
    let round = hall.manager.drop_query(at(13), "Readings").unwrap().unwrap();
    hall.carry(at(13), round, &mut [&mut first, &mut second]);
    let many = log(&mut first, &alice).len();
    assert!(many > left.len());
    // The oldest go first, if the logs are too large.
    tended(&mut town, &mut first, (Span::seconds(1000), 1000), 14);
    let few = log(&mut first, &alice);
    assert!(!few.is_empty() && few.len() < many, "{few:?}");
    tended(&mut town, &mut first, (Span::seconds(1), large), 20);
    assert_eq!(log(&mut first, &alice), []);
}

/// A host's clock that is set years ahead would delete all that its owners may read.
#[test]
fn lines_outlive_a_clock_that_is_set_far_ahead() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, _]) = town.two_houses();
    sends(&mut town, &mut hall, &mut alice, [&mut first, &mut second], 6);
    let all = log(&mut first, &alice);
    let limits = (Span::seconds(400 * 86_400), 1 << 30);
    let years = 800 * 86_400;
    // The clock is wrong at the first start that knows of this: the log itself knows better.
    tended(&mut town, &mut first, limits, 7 + years);
    assert_eq!(log(&mut first, &alice), all);
    tended(&mut town, &mut first, limits, 7);
    assert_eq!(log(&mut first, &alice), all);
    // It is set while the host runs, and the host starts again under it.
    let hour = Duration::from_secs(3600);
    first.guard().tend_logs(at(3607 + years), hour).unwrap();
    assert_eq!(log(&mut first, &alice), all);
    tended(&mut town, &mut first, limits, 3608 + years);
    assert_eq!(log(&mut first, &alice), all);
    // It has shown so for a day.
    first.guard().tend_logs(at(3608 + years + 86_400), 24 * hour).unwrap();
    assert!(log(&mut first, &alice).len() < all.len());
}
