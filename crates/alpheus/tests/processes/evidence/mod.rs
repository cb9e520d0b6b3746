//! `alpheus evidence`, as `docs/standards.md` shows: a pack of a deployment with a verified query and
//! queries with noise, which the Python beside the guide checks. A digit that somebody changes is noticed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::deployment::{QUERY, RunningSite, Site, until};
use alpheus_test_support::skip;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/evidence");
const WINDOW: &str = "WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters";
const PACK: &str = "evidence.jsonl";
const DEPLOYMENT: &str = "pki/analyst/deployment.json";

/// The Python of an environment that `make` installs; otherwise a test is skipped.
fn python_of(name: &str, made_by: &str) -> Option<PathBuf> {
    let path = Path::new(ROOT).join(name).join("bin/python");
    if !path.exists() {
        skip::skip(&format!("there is no {name} (`make {made_by}` makes it)"));
        return None;
    }
    Some(path)
}

/// That with `cryptography`.
fn python() -> Option<PathBuf> {
    python_of(".venv", ".venv/ready")
}

/// The commands of the guide's part on evidence, without their prompts.
fn commands() -> [String; 2] {
    let guide = fs::read_to_string(Path::new(ROOT).join("docs/standards.md")).unwrap();
    let (_, part) = guide.split_once("## Evidence").unwrap();
    let lines = part.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Asks a query with this name, and waits for its first row over all three streams.
fn ask(running: &RunningSite, sql: &str) {
    let asked = running.place.ask(&running.server, sql);
    assert!(asked.status.success(), "{}", said(&asked));
}

fn await_row(running: &RunningSite, name: &str) {
    until(name, || {
        let rows = running.place.rows_of(&running.server, name);
        rows.iter().any(|row| row["population"] == 3 && row["status"] == "ok").then_some(())
    });
}

/// The guide's command for a pack, in the place of a deployment, for days that include today.
fn write_pack(running: &RunningSite, command: &str) -> Vec<Value> {
    let command = command.replace("https://localhost:7400", &running.server);
    let args = command.strip_prefix("alpheus ").unwrap().split_whitespace();
    let args = args.chain(["--openlineage", "lineage.jsonl"]);
    let output = alpheus(args).current_dir(running.place.path(".")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(running.place.path(PACK)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(python: &Path, running: &RunningSite, script: &str) -> Output {
    let mut command = Command::new(python);
    command.args(["-B", script, PACK, DEPLOYMENT]).current_dir(running.place.path("."));
    command.output().unwrap()
}

#[test]
fn a_pack_is_checked_without_our_code_and_a_changed_digit_is_noticed() {
    let Some(python) = python() else { return };
    let [write, verify] = commands();
    assert_eq!(verify, format!("python3 docs/evidence/check.py {PACK} {DEPLOYMENT}"));
    let running = RunningSite::start_in(Site::with_ticks().that_waits(), |_, api| api.to_owned());
    ask(&running, &format!("{QUERY} WITH (integrity = 'verified', alpha = '1/3')"));
    let noisy = |name: &str, what: &str, with: &str| {
        ask(&running, &format!("CREATE STREAM {name} AS SELECT {what} {WINDOW} WITH ({with})"));
    };
    noisy("Alarms", "SUM(alarms)", "epsilon = 0.5");
    noisy("Litres", "SUM(litres)", "epsilon = 0.3, delta = 1e-10, mechanism = 'skellam'");
    let devices = running.feed();
    ["Readings", "Alarms", "Litres"].iter().for_each(|name| await_row(&running, name));
    // What a query has cost is known after it has ended.
    ask(&running, "DROP STREAM Litres");
    drop(devices);
    let lines = write_pack(&running, &write);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("plan"), of("announcement"), of("query"), of("spent")), (3, 3, 2, 2));
    assert!(of("receipt") > 0 && of("signature") == 1);
    lineage(&running, &lines);
    read_by_openlineage(&running);
    for program in ["check", "further"] {
        let checked = check(&python, &running, &format!("{ROOT}/docs/evidence/{program}.py"));
        let text = said(&checked);
        assert!(checked.status.success(), "{text}");
        assert!(text.contains("holds: the service has signed these lines"), "{text}");
        assert!(text.contains("rows that controllers have signed"), "{text}");
    }
    forgeries(&python, &running);
    let flips = check(&python, &running, &format!("{HERE}/flips.py"));
    assert!(flips.status.success(), "{}", said(&flips));
    let flips: Value = serde_json::from_slice(&flips.stdout).unwrap();
    assert_eq!(flips["only signed"], Value::Array(Vec::new()), "{flips}");
    assert!(flips["kinds"].as_u64().unwrap() > 60, "{flips}");
}

/// What a lying service could sign is refused, each for its own reason.
fn forgeries(python: &Path, running: &RunningSite) {
    let mut tests = Command::new(python);
    tests.args(["-B", "-m", "unittest", "-q", "forgeries"]).current_dir(HERE);
    let path = |name: &str| running.place.path(name);
    let ran = tests.env("PACK", path(PACK)).env("DEPLOYMENT", path(DEPLOYMENT)).output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
}

/// Each window with a result is a run, and its columns say which attributes they aggregate.
fn lineage(running: &RunningSite, pack: &[Value]) {
    let text = fs::read_to_string(running.place.path("lineage.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let opened = |line: &&Value| line["kind"] == "release" && line["row"]["status"] == "ok";
    assert_eq!(events.len(), 2 * pack.iter().filter(opened).count());
    let of = |name: &str| events.iter().find(|event| event["job"]["name"] == name).unwrap();
    for (name, column, attribute) in
        [("Alarms", "sum_alarms", "alarms"), ("Readings", "sum_reading", "reading")]
    {
        let event = of(name);
        let fields = &event["outputs"][0]["facets"]["columnLineage"]["fields"];
        let [input] =
            <[Value; 1]>::try_from(fields[column]["inputFields"].as_array().unwrap().clone())
                .unwrap();
        assert_eq!((&input["field"], &input["name"]), (&attribute.into(), &"Meters".into()));
        let how = &input["transformations"][0];
        assert_eq!((&how["subtype"], &how["masking"]), (&"AGGREGATION".into(), &true.into()));
        assert_eq!(event["run"]["runId"].as_str().unwrap().len(), 36);
    }
    // The number of events is of no attribute.
    let fields = &of("Readings")["outputs"][0]["facets"]["columnLineage"]["fields"];
    assert_eq!(fields["count_reading"]["inputFields"], Value::Array(Vec::new()));
}

/// OpenLineage's own classes read the events, and notice faults in them.
fn read_by_openlineage(running: &RunningSite) {
    let Some(python) = python_of(".venv/openlineage", ".venv/openlineage") else { return };
    let mut reading = Command::new(python);
    reading.arg("-B").arg(format!("{HERE}/lineage.py")).arg(running.place.path("lineage.jsonl"));
    let read = reading.output().unwrap();
    assert!(read.status.success(), "{}", said(&read));
}

/// The known answers of receipts and budgets, by the same program.
#[test]
fn the_program_beside_the_guide_knows_the_known_answers() {
    let Some(python) = python() else { return };
    let mut tests = Command::new(python);
    tests.args(["-B", "-m", "unittest", "-q", "test_vectors"]);
    let ran = tests.current_dir(Path::new(ROOT).join("docs/evidence")).output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
}
