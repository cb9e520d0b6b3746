//! A lost folder is recovered from the key and the server alone, and a server that lies about
//! the saved state is found, or the limit is as documented.

use crate::table::crashes::{copy, fix, sum};
use crate::table::world::{SCHEMA, World, cars, total};
use alpheus_table_service::save::send_waiting;
use alpheus_table_service::state::TableState;
use alpheus_table_service::wire::{FETCH_STATE, STATES};
use alpheus_verifiable_table::saved_state::StateName;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request as HttpRequest;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const GROUPED: &str = "\
name: Street
parameters: S128
time: { column: timestamp }
groups: [street]
columns:
  - { name: cars, min: 0, max: 100000, squares: true }
  - { name: trucks, min: 0, max: 1000, optional: true }
pairs: [[cars, trucks]]
";

const QUERIES: &[&str] = &[
    "SELECT COUNT(*), SUM(cars), VAR(cars), COUNT(trucks), REGRESSION(trucks ~ cars)",
    "SELECT SUM(cars), AVG(trucks) GROUP BY street, DAY(timestamp)",
    "SELECT SUM(cars) WHERE timestamp BETWEEN 36000 AND 40000000 AND street = 'south'",
    "SELECT WEIGHTED(cars, 3, 1), POLYNOMIAL(trucks, 7)",
];

/// Rows of two streets, as a file.
fn write_streets(world: &World, name: &str, first: u64, count: u64) {
    let mut text = "timestamp,street,cars,trucks\n".to_owned();
    for row in first..first + count {
        let street = if row % 9000 < 5000 { "south" } else { "north" };
        let trucks = if row % 7 == 0 { String::new() } else { (row % 900).to_string() };
        text.push_str(&format!("{},{street},{},{trucks}\n", 3600 * row, cars(row)));
    }
    fs::write(world.path(name), text).unwrap();
}

fn answers(world: &World) -> Vec<Value> {
    QUERIES.iter().flat_map(|sql| world.ask(sql)).collect()
}

/// The costs of a query are no part of its rows.
#[test]
fn costs_are_said_beside_the_rows() {
    let world = World::new(GROUPED);
    write_streets(&world, "streets.csv", 0, 9000);
    world.done("append streets.csv");
    let ran = world.query(QUERIES[0]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("bytes received and verified"), "{said}");
    let rows: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    let names = rows.iter().flat_map(|row| row.as_object().unwrap().keys());
    let costs: Vec<&String> =
        names.filter(|name| name.contains("ms") || *name == "bytes").collect();
    assert!(costs.is_empty() && !rows.is_empty(), "{costs:?}");
}

/// Keeps a copy of the key, and loses the folder.
fn lose_folder(world: &World) {
    fs::copy(world.path("ada/table.key"), world.path("key.copy")).unwrap();
    fs::remove_dir_all(world.path("ada")).unwrap();
}

/// What a command said, and its exit code.
pub(crate) fn said(world: &World, args: &str) -> (Option<i32>, String) {
    let ran = world.run(args);
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

#[test]
fn key_and_server_alone_give_the_same_answers() {
    let world = World::new(GROUPED);
    write_streets(&world, "first.csv", 0, 9000);
    write_streets(&world, "second.csv", 9000, 9500);
    world.done("append first.csv");
    world.done("append second.csv");
    // One correction in a block, one in the tail.
    let fixes = "timestamp,street,cars,trucks\n3600,south,99999,\n64800000,south,12345,9\n";
    fs::write(world.path("fixes.csv"), fixes).unwrap();
    world.done("correct fixes.csv");
    let expected = answers(&world);
    lose_folder(&world);
    assert_eq!(said(&world, "recover --key key.copy").0, Some(0));
    assert_eq!(answers(&world), expected);
    world.done("verify");
    // The files are known, so that no row counts twice; and the table goes on.
    let (code, again) = said(&world, "append second.csv");
    assert!(code == Some(0) && again.contains("already has all rows"), "{again}");
    world.done("correct fixes.csv --rewrite");
    world.done("merge");
    world.done("prune");
    write_streets(&world, "third.csv", 18_500, 700);
    world.done("append third.csv");
    let expected = answers(&world);
    lose_folder(&world);
    world.done("recover --key key.copy");
    assert_eq!(answers(&world), expected);
    world.done("verify");
    // A folder is never overwritten.
    let (code, taken) = said(&world, "recover --key key.copy");
    assert!(code == Some(5) && taken.contains("exists"), "{taken}");
    assert_eq!(answers(&world), expected);
}

/// Killed once a block was sent, and before the state was saved: the last state has all rows
/// before, and the same file adds the others.
#[test]
fn a_folder_that_is_lost_during_an_append_is_recovered() {
    let world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 5000);
    world.write_rows("counts.csv", 5000, 9000);
    world.done("append first.csv");
    // As an append does, up to its first block.
    let mut state = TableState::open(&world.path("ada")).unwrap();
    let remote = world.remote(&state);
    let since = state.index.since(0).len();
    let numbers = 5000..5000 + state.owner.block_rows();
    for row in numbers.clone() {
        state.index.push(i64::try_from(1_367_366_400 + 3600 * row).unwrap() * 1_000_000, &[]);
    }
    let cells = |row| vec![Some(i64::try_from(cars(row)).unwrap())];
    let cells: Vec<_> = numbers.map(cells).collect();
    let step = state.owner.append(&cells, &mut state.rng).unwrap();
    let step = step.and(state.import_changes([1; 32], 4096, since - 1));
    state.commit(step).unwrap();
    send_waiting(&mut state, &remote).unwrap();
    drop(state);
    lose_folder(&world);
    let (code, recovered) = said(&world, "recover --key key.copy");
    assert_eq!(code, Some(0), "{recovered}");
    assert!(recovered.contains("1 blocks that this state does not know"), "{recovered}");
    assert_eq!(sum(&world), total(5000));
    world.done("append counts.csv");
    assert_eq!(sum(&world), total(14_000));
    world.done("verify");
}

/// A copy of the folder was put to work beside the folder itself.
#[test]
fn states_of_separate_copies_are_for_the_owner_to_choose() {
    let world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 100);
    world.write_rows("second.csv", 100, 50);
    world.write_rows("other.csv", 100, 7);
    world.done("append first.csv");
    copy(&world, "ada", "copy");
    world.done("append second.csv");
    fs::rename(world.path("ada"), world.path("first")).unwrap();
    fs::rename(world.path("copy"), world.path("ada")).unwrap();
    world.done("append other.csv");
    lose_folder(&world);
    let (code, both) = said(&world, "recover --key key.copy");
    assert_eq!(code, Some(3), "{both}");
    assert!(both.contains("of 150 rows") && both.contains("of 107 rows"), "{both}");
    assert!(both.contains("alpheus errors table-state"), "{both}");
    let words: Vec<&str> = both.split([' ', ',', ':']).collect();
    let at = words.iter().position(|word| *word == "150").unwrap();
    let (code, wrong) = said(&world, "recover --key key.copy --choose 1-00000000");
    assert!(code == Some(2) && wrong.contains(words[at - 2]), "{wrong}");
    world.done(&format!("recover --key key.copy --choose {}", words[at - 2]));
    assert_eq!(sum(&world), total(150));
}

/// What the server says of saved states instead of the truth.
#[derive(Clone)]
enum Lie {
    None,
    /// It changes the list.
    Names(fn(&mut Vec<StateName>)),
    /// It changes a state.
    State(fn(&mut Vec<u8>)),
    /// It shows another name, and these bytes.
    Shown(StateName, Vec<u8>),
}

type SharedLie = Arc<Mutex<Lie>>;

async fn lying(shared: SharedLie, request: HttpRequest, next: Next) -> Response {
    let (lie, path) = (shared.lock().unwrap().clone(), request.uri().path().to_owned());
    let (mut parts, body) = next.run(request).await.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let body: Bytes = match (lie, path.as_str()) {
        (Lie::Names(change), STATES) => {
            let mut names: Vec<StateName> = postcard::from_bytes(&body).unwrap();
            change(&mut names);
            postcard::to_allocvec(&names).unwrap().into()
        }
        (Lie::Shown(name, _), STATES) => postcard::to_allocvec(&[name].as_slice()).unwrap().into(),
        (Lie::State(change), FETCH_STATE) => {
            let mut bytes: Vec<u8> = postcard::from_bytes(&body).unwrap();
            change(&mut bytes);
            postcard::to_allocvec(&bytes).unwrap().into()
        }
        (Lie::Shown(_, bytes), FETCH_STATE) => {
            parts.status = axum::http::StatusCode::OK;
            postcard::to_allocvec(&bytes).unwrap().into()
        }
        _ => body,
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

/// The one saved state of a table at the server: its file.
pub(crate) fn stored_state(world: &World) -> PathBuf {
    let names = fs::read_dir(world.table()).unwrap().map(|entry| entry.unwrap().path());
    let is_state =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("state-");
    let states: Vec<PathBuf> = names.filter(is_state).collect();
    // The one before is deleted.
    let [state] = states.try_into().unwrap();
    state
}

/// The name in a state's header.
fn name_of(bytes: &[u8]) -> StateName {
    let version = u64::from_be_bytes(bytes[17..25].try_into().unwrap());
    let segment = alpheus_verifiable_table::label::Segment(bytes[25..41].try_into().unwrap());
    StateName { version, segment }
}

#[test]
fn lies_about_the_saved_state_are_rejected() {
    let mut world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 5000);
    world.done("append counts.csv");
    let other = World::new(SCHEMA);
    other.write_rows("counts.csv", 0, 5000);
    other.done("append counts.csv");
    let theirs = fs::read(stored_state(&other)).unwrap();
    let own = fs::read(stored_state(&world)).unwrap();
    // Their state under this table's name.
    let mut renamed = theirs.clone();
    renamed[..17].copy_from_slice(&own[..17]);
    let mut raised = name_of(&own);
    raised.version += 1;
    let mut numbered = own.clone();
    numbered[17..25].copy_from_slice(&raised.version.to_be_bytes());
    lose_folder(&world);
    let shared: SharedLie = Arc::new(Mutex::new(Lie::None));
    let between = Arc::clone(&shared);
    let (_trigger, url) = world.serve_through(|routes| {
        routes.layer(from_fn(move |request, next| lying(Arc::clone(&between), request, next)))
    });
    world.url = url;
    let wrong = "the server's answer is wrong and was rejected";
    let none = "shows no saved state";
    for (what, lie, expected) in [
        ("a bit of the records", Lie::State(|bytes| bytes[200] ^= 1), wrong),
        ("a bit of the number", Lie::State(|bytes| bytes[24] ^= 1), wrong),
        ("a bit of the tag", Lie::State(|bytes| *bytes.last_mut().unwrap() ^= 1), wrong),
        ("cut", Lie::State(|bytes| bytes.truncate(bytes.len() / 2)), wrong),
        ("nothing", Lie::State(Vec::clear), wrong),
        ("another table's", Lie::Shown(name_of(&theirs), theirs.clone()), wrong),
        ("another table's, renamed", Lie::Shown(name_of(&theirs), renamed), wrong),
        ("a number that is too high", Lie::Shown(raised, numbered), wrong),
        ("the true one under a higher number", Lie::Shown(raised, own.clone()), wrong),
        ("no state", Lie::Names(Vec::clear), none),
    ] {
        *shared.lock().unwrap() = lie;
        let (code, said) = said(&world, "recover --key key.copy");
        assert!(code == Some(1) && said.contains(expected), "{what}: {said}");
        assert!(!world.path("ada").exists(), "{what}");
    }
    *shared.lock().unwrap() = Lie::None;
    world.done("recover --key key.copy");
    assert_eq!(sum(&world), total(5000));
}

/// A genuine state of an earlier day: with the key alone nothing tells it from the newest, as
/// is documented. An owner who noted the number notices it, and an honest server's blocks show it too.
#[test]
fn an_older_state_is_found_by_its_number() {
    let mut world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 4000);
    world.write_rows("second.csv", 4000, 5000);
    world.done("append first.csv");
    let old = fs::read(stored_state(&world)).unwrap();
    let (_, appended) = said(&world, "append second.csv");
    let newest = name_of(&fs::read(stored_state(&world)).unwrap());
    assert!(appended.contains(&format!("state {newest} is saved")), "{appended}");
    fix(&world, 40_000);
    lose_folder(&world);
    let shared: SharedLie = Arc::new(Mutex::new(Lie::Shown(name_of(&old), old)));
    let between = Arc::clone(&shared);
    let (_trigger, url) = world.serve_through(|routes| {
        routes.layer(from_fn(move |request, next| lying(Arc::clone(&between), request, next)))
    });
    world.url = url;
    let noted = format!("recover --key key.copy --at-least {}", newest.version);
    let (code, found) = said(&world, &noted);
    assert!(code == Some(1) && found.contains("hides or has lost newer ones"), "{found}");
    assert!(!world.path("ada").exists());
    // The limit: this is a table of an earlier day, and each answer about it is right.
    let (code, believed) = said(&world, "recover --key key.copy");
    assert_eq!(code, Some(0), "{believed}");
    assert!(believed.contains("3 blocks that this state does not know"), "{believed}");
    assert_eq!(sum(&world), total(4000));
    fs::remove_dir_all(world.path("ada")).unwrap();
    *shared.lock().unwrap() = Lie::None;
    world.done(&noted);
    let expected = total(9000).parse::<u64>().unwrap() - cars(7) + 40_000;
    assert_eq!(sum(&world), expected.to_string());
}

/// A server that was restored from a backup has an older state beside the newest: the newest is the
/// one that no other replaces. A server that lies may list a state twice, or very many.
#[test]
fn of_several_states_the_newest_is_recovered() {
    let mut world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 4000);
    world.write_rows("second.csv", 4000, 5000);
    let created = (stored_state(&world), fs::read(stored_state(&world)).unwrap());
    world.done("append first.csv");
    let appended = (stored_state(&world), fs::read(stored_state(&world)).unwrap());
    world.done("append second.csv");
    for (path, bytes) in [created, appended] {
        fs::write(path, bytes).unwrap();
    }
    lose_folder(&world);
    let (code, text) = said(&world, "recover --key key.copy");
    assert!(code == Some(0) && text.contains("from state 3-"), "{text}");
    assert_eq!(sum(&world), total(9000));
    fs::remove_dir_all(world.path("ada")).unwrap();
    let shared: SharedLie = Arc::new(Mutex::new(Lie::Names(|names| names.extend(names.clone()))));
    let between = Arc::clone(&shared);
    let (_trigger, url) = world.serve_through(|routes| {
        routes.layer(from_fn(move |request, next| lying(Arc::clone(&between), request, next)))
    });
    world.url = url;
    let (code, text) = said(&world, "recover --key key.copy");
    assert!(code == Some(0) && text.contains("from state 3-"), "twice: {text}");
    fs::remove_dir_all(world.path("ada")).unwrap();
    *shared.lock().unwrap() = Lie::Names(|names| {
        let segment = names[0].segment;
        names.extend((100..400).map(|version| StateName { version, segment }));
    });
    let (code, text) = said(&world, "recover --key key.copy");
    assert!(code == Some(1) && text.contains("303 saved states"), "{text}");
    let chosen = text.contains("--choose NAME");
    assert!(chosen && !world.path("ada").exists(), "{text}");
}

/// `--at-least` knows numbers, not histories: after a recovery from an older state they go on from that
/// one. A whole name is one state's alone.
#[test]
fn a_noted_name_is_taken_and_no_other_branch() {
    let world = World::new(SCHEMA);
    world.write_rows("first.csv", 0, 4000);
    world.write_rows("second.csv", 4000, 50);
    world.write_rows("other.csv", 4000, 7);
    world.done("append first.csv");
    copy(&world, "ada", "copy");
    world.done("append second.csv");
    let noted = name_of(&fs::read(stored_state(&world)).unwrap());
    fs::remove_dir_all(world.path("ada")).unwrap();
    fs::rename(world.path("copy"), world.path("ada")).unwrap();
    world.done("append other.csv");
    lose_folder(&world);
    // Both branches have a state of this number. The server hides the one that was noted.
    let hidden = fs::read_dir(world.table()).unwrap().map(|entry| entry.unwrap().path());
    let is_noted = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        path.to_string_lossy().contains("/state-") && name_of(&bytes) == noted
    };
    let hidden = hidden.into_iter().find(is_noted).unwrap();
    fs::rename(&hidden, world.path("hidden")).unwrap();
    world.done(&format!("recover --key key.copy --at-least {}", noted.version));
    assert_eq!(sum(&world), total(4007), "the limit, as documented");
    fs::remove_dir_all(world.path("ada")).unwrap();
    let choose = format!("recover --key key.copy --choose {noted}");
    let (code, text) = said(&world, &choose);
    assert!(code == Some(2) && text.contains(&noted.to_string()), "{text}");
    fs::rename(world.path("hidden"), hidden).unwrap();
    world.done(&choose);
    assert_eq!(sum(&world), total(4050));
}
