//! `alpheus table rekey`, killed at any point, and `alpheus table drop`.

use crate::common::{PATIENCE, Process};
use crate::table::crashes::{copy, fix, sum};
use crate::table::world::{SCHEMA, World, cars, total};
use alpheus_table_service::state::TableState;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

const BLOCKS: u64 = 5;
const ROWS: u64 = BLOCKS * 4096 + 100;

/// Blocks at the server, by table.
fn tables(world: &World) -> BTreeMap<String, usize> {
    let mut tables = BTreeMap::new();
    for entry in fs::read_dir(world.path("tables")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let blocks = fs::read_dir(&path).unwrap().map(|block| block.unwrap().file_name());
            let blocks = blocks.filter(|name| name.len() == 58).count();
            tables.insert(path.file_name().unwrap().to_string_lossy().into_owned(), blocks);
        }
    }
    tables
}

fn said(world: &World, args: &str) -> (Option<i32>, String) {
    let ran = world.run(args);
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

fn rename(world: &World, from: &str, to: &str) {
    fs::rename(world.path(from), world.path(to)).unwrap();
}

fn table() -> (World, String) {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, ROWS);
    world.done("append counts.csv");
    // One correction is in its block, another one waits in the folder.
    fix(&world, 50_000);
    correct(&world, 9, 60_000);
    let all: u64 = total(ROWS).parse().unwrap();
    (world, (all - cars(7) + 50_000 - cars(9) + 60_000).to_string())
}

fn correct(world: &World, row: u64, cars: u64) {
    let text = format!("timestamp,cars\n{},{cars}\n", 1_367_366_400 + 3600 * row);
    fs::write(world.path("again.csv"), text).unwrap();
    world.done("correct again.csv");
}

/// After another block, or at the end.
fn kill_a_rekey_and_its_server(world: &mut World) {
    let blocks = |world: &World| tables(world).values().sum::<usize>();
    let before = blocks(world);
    let mut rekey = Process::start(&mut world.command("rekey --into new"));
    let until = Instant::now() + PATIENCE;
    while blocks(world) <= before && !rekey.has_ended() {
        assert!(Instant::now() < until, "no block came: {}", rekey.log());
        std::thread::sleep(Duration::from_millis(1));
    }
    world.server.kill();
    world.restart_server();
    rekey.kill();
}

/// kill -9 of the command and of the server, again and again: the copy has each row once, with
/// its correction, under a key of its own.
#[test]
fn a_copy_under_another_key_is_completed_after_any_kill() {
    let (mut world, all) = table();
    for round in 0..3 {
        if round < 2 {
            let rekey = world.killed_after(1, "rekey --into new");
            let incomplete = TableState::open(&world.path("new")).is_err();
            assert!(incomplete, "killed in the middle: {}", rekey.log());
        } else {
            kill_a_rekey_and_its_server(&mut world);
        }
        assert_eq!(sum(&world), all, "the table is as it was");
        if world.path("new/table.key").exists() && TableState::open(&world.path("new")).is_err() {
            rename(&world, "ada", "old");
            rename(&world, "new", "ada");
            let (code, said) = said(&world, "verify");
            assert!(code == Some(4) && said.contains("has not completed"), "{code:?} {said}");
            rename(&world, "ada", "new");
            rename(&world, "old", "ada");
        }
    }
    let (code, text) = said(&world, "rekey --into new");
    assert!(code == Some(0) || text.contains("not an incomplete copy"), "{text}");
    rename(&world, "ada", "old");
    rename(&world, "new", "ada");
    assert_eq!(sum(&world), all);
    world.done("verify");
    let keys = ["old", "ada"].map(|folder| fs::read(world.path(folder).join("table.key")).unwrap());
    assert_ne!(keys[0], keys[1]);
    let [old, new] = ["old", "ada"].map(|folder| TableState::open(&world.path(folder)).unwrap());
    assert_ne!(old.owner.manifest().data_set, new.owner.manifest().data_set);
    assert_eq!((new.owner.rows(), new.owner.corrected_rows().count()), (ROWS, 0));
    drop((old, new));
    let (_, text) = said(&world, "append counts.csv");
    assert!(text.contains("already has all rows"), "{text}");
}

/// An honest server forgets a table, and no other one.
#[test]
fn a_dropped_table_is_gone_and_its_copy_is_not() {
    let (world, all) = table();
    world.done("rekey --into new");
    let blocks = tables(&world);
    let (code, text) = said(&world, "drop --name Road");
    assert!(code == Some(2) && text.contains("called `Street`"), "{text}");
    assert_eq!(tables(&world), blocks);
    world.done("drop --name Street");
    // Not even its name is left.
    assert_eq!(tables(&world).len(), 2, "one of the old and of the new");
    let named = |table: &String| world.path("tables").join(table).join("table").exists();
    assert_eq!(tables(&world).keys().filter(|table| named(table)).count(), 1);
    let (code, text) = said(&world, "verify");
    assert!(code == Some(4) && text.contains("there is no such table here"), "{text}");
    fs::copy(world.path("ada/table.key"), world.path("old.key")).unwrap();
    rename(&world, "ada", "old");
    assert!(!said(&world, "recover --key old.key").1.contains("recovered"));
    rename(&world, "new", "ada");
    assert_eq!(tables(&world).values().filter(|blocks| **blocks > 0).count(), 1);
    world.done("verify");
    assert_eq!(sum(&world), all);
}

/// Squares, pairs and columns are added with a copy, and nothing that rows rest on is taken away.
#[test]
fn a_copy_has_a_wider_schema() {
    let (world, all) = table();
    let wide = "\
name: Street
parameters: S128
time: { column: timestamp }
columns:
  - { name: cars, min: -5, max: 200000, squares: true }
  - { name: trucks, min: 0, max: 100, optional: true }
pairs: [[cars, trucks]]
";
    fs::write(world.path("wide.yaml"), wide).unwrap();
    fs::write(world.path("narrow.yaml"), SCHEMA.replace("100000", "99999")).unwrap();
    let (code, text) = said(&world, "rekey --into new --schema narrow.yaml");
    assert!(code == Some(4) && text.contains("must include those of the table"), "{text}");
    assert!(!world.path("new").exists());
    world.done("rekey --into new --schema wide.yaml");
    let (code, text) = said(&world, "rekey --into new");
    assert!(code == Some(2) && text.contains("not an incomplete copy"), "{text}");
    rename(&world, "ada", "old");
    rename(&world, "new", "ada");
    assert_eq!(sum(&world), all);
    let time = 1_367_366_400 + 3600 * ROWS;
    let rows = format!("timestamp,cars,trucks\n{time},-5,3\n{},10,4\n", time + 3600);
    fs::write(world.path("more.csv"), rows).unwrap();
    world.done("append more.csv");
    let asked = world.ask("SELECT COUNT(trucks), SUM(trucks), VAR(cars), COV(trucks, cars)");
    let row = &asked[0];
    let shown = |name: &str| row[name].to_string().trim_matches('"').to_owned();
    assert_eq!((shown("count_trucks"), shown("sum_trucks")), ("2".to_owned(), "7".to_owned()));
    let numbers: Vec<f64> = (0..ROWS)
        .map(|row| match row {
            7 => 50_000.0,
            9 => 60_000.0,
            _ => cars(row) as f64,
        })
        .chain([-5.0, 10.0])
        .collect();
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
    let found: f64 = shown("var_cars").parse().unwrap();
    assert!((found / variance - 1.0).abs() < 1e-9, "{found} {variance}");
    let found: f64 = shown("cov_trucks_cars").parse().unwrap();
    assert!((found - 3.75).abs() < 1e-9, "{found}");
}

/// A copy that would lack a later correction is not continued.
#[test]
fn a_copy_of_a_table_that_has_changed_is_refused() {
    let (mut world, _) = table();
    drop(world.killed_after(0, "rekey --into new"));
    assert!(world.path("new/table.key").exists());
    assert!(TableState::open(&world.path("new")).is_err(), "killed in the middle");
    copy(&world, "ada", "before");
    correct(&world, 11, 1);
    let (code, text) = said(&world, "rekey --into new");
    assert!(code == Some(3) && text.contains("has changed since"), "{text}");
    let wide = SCHEMA.replace("100000", "200000");
    fs::write(world.path("wide.yaml"), wide).unwrap();
    rename(&world, "ada", "after");
    rename(&world, "before", "ada");
    let (code, text) = said(&world, "rekey --into new --schema wide.yaml");
    assert!(code == Some(2) && text.contains("another schema"), "{text}");
    world.done("rekey --into new");
}
