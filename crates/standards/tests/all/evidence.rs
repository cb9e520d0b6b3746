//! Policies of a statement of evidence: each line says all in which it differs from the others. A consumer
//! has one statement at once. Plans that have ended are old when their rows and receipts are gone.

use alpheus_policy::catalog::{Catalog, CatalogStream};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, StreamId};
use alpheus_policy::plan::Fraction;
use alpheus_policy::policy::{ResolvedOption, ResolvedPolicy};
use alpheus_policy::schema::Schema;
use alpheus_standards::evidence::{
    BusyError, EndedPlans, FORMAT, Head, LogPlaces, PlanRun, Statement, StatementPlaces,
};
use alpheus_time::{Timestamp, Window};
use serde_json::Value;

const SCHEMA: &str = "\
name: Meters
version: 1
frames: events
tick: 1s
capacity: { population: 100, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: 0, max: 1000, aggregations: [mean] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [1, 3], window: 2s, alpha: 0, dropout: 1/2 }
";

fn head() -> Head {
    Head {
        format: FORMAT,
        from: 0,
        until: 1,
        made: 0,
        consumer: "analyst".to_owned(),
        software: "tests",
        authority: String::new(),
        service: String::new(),
        controllers: 0,
        streams: 0,
        owners: 0,
    }
}

/// The lines of policies, if streams of as many owners chose these options; none shares nothing.
fn policies(chosen: impl Iterator<Item = Option<ResolvedOption>>) -> Vec<Value> {
    let mut catalog = Catalog::default();
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    catalog.add_schema(schema.clone()).unwrap();
    for (at, option) in (0_u8..=u8::MAX).cycle().zip(chosen) {
        let mut policy = ResolvedPolicy::private(&schema);
        policy.attributes[0].alternatives.extend(option);
        catalog.put_stream(CatalogStream {
            stream: StreamId([at; 16]),
            owner: OwnerId([at / 2; 32]),
            controller: ControllerId([0; 32]),
            schema: schema.id(),
            metadata: Vec::new(),
            policy,
        });
    }
    let span = Window { start: Timestamp(0), end: Timestamp(1000) };
    let statement = Statement::new(&head(), span, &catalog);
    let lines = statement.text().lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["kind"] == "policy").collect()
}

fn crowd() -> ResolvedOption {
    let schema = Schema::from_yaml(SCHEMA).unwrap();
    ResolvedPolicy::first_offered(&schema).attributes[0].alternatives[0].clone()
}

#[test]
fn options_that_differ_are_lines_that_differ() {
    let others: [fn(&mut ResolvedOption); 7] = [
        |own| own.name = "other".to_owned(),
        |own| own.min_population = 1,
        |own| own.dropout = Fraction::ZERO,
        |own| own.missing_ticks = 9,
        |own| own.split_populations = true,
        |own| own.trusted = vec![ControllerId([7; 32])],
        |own| own.to = vec!["somebody".to_owned()],
    ];
    for change in others {
        let mut other = crowd();
        change(&mut other);
        let lines = policies([Some(crowd()), Some(other), Some(crowd())].into_iter());
        assert_eq!(lines.len(), 2, "{lines:?}");
        let counts = |line: &Value| (line["streams"].clone(), line["owners"].clone());
        assert_eq!(counts(&lines[0]), (2.into(), 2.into()));
        let without = |line: &Value| {
            let mut line = line.clone();
            line.as_object_mut().unwrap().retain(|name, _| name != "streams" && name != "owners");
            line
        };
        assert_ne!(without(&lines[0]), without(&lines[1]));
    }
}

/// An owner's own bound makes an option stricter, and would show who it is.
#[test]
fn options_that_differ_in_an_owners_own_bound_are_one_line() {
    let mut own = crowd();
    own.sets_per_day = Some(3);
    let lines = policies([Some(crowd()), Some(own), None].into_iter());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["streams"], &lines[0]["owners"]), (&2.into(), &1.into()));
    assert_eq!((&lines[1]["allows"], &lines[1]["streams"]), (&"private".into(), &1.into()));
}

#[test]
fn a_consumer_has_one_statement_at_once() {
    let places = StatementPlaces::default();
    let one = places.take("ann").unwrap();
    assert_eq!(places.take("ann").unwrap_err(), BusyError::Own);
    let _two = places.take("bob").unwrap();
    drop(one);
    let _three = places.take("ann").unwrap();
    assert_eq!(places.take("bob").unwrap_err(), BusyError::Own);
}

/// Plans of the same rows, of which one had receipts for longer.
#[test]
fn plans_are_old_once_both_logs_start_behind_their_end() {
    let mut ended = EndedPlans::default();
    for (at, rows, receipts) in [(1, 10, 5), (2, 10, 5), (3, 20, 5), (4, 20, 8)] {
        let until = LogPlaces { rows, receipts };
        let (query, from) = ("Readings".to_owned(), Timestamp(0));
        ended.insert(PlanId([at; 32]), PlanRun { query, from, ended: Timestamp(0), until });
    }
    let old = |rows, receipts| ended.old(LogPlaces { rows, receipts }).count();
    assert_eq!((old(9, 9), old(99, 4), old(10, 5)), (0, 0, 2));
    assert_eq!((old(19, 9), old(20, 7), old(20, 8)), (2, 3, 4));
}
