//! Plans of queries that have ended are kept as long as their rows, and found without reading others.

use super::world::{Hall, QUERY, SCHEMA, Town, at};
use alpheus_encrypted_stream::evidence::exhibit;
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::PlanId;
use alpheus_standards::evidence::{FORMAT, Head, Statement};
use alpheus_streams::server::evidence::StatementDraft;
use alpheus_time::Window;
use alpheus_transport::{Batch, NewRecord, Offset, Topic};
use serde_json::Value;
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

/// Adds a record to a log, as a row or a receipt would be.
fn log(hall: &Hall, topic: &Topic) {
    let mut batch = Batch::new();
    let record = NewRecord { key: b"", value: b"one", timestamp: 0, headers: &[] };
    batch.append(&topic.partition(0), &record).unwrap();
    hall.store.commit(batch).unwrap();
}

/// Two plans of a query: of seconds 2 to 5, and 10 to 15. Before each ended, a row and a receipt came.
pub(super) fn two_plans() -> (Town, Hall, [PlanId; 2]) {
    let mut town = Town::of(&SCHEMA.replace("frames: events", "anchor: 2s"));
    let (mut hall, _, _) = town.two_houses();
    // The query that runs has neither noise nor receipts: nobody needs its plan later.
    drop(hall.manager.drop_query(at(1), "Readings").unwrap().unwrap());
    let plans = [(2, 5), (10, 15)].map(|times| {
        log(&hall, &hall.topics.results);
        log(&hall, &hall.topics.receipts);
        ran(&mut town, &mut hall, times)
    });
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
fn plans_that_have_ended_are_deleted_with_their_rows_and_receipts() {
    let (town, mut hall, [early, late]) = two_plans();
    let (results, receipts) = (hall.topics.results.clone(), hall.topics.receipts.clone());
    for (topic, before, left) in [
        (&results, 1, vec![early, late]),
        (&receipts, 1, vec![late]),
        (&receipts, 2, vec![late]),
        (&results, 2, vec![]),
    ] {
        hall.store.truncate_before(&topic.partition(0), Offset(before)).unwrap();
        hall.store.sync().unwrap();
        hall.manager.forget_ended().unwrap();
        for _ in 0..2 {
            assert_eq!(of(&hall, "Readings", (0, 100)), left);
            for plan in [early, late] {
                let kept = hall.manager.announcement(&plan).unwrap().is_some();
                assert_eq!(kept, left.contains(&plan));
            }
            hall = town.hall_at(hall.stop(), at(36));
        }
    }
    assert_eq!(scan_all(hall.store.as_ref(), &hall.topics.service, ENDED).unwrap(), []);
}

/// Nothing keeps the plan of a query without noise and receipts once it has ended.
#[test]
fn a_plan_that_ends_while_a_statement_is_written_is_stated_as_it_was() {
    let mut town = Town::new();
    let (mut hall, _, _) = town.two_houses();
    let head = Head {
        format: FORMAT,
        from: 0,
        until: 1,
        made: 0,
        consumer: "analyst".to_owned(),
        software: "tests",
        authority: String::new(),
        service: String::new(),
        controllers: 2,
        streams: 2,
        owners: 2,
    };
    let (about, span) = ("analyst", Window { start: at(0), end: at(100) });
    let statement = Statement::new(&head, span, &hall.manager.catalog);
    let plan = hall.manager.service.running()[0];
    let stored = hall.manager.announcement(&plan).unwrap().unwrap();
    let digest = exhibit(&postcard::to_allocvec(&stored).unwrap()).to_string();
    let draft = StatementDraft::of(statement, &hall.manager, (about, span), &town.deployment);
    drop(hall.manager.drop_query(at(2), "Readings").unwrap().unwrap());
    assert!(hall.manager.announcement(&plan).unwrap().is_none());
    let text = draft.unwrap().complete(hall.store.as_ref(), &hall.topics).unwrap().into_text();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let plans: Vec<Value> = lines.filter(|line| line["kind"] == "plan").collect();
    assert_eq!(plans.len(), 1, "{text}");
    assert_eq!((&plans[0]["running"], &plans[0]["announcement"]), (&true.into(), &digest.into()));
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
    hall.manager.forget_ended().unwrap();
    assert_eq!(hall.manager.ended.count(), 2, "any row may be theirs");
    for topic in [&hall.topics.results, &hall.topics.receipts] {
        hall.store.truncate_before(&topic.partition(0), Offset(2)).unwrap();
    }
    hall.store.sync().unwrap();
    hall.manager.forget_ended().unwrap();
    assert_eq!(hall.manager.ended.count(), 0);
}
