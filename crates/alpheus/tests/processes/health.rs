//! Health that tells the truth of a live service: a disk that hangs or is full, who may read metrics, and what
//! refusals look like.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{Site, free, until};
use crate::common::machine;
use crate::common::{Process, free_address, get, in_some_attempt};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::probe::{ProbeAnswer, ProbeError};
use alpheus_node::network::role::Role;
use alpheus_streams::links;
use alpheus_streams::wire::{Receipt, Upload};
use alpheus_test_support::skip;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

/// A service, which serves its health at an address of its own too.
fn service(place: &Site, api: &str) -> (Process, SocketAddr) {
    let listen = free_address();
    let health = listen.to_string();
    let files = ["--identity", "pki/service", "--schema", "schema.yaml", "--state", "run/service"];
    let rest = ["--api", api, "--listen", &health];
    let mut process =
        Process::start(&mut place.command(&[&["server"], &files[..], &rest].concat()));
    process.wait_for_prefix("serving at ");
    process.wait_healthy(listen);
    (process, listen)
}

/// The parts that failed, and what is said of them.
fn failed(listen: SocketAddr) -> (u16, Vec<String>, String) {
    let (status, body) = get(listen, "/healthz").unwrap();
    let report: serde_json::Value = serde_json::from_str(&body).unwrap();
    let parts = report["parts"].as_object().unwrap();
    let parts = parts.iter().filter(|(_, state)| *state == "failed");
    (status, parts.map(|(part, _)| part.clone()).collect(), report["notes"].to_string())
}

/// How long a flush of the disk takes.
fn flush_seconds(metrics: &str) -> f64 {
    let took = metrics.lines().find_map(|line| line.strip_prefix("alpheus_disk_flush_seconds "));
    took.unwrap().parse().unwrap()
}

#[test]
fn a_disk_that_hangs_or_is_full_shows_and_the_process_stays_alive() {
    let place = Site::new();
    let (mut process, listen) = service(&place, &free());
    let beat = place.path("run/service/heartbeat");
    until("a heartbeat", || beat.exists().then_some(()));
    // Who opens a pipe that nobody reads waits.
    fs::remove_file(&beat).unwrap();
    until("a disk that hangs", || {
        let _ = fs::remove_file(&beat);
        Command::new("mkfifo").arg(&beat).status().unwrap().success().then_some(())
    });
    let note = until("a failed disk", || {
        let (status, parts, notes) = failed(listen);
        (status == 503 && parts == ["disk"]).then_some(notes)
    });
    assert!(note.contains("a flush of the disk has not returned for"), "{note}");
    assert_eq!(get(listen, "/readyz").unwrap().0, 503);
    assert_eq!(get(listen, "/livez").unwrap(), (200, r#"{"alive":true}"#.to_owned()));
    let metrics = get(listen, "/metrics").unwrap().1;
    assert!(flush_seconds(&metrics) > 5.0, "{metrics}");
    // Once somebody reads it, the disk answers again, although a pipe cannot be flushed.
    let reader = fs::File::options().read(true).write(true).open(&beat).unwrap();
    until("a disk that answers", || {
        let notes = failed(listen).2;
        (!notes.contains("has not returned")).then_some(())
    });
    fs::remove_file(&beat).unwrap();
    process.wait_healthy(listen);
    drop(reader);

    let _ = fs::remove_file(&beat);
    until("a disk that is full", || {
        let _ = fs::remove_file(&beat);
        symlink("/dev/full", &beat).ok()
    });
    let note = until("no room", || {
        let (status, parts, notes) = failed(listen);
        (status == 503 && parts == ["space"]).then_some(notes)
    });
    assert!(note.contains("the disk is full"), "{note}");
    fs::remove_file(&beat).unwrap();
    process.wait_healthy(listen);
}

/// Commits wait for a disk that hangs. Nobody who asks how things are does.
#[test]
fn while_a_commit_hangs_the_process_says_so() {
    if !skip::has_program("cc") {
        return;
    }
    let (place, api) = (machine::fragile(Site::new().watched()), free());
    let _service = place.server(&api);
    let (listen, slow) = (place.health("run/service"), place.path("service.slow"));
    fs::write(&slow, "3600000").unwrap();
    let identity = IdentityFolder::open(&place.path("pki/meter-a"), Role::Producer).unwrap();
    let device = BlockingClient::new(&format!("https://{api}"), Role::Server, &identity).unwrap();
    let commit = std::thread::spawn(move || {
        device.call::<Receipt>("/v1/events", &Vec::<Upload>::new(), Duration::from_secs(300))
    });
    until("a commit that hangs", || {
        assert_eq!(get(listen, "/livez").unwrap().0, 200);
        (flush_seconds(&get(listen, "/metrics").unwrap().1) > 2.0).then_some(())
    });
    assert!(!commit.is_finished());
    fs::write(&slow, "0").unwrap();
    commit.join().unwrap().unwrap();
}

/// A probe waits for a few seconds only: nothing if there is no answer in that time.
fn asked(place: &Site, api: &str, folder: &str, role: Role, path: &str) -> Option<ProbeAnswer> {
    let identity = IdentityFolder::open(&place.path(folder), role).unwrap();
    let service = links::service(&format!("https://{api}"), &identity).unwrap();
    match service.http().probe().get(path) {
        Err(ProbeError::Silent) => None,
        answer => Some(answer.unwrap()),
    }
}

#[test]
fn metrics_at_the_port_of_devices_and_owners_are_for_operators_and_refusals_are_problems() {
    // Requests are counted, so none can be sent again.
    in_some_attempt("answers to all probes", metrics_and_refusals);
}

fn metrics_and_refusals() -> Option<()> {
    let (place, api) = (Site::new(), free());
    place.issue("operator", "watch");
    let (_process, listen) = service(&place, &api);
    let of = |folder: &str, role, path: &str| asked(&place, &api, folder, role, path);
    for (folder, role) in [
        ("pki/meter-a", Role::Producer),
        ("pki/owner-a", Role::Owner),
        ("pki/analyst", Role::Consumer),
        ("pki/host-a", Role::Controller),
    ] {
        let answer = of(folder, role, "/metrics")?;
        assert_eq!(answer.status, 403, "{folder}");
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem["rule"], "role");
        assert_eq!(of(folder, role, "/healthz")?.status, 200, "health is for all");
        assert_eq!(of(folder, role, "/v1/diagnosis")?.status, 403, "{folder}");
    }
    let metrics = of("pki/watch", Role::Operator, "/metrics")?;
    let text = String::from_utf8(metrics.body).unwrap();
    for name in [
        "alpheus_requests_total{request=\"diagnosis\",status=\"403\"} 4",
        "alpheus_refusals_total{reason=\"role\"} 4",
        "alpheus_request_seconds_bucket",
        "alpheus_engine_waiting ",
        "alpheus_stream_hosts ",
        "alpheus_stream_hosts_active ",
        "alpheus_process_cpu_seconds_total ",
        "alpheus_process_resident_bytes ",
        "alpheus_process_open_files ",
        "alpheus_disk_free_bytes ",
    ] {
        assert!(text.contains(name), "no {name} in {text}");
    }
    assert_eq!(get(listen, "/metrics").unwrap().0, 200, "at an address of its own for all");
    let diagnosis = of("pki/watch", Role::Operator, "/v1/diagnosis")?;
    assert_eq!((diagnosis.status, diagnosis.build.as_deref()), (200, Some(alpheus_node::BUILD)));
    let said: serde_json::Value = serde_json::from_slice(&diagnosis.body).unwrap();
    assert_eq!(said["findings"], serde_json::json!([]));
    // Of a path that is not there, and of a method that a path does not have.
    for path in ["/v1/nothing", "/v1/statements"] {
        let answer = of("pki/analyst", Role::Consumer, path)?;
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(problem["rule"].is_string() && problem["status"] == answer.status, "{problem}");
    }
    Some(())
}
