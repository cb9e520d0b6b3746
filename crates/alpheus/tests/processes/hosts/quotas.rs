//! How many queries of one consumer may run at a time.

use super::world::{Hall, QUERY, Town, at};
use alpheus_stream_runtime::manager::QueryError;

/// Asks under another name. Returns what the quota says, if that is why it was refused.
fn refused(town: &mut Town, hall: &mut Hall, consumer: &str, second: u64) -> Option<String> {
    let sql = QUERY.replace("Readings", "More");
    match hall.ask_as(consumer, &sql, at(second), &mut town.rng) {
        Err(QueryError::TooMany(refused)) => Some(refused.to_string()),
        Ok(_) | Err(_) => None,
    }
}

#[test]
fn a_consumer_with_as_many_queries_as_one_may_have_is_refused_with_the_numbers() {
    let mut town = Town::new();
    // One query runs.
    let (mut hall, _, _) = town.two_houses();
    hall.manager.limit_queries(1);
    let said = refused(&mut town, &mut hall, "analyst", 1).unwrap();
    assert!(said.starts_with("you have 1 running queries"), "{said}");
    assert!(said.contains("one consumer may have 1 at a time"), "{said}");
    assert!(said.contains("`DROP STREAM Readings`") && said.contains("`queries-per-consumer`"));
    assert_eq!(refused(&mut town, &mut hall, "another", 1), None, "it has none");
    // A restart forgets neither the queries nor whose they are.
    let mut hall = town.hall_at(hall.stop(), at(2));
    hall.manager.limit_queries(1);
    assert_eq!(refused(&mut town, &mut hall, "analyst", 2), Some(said));
    drop(hall.manager.drop_query(at(3), "Readings").unwrap().unwrap());
    assert_eq!(refused(&mut town, &mut hall, "analyst", 4), None);
    assert!(hall.manager.owner_of("More").is_some(), "it runs");
}
