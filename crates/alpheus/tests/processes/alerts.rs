//! The alerts of `deploy/prometheus` name metrics that a live service exports.

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
fn the_service_exports_what_alerts_look_at() {
    let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/alerts.yaml");
    let alerts = std::fs::read_to_string(alerts).unwrap();
    let (place, listen) = (Site::new(), free_address());
    let mut server = Process::start(place.command(&["server"]).args([
        "--identity",
        "pki/service",
        "--schema",
        "schema.yaml",
        "--state",
        "run/service",
        "--api",
        &free(),
        "--listen",
        &listen.to_string(),
    ]));
    // By then it has all its metrics.
    server.wait_for_prefix("serving at ");
    let (status, metrics) = get(listen, "/metrics").unwrap();
    assert_eq!(status, 200);
    // A counter without a reason yet shows its name without what all counters end in.
    let exported = named(&metrics);
    let is_exported = |name: &&str| {
        exported.contains(*name)
            || name.strip_suffix("_total").is_some_and(|it| exported.contains(it))
    };
    let missing: Vec<_> = named(&alerts).into_iter().filter(|name| !is_exported(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {metrics}");
}
