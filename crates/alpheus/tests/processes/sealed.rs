//! `RELEASE TO`: only the named consumer reads results, over processes and embedded.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::deployment::{QUERY, RunningSite, until};
use crate::common::embedded_replay::Scene;
use crate::common::published_rows::of_window;
use crate::common::recording::{QUERY as RECORDED, Recording};
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::consumer::{ConsumerSecrets, SealedSum};
use alpheus_encrypted_stream::error::UnsealError;
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::pki::read_seed;
use alpheus_stream_runtime::embedded_deployment::{Controllers, Stores};
use alpheus_stream_runtime::results::{Row, SealedResult};
use alpheus_streams::deployment::{self, CONSUMER_SEED};
use alpheus_streams::deployment::{CONSUMER_CERTIFICATE, from_hex};
use alpheus_test_support::vectors::bytes_of as bytes;
use alpheus_transport::local;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

fn folder(running: &RunningSite, name: &str) -> IdentityFolder {
    IdentityFolder::open(&running.place.path(&format!("pki/{name}")), Role::Consumer).unwrap()
}

/// What the service hands out to anyone who asks as this consumer.
fn raw(running: &RunningSite, name: &str, path: &str) -> Result<Value, RequestError> {
    let client =
        BlockingClient::new(&running.server, Role::Server, &folder(running, name)).unwrap();
    client.get_json(path, Duration::ZERO)
}

#[test]
fn only_the_consumer_that_asked_reads_the_rows() {
    let mut running = RunningSite::start();
    running.place.issue("consumer", "eve");
    let sealed = format!("{QUERY} RELEASE TO analyst");
    in_anothers_name(&running, &sealed);
    let explained = running.place.ask(&running.server, &format!("EXPLAIN {sealed}"));
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(said.contains("analyst alone, with its own key"), "{said}");
    let asked = running.place.ask(&running.server, &sealed);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let devices = running.feed();
    let row = running.row(3);
    assert_eq!((row["sum_reading"].as_str(), row["count_reading"].as_u64()), (Some("12"), Some(6)));
    assert!(row.get("sealed").is_none(), "it is as if it had never been sealed");
    until("two windows that opened", || {
        let rows = running.place.rows(&running.server);
        (rows.iter().filter(|row| row["count_reading"].is_number()).count() > 1).then_some(())
    });
    drop(devices);
    let (row, sum) = handed_out(&running);
    others_read_nothing(&running, &row, &sum);
    let log = running.owner(0, "log");
    assert!(log.contains("`analyst`, and not the service, got `Readings`"), "{log}");
    without_keys(&running);
    lies(&mut running, &row);
    // What was sealed stays readable when the query has gone, also after a restart.
    running.place.ask(&running.server, "DROP STREAM Readings");
    let csv = query(&running, "pki/analyst", "csv");
    let header = csv.lines().next().unwrap();
    assert!(!header.contains("sealed") && csv.lines().any(|line| line.contains(",12,")), "{csv}");
}

fn query(running: &RunningSite, identity: &str, format: &str) -> String {
    running.place.done(&[
        "query",
        "--server",
        &running.server,
        "--identity",
        identity,
        "--results",
        "Readings",
        "--format",
        format,
    ])
}

/// Eve asks for what only the analyst may read, or shows the analyst's certificate.
fn in_anothers_name(running: &RunningSite, sealed: &str) {
    let ask = |identity: &str| {
        let reach = ["query", "--server", &running.server, "--identity", identity, "--query"];
        let refused = running.place.run(&[&reach[..], &[sealed]].concat());
        (refused.status.code(), String::from_utf8(refused.stderr).unwrap())
    };
    let (code, said) = ask("pki/eve");
    assert!(code == Some(3) && said.contains("only `analyst` itself can request"), "{said}");
    let client =
        BlockingClient::new(&running.server, Role::Server, &folder(running, "eve")).unwrap();
    let stolen = std::fs::read_to_string(running.place.path("pki/analyst/consumer.txt")).unwrap();
    for (certificate, rule) in [(stolen.trim(), "certificate"), ("00", "malformed")] {
        let body = serde_json::json!({ "sql": sealed, "certificate": certificate });
        let refused = client.post_json::<Value>("/v1/statements", &body);
        let Err(RequestError::Refused(problem)) = refused else { panic!("{certificate}") };
        assert_eq!(problem.rule, rule, "{problem}");
    }
}

/// The rows of the HTTP API hold no value.
fn handed_out(running: &RunningSite) -> (Value, SealedSum) {
    let answer = raw(running, "analyst", "/v1/queries/Readings/results?after=0").unwrap();
    let rows = answer["rows"].as_array().unwrap();
    for row in rows {
        assert!(row["sum_reading"].is_null() && row["count_reading"].is_null(), "{row}");
        assert_eq!(row["sealed"]["to"], "analyst");
    }
    let row = rows.iter().find(|row| row["population"] == 3 && row["status"] == "ok").unwrap();
    let sum = SealedSum::from_bytes(&bytes(&row["sealed"]["sum"])).unwrap();
    assert!(sum.words.iter().all(|word| *word > 1000), "words are as good as random");
    (row.clone(), sum)
}

/// Not by asking, and not with the row and the plan in hand.
fn others_read_nothing(running: &RunningSite, row: &Value, sum: &SealedSum) {
    let plan = format!("/v1/queries/Readings/plans/{}", sum.plan);
    for path in ["/v1/queries/Readings/results?after=0", &plan] {
        let Err(RequestError::Refused(problem)) = raw(running, "eve", path) else {
            panic!("{row}")
        };
        assert_eq!(problem.status, 404, "{problem}");
    }
    let answer = raw(running, "analyst", &plan).unwrap();
    let signed: Signed<Announcement> =
        postcard::from_bytes(&bytes(&answer["announcement"])).unwrap();
    let deployment = deployment::of(&folder(running, "eve")).unwrap();
    let announced = Arc::new(AnnouncedPlan::open(&signed, &deployment).unwrap());
    let reader = |name: &str| {
        let folder = folder(running, name);
        let seed = read_seed(&folder.path(CONSUMER_SEED)).unwrap();
        let text = std::fs::read_to_string(folder.path(CONSUMER_CERTIFICATE)).unwrap();
        let certificate: Signed<Certificate> = from_hex(&text).unwrap();
        let consumer = ConsumerSecrets::from_seed(&seed).certified(&certificate, &deployment);
        consumer.unwrap().reader(&announced)
    };
    assert_eq!(reader("eve").err(), Some(UnsealError::OtherConsumer));
    assert_eq!(reader("analyst").unwrap().open(sum).unwrap().last(), Some(&0));
}

/// A folder of an earlier version, or one whose keys are lost, says why it reads nothing.
fn without_keys(running: &RunningSite) {
    let move_keys = |from: &str, to: &str| {
        for file in [CONSUMER_CERTIFICATE, CONSUMER_SEED] {
            let path = |place: &str| running.place.path(&format!("{place}{file}"));
            std::fs::rename(path(from), path(to)).unwrap();
        }
    };
    move_keys("pki/analyst/", "kept-");
    let rows = query(running, "pki/analyst", "json");
    assert!(rows.contains("has no consumer.txt") && !rows.contains("\"12\""), "{rows}");
    move_keys("kept-", "pki/analyst/");
    until("keys that are back", || {
        query(running, "pki/analyst", "json").contains("\"12\"").then_some(())
    });
}

/// The service publishes rows of an honest one's window: plain numbers where sealed ones must be, and the
/// sealed sum of another window.
fn lies(running: &mut RunningSite, honest: &Value) {
    publish_lies(running, honest);
    let rows = running.place.rows(&running.server).into_iter();
    let [first, plain, empty, moved, closed] = of_window(rows, honest);
    assert_eq!(first["sum_reading"], "12");
    for row in [&plain, &empty] {
        assert!(
            row["status"]
                .as_str()
                .unwrap()
                .starts_with("refused: the service says that the row is not sealed"),
            "{row}"
        );
    }
    assert_eq!(
        moved["status"],
        "refused: the sealed result is for a different window, group or query from the row's"
    );
    assert_eq!(closed["status"], "late");
    for row in [&plain, &empty, &moved, &closed] {
        assert!(row["sum_reading"].is_null() && row["count_reading"].is_null(), "{row}");
    }
}

/// Writes them into the stopped service's store.
fn publish_lies(running: &mut RunningSite, honest: &Value) {
    running.publish(|stored| {
        let is_honest = |row: &&Row| Some(row.window_start) == honest["window_start"].as_u64();
        let row = stored.iter().find(is_honest).unwrap();
        let has_sum = |row: &&Row| row.sealed.as_ref().is_some_and(|sealed| sealed.sum.is_some());
        let other = stored.iter().filter(has_sum).find(|row| !is_honest(row)).unwrap();
        let mut plain = row.clone();
        plain.outputs[0].1 = "999".into();
        let sealed = SealedResult { to: "analyst".to_owned(), sum: None };
        let empty = Row { sealed: Some(sealed), ..plain.clone() };
        let closed = Row { status: "late".to_owned(), sealed: None, ..plain.clone() };
        let plain = Row { sealed: None, ..plain };
        let moved = Row { sealed: other.sealed.clone(), ..row.clone() };
        vec![plain, empty, moved, closed]
    });
}

/// One process plays the consumer too, and gives the rows that it would give unsealed.
#[test]
fn an_embedded_consumer_reads_what_its_service_cannot() {
    let recording = Recording::made(4, 20);
    let mut lives = Vec::new();
    for release_to in ["", " RELEASE TO 'workshop.example'"] {
        for controllers in [Controllers::Count(1), Controllers::PerOwner] {
            let mut scene = Scene::new(&recording, controllers);
            scene.query = format!("{}{release_to}", RECORDED.trim_end_matches([';', '\n']));
            let folder = tempfile::tempdir().unwrap();
            let open =
                |name| local::open(&folder.path().join(name), &local::Options::default()).unwrap();
            let stores = Stores {
                service: open("service"),
                private: open("private"),
                fence: folder.path().join("fence"),
            };
            let mut life = scene.wake(stores, 1).unwrap();
            assert!(life.feed(|| Some(8)).unwrap());
            let seen = life.embedded.manager.service.results().unwrap();
            let hides = |row: &alpheus_stream_runtime::results::Row| {
                row.outputs.iter().all(|(_, value)| value.is_null()) && row.sealed.is_some()
            };
            assert!(!seen.is_empty() && seen.iter().all(|row| hides(row) != release_to.is_empty()));
            let mut rows = life.embedded.results().unwrap();
            alpheus_stream_runtime::results::sort(&mut rows);
            assert!(rows.iter().all(|row| row.sealed.is_none() && row.status == "ok"));
            lives.push(rows.into_iter().map(|row| row.outputs).collect::<Vec<_>>());
        }
    }
    assert!(lives.iter().all(|rows| *rows == lives[0]), "{lives:?}");
}
