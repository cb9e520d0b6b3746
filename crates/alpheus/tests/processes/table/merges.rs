//! `alpheus table merge`, killed at any point.

use crate::common::{PATIENCE, Process, in_some_attempt};
use crate::table::crashes::{copy, fix, stored, sum};
use crate::table::world::{SCHEMA, World, cars, total};
use alpheus_table_service::state::TableState;
use std::time::{Duration, Instant};

const BLOCKS: u64 = 6;

fn runs(world: &World) -> usize {
    TableState::open(&world.path("ada")).unwrap().owner.runs().len()
}

/// As many starts, each with a block.
fn scattered() -> World {
    let world = World::new(SCHEMA);
    for block in 0..BLOCKS {
        let name = format!("{block}.csv");
        world.write_rows(&name, block * 4096, 4096);
        world.done(&format!("append {name}"));
    }
    world
}

fn rename(world: &World, from: &str, to: &str) {
    std::fs::rename(world.path(from), world.path(to)).unwrap();
}

/// Waits until the server has more blocks than so many.
fn stored_beyond(world: &World, count: usize) {
    let until = Instant::now() + PATIENCE;
    while stored(world).len() <= count {
        assert!(Instant::now() < until, "no block came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// kill -9 when a block was rewritten, again and again: sums are right in between,
/// the blocks that were written stay so, and the last merge leaves one run. A backup of
/// before still has all of its rows, until `prune`.
#[test]
fn a_merge_that_is_killed_can_be_run_again() {
    let mut world = scattered();
    let all = total(BLOCKS * 4096);
    assert_eq!(runs(&world), 6);
    copy(&world, "ada", "backup");
    for _ in 0..3 {
        let merge = world.killed_after(1, "merge");
        assert!(runs(&world) > 1, "killed in the middle: {}", merge.log());
        assert_eq!(sum(&world), all, "{}", merge.log());
    }
    for pause in (0..4).map(|step| Duration::from_millis(60 + 90 * step)) {
        let mut merge = Process::start(&mut world.command("merge"));
        std::thread::sleep(pause);
        merge.kill();
        assert_eq!(sum(&world), all, "killed after {pause:?}");
    }
    world.done("merge");
    assert_eq!((runs(&world), sum(&world)), (1, all.clone()));
    world.done("verify");
    // A merged table is left alone.
    let ran = world.run("merge");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("0 blocks rewritten; 1 runs became 1"));
    assert!(stored(&world).len() as u64 >= 2 * BLOCKS);
    rename(&world, "ada", "newer");
    rename(&world, "backup", "ada");
    assert_eq!(sum(&world), all, "the older folder");
    rename(&world, "ada", "older");
    rename(&world, "newer", "ada");
    world.done("prune");
    assert_eq!((stored(&world).len() as u64, sum(&world)), (BLOCKS, all));
    world.done("verify");
}

/// A restored older copy merges, while the newer one may come back: what it would drop the
/// newer one needs, which alone knows the rows appended since.
#[test]
fn an_older_copy_does_not_drop_what_a_newer_one_needs() {
    let world = World::new(SCHEMA);
    for (name, first) in [("first.csv", 0), ("second.csv", 4096)] {
        world.write_rows(name, first, 4096);
        world.done(&format!("append {name}"));
    }
    copy(&world, "ada", "backup");
    world.write_rows("third.csv", 2 * 4096, 4096);
    world.done("append third.csv");
    rename(&world, "ada", "newer");
    rename(&world, "backup", "ada");
    world.done("merge");
    let ran = world.run("prune");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("1 starts") && said.contains("--force"), "{said}");
    assert_eq!(sum(&world), total(2 * 4096), "the older copy");
    rename(&world, "ada", "older");
    rename(&world, "newer", "ada");
    assert_eq!(sum(&world), total(3 * 4096), "the newer one lacks nothing");
    world.done("verify");
    // Nothing was rewritten here: there is nothing to drop.
    world.done("prune");
    assert_eq!(stored(&world).len(), 5);
    // The other way: the newer copy is gone for good, and its blocks with it.
    std::fs::remove_dir_all(world.path("ada")).unwrap();
    rename(&world, "older", "ada");
    world.done("prune --force");
    assert_eq!((stored(&world).len(), sum(&world)), (3, total(2 * 4096)));
}

/// A range, corrections, and a server that is killed meanwhile.
#[test]
fn a_range_is_merged_with_its_corrections() {
    in_some_attempt("a kill in the middle", range_is_merged);
}

fn range_is_merged() -> Option<()> {
    let mut world = scattered();
    fix(&world, 50_000);
    let corrected = |seventh: u64| {
        let all: u64 = total(BLOCKS * 4096).parse().unwrap();
        (all - cars(7) + seventh).to_string()
    };
    let text = format!("timestamp,cars\n{},60000\n", 1_367_366_400 + 3600 * 7);
    std::fs::write(world.path("again.csv"), text).unwrap();
    world.done("correct again.csv");
    let before = stored(&world).len();
    let mut merge = Process::start(&mut world.command("merge --from 0 --to 3"));
    stored_beyond(&world, before);
    world.server.kill();
    // Three blocks are to come, and no server: it cannot have ended.
    if stored(&world).len() >= before + 3 {
        return None;
    }
    world.restart_server();
    assert!(merge.wait().success(), "{}", merge.log());
    assert_eq!((runs(&world), sum(&world)), (4, corrected(60_000)));
    // The long one stays, the others are short enough.
    world.done("merge --below 3");
    assert_eq!((runs(&world), sum(&world)), (2, corrected(60_000)));
    // To cut ends off two runs and join them would leave three.
    let ran = world.run("merge --from 2 --to 4");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("0 blocks rewritten; 2 runs became 2"));
    world.done("verify");
    Some(())
}
