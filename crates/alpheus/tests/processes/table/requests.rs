//! What a server of tables refuses to do for an owner, and what an owner asks it in parts.

use crate::table::crashes::sum;
use crate::table::recover::said;
use crate::table::world::{SCHEMA, Storage, World, cars, total};
use alpheus_table_service::state::TableState;
use alpheus_verifiable_table::label::{Column, Kind};
use alpheus_verifiable_table::messages::{MAX_REQUEST_BLOCKS, Request as SumRequest, Run, Weights};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests that no planner makes. The server checks each before it reads a block.
#[test]
fn a_server_refuses_what_it_could_not_add_up() {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 9000);
    world.done("append counts.csv");
    let state = TableState::open(&world.path("ada")).unwrap();
    let remote = world.remote(&state);
    let run = state.owner.runs()[0];
    let of = |from, to| Run { from, to, ..run };
    let request = |kind, runs, weights| SumRequest { kind, runs, weights };
    let column = Kind::Column(Column(0));
    let ones = |runs| request(column, runs, Weights::Ones);
    let half = MAX_REQUEST_BLOCKS / 2;
    let order = "must be non-empty, in order and without overlap";
    for (what, requests, why) in [
        ("no runs", vec![ones(vec![])], order),
        ("an empty run", vec![ones(vec![of(1, 1)])], order),
        ("a run that goes back", vec![ones(vec![of(2, 1)])], order),
        ("runs that overlap", vec![ones(vec![of(0, 2), of(1, 2)])], order),
        ("runs in another order", vec![ones(vec![of(1, 2), of(0, 1)])], order),
        ("too many blocks", vec![ones(vec![of(0, MAX_REQUEST_BLOCKS + 1)])], "at most 1048576"),
        ("blocks without end", vec![ones(vec![of(0, u64::MAX)])], "at most 1048576"),
        (
            "too many blocks together",
            vec![ones(vec![of(0, half)]), ones(vec![of(0, half)]), ones(vec![of(0, 1)])],
            "at most 1048576",
        ),
        (
            "another column",
            vec![request(Kind::Column(Column(1)), vec![of(0, 1)], Weights::Ones)],
            "no tags",
        ),
        (
            "another pair",
            vec![request(Kind::Product(Column(0), Column(0)), vec![of(0, 1)], Weights::Ones)],
            "no tags",
        ),
        (
            "a long polynomial",
            vec![request(column, vec![of(0, 1)], Weights::Polynomial(vec![1; 17]))],
            "at most 16",
        ),
        ("too many answers", vec![ones(vec![of(0, 1)]); 1000], "a response has at most"),
        ("too many requests", vec![ones(vec![of(0, 1)]); 1025], "not what this request takes"),
    ] {
        let refused = remote.sums(&requests).err().map(|why| why.to_string());
        let refused = refused.unwrap_or_default();
        assert!(refused.contains(why), "{what}: {refused}");
    }
    assert_eq!(remote.sums(&[ones(vec![of(0, 2)])]).unwrap().len(), 1);
}

/// Blocks of 34 MB: the copy of one block of the old table is two of them, of which its store takes
/// one at a time. A range that begins and ends within a block needs both, more than one response has.
#[test]
fn a_very_wide_table_is_copied_and_its_ranges_are_summed() {
    let world = World::new(&SCHEMA.replace("L128", "W128"));
    world.write_rows("counts.csv", 0, 16_384);
    world.done("append counts.csv");
    let mut wide = SCHEMA.replace("L128", "X128");
    for column in 0..63 {
        wide.push_str(&format!("  - {{ name: c{column}, min: 0, max: 9, optional: true }}\n"));
    }
    let pairs: Vec<String> = (0..20).map(|x| format!("[c{}, c{}]", 2 * x, 2 * x + 1)).collect();
    wide.push_str(&format!("pairs: [{}]\n", pairs.join(", ")));
    std::fs::write(world.path("wide.yaml"), wide).unwrap();
    world.done("rekey --into new --schema wide.yaml");
    std::fs::rename(world.path("ada"), world.path("old")).unwrap();
    std::fs::rename(world.path("new"), world.path("ada")).unwrap();
    let new = TableState::open(&world.path("ada")).unwrap();
    let size = new.owner.manifest().block_length();
    assert!(new.owner.blocks() == 2 && size > 32 << 20, "{size}");
    drop(new);
    let (first, last) = (1_367_366_400 + 3600 * 5, 1_367_366_400 + 3600 * 16_000);
    let sql = format!("SELECT SUM(cars), COUNT(c3) WHERE timestamp BETWEEN {first} AND {last}");
    let [row] = world.ask(&sql).try_into().unwrap();
    let expected: u64 = (5..=16_000).map(cars).sum();
    assert_eq!(
        (row["sum_cars"].as_str(), &row["count_c3"]),
        (Some(&*expected.to_string()), &0.into())
    );
    assert_eq!(sum(&world), (0..16_384).map(cars).sum::<u64>().to_string());
    assert_eq!(said(&world, "verify").0, Some(0));
}

/// Groups are asked for together: sixty-four take no more requests than two.
#[test]
fn a_query_of_many_groups_takes_few_requests() {
    let mut world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 8192);
    world.done("append counts.csv");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let (_trigger, url) = world.serve_through(|routes| {
        routes.layer(from_fn(move |request: Request, next: Next| {
            counted.fetch_add(1, Ordering::SeqCst);
            next.run(request)
        }))
    });
    world.url = url;
    let asked = |days: u64| {
        let last = 1_367_366_400 + 86_400 * days - 1;
        let sql = format!(
            "SELECT SUM(cars) WHERE timestamp BETWEEN 1367366400 AND {last} GROUP BY DAY(timestamp)"
        );
        count.store(0, Ordering::SeqCst);
        let rows = world.ask(&sql);
        assert_eq!(rows.len() as u64, days, "{rows:?}");
        let summed = |row: &Value| row["sum_cars"].as_str().unwrap().parse::<u64>().unwrap();
        let sum: u64 = rows.iter().map(summed).sum();
        assert_eq!(sum.to_string(), total(24 * days));
        count.load(Ordering::SeqCst)
    };
    let (few, many) = (asked(2), asked(64));
    assert!(few > 0 && many <= few, "{few} {many}");
}

/// An owner at its limit is refused with the numbers; nothing of its file is lost, and once there is
/// room it goes on. Blocks that are there already need none.
#[test]
fn an_owner_stores_no_more_than_the_server_allows() {
    let quota = |bytes: u64| vec![("ALPHEUS_TABLE__QUOTA_BYTES", bytes.to_string())];
    let storage = Storage { state: "tables".to_owned(), environment: quota(700_000) };
    let mut world = World::over(SCHEMA, storage);
    world.write_rows("first.csv", 0, 8192);
    world.done("append first.csv");
    world.write_rows("second.csv", 8192, 10 * 8192);
    let (code, full) = said(&world, "append second.csv");
    assert!(code == Some(3) && full.contains("of 700000 bytes here"), "{code:?}: {full}");
    assert!(full.contains("table.quota-bytes"), "{full}");
    let (_, again) = said(&world, "append second.csv");
    assert!(again.contains("of 700000 bytes here"), "{again}");
    world.server.kill();
    world.storage.environment = quota(100_000_000);
    world.restart_server();
    world.done("append second.csv");
    assert_eq!(sum(&world), total(11 * 8192));
}
