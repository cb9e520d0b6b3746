//! `alpheus otlp`: metrics that OpenTelemetry's own SDK sends, over all doors and of all kinds, are
//! counted in encrypted windows to the last count, whichever process is killed meanwhile.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{Site, free, until};
use crate::common::{Process, alpheus};
use alpheus_test_support::skip;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/otlp/send.py");

/// The Python with the SDK that `make` installs; otherwise the test is skipped.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(".venv/opentelemetry/bin/python");
    if !path.exists() {
        skip::skip("there is no .venv/opentelemetry (`make .venv/opentelemetry` makes it)");
        return None;
    }
    Some(path)
}

/// Where Java finds its program, which `make broker` builds with the SDK for Java.
fn class_path() -> Option<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../jvm/otlp-program/target/classpath");
    skip::class_path("ALPHEUS_OTLP_PROGRAM_CLASSPATH", default)
}

/// What was recorded, by the names of attributes.
type Totals = BTreeMap<String, f64>;

/// A program that records a batch for each line it reads.
struct Program {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    totals: Totals,
}

impl Program {
    fn start(python: &Path, args: [&str; 4]) -> Program {
        let mut command = Command::new(python);
        command.args(["-B", SCRIPT, "send"]);
        Program::run(command, args)
    }

    /// The same in Java.
    fn start_java(class_path: &str, args: [&str; 4]) -> Program {
        let mut command = Command::new("java");
        let quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"];
        command.args(quick).args(["-cp", class_path, "alpheus.otlp.Program"]);
        Program::run(command, args)
    }

    fn run(mut command: Command, args: [&str; 4]) -> Program {
        command.args(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Program { child, said, totals: Totals::new() }
    }

    /// A batch, whose arrival was confirmed when this returns.
    fn batch(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        self.totals = serde_json::from_str(&line).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The drafted files, with windows that a test can wait for.
fn draft(python: &Path, folder: &Path) -> (String, String) {
    let capture = folder.join("captured.pb");
    let ran = Command::new(python).args(["-B", SCRIPT, "capture"]).arg(&capture).status().unwrap();
    assert!(ran.success());
    let output = folder.join("draft");
    let mut import = alpheus(["otlp", "import", "--name", "Shop"]);
    let ran = import.arg(&capture).arg("--output").arg(&output).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let schema = std::fs::read_to_string(output.join("schema.yaml")).unwrap();
    let options = "clients: [100, 1000], window: [1min, 1hr], missingTicks: 6";
    assert!(schema.contains(options) && schema.contains("tick: 10s"), "{schema}");
    let quick = "clients: [1], window: 30s, alpha: 0, dropout: 1/3, missingTicks: 1000";
    let schema = schema.replace(options, quick).replace("tick: 10s", "tick: 1s");
    (schema, std::fs::read_to_string(output.join("otlp.json")).unwrap())
}

const POLICIES: &str =
    "schema: Shop\nservice: analyst\ndefault: { \"*\": { option: crowd, clients: 1 } }\n";

/// The arguments of the receiver as the guide has them, with the names of this test's files.
fn guides_command(server: &str) -> String {
    let guide = include_str!("../../../../../docs/standards.md");
    let (_, block) = guide.split_once("```console\n$ alpheus otlp ").unwrap();
    let mut command = format!("otlp {}", block.split("\n```").next().unwrap().replace("\\\n", " "));
    for (named, own) in [
        ("pki/till", "pki/meter-a"),
        ("till.json", "a.device"),
        ("run/till", "run/meter-a"),
        ("checkout/schema.yaml", "schema.yaml"),
        ("checkout/otlp.json", "otlp.json"),
        ("https://localhost:7400", server),
    ] {
        assert_eq!(command.matches(named).count(), 1, "{named} in {command}");
        command = command.replace(named, own);
    }
    command
}

struct Receiver(Process);

impl Receiver {
    fn start(place: &Site, server: &str, (http, grpc): (&str, &str)) -> Receiver {
        let command = guides_command(server);
        let words: Vec<&str> = command.split_whitespace().collect();
        let at = ["--http", http, "--grpc", grpc];
        let mut process = Process::start(&mut place.command(&[&words[..], &at].concat()));
        process.wait_for_prefix("OTLP over HTTP at ");
        Receiver(process)
    }
}

fn query(attributes: &[String]) -> String {
    let sums: Vec<String> = attributes.iter().map(|name| format!("SUM({name})")).collect();
    format!(
        "CREATE STREAM Shopped AS SELECT {}, COUNT(temp) WINDOW TUMBLING (SIZE 30 SECONDS, GRACE PERIOD 1 SECONDS) FROM Shop BETWEEN 1 AND 100",
        sums.join(", ")
    )
}

/// The sums over all released windows.
fn released(place: &Site, server: &str) -> Totals {
    let mut totals = Totals::new();
    for row in place.rows_of(server, "Shopped") {
        for (key, value) in row.as_object().unwrap().iter().filter(|_| row["status"] == "ok") {
            let (name, text) = match key.as_str() {
                "count_temp" => ("temp_points", value.to_string()),
                key => (key.strip_prefix("sum_").unwrap_or_default(), value.to_string()),
            };
            let value = text.trim_matches('"').parse().unwrap_or(0.0);
            *totals.entry(name.to_owned()).or_default() += value;
        }
    }
    totals.retain(|name, value| !name.is_empty() && *value != 0.0);
    totals
}

/// Waits for the next window's first seconds.
fn await_window() {
    until("a window's beginning", || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        (now % 30 < 2).then_some(())
    });
}

/// A service and a controller with one stream, and a query for all that the schema has.
struct Shop {
    place: Site,
    server: String,
    api: String,
    service: Process,
    _controller: Process,
}

impl Shop {
    fn open(python: &Path) -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let (schema, mapping) = draft(python, folder.path());
        let place = Site::with_schema(&schema).that_waits();
        std::fs::write(place.path("policies.yaml"), POLICIES).unwrap();
        std::fs::write(place.path("otlp.json"), &mapping).unwrap();
        let named = |line: &str| {
            let name = line.trim().strip_prefix("- { name: ")?.split(',').next()?.to_owned();
            line.contains("aggregations").then_some(name)
        };
        let sql = query(&schema.lines().filter_map(named).collect::<Vec<_>>());
        let (api, host) = (free(), free());
        let server = format!("https://{api}");
        let service = place.server(&api);
        let controller = place.controller("a", &host, &server);
        place.add_stream("a", &host);
        until("a stream at the service", || {
            place.ask(&server, &format!("EXPLAIN {sql}")).status.success().then_some(())
        });
        let started = place.ask(&server, &sql);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Shop { place, server, api, service, _controller: controller }
    }

    /// How many windows ended, with a result or without.
    fn windows(&self) -> usize {
        self.place.rows_of(&self.server, "Shopped").len()
    }

    /// What is counted of an early program's points, once windows follow each other.
    fn counted_early(&self, early: &mut Program) -> Totals {
        early.batch();
        until("a first window", || (self.windows() >= 1).then_some(()));
        released(&self.place, &self.server)
    }

    /// The sums over all released windows equal these, and stay so.
    fn has_counted(&self, sent: &Totals) {
        let all = |counted: &Totals| {
            ["latency_count", "temp_points"].iter().all(|key| counted.get(*key) >= sent.get(*key))
        };
        let counted =
            until("all that was sent", || Some(released(&self.place, &self.server)).filter(all));
        assert_eq!(&counted, sent);
        // Nothing comes twice: another window has none of it.
        let before = self.windows();
        until("another window", || (self.windows() > before).then_some(()));
        assert_eq!(&released(&self.place, &self.server), sent);
    }
}

#[test]
fn what_a_real_sdk_sends_is_captured_for_an_import() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (http, grpc) = (free(), free());
    let at = ["--output", "captured.pb", "--http", &http, "--grpc", &grpc];
    let mut command = alpheus([&["otlp", "capture"], &at[..]].concat());
    let mut capture = Process::start(command.current_dir(folder.path()));
    capture.wait_for_prefix("OTLP over HTTP at ");
    for (protocol, door) in [("http", &http), ("json", &http), ("grpc", &grpc)] {
        Program::start(&python, [protocol, "delta", door, protocol]).batch();
    }
    capture.terminate();
    capture.wait_for_prefix("3 requests in captured.pb");
    let mut import = alpheus(["otlp", "import", "captured.pb", "--output", "draft"]);
    let ran = import.current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let schema = std::fs::read_to_string(folder.path().join("draft/schema.yaml")).unwrap();
    // The third kind is only in what programs send.
    for name in ["orders_tape", "queue", "latency_to_0_5", "temp", "size_at_19"] {
        assert!(schema.contains(&format!("name: {name},")), "{name}: {schema}");
    }
}

#[test]
fn what_real_sdks_send_is_counted_after_any_kill() {
    let (Some(python), Some(java)) = (python(), class_path()) else { return };
    let mut shop = Shop::open(&python);
    let (http, grpc) = (free(), free());
    let receiver = |shop: &Shop| Receiver::start(&shop.place, &shop.server, (&http, &grpc));
    // Those with deltas have one resource: their points overlap.
    let start = |protocol, temporality, door: &str| {
        let name = if temporality == "delta" { "one" } else { protocol };
        Program::start(&python, [protocol, temporality, door, name])
    };
    let mut first = receiver(&shop);
    // A query begins at a coming window, and a device at a coming tick: what was sent before is in
    // no window. So a first program's points end that.
    let mut early = start("json", "delta", &http);
    let mut sent = shop.counted_early(&mut early);
    // Ticks may be missing between two sessions of a window, not at its ends: the kills are in one.
    await_window();
    let mut programs = [
        start("grpc", "delta", &grpc),
        start("http", "cumulative", &http),
        start("json", "delta", &http),
        Program::start_java(&java, ["grpc", "cumulative", &grpc, "java-1"]),
        Program::start_java(&java, ["http", "delta", &http, "java-2"]),
    ];
    programs.iter_mut().for_each(Program::batch);
    programs.iter_mut().for_each(Program::batch);
    let said = "several programs send this metric with the same resource";
    first.0.wait_for(said, |line| line.contains(said).then_some(()));
    // What was confirmed is counted, even if the receiver dies at once.
    first.0.kill();
    let mut second = receiver(&shop);
    programs.iter_mut().for_each(Program::batch);
    // A program that starts again counts from nothing.
    let mut again = start("http", "cumulative", &http);
    again.batch();
    shop.service.kill();
    programs.iter_mut().for_each(Program::batch);
    shop.service = shop.place.server(&shop.api);
    again.batch();
    second.0.terminate();
    second.0.wait();
    let _third = receiver(&shop);
    programs.iter_mut().for_each(Program::batch);

    for (name, value) in programs.iter().chain([&again]).flat_map(|program| &program.totals) {
        *sent.entry(name.clone()).or_default() += value;
    }
    sent.retain(|_, value| *value != 0.0);
    shop.has_counted(&sent);
}
