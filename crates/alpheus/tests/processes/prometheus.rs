//! The queries of the dashboard and the alerts in `deploy`, answered by a real Prometheus that
//! watches a service and a host while windows open. Grafana itself is not tried.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{QUERY, Site, free, until, until_or};
use crate::common::{Process, free_address, get};
use alpheus_test_support::skip;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Metrics of things that do not happen here, and why. Queries about them may find nothing.
const QUIET: &[(&str, &str)] = &[("alpheus_part_failed", "all parts are ready")];

/// Alerts that are raised later than a minute after their faults, on purpose.
const WAITING: &[&str] = &[
    "AlpheusEventTimeStands",
    "AlpheusFramesRefused",
    "AlpheusPartitionsIdle",
    "AlpheusWorkerFramesRefused",
];

pub(crate) struct Prometheus {
    address: SocketAddr,
    _process: Process,
}

impl Prometheus {
    /// Starts one with this configuration. It keeps its data in the folder.
    pub(crate) fn start(folder: &Path, config: &str) -> Prometheus {
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let address = free_address();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()));
        command.arg(format!("--web.listen-address={address}"));
        let prometheus = Prometheus { address, _process: Process::start(&mut command) };
        until("a Prometheus that is ready", || {
            get(address, "/-/ready").filter(|(status, _)| *status == 200)
        });
        prometheus
    }

    /// Starts one that looks at both addresses each second, with the alerts' rules.
    fn of(folder: &Path, service: SocketAddr, host: SocketAddr) -> Prometheus {
        let job = |name: &str, at: SocketAddr| {
            format!("  - {{ job_name: {name}, static_configs: [{{ targets: ['{at}'] }}] }}\n")
        };
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: ['{}']\nscrape_configs:\n{}{}",
            deploy("prometheus/alerts.yaml").display(),
            job("alpheus-service", service),
            job("alpheus-host", host)
        );
        Prometheus::start(folder, &config)
    }

    /// What it answers, which is a success.
    pub(crate) fn ask(&self, path: &str) -> Value {
        let (status, body) = get(self.address, path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        let answer: Value = serde_json::from_str(body_of(&body)).unwrap();
        assert_eq!(answer["status"], "success", "{path}: {body}");
        answer["data"].clone()
    }

    /// How many series a query finds now.
    pub(crate) fn finds(&self, query: &str) -> usize {
        let answer = self.ask(&format!("/api/v1/query?query={}", escaped(query)));
        answer["result"].as_array().unwrap().len()
    }
}

/// The object in a body that may come in chunks.
fn body_of(body: &str) -> &str {
    let (from, to) = (body.find('{').unwrap_or(0), body.rfind('}').map_or(body.len(), |at| at + 1));
    &body[from..to]
}

fn escaped(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

pub(crate) fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name).canonicalize().unwrap()
}

/// The queries of all panels, of all instances.
fn queries() -> Vec<String> {
    let dashboard = std::fs::read_to_string(deploy("grafana/alpheus.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$instance", ".*")).collect()
}

/// Seconds of readings, all sent at once, from the next seconds on.
fn readings(place: &Site, seconds: u64) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let line = |second: u64| format!("{{\"reading\": 1, \"at\": {}500}}\n", now + 4 + second);
    let lines = place.path("a.json");
    std::fs::write(&lines, (0..seconds).map(line).collect::<String>()).unwrap();
    lines
}

/// A service and a host, whose windows open.
struct WatchedService {
    service: SocketAddr,
    host: SocketAddr,
    place: Site,
    _processes: Vec<Process>,
}

impl WatchedService {
    fn start() -> WatchedService {
        let (place, api, own) = (Site::new().that_waits(), free(), free());
        let (service, host) = (free_address(), free_address());
        let server = format!("https://{api}");
        let run = |words: &[&str], health: SocketAddr| {
            let (files, health) = (["--schema", "schema.yaml", "--listen"], health.to_string());
            let mut command = place.command(&[words, &files[..], &[&health]].concat());
            let mut process = Process::start(&mut command);
            process.wait_for_prefix("serving at ");
            process
        };
        let words = "server --identity pki/service --state run/service --idle-timeout 30 --api";
        let words: Vec<&str> = words.split(' ').chain([api.as_str()]).collect();
        let mut processes = vec![run(&words, service)];
        let words =
            "controller run --identity pki/host-a --state run/host-a --key-file key --server";
        let words: Vec<&str> =
            words.split(' ').chain([server.as_str(), "--api", own.as_str()]).collect();
        processes.push(run(&words, host));
        place.add_stream("a", &own);
        let query = format!("{QUERY} BETWEEN 1 AND 100");
        until("a stream at the service", || {
            place.ask(&server, &format!("EXPLAIN {query}")).status.success().then_some(())
        });
        assert!(place.ask(&server, &query).status.success());
        // Families of refusals show their names with their first member.
        assert!(!place.ask(&server, "DROP STREAM Nothing").status.success());
        processes.push(place.device("a", &server, &readings(&place, 40)));
        WatchedService { service, host, place, _processes: processes }
    }
}

#[test]
fn a_real_prometheus_answers_what_the_dashboard_and_the_alerts_ask() {
    if !skip::has_program("prometheus") {
        return;
    }
    let watched = WatchedService::start();
    let prometheus = Prometheus::of(&watched.place.path(""), watched.service, watched.host);
    let queries = queries();
    assert!(queries.len() > 20);
    let is_quiet = |query: &&String| QUIET.iter().any(|(metric, _)| query.contains(metric));
    // Prometheus understands each query, also those that find nothing.
    let empty = || -> Vec<&String> {
        let empty = queries.iter().filter(|query| prometheus.finds(query) == 0);
        empty.filter(|query| !is_quiet(query)).collect()
    };
    until_or(|| format!("nothing found by {:?}", empty()), || empty().is_empty().then_some(()));
    // What the dashboard's variable lists.
    let instances = prometheus.ask("/api/v1/label/instance/values?match[]=alpheus_build_info");
    assert_eq!(instances.as_array().unwrap().len(), 2, "{instances}");
    let all = until("all alerts evaluated", || {
        let all = healths(&prometheus.ask("/api/v1/rules"));
        all.iter().all(|(_, health)| health != "unknown").then_some(all)
    });
    assert!(all.len() > 20 && all.iter().all(|(_, health)| health == "ok"), "{all:?}");
}

/// Each alert is raised at its fault, and none without one.
#[test]
fn the_alerts_are_raised_at_their_faults() {
    if !skip::has_program("promtool") {
        return;
    }
    for (what, file) in
        [("check", "prometheus/alerts.yaml"), ("test", "prometheus/alerts_test.yaml")]
    {
        let ran =
            Command::new("promtool").args([what, "rules"]).arg(deploy(file)).output().unwrap();
        let (said, errors) = (ran.stdout, ran.stderr);
        let said = [said, errors].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(ran.status.success(), "{said}");
    }
    let (rules, tests) = (deploy("prometheus/alerts.yaml"), deploy("prometheus/alerts_test.yaml"));
    let tests = std::fs::read_to_string(tests).unwrap();
    let rules = std::fs::read_to_string(rules).unwrap();
    let mut alert = "";
    for line in rules.lines() {
        if let Some(next) = line.trim().strip_prefix("- alert: ") {
            alert = next;
            let waits = ["AlpheusEventTimeStands", "AlpheusFramesRefused"];
            let is_tested = tests.contains(&format!("- name: {alert}\n")) || waits.contains(&alert);
            assert!(is_tested, "no test of {alert}");
        }
        // Beside the look and the evaluation, which may take half a minute.
        if let Some(stays) = line.trim().strip_prefix("for: ") {
            assert!(stays == "15s" || WAITING.contains(&alert), "{alert} waits for {stays}");
        }
    }
}

/// The names of all rules, and how their last evaluation went.
fn healths(rules: &Value) -> Vec<(String, String)> {
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules.map(|rule| (text(rule, "name"), text(rule, "health"))).collect()
}
