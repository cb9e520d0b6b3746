//! A server process that lies to owners' processes: each lie ends the command with 1, the
//! same words, and nothing on standard output.

use crate::table::world::{World, total};
use alpheus_table_service::wire::{FETCH, SUMS, SumResponse, SumsRequest};
use alpheus_verifiable_table::label::{Column, Kind};
use alpheus_verifiable_table::messages::{Request, Run, Weights};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request as HttpRequest;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use std::sync::{Arc, Mutex};

const SCHEMA: &str = "\
name: Street
parameters: S128
order: 2
time: { column: timestamp }
columns:
  - { name: cars, min: 0, max: 100000, squares: true }
  - { name: timestamp2, min: 0, max: 100000, optional: true, squares: true }
pairs: [[cars, timestamp2]]
";

/// What the server says instead of the truth.
#[derive(Clone, Copy)]
enum Lie {
    None,
    /// It answers another request.
    Request(fn(&mut Request)),
    /// It changes each answer; what it said to the question before is there.
    Answer(fn(&mut Vec<u8>, &[u8])),
    /// It changes the list of answers.
    Answers(fn(&mut Vec<SumResponse>)),
    /// It changes the list of fetched blocks.
    Blocks(fn(&mut Vec<Vec<u8>>)),
    /// It changes a fetched block.
    Block(fn(&mut Vec<u8>)),
}

type Shared = Arc<Mutex<(Lie, Vec<u8>)>>;

async fn lying(shared: Shared, request: HttpRequest, next: Next) -> Response {
    let (lie, before) = shared.lock().unwrap().clone();
    let path = request.uri().path().to_owned();
    let (mut parts, body) = request.into_parts();
    let mut body = to_bytes(body, usize::MAX).await.unwrap();
    if let (Lie::Request(change), SUMS) = (lie, path.as_str()) {
        let mut ask: SumsRequest = postcard::from_bytes(&body).unwrap();
        ask.requests.iter_mut().for_each(change);
        body = postcard::to_allocvec(&ask).unwrap().into();
        parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    let answer = next.run(HttpRequest::from_parts(parts, Body::from(body))).await;
    let (mut parts, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let body: Bytes = match (lie, path.as_str()) {
        (_, SUMS) if parts.status.is_success() => {
            let mut summed: Vec<SumResponse> = postcard::from_bytes(&body).unwrap();
            shared.lock().unwrap().1.clone_from(&summed.last().unwrap().answer);
            match lie {
                Lie::Answer(change) => {
                    summed.iter_mut().for_each(|summed| change(&mut summed.answer, &before));
                }
                Lie::Answers(change) => change(&mut summed),
                _ => {}
            }
            postcard::to_allocvec(&summed).unwrap().into()
        }
        (Lie::Block(_) | Lie::Blocks(_), FETCH) => {
            let mut blocks: Vec<Vec<u8>> = postcard::from_bytes(&body).unwrap();
            match lie {
                Lie::Block(change) => blocks.iter_mut().for_each(change),
                Lie::Blocks(change) => change(&mut blocks),
                _ => {}
            }
            postcard::to_allocvec(&blocks).unwrap().into()
        }
        _ => body,
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

const ANSWERS: &[(&str, Lie)] = &[
    ("a block less", Lie::Request(|request| request.runs[0].to -= 1)),
    ("a stale prefix", Lie::Request(|request| request.runs[0].to = 1)),
    ("the first block less", Lie::Request(|request| request.runs[0].from += 1)),
    (
        "an inner block less",
        Lie::Request(|request| {
            let run = request.runs[0];
            request.runs = vec![Run { to: 1, ..run }, Run { from: 2, ..run }];
        }),
    ),
    (
        "another column",
        Lie::Request(|request| {
            request.kind = match request.kind {
                Kind::Column(_) => Kind::Column(Column(1)),
                Kind::Product(..) => Kind::Product(Column(1), Column(1)),
            };
        }),
    ),
    ("twice as much", Lie::Request(|request| request.weights = Weights::Polynomial(vec![2]))),
    ("a block twice", Lie::Request(|request| request.weights = Weights::Each(0, vec![2, 0, 1]))),
    ("a bit of the sum", Lie::Answer(|answer, _| answer[12_345] ^= 1)),
    ("the last bit of the tag", Lie::Answer(|answer, _| *answer.last_mut().unwrap() ^= 1)),
    ("words that are not canonical", Lie::Answer(|answer, _| answer[..51].fill(0xff))),
    ("cut", Lie::Answer(|answer, _| answer.truncate(answer.len() - 1))),
    ("longer", Lie::Answer(|answer, _| answer.push(0))),
    ("nothing", Lie::Answer(|answer, _| answer.clear())),
    ("what it said before", Lie::Answer(|answer, before| before.clone_into(answer))),
];

const BLOCKS: &[(&str, Lie)] = &[
    ("a bit of the block", Lie::Block(|bytes| bytes[5000] ^= 1)),
    ("a bit of the seed", Lie::Block(|bytes| bytes[50] ^= 1)),
    ("another number", Lie::Block(|bytes| bytes[44] ^= 1)),
    ("half a block", Lie::Block(|bytes| bytes.truncate(bytes.len() / 2))),
];

/// Of several sums or blocks that are asked for at once.
const LISTS: &[(&str, Lie)] = &[
    ("two answers that changed places", Lie::Answers(|answers| answers.swap(0, 1))),
    ("an answer twice", Lie::Answers(|answers| answers[1].answer = answers[0].answer.clone())),
    ("an answer less", Lie::Answers(|answers| drop(answers.pop()))),
    (
        "an answer more",
        Lie::Answers(|answers| {
            let answer = answers[0].answer.clone();
            answers.push(SumResponse { microseconds: 0, answer });
        }),
    ),
    ("no answer", Lie::Answers(Vec::clear)),
    ("two blocks that changed places", Lie::Blocks(|blocks| blocks.swap(0, 1))),
    ("a block less", Lie::Blocks(|blocks| drop(blocks.pop()))),
    ("a block more", Lie::Blocks(|blocks| blocks.push(Vec::new()))),
];

/// The query is answered before and after, and rejected in between. Returns the last refusal.
fn rejected(
    world: &World,
    shared: &Shared,
    lies: &[(&str, Lie)],
    sql: &str,
    other: &str,
) -> String {
    let mut last = String::new();
    for (what, lie) in lies {
        // The question before is another one, so that its answer is no truth.
        assert!(world.query(other).status.success(), "{what}");
        shared.lock().unwrap().0 = *lie;
        let ran = world.query(sql);
        shared.lock().unwrap().0 = Lie::None;
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("the server's answer is wrong and was rejected"), "{what}: {said}");
        assert!(ran.stdout.is_empty(), "{what}");
        last = said.into_owned();
    }
    last
}

#[test]
fn every_lie_of_a_server_is_rejected_alike() {
    let mut world = World::new(SCHEMA);
    let mut text = "timestamp,cars,timestamp2\n".to_owned();
    for row in 0..3 * 8192 + 50_u64 {
        let other = if row % 3 == 0 { String::new() } else { (row % 77).to_string() };
        text.push_str(&format!("{},{},{other}\n", 3600 * row, crate::table::world::cars(row)));
    }
    std::fs::write(world.path("counts.csv"), text).unwrap();
    world.done("append counts.csv");
    let shared: Shared = Arc::new(Mutex::new((Lie::None, Vec::new())));
    let between = Arc::clone(&shared);
    let (_trigger, url) = world.serve_through(|routes| {
        routes.layer(from_fn(move |request, next| lying(Arc::clone(&between), request, next)))
    });
    world.url = url;
    let [row] = world.ask("SELECT SUM(cars)").try_into().unwrap();
    assert_eq!(row["sum_cars"], total(3 * 8192 + 50));
    let said =
        rejected(&world, &shared, ANSWERS, "SELECT SUM(cars)", "SELECT WEIGHTED(cars, 0, 1)");
    assert!(said.contains("alpheus errors table-unverified"), "{said}");
    rejected(&world, &shared, ANSWERS, "SELECT COV(cars, timestamp2)", "SELECT SUM(cars)");
    let range = "SELECT SUM(cars) WHERE timestamp BETWEEN 36000 AND 720000";
    rejected(&world, &shared, BLOCKS, range, "SELECT SUM(cars)");
    // Three sums over the inner block, and parts of the two others.
    let sums = "SELECT SUM(cars), SUM(timestamp2) WHERE timestamp BETWEEN 3600 AND 88200000";
    rejected(&world, &shared, LISTS, sums, "SELECT SUM(cars)");
}

/// Another owner, even with the first one's folder, cannot sum, read, drop, add to or begin
/// what is not theirs.
#[test]
fn tables_are_their_owners() {
    let world = World::new(crate::table::world::SCHEMA);
    world.write_rows("counts.csv", 0, 5000);
    world.done("append counts.csv");
    std::fs::write(world.path("fix.csv"), "timestamp,cars\n1367366400,9\n").unwrap();
    world.done("correct fix.csv --rewrite");
    let refused = |what: &str, args: &[&str], said: &str, code: i32| {
        let (first, more) = args.split_first().unwrap();
        let ran = world.command_of("eve", first).args(more).output().unwrap();
        let found = String::from_utf8_lossy(&ran.stderr);
        assert!(found.contains(said) && ran.stdout.is_empty(), "{what}: {found}");
        assert_eq!(ran.status.code(), Some(code), "{what}: {found}");
    };
    let none = "there is no such table here";
    let stored = crate::table::crashes::stored(&world);
    refused("sum", &["verify"], none, 4);
    let range = "SELECT SUM(cars) WHERE timestamp BETWEEN 1367366400 AND 1367406400";
    refused("read", &["query", range], none, 4);
    refused("drop", &["prune"], none, 4);
    world.write_rows("more.csv", 5000, 4000);
    refused("begin", &["append more.csv"], "another table of this name", 4);
    crate::table::crashes::leave_a_rewrite(&world, 1);
    refused("add", &["verify"], none, 4);
    assert_eq!(crate::table::crashes::stored(&world), stored, "nothing came and nothing went");
    world.done("verify");
}

/// Errors in the input are reported before anything is sent.
#[test]
fn bad_rows_and_queries_are_refused_with_a_remedy() {
    let world = World::new(crate::table::world::SCHEMA);
    std::fs::write(world.path("bad.csv"), "timestamp,cars\n1,5\n2,100001\n").unwrap();
    let ran = world.run("append bad.csv");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(
        said.contains(
            "line 3, column `cars`: the value is outside the schema's bounds 0 to 100000"
        ),
        "{said}"
    );
    assert!(!said.contains("100001"));
    for (sql, code, part) in [
        ("SELECT VAR(cars)", 3, "not registered"),
        ("SELECT SUM(trucks)", 4, "no column `trucks`"),
        ("SELECT cars", 4, "is not supported"),
    ] {
        let ran = world.query(sql);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(code) && said.contains(part), "{sql}: {said}");
    }
    // Who wants a plan does not get the query run.
    let explain = world.command("explain").arg("SELECT SUM(cars)").output().unwrap();
    assert_eq!(explain.status.code(), Some(2), "there is no such command");
    let rows = world.ask("SELECT SUM(cars), COUNT(*)");
    assert!(
        rows[0]["sum_cars"].is_null() && rows[0]["count"] == 0,
        "none of the file was appended"
    );
    world.write_rows("good.csv", 0, 10);
    world.done("append good.csv");
    let again = world.run("append good.csv");
    assert!(
        String::from_utf8_lossy(&again.stderr)
            .contains("the table already has all rows of this file")
    );
    // Changed after it was appended, it has another digest; its rows do not count twice.
    world.write_rows("good.csv", 0, 11);
    let changed = world.run("append good.csv");
    let said = String::from_utf8_lossy(&changed.stderr);
    assert_eq!(changed.status.code(), Some(4), "{said}");
    assert!(said.contains("line 2: the table already has a row"), "{said}");
    assert_eq!(world.ask("SELECT SUM(cars)")[0]["sum_cars"], total(10));
    world.done("append good.csv --repeats");
    assert_eq!(world.ask("SELECT COUNT(*)")[0]["count"], 21);
}
