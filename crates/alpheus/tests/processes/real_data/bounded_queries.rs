//! Bounded queries over real recordings: what their members prove opens to the exact truth.

use super::{CARS, Case, FITNESS, TRAFFIC, WEBLOG, WEBLOG_NASA};
use alpheus_test_support::skip;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Sum and count of one attribute of a recording.
struct BoundedCase {
    case: Case,
    attribute: &'static str,
    size: &'static str,
    from: &'static str,
    controllers: &'static str,
}

/// Sum, in units of the last decimal place, and count of each window by its start in milliseconds.
type Windows = BTreeMap<u64, (i128, u64)>;

fn open(path: &Path) -> Box<dyn Read> {
    let file = std::fs::File::open(path).expect("the file can be read");
    match path.extension().is_some_and(|ending| ending == "gz") {
        true => Box::new(flate2::read::GzDecoder::new(file)),
        false => Box::new(file),
    }
}

/// A decimal number as an integer of this many places.
fn scaled(text: &str, places: usize) -> i128 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<places$}").parse().expect("a number")
}

impl BoundedCase {
    fn truth(&self, data: &Path) -> (usize, Windows) {
        let Case { dataset, table, .. } = self.case;
        let paths = ["json", "json.gz"].map(|end| data.join(format!("truth/{dataset}.{end}")));
        let path = paths.iter().find(|path| path.exists()).expect("a truth");
        let all: Value = serde_json::from_reader(open(path)).expect("a truth");
        let scale = all["scale"][self.attribute].as_u64().expect("a scale");
        let window = |row: &Value| {
            let start = row[0].as_u64().expect("a time") * 1000;
            let count = row[1].as_u64().expect("a count");
            (start, (i128::from(row[2].as_i64().expect("a sum")), count))
        };
        let rows = all[table][self.attribute].as_array().expect("windows");
        (scale.to_string().len() - 1, rows.iter().map(window).collect())
    }

    /// The bounded query, over a recording in this folder. Returns the windows that opened, and how many did not.
    fn rows(&self, data: &Path, places: usize) -> (Windows, usize) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (query, output) = (folder.path().join("query.sql"), folder.path().join("rows.json"));
        let Self { attribute, size, from, .. } = self;
        let text = format!(
            "CREATE STREAM Bounded AS SELECT SUM({attribute}), COUNT({attribute}) \
             WINDOW TUMBLING (SIZE {size}) FROM {from} WITH (integrity = 'bounded', alpha = '1/3')"
        );
        std::fs::write(&query, text).expect("the query can be written");
        let flags = ["--controllers", self.controllers];
        self.case.ask(data, "policies.yaml", &flags, (&query, &output));
        let text = std::fs::read(output).expect("the rows can be read");
        let rows: Vec<Value> = serde_json::from_slice(&text).expect("rows");
        let all = rows.len();
        let name = attribute.to_lowercase();
        let opened = rows.into_iter().filter(|row| row["status"] == "ok").map(|row| {
            assert_eq!(row["integrity"], "bounded");
            let sum = row[format!("sum_{name}")].as_str().unwrap_or("0");
            let count = row[format!("count_{name}")].as_u64().unwrap_or(0);
            (row["window_start"].as_u64().expect("a time"), (scaled(sum, places), count))
        });
        let opened: Windows = opened.collect();
        let lost = all - opened.len();
        (opened, lost)
    }

    /// Every window that opens is the truth, and nine of ten do: the others have too few owners if a third of
    /// the controllers may lie.
    fn equals_truth(&self) {
        let Some(data) = skip::real_data() else { return };
        let (places, truth) = self.truth(&data);
        let (opened, lost) = self.rows(&data, places);
        let (dataset, many) = (self.case.dataset, opened.len());
        for (start, row) in opened {
            let known = truth.get(&start).copied().unwrap_or_default();
            assert!(row == known, "{dataset}: the window at {start} is another");
        }
        eprintln!("{dataset}: {many} windows opened, {lost} did not");
        assert!(many > 9 * lost, "{dataset}: {many} windows opened, {lost} did not");
    }
}

const SPEEDS: BoundedCase = BoundedCase {
    case: TRAFFIC,
    attribute: "speed_mph",
    size: "1 HOUR",
    from: "TrafficSpeed",
    controllers: "7",
};
const BYTES: BoundedCase = BoundedCase {
    case: WEBLOG,
    attribute: "bytes",
    size: "1 HOUR",
    from: "WebLog",
    controllers: "13",
};
const HEARTS: BoundedCase = BoundedCase {
    case: FITNESS,
    attribute: "heart_rate",
    size: "10 SECONDS",
    from: "Fitness",
    controllers: "7",
};

/// The first six hours of the recording, of all 207 sensors.
#[test]
fn motorway_speeds_are_proven_and_equal_the_truth() {
    let Some(data) = skip::real_data() else { return };
    let (places, truth) = SPEEDS.truth(&data);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines = BufReader::new(open(&data.join(TRAFFIC.input))).lines();
    let first: Vec<String> = lines.take(1 + 6 * 12).map(|line| line.expect("a line")).collect();
    let cut = folder.path().join(TRAFFIC.input);
    std::fs::write(cut, first.join("\n") + "\n").expect("it can be written");
    let (opened, lost) = SPEEDS.rows(folder.path(), places);
    assert_eq!(lost, 0, "{opened:?}");
    assert_eq!(opened, truth.into_iter().take(6).collect());
}

#[test]
#[ignore = "minutes of a processor for each; `make drills` runs it"]
fn all_recordings_in_bounds() {
    let older = BoundedCase { case: WEBLOG_NASA, ..BYTES };
    let (attribute, size) = ("ENGINE_RPM", "10 SECONDS");
    let cars = BoundedCase { case: CARS, attribute, size, from: "Car", controllers: "7" };
    [BYTES, older, HEARTS, cars, SPEEDS].iter().for_each(BoundedCase::equals_truth);
}
