//! `alpheus init`: from an unknown file to the files that `alpheus replay` reads, and an answer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::terminal::Terminal;
use crate::common::{alpheus, bash};
use alpheus_input::cells::Cell;
use alpheus_input::files::unpacked;
use alpheus_input::rows::{self, Recording};
use alpheus_input::source::Source;
use alpheus_policy::decimal::format_scaled;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::{AttributeKind, Schema};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn init(file: &Path, output: &Path, more: &[&str]) -> (i32, String) {
    let ran = alpheus(["init"]).arg(file).arg("--output").arg(output).args(more).output().unwrap();
    let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
    (ran.status.code().unwrap(), said)
}

pub(crate) fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn understood(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("understood.json")).unwrap()).unwrap()
}

/// Twelve people's steps, every hour of a day.
pub(crate) fn steps() -> String {
    let mut text = "Person;Zeit;Schritte;Puls [bpm]\n".to_owned();
    for hour in 0..24 {
        for person in 0..12 {
            text.push_str(&format!(
                "p{person};13.02.2024 {hour:02}:{person:02};{};{},5\n",
                100 * hour + person,
                60 + hour
            ));
        }
    }
    text
}

/// Few readings over many years have a first answer soon, and files for all rows.
#[test]
fn a_first_answer_comes_soon() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("years");
    let mut text = "Person;Tag;Gewicht [kg]\n".to_owned();
    for person in 0..12 {
        text.push_str(&format!("p{person};03.03.2014 08:00;7{person}\n"));
        for day in 1..4 {
            text.push_str(&format!("p{person};0{day}.03.2024 08:00;8{person}\n"));
        }
    }
    let (code, said) = init(&written(&folder, "years.csv", &text), &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("this answer covers only a part of the file: "), "{said}");
    assert!(said.contains(" only, which is 36 of 48 rows.") && said.contains("ok, of a part"));
    let understood = understood(&output);
    assert_eq!(
        (&understood["rows"], &understood["attributes"][0]["count"]),
        (&48.into(), &48.into())
    );
    let answer = std::fs::read_to_string(output.join("answer.csv")).unwrap();
    assert!(answer.lines().skip(1).any(|row| row.contains(",36,")), "{answer}");
    assert!(!answer.contains(",12,7"), "{answer}");
}

#[test]
fn a_file_becomes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("steps");
    let (code, said) = init(&written(&folder, "steps.csv", &steps()), &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    for file in [
        "schema.yaml",
        "source.yaml",
        "policies.yaml",
        "query.sql",
        "README.md",
        "understood.json",
        "answer.csv",
    ] {
        assert!(output.join(file).exists(), "{file}");
    }
    let understood = understood(&output);
    assert_eq!(
        (understood["owner"].as_str(), understood["rows"].as_u64()),
        (Some("Person"), Some(288))
    );
    assert!(std::fs::read_to_string(output.join("policies.yaml")).unwrap().contains("clients: 10"));
    let mut answer = csv::Reader::from_path(output.join("answer.csv")).unwrap();
    let header = answer.headers().unwrap().clone();
    let column = header
        .iter()
        .position(|name| name.to_lowercase().contains("sum") && name.contains("schritte"));
    let column = column.unwrap_or_else(|| panic!("{header:?}"));
    let sum: f64 =
        answer.records().map(|record| record.unwrap()[column].parse::<f64>().unwrap_or(0.0)).sum();
    let expected: u32 =
        (0..24).flat_map(|hour| (0..12).map(move |person| 100 * hour + person)).sum();
    assert!((sum - f64::from(expected)).abs() < 0.5, "{sum} of {expected}");
    let again = init(&folder.path().join("steps.csv"), &output, &["--yes"]);
    assert!(again.0 == 5 && again.1.contains("nothing is overwritten: --force"), "{}", again.1);
}

/// Twelve homes' meters, every quarter of an hour of half a day: a standing, what was used, and
/// whether the grid was up.
fn meters() -> String {
    let mut text = "Kunde;Zeit;Zählerstand [kWh];Verbrauch [kWh];Netz\n".to_owned();
    for quarter in 0..48 {
        for home in 0..12 {
            let (hour, minute) = (quarter / 4, quarter % 4 * 15);
            let used = 1 + (quarter + home) % 3;
            let stands = 5000 + 100 * home + 3 * quarter;
            let up = if (quarter + home) % 4 == 0 { "nein" } else { "ja" };
            text.push_str(&format!(
                "k{home};13.02.2024 {hour:02}:{minute:02};{stands},5;{used},25;{up}\n"
            ));
        }
    }
    text
}

/// Asks a query of the files that `init` wrote.
pub(crate) fn ask(folder: &Path, input: &Path, sql: &str) -> (i32, String) {
    // A statement may begin with a comment, which looks like a flag.
    let mut command = alpheus(["replay", &format!("--query={sql}"), "--output", "-"]);
    for (flag, file) in
        [("--schema", "schema.yaml"), ("--source", "source.yaml"), ("--policies", "policies.yaml")]
    {
        command.arg(flag).arg(folder.join(file));
    }
    let ran = command.arg("--input").arg(input).output().unwrap();
    let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
    (ran.status.code().unwrap(), said)
}

#[test]
fn an_export_of_meters_is_asked_by_its_interval_hour_and_day() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (written(&folder, "m.csv", &meters()), folder.path().join("m"));
    let (code, said) = init(&file, &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    reads_the_same(&file, &output);
    assert!(said.contains("avg_verbrauch") && said.contains("avg_netz"), "{said}");
    assert!(said.contains("status") && !said.contains("avg_zaehlerstand"), "{said}");
    let schema = std::fs::read_to_string(output.join("schema.yaml")).unwrap();
    assert!(schema.contains("tick: 15min") && schema.contains("like a meter reading"));
    let report = understood(&output);
    let unsure = report["unsure"].to_string();
    assert!(unsure.contains("`Zählerstand [kWh]` never falls"), "{unsure}");
    assert!(!unsure.contains("`Verbrauch [kWh]` never falls"), "{unsure}");
    let netz = &report["attributes"][2];
    assert_eq!((&netz["type"], &netz["sum"]), (&"boolean".into(), &"432".into()), "{netz}");
    for window in ["15 MINUTES", "1 HOUR", "1 DAY"] {
        let sql = format!(
            "SELECT AVG(netz) WINDOW TUMBLING (SIZE {window}) FROM MReadings BETWEEN 10 AND 100"
        );
        let (code, said) = ask(&output, &file, &sql);
        assert!(code == 0 && said.contains(",0.75,12,"), "{window}: {said}");
    }
    let sql = "SELECT AVG(netz) WINDOW TUMBLING (SIZE 20 MINUTES) FROM MReadings";
    let (code, said) = ask(&output, &file, sql);
    assert!(
        code == 3 && said.contains("write `SIZE 15 MINUTES` or `SIZE 30 MINUTES`"),
        "{code} {said}"
    );
    assert!(said.contains("SIZE 30 MINUTES") && !said.contains("the tick"), "{said}");
    let sql = "SELECT AVG(netz) WINDOW TUMBLING (SIZE 7 DAYS) FROM MReadings";
    assert_eq!(ask(&output, &file, sql).0, 0, "ticks are a day at most");
}

#[test]
fn an_error_that_is_possible_is_promised_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (written(&folder, "m.csv", &meters()), folder.path().join("m"));
    let (code, said) = init(&file, &output, &["--yes", "--error", "1 %"]);
    assert!(code == 3 && !output.exists(), "{code} {said}");
    let nearest = said.split("--error '").nth(1).unwrap().split('\'').next().unwrap();
    let (code, said) = init(&file, &output, &["--yes", "--error", nearest]);
    assert_eq!(code, 0, "{nearest}: {said}");
    assert!(said.contains('±') && said.contains("in 95 of 100 windows"), "{said}");
    let text = |name: &str| std::fs::read_to_string(output.join(name)).unwrap();
    assert!(text("query.sql").contains(&format!("error = {nearest}")), "{}", text("query.sql"));
    assert!(text("policies.yaml").contains("option: noisy") && text("README.md").contains("noise"));
    // The file that was written says what was asked, and the other way round as a comment.
    let plain = folder.path().join("plain");
    assert_eq!(init(&file, &plain, &["--yes"]).0, 0);
    let query = std::fs::read_to_string(plain.join("query.sql")).unwrap();
    let noisy: String = query.lines().filter_map(|line| line.strip_prefix("-- ")).fold(
        String::new(),
        |text, line| match text.is_empty() && !line.starts_with("CREATE") {
            true => text,
            false => text + line + "\n",
        },
    );
    assert!(noisy.contains("WITH (error = 10 %") && noisy.contains("events = "), "{query}");
    // What was possible above is possible here, once the policies are switched and the error is set.
    let noisy = noisy.replace("error = 10 %", &format!("error = {nearest}"));
    let switched = std::fs::read_to_string(plain.join("policies.yaml")).unwrap();
    let switched = switched.replace("option: crowd", "option: noisy");
    std::fs::write(plain.join("policies.yaml"), switched).unwrap();
    let (code, said) = ask(&plain, &file, &noisy);
    assert!(code == 0 && said.contains("mostly_noise"), "{noisy}{said}");
}

#[test]
fn at_a_terminal_the_kind_of_answer_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (written(&folder, "m.csv", &meters()), folder.path().join("m"));
    let program = env!("CARGO_BIN_EXE_alpheus");
    let line = format!("{program} init {} --output {}", file.display(), output.display());
    let Some(mut terminal) = Terminal::start(&line) else { return };
    terminal.types("", "error that you accept", "much\r");
    terminal.types("expected a percentage", "error that you accept", "1 %\r");
    terminal.types("the nearest possible error is `--error", "error that you accept", "\r");
    let (status, said) = terminal.ends();
    assert!(status.success() && said.contains("First answer"), "{said}");
    assert!(std::fs::read_to_string(output.join("policies.yaml")).unwrap().contains("crowd"));
}

/// A person at a terminal sees how far a long look is; a log gets none of it. The file comes slowly,
/// so that the look is long on any machine.
#[test]
fn a_long_look_shows_its_progress_at_a_terminal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String =
        (0..80_000).map(|n| format!("p{},0{}/04/2024,{n}\n", n % 9, 1 + n % 9)).collect();
    written(&folder, "slow.csv", &format!("user,day,v\n{rows}"));
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let line = |output: &str| {
        let (program, place) = (env!("CARGO_BIN_EXE_alpheus"), folder.path().display());
        format!(
            "(sleep 1.2; cat {place}/slow.csv) > {place}/pipe & {program} init {place}/pipe --yes --output {place}/{output}"
        )
    };
    let Some(terminal) = Terminal::start(&line("shown")) else { return };
    let (status, said) = terminal.ends();
    assert!(status.code() == Some(6) && said.contains("--day-first"), "{said}");
    let shown: Vec<&str> = said.split('\r').filter(|part| part.contains(" MB read, ")).collect();
    assert!(!shown.is_empty(), "{said:?}");
    for line in shown {
        assert!(line.contains('[') && line.contains(" of 4 (") && line.contains("/s"), "{line:?}");
    }
    let ran = bash(folder.path()).args(["-c", &line("logged")]).output().unwrap();
    let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
    assert!(ran.status.code() == Some(6) && !said.contains("MB read"), "{said}");
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) =
        init(&written(&folder, "x.csv", "a,b\n1,2\n3,4\n"), &folder.path().join("o"), &["--yes"]);
    assert!(
        code == 4
            && said.contains("no column holds calendar times")
            && !folder.path().join("o").exists(),
        "{said}"
    );
}

#[test]
fn rows_that_do_not_fit_end_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("steps");
    assert_eq!(init(&written(&folder, "steps.csv", &steps()), &output, &["--yes"]).0, 0);
    let bad = written(&folder, "bad.csv", &steps().replace("13.02.2024 05", "soon"));
    let replay = |more: &[&str]| {
        let mut command = alpheus(["replay"]);
        for (flag, file) in [
            ("--schema", "schema.yaml"),
            ("--source", "source.yaml"),
            ("--policies", "policies.yaml"),
            ("--query", "query.sql"),
            ("--output", "again.csv"),
        ] {
            command.arg(flag).arg(output.join(file));
        }
        let ran = command.arg("--input").arg(&bad).args(more).output().unwrap();
        (ran.status.code().unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let (code, said) = replay(&[]);
    assert!(
        code == 4 && said.contains("12 of 288 rows were refused") && said.contains("--max-refused"),
        "{said}"
    );
    let (code, said) = replay(&["--max-refused", "5%"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_becomes_of_each_column_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..24)
        .map(|n| {
            format!(
                "p{};2024-01-15 {:02}:00;{},5;{};n{n}\n",
                n % 2,
                n / 2,
                n,
                ["low", "high"][n % 2]
            )
        })
        .collect();
    let file = written(&folder, "power.csv", &format!("Person;Zeit;kWh;Tarif;Notiz\n{rows}"));
    let output = folder.path().join("power");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    let readme = std::fs::read_to_string(output.join("README.md")).unwrap();
    for (column, fate) in [
        ("Person", "the owner"),
        ("Zeit", "the time"),
        ("Tarif", "not used: a category with 2 different values"),
        ("Notiz", "left out: it holds texts that hardly repeat"),
    ] {
        assert!(said.contains(&format!("`{column}`: {fate}")), "{said}");
        assert!(readme.contains(&format!("| {column} | {fate} |")), "{readme}");
    }
    assert!(said.contains("`kWh`: measured as kwh [kWh], 24 readings, sum 288.0"), "{said}");
    assert!(
        said.contains("times as in the file") && said.contains("  2024-01-15 00:00:00  "),
        "{said}"
    );
    let (code, said) = init(&file, &folder.path().join("wrong"), &["--yes", "--decimal", "."]);
    assert!(code == 4 && said.contains("`kWh`") && said.contains("--decimal"), "{code} {said}");
    let (code, said) = init(&file, &folder.path().join("when"), &["--yes", "--time-format", "%Y"]);
    assert!(code == 4 && said.contains("%Y-%m-%d %H:%M"), "{code} {said}");
    let place = ["--yes", "--zone", "Europe/Berlin"];
    let (code, said) = init(&file, &folder.path().join("place"), &place);
    assert!(code == 0 && said.contains("zone: Europe/Berlin (certain)"), "{code} {said}");
    // Midnight in UTC is one o'clock there.
    assert!(
        said.contains("times in Europe/Berlin") && said.contains("2024-01-15 01:00:00"),
        "{said}"
    );
    let sure = &understood(&folder.path().join("place"))["sure"];
    assert_eq!(
        sure,
        &serde_json::json!({ "owner": "likely", "time": "certain", "zone": "certain" })
    );
}

#[test]
fn json_lines_and_parquet_become_answers_too() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("readings.parquet");
    std::fs::write(&parquet, include_bytes!("../../../input/tests/readings-snappy.parquet"))
        .unwrap();
    let lines: String = (0..24)
        .map(|n| format!("{{\"person\":\"p{}\",\"at\":\"2024-01-01T{n:02}:30:00Z\",\"body\":{{\"pulse\":{}.50}}}}\n", n % 3, 60 + n))
        .collect();
    let json = written(&folder, "lines.jsonl", &lines);
    for (file, column, sum) in [(&parquet, "paid", "2469.00"), (&json, "body.pulse", "1728.00")] {
        let output = file.with_extension("out");
        let (code, said) = init(file, &output, &["--yes", "--zone", "UTC"]);
        assert_eq!(code, 0, "{said}");
        assert!(output.join("answer.csv").exists());
        reads_the_same(file, &output);
        let understood = understood(&output);
        let own =
            understood["attributes"].as_array().unwrap().iter().find(|own| own["column"] == column);
        assert_eq!(own.unwrap()["sum"].as_str(), Some(sum), "{understood}");
        // A folder with its recording needs no more.
        let recording = output.join(file.file_name().unwrap());
        std::fs::copy(file, &recording).unwrap();
        let ran = alpheus(["suggest"]).arg(&output).output().unwrap();
        let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        let name = recording.file_name().unwrap().to_string_lossy().into_owned();
        assert!(ran.status.success() && said.contains(&name), "{said}");
    }
    let object = written(&folder, "object.json", "{\n\"a\": [1, 2]\n}\n");
    let (code, said) = init(&object, &folder.path().join("object"), &["--yes"]);
    assert!(code == 4 && said.contains("one object per line"), "{code} {said}");
}

/// The schema that was written for a file, and what the written files read of it.
pub(crate) fn recorded(file: &Path, folder: &Path) -> (Schema, Recording) {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let schema = Schema::from_yaml(&text("schema.yaml"))
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    Policies::from_yaml(&text("policies.yaml"), &schema).unwrap();
    let source = Source::parse(&text("source.yaml"), &schema).unwrap();
    let bytes = unpacked(file, std::fs::File::open(file).unwrap());
    let recording = rows::read(bytes, &source, &schema, schema.tick).unwrap();
    (schema, recording)
}

/// The written files read the file to the same counts and sums that were understood.
pub(crate) fn reads_the_same(file: &Path, folder: &Path) {
    let (schema, recording) = recorded(file, folder);
    let understood = understood(folder);
    let left_out = understood["refused"].as_u64().unwrap();
    assert_eq!(recording.refused.total() + recording.untimed, left_out, "{}", file.display());
    for (at, own) in understood["attributes"].as_array().unwrap().iter().enumerate() {
        let (mut count, mut sum) = (0u64, 0i128);
        for cell in recording.streams.iter().flat_map(|s| s.events()).map(|event| &event.cells[at])
        {
            match cell {
                Cell::Absent => continue,
                Cell::Number(value) => sum += i128::from(*value),
                Cell::Boolean(yes) => sum += i128::from(*yes),
                Cell::Text(_) => {}
            }
            count += 1;
        }
        let place = format!("{}: {}", file.display(), own["column"]);
        assert_eq!(count, own["count"].as_u64().unwrap(), "{place}");
        let scale = match schema.attributes[at].kind {
            AttributeKind::Number { scale, .. } => scale,
            _ => 0,
        };
        if own["scale"].as_u64() == Some(scale.into()) {
            assert_eq!(format_scaled(sum, scale), own["sum"].as_str().unwrap(), "{place}");
        }
    }
}

#[test]
fn the_guide_works_as_it_is_written() {
    let guide = include_str!("../../../../docs/bring-your-data.md");
    let folder = tempfile::tempdir().unwrap();
    for block in guide.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let ran = bash(folder.path()).args(["-euc", block]).output().unwrap();
        let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        assert!(ran.status.success(), "{block}\n{said}");
    }
}
