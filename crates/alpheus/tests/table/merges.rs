//! `alpheus table merge`, killed at any point.

use crate::common::Process;
use crate::crashes::{fix, stored, sum};
use crate::world::{SCHEMA, World, cars, total};
use alpheus::table::state::TableState;
use std::time::Duration;

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

/// kill -9 again and again, each time a little later; sums are right in between, and the
/// last leaves one run. A backup of before still has all of its rows, until `prune`.
#[test]
fn a_merge_that_is_killed_can_be_run_again() {
    let world = scattered();
    let all = total(BLOCKS * 4096);
    assert_eq!(runs(&world), 6);
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([world.path("ada"), world.path("backup")])
        .status();
    assert!(copied.unwrap().success());
    let mut kills = 0;
    for pause in (0..12).map(|step| Duration::from_millis(60 + 25 * step)) {
        let mut merge = Process::start(&mut world.command("merge"));
        std::thread::sleep(pause);
        merge.kill();
        kills += 1;
        assert_eq!(sum(&world), all, "killed after {pause:?}");
        if merge.log().contains("written anew;") {
            break;
        }
    }
    assert!(kills > 1);
    world.done("merge");
    assert_eq!((runs(&world), sum(&world)), (1, all.clone()));
    world.done("verify");
    // A merged table is left alone.
    let ran = world.run("merge");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("0 blocks written anew; 1 runs are 1"));
    assert!(stored(&world).len() as u64 >= 2 * BLOCKS);
    std::fs::rename(world.path("ada"), world.path("newer")).unwrap();
    std::fs::rename(world.path("backup"), world.path("ada")).unwrap();
    assert_eq!(sum(&world), all, "the older folder");
    std::fs::rename(world.path("ada"), world.path("older")).unwrap();
    std::fs::rename(world.path("newer"), world.path("ada")).unwrap();
    world.done("prune");
    assert_eq!((stored(&world).len() as u64, sum(&world)), (BLOCKS, all));
    world.done("verify");
}

/// A range, corrections, and a server that is killed meanwhile.
#[test]
fn a_range_is_merged_with_its_corrections() {
    let mut world = scattered();
    fix(&world, 50_000);
    let corrected = |seventh: u64| {
        let all: u64 = total(BLOCKS * 4096).parse().unwrap();
        (all - cars(7) + seventh).to_string()
    };
    let text = format!("timestamp,cars\n{},60000\n", 1_367_366_400 + 3600 * 7);
    std::fs::write(world.path("again.csv"), text).unwrap();
    world.done("correct again.csv");
    let mut merge = Process::start(&mut world.command("merge --from 0 --to 3"));
    for pause in [80, 40] {
        std::thread::sleep(Duration::from_millis(pause));
        world.server.kill();
        world.restart_server();
    }
    assert!(merge.wait().success(), "{}", merge.log());
    assert_eq!((runs(&world), sum(&world)), (4, corrected(60_000)));
    // The long one stays, the others are short enough.
    world.done("merge --below 3");
    assert_eq!((runs(&world), sum(&world)), (2, corrected(60_000)));
    world.done("verify");
}
