//! What `alpheus init` promises to programs and to people: its files, the keys of `understood.json`,
//! and the commands and lines of the `README.md` that it writes.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::bash;
use crate::init::{ask, init, steps, understood, written};
use serde_json::{Value, json};

/// The files of every run that understood its input.
const FILES: [&str; 6] =
    ["schema.yaml", "source.yaml", "policies.yaml", "query.sql", "README.md", "understood.json"];

/// A key, and what its value has to be.
type Key = (&'static str, fn(&Value) -> bool);

/// The keys that programs read, with the types of their values.
fn keeps_the_contract(understood: &Value) {
    let kinds: [Key; 8] = [
        ("owner", |own| own.is_string() || own.is_null()),
        ("time", |own| own.as_array().is_some_and(|own| own.iter().all(Value::is_string))),
        ("time_format", Value::is_string),
        ("zone", Value::is_string),
        ("attributes", Value::is_array),
        ("rows", Value::is_u64),
        ("refused", Value::is_u64),
        ("unsure", |own| own.as_array().is_some_and(|own| own.iter().all(Value::is_string))),
    ];
    for (key, is) in kinds {
        assert!(is(&understood[key]), "{key}: {understood}");
    }
    let kinds: [Key; 7] = [
        ("column", Value::is_string),
        ("name", Value::is_string),
        ("type", Value::is_string),
        ("unit", |own| own.is_string() || own.is_null()),
        ("scale", Value::is_u64),
        ("count", Value::is_u64),
        ("sum", |own| own.as_str().is_some_and(|own| own.parse::<f64>().is_ok())),
    ];
    for own in understood["attributes"].as_array().unwrap() {
        for (key, is) in kinds {
            assert!(is(&own[key]), "{key}: {own}");
        }
    }
}

#[test]
fn understood_json_has_the_keys_that_programs_read() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, time: &dyn Fn(u32) -> String| {
        let row = |n: u32| format!("p{},{},{n},{n}.25\n", n % 12, time(n / 12));
        let rows: String = (0..240).map(row).collect();
        let text = format!("user,time,steps,\"weight [kg]\"\n{rows}");
        let output = folder.path().join(name);
        let file = written(&folder, &format!("{name}.csv"), &text);
        let (code, said) = init(&file, &output, &["--yes"]);
        assert_eq!(code, 0, "{name}: {said}");
        FILES.iter().for_each(|file| assert!(output.join(file).exists(), "{file}"));
        let understood = understood(&output);
        keeps_the_contract(&understood);
        understood
    };
    let text = of("text", &|n| format!("2024-02-13 {n:02}:00"));
    let seconds = of("seconds", &|n| format!("{}", 1_707_811_200 + 3600 * n));
    let both = of("both", &|n| match n % 2 {
        0 => format!("2024-02-13 {n:02}:00:00"),
        _ => format!("2024-02-13 {n:02}:00"),
    });
    assert_eq!(text["time_format"], "%Y-%m-%d %H:%M");
    assert_eq!(seconds["time_format"], "epoch seconds");
    assert_eq!(both["time_format"], "%Y-%m-%d %H:%M or %Y-%m-%d %H:%M:%S");
    for understood in [text, seconds, both] {
        assert_eq!((&understood["owner"], &understood["time"]), (&json!("user"), &json!(["time"])));
        assert_eq!((&understood["rows"], &understood["refused"]), (&json!(240), &json!(0)));
        let expected = [
            json!(["steps", "steps", "integer", null, 0, 240, "28680"]),
            json!(["weight [kg]", "weight", "decimal", "kg", 2, 240, "28740.00"]),
        ];
        let keys = ["column", "name", "type", "unit", "scale", "count", "sum"];
        let found = understood["attributes"].as_array().unwrap().iter();
        let found: Vec<Value> = found.map(|own| json!(keys.map(|key| &own[key]))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_matters_and_is_not_known_ends_with_code_6() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(
        &folder,
        "d.csv",
        "user,day,v\na,03/04/2024,1\nb,03/04/2024,2\na,05/04/2024,3\nb,05/04/2024,4\n",
    );
    let output = folder.path().join("a");
    let (code, said) = init(&file, &output, &[]);
    assert!(code == 6 && said.contains("--day-first") && !output.exists(), "{said}");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert_eq!(code, 6, "{said}");
    for file in FILES {
        assert!(output.join(file).exists(), "{file}");
    }
    assert!(!output.join("answer.csv").exists(), "nothing is replayed");
    assert!(!understood(&output)["unsure"].as_array().unwrap().is_empty());
    let (code, said) = init(&file, &folder.path().join("b"), &["--yes", "--day-first"]);
    assert_eq!(code, 0, "{said}");
}

/// The command that the folder's README.md has, from the folder, with the file's name in it.
#[test]
fn the_command_of_the_readme_runs_the_query_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, "steps.csv", &steps());
    let output = folder.path().join("steps");
    assert_eq!(init(&file, &output, &["--yes"]).0, 0);
    let readme = std::fs::read_to_string(output.join("README.md")).unwrap();
    let command = readme.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(command.contains("--input FILE"), "{command}");
    let command = command.replace("FILE", &file.display().to_string());
    let ran = bash(&output).args(["-euc", &command]).output().unwrap();
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command}{log}");
    assert_eq!(ran.stdout, std::fs::read(output.join("answer.csv")).unwrap(), "{log}");
}

/// The lines that the folder's README.md has for groups, word for word. A number is measured all the same.
#[test]
fn what_describes_owners_groups_them_as_the_readme_says() {
    let folder = tempfile::tempdir().unwrap();
    let row = |n: usize| {
        let (own, hour, area) = (n % 24, n / 24, ["north", "south"][n % 2]);
        format!("m{own},2024-02-13 {hour:02}:00,{area},{},{n}.5\n", n % 2 + 7)
    };
    let rows: String = (0..240).map(row).collect();
    let file = written(&folder, "meters.csv", &format!("Meter,Time,Supply Area,Arm,kWh\n{rows}"));
    let output = folder.path().join("meters");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    let readme = std::fs::read_to_string(output.join("README.md")).unwrap();
    let lines = |start: &str| {
        let block = readme.split("```yaml\n").find(|block| block.starts_with(start)).unwrap();
        block.split("```").next().unwrap().to_owned()
    };
    for (name, start) in [("schema.yaml", "metadataAttributes:"), ("source.yaml", "metadata:")] {
        let text = std::fs::read_to_string(output.join(name)).unwrap() + &lines(start);
        std::fs::write(output.join(name), text).unwrap();
    }
    let query = std::fs::read_to_string(output.join("query.sql")).unwrap();
    let (first, _) = query.split_once(';').unwrap();
    assert!(first.contains("AVG(arm)"), "{first}");
    for (by, groups) in [("supply_area", ["north", "south"]), ("arm_of_owner", ["7", "8"])] {
        let (code, rows) = ask(&output, &file, &format!("{first} GROUP BY {by}"));
        assert_eq!(code, 0, "{rows}");
        for group in groups {
            let is_own = |row: &&str| row.split(',').any(|cell| cell == group);
            let mut own = rows.lines().filter(is_own);
            assert!(own.any(|row| row.contains(",12,")), "{by} {group}: {rows}");
        }
    }
}
