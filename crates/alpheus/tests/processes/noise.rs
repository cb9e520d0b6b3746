//! Noise end to end, through the command line: rows tell their error, budgets last as
//! long as they say, and a replay that is taken up again says the same.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::{copy_folder, run_script};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The example's folder with a recording of a minute, six windows.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(total: &str) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/web-analytics");
        let folder = tempfile::tempdir().unwrap();
        for name in ["schema.yaml", "source.yaml", "profile.yaml", "policies.dp.yaml"] {
            let text = std::fs::read_to_string(from.join(name)).unwrap();
            let text = text.replace("total: 100, delta: 1e-9", total);
            // There are three controllers, of which one may collude.
            let text =
                text.replace("option: dp-aggregate\n", "option: dp-aggregate\n    colluders: 1\n");
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        for (query, name) in [("pages-with-noise", "query.sql"), ("pages-so-far", "totals.sql")] {
            let query = from.join(format!("queries/{query}.sql"));
            std::fs::copy(query, folder.path().join(name)).unwrap();
        }
        let folder = Self(folder);
        let generate = "generate --schema schema.yaml --profile profile.yaml --streams 30 --minutes 1 --output visits.csv";
        assert!(folder.run(generate).status.success());
        folder
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_alpheus"));
        command.args(arguments.split(' ')).current_dir(self.0.path()).output().unwrap()
    }

    fn replay(&self, output: &str, more: &str) -> String {
        self.replay_of("query.sql", output, more)
    }

    /// Replays with a controller for each of three parts of the owners; what it says.
    fn replay_of(&self, query: &str, output: &str, more: &str) -> String {
        let arguments = format!(
            "replay --schema schema.yaml --source source.yaml --policies policies.dp.yaml --input visits.csv --query {query} --controllers 3 --output {output}{more}"
        );
        let ran = self.run(&arguments);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.success(), "{said}");
        said
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        serde_json::from_str(&self.read(name)).unwrap()
    }
}

#[test]
fn rows_tell_their_noise_and_a_spent_budget_ends_them_by_name() {
    let folder = Folder::new("total: 3");
    let said = folder.replay("rows.json", "");
    assert!(said.contains("3 windows opened, 3 did not"), "{said}");
    assert!(said.contains("its owner's privacy budget is spent"), "{said}");
    assert!(said.contains("help: budgets last longer with a smaller epsilon"), "{said}");
    let rows = folder.rows("rows.json");
    for row in rows.iter().take(3) {
        assert_eq!(row["status"], "ok");
        // 2·6 events' counts at ε = 1, one of three shares more than the two honest ones.
        let deviation = row["noise"]["histogram_page_view"]["deviation"].as_f64().unwrap();
        assert!((deviation / (12.0 * 3.0_f64.sqrt()) - 1.0).abs() < 0.01, "{deviation}");
        assert_eq!(row["noise"]["busiest"], Value::Null);
        let bins = row["histogram_page_view"].as_array().unwrap();
        // Thirty visitors see five pages each.
        let sum: i64 = bins.iter().map(|bin| bin.as_i64().unwrap()).sum();
        assert!((sum - 150).abs() < 1_000, "{sum}");
    }
    for row in rows.iter().skip(3) {
        let status = row["status"].as_str().unwrap();
        assert!(status.starts_with("population below the minimum "), "{status}");
        assert!(status.ends_with(": privacy budgets of owners are spent"), "{status}");
        assert_eq!(
            (&row["excluded"], &row["histogram_page_view"]),
            (&Value::from(0), &Value::Null)
        );
    }
    // The same columns in every row, also where nothing opened.
    folder.replay("rows.csv", "");
    let text = folder.read("rows.csv");
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let header = csv.headers().unwrap().clone();
    assert_eq!(header.iter().next_back(), Some("mostly_noise"));
    assert_eq!(
        csv.records().map(|record| record.unwrap().len()).collect::<Vec<_>>(),
        [header.len(); 6]
    );
}

#[test]
fn noise_is_sent_again_and_never_drawn_twice() {
    let folder = Folder::new("total: 100");
    folder.replay("one.json", " --state kept");
    folder.replay("two.json", " --state kept");
    assert_eq!(folder.read("one.json"), folder.read("two.json"));
    // Other keys, other noise.
    folder.replay("three.json", "");
    let bins = |name| folder.rows(name)[0]["histogram_page_view"].clone();
    assert_ne!(bins("one.json"), bins("three.json"));
}

/// Thirty visitors see five pages each in every window: six windows make nine hundred,
/// at one window's price.
#[test]
fn running_totals_go_on_from_row_to_row_and_cost_one_window() {
    let folder = Folder::new("total: 1, delta: 1e-9");
    let said = folder.replay_of("totals.sql", "rows.json", " --state kept");
    assert!(said.contains("6 windows opened"), "{said}");
    let mut deviations = Vec::new();
    for (row, windows) in folder.rows("rows.json").iter().zip(1..=6_i64) {
        assert_eq!((&row["status"], &row["windows"]), (&Value::from("ok"), &Value::from(windows)));
        let deviation = row["noise"]["histogram_page_view"]["deviation"].as_f64().unwrap();
        let bins = row["histogram_page_view"].as_array().unwrap();
        let sum: i64 = bins.iter().map(|bin| bin.as_i64().unwrap()).sum();
        let off = (sum - 150 * windows) as f64 / deviation / (bins.len() as f64).sqrt();
        assert!(off.abs() < 6.0, "{windows}: {sum} {off}");
        deviations.push(deviation);
    }
    // ‖b‖² of six windows is 1.62, where windows that somebody adds up have 6.
    assert!((deviations[5] / deviations[0] - 1.62_f64.sqrt()).abs() < 0.01, "{deviations:?}");
    folder.replay_of("totals.sql", "again.json", " --state kept");
    assert_eq!(folder.read("rows.json"), folder.read("again.json"));
}

/// One value came of each meter, and the query says that there are ten.
#[test]
fn rows_say_that_they_are_less_exact_than_asked() {
    let folder = crate::up::noisy(2);
    let query = |values: u32| {
        format!(
            "SELECT MEAN(reading) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters \
             WITH (values = {values}) WITHIN 40 OF 95 %"
        )
    };
    for (values, status) in [(10, "ok: less exact than asked"), (1, "ok")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_alpheus"));
        command.args(["replay", "--schema", "schema.yaml", "--source", "source.yaml"]);
        command.args(["--policies", "policies.yaml", "--input", "data.csv"]);
        command.args(["--query", &query(values), "--format", "json", "--output", "-"]);
        let ran = command.current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && said.contains("2 windows opened, 0 did not"), "{said}");
        let rows: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
        let statuses: Vec<_> = rows.iter().map(|row| row["status"].as_str().unwrap()).collect();
        assert_eq!(statuses, [status, status], "{rows:?}");
    }
}

/// The commands of the page with the figures print the lines that it cites.
#[test]
fn a_budget_lasts_as_long_as_the_page_with_the_figures_says() {
    let page = include_str!("../../../../bench/results/2026-11-29-noise-budget.md");
    let (_, commands) = page.split_once("```sh\n").unwrap();
    let (commands, cited) = commands.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let example = folder.path().join("examples/household/with-noise");
    std::fs::create_dir_all(&example).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/household/with-noise");
    copy_folder(&from, &example);
    let (said, _) = run_script(folder.path(), commands);
    let lines: Vec<&str> = cited.split('`').filter(|text| text.contains("windows (")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(said.contains(line), "{line}\n{said}");
    }
    for days in ["308", "44"] {
        assert!(
            page.contains(&format!("| **{days}** |")) && said.contains(&format!("({days} days)"))
        );
    }
    assert_eq!(said.matches("ε = 2.23 per window").count(), 2, "{said}");
    assert_eq!(said.matches("(4.98 %) (asked: 5 %)").count(), 2, "{said}");
}
