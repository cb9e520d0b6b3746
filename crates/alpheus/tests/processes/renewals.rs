//! Certificates that are renewed while processes run: new connections show the new one, open ones
//! go on, and no process restarts.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::clock::{faketime, set_clock};
use crate::common::deployment::{free, until};
use crate::common::tls::{self, Connection};
use crate::common::{self, Process, alpheus};
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::{CERTIFICATE, IdentityFolder};
use alpheus_node::network::role::Role;
use alpheus_node::network::{base::Base, peer::ExpectedPeer};
use alpheus_node::pki::read_certificate;
use alpheus_node::service::expiry::seconds_left;
use alpheus_node::service::http::Peer;
use axum::routing::get;
use axum::{Extension, Json, Router};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A PKI whose certificates end in a day.
fn pki() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), &["ca", "init", "pki"]);
    for (role, name) in [("server", "service"), ("producer", "meter"), ("operator", "watch")] {
        done(folder.path(), &["ca", "issue", "pki", "--role", role, "--name", name, "--days", "1"]);
    }
    folder
}

fn done(folder: &Path, args: &[&str]) {
    common::ended_well(alpheus(args.iter().copied()).current_dir(folder));
}

fn renew(folder: &Path, name: &str, days: &str) {
    done(folder, &["ca", "renew", "pki", &format!("pki/{name}"), "--days", days]);
}

/// A service that says what it does.
fn service(folder: &Path, api: &str) -> Process {
    serving(&mut service_command(folder, api))
}

fn service_command(folder: &Path, api: &str) -> Command {
    std::fs::write(folder.join("schema.yaml"), common::deployment::SCHEMA).unwrap();
    let args = ["--log", "info", "server", "--identity", "pki/service", "--schema", "schema.yaml"];
    let mut command = alpheus(args.into_iter().chain(["--state", "state", "--api", api]));
    command.current_dir(folder);
    command
}

fn serving(command: &mut Command) -> Process {
    let mut service = Process::start(command);
    service.wait_for_prefix("serving at ");
    service
}

/// Connects to the service as an operator, who may read metrics, or as a stranger.
fn connect(folder: &Path, api: &str, known: bool) -> Connection {
    let own = folder.join("pki/watch");
    if known { tls::connect(&own, api) } else { tls::connect_as_stranger(&own, api) }
}

/// What `/metrics` says over a connection that stays open.
fn metrics(connection: &mut Connection) -> String {
    asked(connection).unwrap()
}

/// Waits for something. The service closes connections that say nothing meanwhile.
fn until_open(open: &mut Connection, what: &str, found: impl Fn() -> bool) {
    until(what, || {
        metrics(open);
        found().then_some(())
    });
}

fn asked(connection: &mut Connection) -> io::Result<String> {
    write!(connection, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    connection.flush()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    let head = String::from_utf8(answer).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap();
    let mut text = vec![0; length.parse().unwrap()];
    connection.read_exact(&mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

/// The certificate at the other end of a new connection.
fn shown(folder: &Path, api: &str) -> Vec<u8> {
    let mut connection = connect(folder, api, true);
    metrics(&mut connection);
    connection.conn.peer_certificates().unwrap()[0].to_vec()
}

/// For how many days a process's certificate is valid, by its metrics.
pub(crate) fn days_left(metrics: &str) -> f64 {
    let line = metrics.lines().find(|line| line.starts_with("alpheus_certificate_days_left "));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_service_shows_a_renewed_certificate_without_a_restart() {
    let place = pki();
    let (folder, api) = (place.path(), free());
    let mut service = service(folder, &api);
    let file = folder.join("pki/service").join(CERTIFICATE);
    let before = read_certificate(&file).unwrap();
    assert_eq!(shown(folder, &api), before);
    let mut open = connect(folder, &api, true);
    assert!(days_left(&metrics(&mut open)) <= 1.0);
    let again = |log: String| log.matches("the TLS files were read again").count();
    // The file changes.
    renew(folder, "service", "200");
    let after = read_certificate(&file).unwrap();
    assert_ne!(before, after);
    until_open(&mut open, "the renewed certificate", || shown(folder, &api) == after);
    assert!(days_left(&metrics(&mut open)) > 199.0, "the old connection goes on");
    until("a line in the log", || (again(service.log()) == 1).then_some(()));

    // SIGHUP: everything is read again, although nothing has changed.
    service.hang_up_alone();
    until_open(&mut open, "another line in the log", || again(service.log()) == 2);

    // A file that is damaged changes nothing.
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "none").unwrap();
    let complains = |of: &str| service.log().contains(of);
    until_open(&mut open, "a complaint", || complains("cannot be used"));
    assert_eq!(shown(folder, &api), after);
    let health = || common::get_over(connect(folder, &api, true), "/healthz").unwrap().1;
    assert!(health().contains("stay in use"), "{}", health());
    let failed = |yes: u8| format!("alpheus_certificate_reload_failed {yes}\n");
    assert!(metrics(&mut open).contains(&failed(1)));

    // What is said is said of the certificate in use, and not of another party's in the file.
    std::fs::copy(folder.join("pki/meter").join(CERTIFICATE), &file).unwrap();
    until_open(&mut open, "another complaint", || complains("not the key of"));
    let said = metrics(&mut open);
    assert!(days_left(&said) > 199.0 && said.contains(&failed(1)), "{said}");
    std::fs::write(&file, good).unwrap();
    until("all is well", || metrics(&mut open).contains(&failed(0)).then_some(()));
    assert!(!health().contains("stay in use"), "{}", health());

    // Who is refused hears nothing more than that; the log says why.
    assert!(common::get_over(connect(folder, &api, false), "/metrics").is_none());
    service.wait_for("refusal", |line| {
        (line.contains("a TLS handshake was refused") && line.contains("no certificate"))
            .then_some(())
    });
}

#[test]
fn a_client_shows_a_renewed_certificate_on_new_connections() {
    let place = pki();
    let folder = place.path();
    let meter = IdentityFolder::open(&folder.join("pki/meter"), Role::Producer).unwrap();
    let whoami = |Extension(peer): Extension<Peer>| async move {
        Json(peer.certificate.map(|der| der.to_vec()).unwrap_or_default())
    };
    let service = IdentityFolder::open(&folder.join("pki/service"), Role::Server).unwrap();
    let routes = Router::new().route("/", get(whoami));
    let (_serving, base) = common::route_server::serve(&service.tls(), routes);
    let base = Base::parse(&base).unwrap();
    let client = HttpClient::identified(base, ExpectedPeer::from(Role::Server), &meter).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let seen = |client: &HttpClient| -> Vec<u8> {
        runtime.block_on(client.get_json("/", Duration::ZERO)).unwrap()
    };
    let file = folder.join("pki/meter").join(CERTIFICATE);
    let before = read_certificate(&file).unwrap();
    assert_eq!(seen(&client), before);
    renew(folder, "meter", "30");
    let after = read_certificate(&file).unwrap();
    // An unlinked client has connections of its own.
    until("the renewed certificate", || (seen(&client.unlinked()) == after).then_some(()));
    assert_eq!(seen(&client), before, "the old connection goes on");
}

/// Timers stand still while a machine sleeps, and do not know of a clock that is set.
#[test]
fn an_open_connection_ends_with_its_certificate_after_the_clock_was_set() {
    let Some(library) = faketime() else { return };
    let place = pki();
    let (folder, api) = (place.path(), free());
    let clock = folder.join("service.clock");
    std::fs::write(&clock, "+0").unwrap();
    let mut command = service_command(folder, &api);
    set_clock(&mut command, &library, &clock);
    let mut service = serving(&mut command);
    let mut open = connect(folder, &api, true);
    metrics(&mut open);
    std::fs::write(&clock, "+2d").unwrap();
    // One that says nothing would be closed all the same.
    until("an end", || asked(&mut open).is_err().then_some(()));
    assert!(!service.has_ended());
}

#[test]
fn certificates_are_issued_and_renewed_for_hours() {
    let place = pki();
    let (folder, file) = (place.path(), place.path().join("pki/brief").join(CERTIFICATE));
    let issue = ["ca", "issue", "pki", "--role", "producer", "--name", "brief", "--hours"];
    done(folder, &[&issue[..], &["1"]].concat());
    let minutes = || seconds_left(&file).unwrap() / 60;
    assert!((50..=60).contains(&minutes()), "{}", minutes());
    done(folder, &["ca", "renew", "pki", "pki/brief", "--hours", "2"]);
    assert!((110..=120).contains(&minutes()), "{}", minutes());
    let both = ["ca", "renew", "pki", "pki/brief", "--hours", "2", "--days", "1"];
    let refused = alpheus(both).current_dir(folder).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn a_revoked_certificate_is_not_renewed() {
    let place = pki();
    let folder = place.path();
    done(folder, &["ca", "revoke", "pki", "pki/meter/tls.pem"]);
    let args = ["ca", "renew", "pki", "pki/meter"];
    let refused = alpheus(args).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("is revoked"), "{said}");
}

/// An operator who has it read its files again need not know whether it has come so far.
#[test]
fn a_hang_up_while_a_process_starts_does_not_end_it() {
    let place = pki();
    let folder = place.path();
    // It waits for its schema. In a session of its own it has no terminal.
    let pipe = folder.join("schema.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let program = alpheus([]).get_program().to_owned();
    let mut command = Command::new("setsid");
    command.arg(program).args(["server", "--identity", "pki/service", "--schema", "schema.yaml"]);
    command.args(["--state", "state", "--api", &free()]).current_dir(folder);
    let mut service = Process::start(&mut command);
    let mut schema = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    service.hang_up_alone();
    schema.write_all(common::deployment::SCHEMA.as_bytes()).unwrap();
    drop(schema);
    service.wait_for_prefix("serving at ");
}

/// An earlier certificate of the same key would bring the holder of a stolen key back.
#[test]
fn no_certificate_of_a_revoked_key_is_renewed() {
    let place = pki();
    let folder = place.path();
    std::fs::copy(folder.join("pki/meter").join(CERTIFICATE), folder.join("old.pem")).unwrap();
    renew(folder, "meter", "30");
    done(folder, &["ca", "revoke", "pki", "pki/meter/tls.pem"]);
    let before = std::fs::read(folder.join("old.pem")).unwrap();
    let refused = alpheus(["ca", "renew", "pki", "old.pem"]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("key is revoked"), "{said}");
    assert_eq!(std::fs::read(folder.join("old.pem")).unwrap(), before);
    // Nor does the earlier certificate let anybody in.
    let api = free();
    let _service = service(folder, &api);
    let own = folder.join("pki/meter");
    std::fs::write(own.join(CERTIFICATE), before).unwrap();
    let schema = || common::get_over(tls::connect(&own, &api), "/v1/schema").unwrap();
    assert_eq!(schema().0, 200);
    std::fs::copy(folder.join("pki/revoked.txt"), folder.join("pki/service/revoked.txt")).unwrap();
    until("a refusal", || (schema().0 == 401).then_some(()));
}

#[test]
fn revocations_at_the_same_time_are_all_in_the_list() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    done(folder, &["ca", "init", "pki"]);
    let names: Vec<String> = (0..12).map(|number| format!("meter-{number}")).collect();
    let issue = |name: &String| {
        done(folder, &["ca", "issue", "pki", "--role", "producer", "--name", name]);
    };
    names.iter().for_each(issue);
    let revoke = |name: &String| {
        let file = format!("pki/{name}/tls.pem");
        let args = ["ca", "revoke", "pki", &file];
        alpheus(args).current_dir(folder).stdout(Stdio::null()).spawn().unwrap()
    };
    let running: Vec<_> = names.iter().map(revoke).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    for name in &names {
        let args = ["ca", "renew", "pki", &format!("pki/{name}")];
        let refused = alpheus(args).current_dir(folder).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{name} is not revoked");
    }
}
