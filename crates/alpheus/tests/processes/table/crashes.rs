//! kill -9 of owner and server at any point: no acknowledged block is lost, no range has
//! a hole, no row counts twice.

use crate::common::{Process, copy_folder};
use crate::table::world::{SCHEMA, World, cars, total};
use alpheus_table_service::state::TableState;
use std::collections::BTreeSet;
use std::time::Duration;

const ROWS: u64 = 30_000;

pub(crate) fn sum(world: &World) -> String {
    let [row] = world.ask("SELECT SUM(cars)").try_into().unwrap();
    assert_eq!(row["verified"], true);
    row["sum_cars"].as_str().unwrap().to_owned()
}

/// The owner is killed again and again in the middle of an upload, each time a little
/// later, and so comes through.
#[test]
fn an_owner_that_is_killed_goes_on_where_it_was() {
    let mut world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, ROWS);
    // This one surely.
    drop(world.killed_after(2, "append counts.csv"));
    for pause in (0..20).map(|step| Duration::from_millis(60 + 25 * step)) {
        let mut owner = Process::start(&mut world.command("append counts.csv"));
        std::thread::sleep(pause);
        owner.kill();
        if owner.log().contains("rows appended") {
            break;
        }
    }
    // Whatever was left is appended now; if all was, it is refused to do so again.
    let last = world.run("append counts.csv");
    let said = String::from_utf8_lossy(&last.stderr);
    assert!(last.status.success() || said.contains("the table already has"), "{said}");
    assert_eq!(sum(&world), total(ROWS));
    world.done("verify");
    // Each block stands once among those that are used; labels of lost commits differ.
    let names = stored(&world);
    let indices: BTreeSet<&str> = names.iter().map(|name| &name[42..]).collect();
    assert_eq!(indices.len(), 7, "{names:?}");
}

/// Names of stored blocks: segment, epoch, number.
pub(crate) fn stored(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.table()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.len() == 58).collect();
    names.sort();
    names
}

/// The server is killed while blocks come in; the owner waits for it, and sends what was
/// not acknowledged again.
#[test]
fn a_server_that_is_killed_loses_nothing_acknowledged() {
    let mut world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, ROWS);
    let mut owner = Process::start(&mut world.command("append counts.csv"));
    for pause in [150, 40, 90] {
        std::thread::sleep(Duration::from_millis(pause));
        world.server.kill();
        world.restart_server();
    }
    assert!(owner.wait().success(), "{}", owner.log());
    world.server.kill();
    world.restart_server();
    assert_eq!(sum(&world), total(ROWS));
    world.done("verify");
}

/// An older copy of the owner's folder, while the server has seen more.
#[test]
fn a_restored_backup_of_the_folder_does_no_harm() {
    let world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 9000);
    world.write_rows("second.csv", 9000, 9000);
    world.write_rows("other.csv", 9000, 5000);
    world.done("append first.csv");
    copy(&world, "ada", "backup");
    world.done("append second.csv");
    assert_eq!(sum(&world), total(18_000));
    std::fs::remove_dir_all(world.path("ada")).unwrap();
    copy(&world, "backup", "ada");
    assert_eq!(sum(&world), total(9000));
    world.done("append other.csv");
    assert_eq!(sum(&world), total(14_000));
    world.done("verify");
}

pub(crate) fn copy(world: &World, from: &str, to: &str) {
    copy_folder(&world.path(from), &world.path(to));
}

/// The seventh row has so many cars; its block is rewritten.
pub(crate) fn fix(world: &World, cars: u64) {
    let text = format!("timestamp,cars\n{},{cars}\n", 1_367_366_400 + 3600 * 7);
    std::fs::write(world.path("fix.csv"), text).unwrap();
    world.done("correct fix.csv --rewrite");
}

/// A block that was rewritten since the copy was made: the copy still has all of its
/// rows, the newer folder too, whatever the older one does; until old blocks are dropped.
#[test]
fn a_restored_backup_has_its_rows_after_a_rewrite() {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 5000);
    world.done("append counts.csv");
    copy(&world, "ada", "monday");
    let expected = |seventh: u64| {
        let all: u64 = total(5000).parse().unwrap();
        (all - cars(7) + seventh).to_string()
    };
    fix(&world, 50_000);
    assert_eq!(sum(&world), expected(50_000));
    assert_eq!(stored(&world).len(), 2);
    std::fs::rename(world.path("ada"), world.path("newer")).unwrap();
    copy(&world, "monday", "ada");
    assert_eq!(sum(&world), total(5000));
    fix(&world, 60_000);
    assert_eq!(sum(&world), expected(60_000));
    std::fs::remove_dir_all(world.path("ada")).unwrap();
    std::fs::rename(world.path("newer"), world.path("ada")).unwrap();
    assert_eq!(sum(&world), expected(50_000));
    world.done("verify");
    assert_eq!(stored(&world).len(), 3);
    // The copy of Monday has written a block: whether it is gone for good, the owner knows.
    let ran = world.run("prune");
    assert!(!ran.status.success());
    assert_eq!(stored(&world).len(), 3);
    world.done("prune --force");
    assert_eq!(stored(&world).len(), 2, "what the newer folder replaced is gone");
    assert_eq!(sum(&world), expected(50_000));
    world.done("prune");
}

/// Killed after a commit and before sending: whatever command comes next sends what is
/// waiting. One leaves a block of an append, one a block that was rewritten.
#[test]
fn what_a_killed_command_left_is_sent_by_the_next() {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 5000);
    world.done("append counts.csv");
    let open = || TableState::open(&world.path("ada")).unwrap();
    let mut expected: u64 = total(5000).parse().unwrap();
    for next in ["query", "verify", "correct", "rewrite", "prune"] {
        // As an append does, up to its commit.
        let mut state = open();
        let rows = state.owner.block_rows() - state.owner.tail_rows();
        let since = state.index.since(0).len();
        for row in 0..rows {
            state.index.push(i64::try_from(row).unwrap(), &[]);
        }
        let cells: Vec<_> = (0..rows).map(|row| vec![Some(i64::try_from(row).unwrap())]).collect();
        expected += (0..rows).sum::<u64>();
        let step = state.owner.append(&cells, &mut state.rng).unwrap();
        let step = step.and(state.import_changes([1; 32], rows, since.saturating_sub(1)));
        assert_eq!(state.commit(step).unwrap().len(), 1);
        drop(state);
        std::fs::write(world.path("none.csv"), "timestamp,cars\n").unwrap();
        match next {
            "query" => {}
            "correct" => world.done("correct none.csv"),
            "rewrite" => leave_a_rewrite(&world, 2),
            other => world.done(other),
        }
        assert_eq!(sum(&world), expected.to_string(), "after {next}");
        assert_eq!(open().owner.outbox().count(), 0, "after {next}");
    }
    world.done("verify");
}

/// As `correct --rewrite` of block 0, up to its commit.
pub(crate) fn leave_a_rewrite(world: &World, waiting: usize) {
    let mut state = TableState::open(&world.path("ada")).unwrap();
    let address = state.owner.address(0).unwrap();
    let segment: String = address.segment.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{segment}-{:08x}-{:016x}", address.epoch, address.index);
    let bytes = std::fs::read(world.table().join(name)).unwrap();
    let block = state.owner.open_block(0, &state.owner.all_columns(), &bytes).unwrap();
    let step = state.owner.rewrite(&block, &mut state.rng).unwrap();
    let step = step.and(state.record_replaced(Some(address)));
    drop(state.commit(step).unwrap());
    assert_eq!(state.owner.outbox().count(), waiting);
}
