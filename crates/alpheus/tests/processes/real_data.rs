//! `alpheus replay` over real recordings equals the exact truth about them.
//!
//! The files are no part of the repository: `ALPHEUS_REAL_DATA` names their
//! folder. Without it these tests are skipped.

#![expect(clippy::expect_used, reason = "a test's way to fail")]

mod bounded_queries;

use alpheus_test_support::skip;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Case {
    dataset: &'static str,
    input: &'static str,
    query: &'static str,
    table: &'static str,
    group: Option<&'static str>,
}

const FITNESS: Case = Case {
    dataset: "fitness",
    input: "fitness.csv.gz",
    query: "stats.sql",
    table: "replay_windows_10s",
    group: None,
};
const ALTITUDE: Case = Case { query: "altitude.sql", table: "hr_by_altitude_5m", ..FITNESS };
const CARS: Case = Case {
    dataset: "cars",
    input: "cars.csv.gz",
    query: "stats.sql",
    table: "windows_10s",
    group: None,
};
const METERS: Case = Case {
    dataset: "smartmeter",
    input: "smartmeter.csv.gz",
    query: "stats.sql",
    table: "windows_1h",
    group: None,
};
const METERS_DAILY: Case =
    Case { query: "daily.sql", table: "windows_1d_by_household", group: Some("VID"), ..METERS };
const METERS_SEALED: Case = Case { query: "sealed.sql", ..METERS };
const TRAFFIC: Case = Case {
    dataset: "traffic_speed",
    input: "traffic_speed.csv",
    query: "stats.sql",
    table: "windows_1h",
    group: None,
};
const WEBLOG: Case = Case {
    dataset: "weblog_apache",
    input: "weblog_apache.csv",
    query: "stats.sql",
    table: "windows_1h",
    group: None,
};

const WEBLOG_NASA: Case = Case { dataset: "weblog_nasa", input: "weblog_nasa.csv", ..WEBLOG };

type Row = Map<String, Value>;

/// Which windows of a verified query open.
#[derive(Clone, Copy)]
enum Opens {
    /// Those that do not say that owners or controllers were too few.
    OrSaysWhy,
    /// Of these, all with so many owners or more.
    FromOn(u64),
    /// All with so many owners or more, and no others.
    Exactly(u64),
}

/// The rows of a replay by the start of their windows.
fn read(path: &Path) -> BTreeMap<u64, Row> {
    let text = std::fs::read(path).expect("the rows can be read");
    let rows: Vec<Row> = serde_json::from_slice(&text).expect("rows");
    let start = |row: &Row| row["window_start"].as_u64().expect("a time");
    rows.into_iter().map(|row| (start(&row), row)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Case {
    fn replay(&self, data: &Path, policies: &str, flags: &[&str], output: &Path) {
        let query = root().join("examples/real").join(self.dataset).join(self.query);
        self.ask(data, policies, flags, (&query, output));
    }

    fn ask(&self, data: &Path, policies: &str, flags: &[&str], (query, output): (&Path, &Path)) {
        let example = root().join("examples/real").join(self.dataset);
        let ran = Command::new(env!("CARGO_BIN_EXE_alpheus"))
            .args(["replay", "--schema"])
            .arg(example.join("schema.yaml"))
            .arg("--source")
            .arg(example.join("source.yaml"))
            .arg("--policies")
            .arg(example.join(policies))
            .arg("--query")
            .arg(query)
            .arg("--input")
            .arg(data.join(self.input))
            .arg("--output")
            .arg(output)
            .args(flags)
            .output()
            .expect("alpheus runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    /// What is said of the comparison.
    fn compare(&self, data: &Path, output: &Path, more: &[&str]) -> String {
        let group = self.group.map(|group| ["--group", group]);
        let ran = Command::new("python3")
            .arg(root().join("examples/real/compare.py"))
            .arg(data)
            .args([self.dataset, self.table])
            .arg(output)
            .args(group.iter().flatten())
            .args(more)
            .output()
            .expect("python3 runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
    }

    fn equals_truth(&self, flags: &[&str]) {
        let Some(data) = skip::real_data() else { return };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("out.json");
        self.replay(&data, "policies.yaml", flags, &output);
        self.compare(&data, &output, &[]);
    }

    /// Where the members of windows decide what rows say, they say the truth. Such a query begins at the
    /// next anchor, so windows of the first hour may be missing. Its members count as many owners fewer as
    /// may be made up, so a window that has few does not open, and says that. Returns the rows.
    fn members_say_the_truth(&self, flags: &[&str], opens: Opens) -> BTreeMap<u64, Row> {
        let Some(data) = skip::real_data() else { return BTreeMap::new() };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [query, plain, verified] =
            ["query.sql", "plain.json", "verified.json"].map(|name| folder.path().join(name));
        let own = root().join("examples/real").join(self.dataset).join(self.query);
        let text = std::fs::read_to_string(own).expect("the query can be read");
        let text = text.trim_end().trim_end_matches(';');
        let text = format!("{text} WITH (integrity = 'verified', alpha = '1/3')");
        std::fs::write(&query, text).expect("the query can be written");
        self.ask(&data, "policies.yaml", flags, (&query, &verified));
        let rows = read(&verified);
        assert!(rows.values().all(|row| row["integrity"] == "verified"), "{}", self.dataset);
        let from = rows.keys().next().expect("a row").to_string();
        let (kind, least) = match opens {
            Opens::OrSaysWhy => (&["--closed"][..], None),
            Opens::FromOn(enough) => (&["--closed", "--enough"][..], Some(enough)),
            Opens::Exactly(least) => (&["--minimum"][..], Some(least)),
        };
        let mut more = [&["--from", &from], kind].concat();
        let (least, owners) = (least.map(|least| least.to_string()), plain.to_string_lossy());
        if let Some(least) = &least {
            self.replay(&data, "policies.yaml", ONE, &plain);
            more.extend([&**least, "--owners", &owners]);
        }
        println!("{flags:?}: {}", self.compare(&data, &verified, &more));
        rows
    }

    /// The same, and in each column what rows say that the service decides.
    fn members_say_what_the_service_says(&self) {
        let Some(data) = skip::real_data() else { return };
        let mut verified = self.members_say_the_truth(ONE, Opens::FromOn(1));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("plain.json");
        self.replay(&data, "policies.yaml", ONE, &output);
        let plain = read(&output);
        let begun = *verified.keys().next().expect("a row");
        let first = *plain.keys().next().expect("a row");
        assert!(begun - first <= 3_600_000, "it begins {} ms later", begun - first);
        for (start, row) in plain.range(begun..) {
            let mut own = verified.remove(start).expect("a row for each window");
            own.retain(|name, _| !matches!(&**name, "integrity" | "plan"));
            assert_eq!(own, *row, "{}", self.dataset);
        }
        assert!(verified.values().all(|row| row["population"] == 0), "{verified:?}");
    }

    /// All windows equal the truth, and exactly those with fewer than ten owners are refused if
    /// policies say so.
    fn honours_a_minimum_of_ten(&self) {
        let Some(data) = skip::real_data() else { return };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (all, ten) = (folder.path().join("all.json"), folder.path().join("ten.json"));
        self.replay(&data, "policies.yaml", ONE, &all);
        self.compare(&data, &all, &[]);
        self.replay(&data, "policies.min10.yaml", ONE, &ten);
        let all = all.to_string_lossy();
        self.compare(&data, &ten, &["--minimum", "10", "--owners", &all]);
    }
}

const ONE: &[&str] = &["--controllers", "1"];
const PER_OWNER: &[&str] = &["--controllers", "per-owner"];
/// Each window has members of its own: those whose streams were online.
const BY_EPOCHS: &[&str] = &["--controllers", "per-owner", "--membership", "epochs"];

#[test]
fn fitness_with_a_controller_for_each_owner() {
    FITNESS.equals_truth(PER_OWNER);
}

#[test]
#[ignore = "a second query over one of the recordings; `make drills` runs it"]
fn heart_rate_by_altitude() {
    ALTITUDE.equals_truth(ONE);
}

#[test]
#[ignore = "where members decide what rows say, masks by epoch are in each test; `make drills` runs it"]
fn cars_with_each_mask_strategy() {
    for masks in ["epoch", "clique", "dream"] {
        CARS.equals_truth(&["--controllers", "per-owner", "--masks", masks]);
    }
}

#[test]
#[ignore = "those for one consumer alone are in each test; `make drills` runs it"]
fn electricity_meters_with_a_few_controllers() {
    METERS.equals_truth(&["--controllers", "7"]);
}

/// As the consumer reads them whom nobody else can read for.
#[test]
fn electricity_meters_for_one_consumer_alone() {
    METERS_SEALED.equals_truth(&["--controllers", "7"]);
}

#[test]
fn each_household_by_day() {
    METERS_DAILY.equals_truth(PER_OWNER);
}

#[test]
fn motorway_speeds_with_a_controller_for_each_sensor() {
    TRAFFIC.equals_truth(PER_OWNER);
}

#[test]
#[ignore = "one strategy of masks is in each test; `make drills` runs it"]
fn motorway_speeds_with_neighbours() {
    TRAFFIC.equals_truth(&["--controllers", "per-owner", "--masks", "neighbours"]);
}

/// Of 1,350 clients some forty have data in a window. Each agrees on keys with all others.
#[test]
#[ignore = "two minutes; `make drills` runs it"]
fn web_log_with_a_controller_for_each_client() {
    WEBLOG.equals_truth(PER_OWNER);
}

/// Of a window's list, those who have no data are silent, as with everybody in the roster.
#[test]
#[ignore = "two minutes; `make drills` runs it"]
fn web_log_by_epochs() {
    WEBLOG.equals_truth(BY_EPOCHS);
}

#[test]
#[ignore = "as the newer one; `make drills` runs it"]
fn an_older_web_log_by_epochs() {
    WEBLOG_NASA.equals_truth(BY_EPOCHS);
}

#[test]
#[ignore = "minutes; `make drills` runs it"]
fn motorway_speeds_by_epochs() {
    TRAFFIC.equals_truth(BY_EPOCHS);
}

#[test]
#[ignore = "minutes; `make drills` runs it"]
fn all_recordings_where_members_decide_what_rows_say() {
    for case in [FITNESS, METERS, TRAFFIC, WEBLOG, WEBLOG_NASA] {
        case.members_say_what_the_service_says();
    }
    // Two of seven may make up all of their owners: with these they have at most a seventh each.
    for (case, owners) in [(FITNESS, 34_u64), (METERS, 376), (TRAFFIC, 207)] {
        let made_up = 2 * owners.div_ceil(7);
        case.members_say_the_truth(&["--controllers", "7"], Opens::FromOn(made_up + 1));
    }
    // How many are listed differs from window to window.
    for case in [WEBLOG, TRAFFIC] {
        case.members_say_the_truth(BY_EPOCHS, Opens::OrSaysWhy);
    }
}

/// Of 57 owners a third may be made up, so members count twenty or more.
#[test]
fn cars_where_members_decide_what_rows_say() {
    CARS.members_say_the_truth(
        &["--controllers", "per-owner", "--masks", "epoch"],
        Opens::Exactly(20),
    );
}

#[test]
#[ignore = "with a controller for each owner it is in each test; `make drills` runs it"]
fn fitness_with_one_controller() {
    FITNESS.honours_a_minimum_of_ten();
}

#[test]
fn web_logs_with_one_controller() {
    WEBLOG.honours_a_minimum_of_ten();
    WEBLOG_NASA.honours_a_minimum_of_ten();
}
