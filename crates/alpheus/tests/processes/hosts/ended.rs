//! Plans of queries that have ended are kept as long as their rows, and found without reading others.

use super::world::{Hall, QUERY, SCHEMA, Town, at};
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::PlanId;
use alpheus_time::{Span, Timestamp, Window};
use alpheus_transport::Batch;
use std::collections::BTreeSet;

const ENDED: &[u8] = b"ended/";

/// Plans of the query that may have windows in these seconds.
fn of(hall: &Hall, query: &str, (from, until): (u64, u64)) -> Vec<PlanId> {
    let names = BTreeSet::from([query.to_owned()]);
    hall.manager.ended.of(&names, Window { start: at(from), end: at(until) })
}

/// Asks the query in the first second, and ends it in the other.
fn ran(town: &mut Town, hall: &mut Hall, (asked, ended): (u64, u64)) -> PlanId {
    drop(hall.ask(
        &format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')"),
        at(asked),
        &mut town.rng,
    ));
    let plan = hall.manager.service.running()[0];
    drop(hall.manager.drop_query(at(ended), "Readings").unwrap().unwrap());
    plan
}

/// Two plans of a query: of seconds 2 to 5, and 10 to 15.
fn two_plans() -> (Town, Hall, [PlanId; 2]) {
    let mut town = Town::of(&SCHEMA.replace("frames: events", "anchor: 2s"));
    let (mut hall, _, _) = town.two_houses();
    // The query that runs has neither noise nor receipts: nobody needs its plan later.
    drop(hall.manager.drop_query(at(1), "Readings").unwrap().unwrap());
    let plans = [(2, 5), (10, 15)].map(|times| ran(&mut town, &mut hall, times));
    (town, hall, plans)
}

#[test]
fn plans_that_have_ended_are_found_by_query_and_time_also_after_a_restart() {
    let (town, mut hall, [early, late]) = two_plans();
    for _ in 0..2 {
        assert_eq!(of(&hall, "Readings", (0, 100)), [early, late]);
        assert_eq!(of(&hall, "Others", (0, 100)), []);
        assert_eq!(of(&hall, "Readings", (6, 9)), [], "none ran then");
        assert_eq!(of(&hall, "Readings", (4, 9)), [early]);
        assert_eq!(of(&hall, "Readings", (14, 100)), [late]);
        hall = town.hall_at(hall.stop(), at(50));
    }
}

#[test]
fn plans_that_have_ended_are_deleted_with_their_rows() {
    let (town, mut hall, [early, late]) = two_plans();
    let keep = Span::seconds(30);
    hall.manager.forget_ended(at(34), keep).unwrap();
    assert_eq!(hall.manager.ended.count(), 2);
    hall.manager.forget_ended(at(35), keep).unwrap();
    for _ in 0..2 {
        assert_eq!(of(&hall, "Readings", (0, 100)), [late]);
        assert!(hall.manager.announcement(&early).unwrap().is_none());
        assert!(hall.manager.announcement(&late).unwrap().is_some());
        hall = town.hall_at(hall.stop(), at(36));
    }
    hall.manager.forget_ended(Timestamp(u64::MAX), keep).unwrap();
    assert_eq!(scan_all(hall.store.as_ref(), &hall.topics.service, ENDED).unwrap(), []);
    assert!(hall.manager.announcement(&late).unwrap().is_none());
}

#[test]
fn plans_whose_end_was_not_noted_count_as_ended_at_the_start() {
    let (town, hall, [early, late]) = two_plans();
    let mut batch = Batch::new();
    for plan in [early, late] {
        batch.delete(&hall.topics.service, [ENDED, &plan.0].concat()).unwrap();
    }
    hall.store.commit(batch).unwrap();
    let mut hall = town.hall_at(hall.stop(), at(50));
    assert_eq!(of(&hall, "Readings", (40, 100)).len(), 2);
    hall = town.hall_at(hall.stop(), at(60));
    hall.manager.forget_ended(at(79), Span::seconds(30)).unwrap();
    assert_eq!(hall.manager.ended.count(), 2, "they are not old");
    hall.manager.forget_ended(at(80), Span::seconds(30)).unwrap();
    assert_eq!(hall.manager.ended.count(), 0);
}
