//! kill -9 of owner and server at any point: no acknowledged block is lost, no range has
//! a hole, no row counts twice.

use crate::common::Process;
use crate::world::{SCHEMA, World, total};
use std::collections::BTreeSet;
use std::time::Duration;

const ROWS: u64 = 30_000;

fn sum(world: &World) -> String {
    let [row] = world.ask("SELECT SUM(cars)").try_into().unwrap();
    assert_eq!(row["verified"], true);
    row["sum_cars"].as_str().unwrap().to_owned()
}

/// The owner is killed again and again in the middle of an upload, each time a little
/// later, and so comes through.
#[test]
fn an_owner_that_is_killed_goes_on_where_it_was() {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, ROWS);
    let mut kills = 0;
    for pause in (0..20).map(|step| Duration::from_millis(60 + 25 * step)) {
        let mut owner = Process::start(&mut world.command("append counts.csv"));
        std::thread::sleep(pause);
        owner.kill();
        kills += 1;
        if owner.log().contains("rows appended") {
            break;
        }
    }
    // Whatever was left is appended now; if all was, it is refused to do so again.
    let last = world.run("append counts.csv");
    let said = String::from_utf8_lossy(&last.stderr);
    assert!(last.status.success() || said.contains("in the table already"), "{said}");
    assert!(kills > 1);
    assert_eq!(sum(&world), total(ROWS));
    world.done("verify");
    // Each block stands once among those that are used; labels of lost commits differ.
    let names = stored(&world);
    let indices: BTreeSet<&str> = names.iter().map(|name| &name[42..]).collect();
    assert_eq!(indices.len(), 7, "{names:?}");
}

/// Names of stored blocks: segment, epoch, number.
fn stored(world: &World) -> Vec<String> {
    let table = std::fs::read_dir(world.path("tables")).unwrap().next().unwrap().unwrap().path();
    let names = std::fs::read_dir(table).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.len() == 58).collect()
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
    let copy = |from: &str, to: &str| {
        let (from, to) = (world.path(from), world.path(to));
        let copied = std::process::Command::new("cp").arg("-r").args([from, to]).status();
        assert!(copied.unwrap().success());
    };
    copy("ada", "backup");
    world.done("append second.csv");
    assert_eq!(sum(&world), total(18_000));
    std::fs::remove_dir_all(world.path("ada")).unwrap();
    copy("backup", "ada");
    assert_eq!(sum(&world), total(9000));
    world.done("append other.csv");
    assert_eq!(sum(&world), total(14_000));
    world.done("verify");
}
