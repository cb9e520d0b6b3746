//! The alerts and the dashboard in `deploy` name metrics that live processes export.

use crate::common::deployment::{Site, free};
use crate::common::{Process, free_address, get};
use std::collections::BTreeSet;
use std::path::Path;

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("alpheus_")).collect()
}

#[test]
fn the_service_and_a_host_export_what_alerts_look_at() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files = ["prometheus/alerts.yaml", "grafana/alpheus.json"];
    let alerts = files.map(|file| std::fs::read_to_string(deploy.join(file)).unwrap()).concat();
    let (place, api) = (Site::new(), free());
    let (listen, host_listen) = (free_address(), free_address());
    let files = ["--identity", "pki/service", "--schema", "schema.yaml", "--state", "run/service"];
    let health = listen.to_string();
    let at = ["--api", &api, "--listen", &health];
    let mut server = Process::start(&mut place.command(&[&["server"], &files[..], &at].concat()));
    // By then it has all its metrics.
    server.wait_for_prefix("serving at ");
    let files = ["--identity", "pki/host-a", "--schema", "schema.yaml", "--state", "run/host-a"];
    let (service, host_api, health) = (format!("https://{api}"), free(), host_listen.to_string());
    let at = ["--server", &service, "--api", &host_api, "--listen", &health, "--key-file", "key"];
    let run = [&["controller", "run"], &files[..], &at].concat();
    let mut host = Process::start(&mut place.command(&run));
    host.wait_for_prefix("serving at ");
    // Families show their names with their first member.
    assert!(!place.ask(&service, "DROP STREAM Nothing").status.success());
    let metrics = [listen, host_listen].map(|at| get(at, "/metrics").unwrap().1).concat();
    // A counter without a reason yet shows its name without what all counters end in.
    let exported = named(&metrics);
    let is_exported = |name: &&str| {
        exported.contains(*name)
            || ["_total", "_bucket"]
                .iter()
                .any(|end| name.strip_suffix(end).is_some_and(|it| exported.contains(it)))
    };
    // Workers need Kafka: their tests read what they export.
    let of_workers = |name: &&str| name.starts_with("alpheus_worker_");
    let looked_at = named(&alerts).into_iter().filter(|name| !of_workers(name));
    let missing: Vec<_> = looked_at.filter(|name| !is_exported(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {metrics}");
}
