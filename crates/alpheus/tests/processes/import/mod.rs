//! `alpheus import`: a contract becomes files that other commands read, and what is not in them
//! is listed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::{alpheus, bash};
use alpheus_test_support::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/import/contracts.py");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");

const CONTRACT: &str = "\
kind: DataContract
apiVersion: v3.1.0
name: Shop
schema:
  - name: orders
    properties:
      - { name: order_id, logicalType: string, primaryKey: true, required: true }
      - { name: customer_id, logicalType: string, tags: [pii] }
      - { name: ordered_at, logicalType: timestamp }
      - { name: total, logicalType: number, physicalType: 'DECIMAL(10,2)', required: true }
    quality:
      - { metric: rowCount, mustBeGreaterThan: 5 }
  - name: returns
    properties:
      - { name: reason, logicalType: integer, classification: restricted }
";

/// Exit code and all that was said.
fn import(contract: &Path, output: &Path, more: &[&str]) -> (i32, String) {
    let mut command = alpheus(["import"]);
    let ran = command.arg(contract).arg("--output").arg(output).args(more).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("contract");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_written_files_are_read_by_query() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("shop");
    let (code, said) = import(&written(&folder, CONTRACT), &output, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("open: returns: no column says when an event happened"), "{said}");
    for suffix in ["", "-returns"] {
        assert!(output.join(format!("schema{suffix}.yaml")).exists());
        assert!(output.join(format!("policies{suffix}.yaml")).exists());
    }
    let mut query = alpheus(["query"]);
    for (flag, file) in
        [("--schema", "schema.yaml"), ("--policies", "policies.yaml"), ("--query", "quality.sql")]
    {
        query.arg(flag).arg(output.join(file));
    }
    let ran = query.output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(said.contains("number of events"), "{said}");
}

#[test]
fn the_report_is_printed_in_the_format_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let contract = written(&folder, CONTRACT);
    let (code, said) = import(&contract, &folder.path().join("csv"), &["--format", "csv"]);
    assert!(code != 0 && said.contains("use --format json or table"), "{said}");
    assert!(!folder.path().join("csv").exists());
    let output = folder.path().join("json");
    let (code, said) = import(&contract, &output, &["--format", "json"]);
    assert_eq!(code, 0, "{said}");
    let printed: serde_json::Value = serde_json::from_str(&said).unwrap();
    let report = std::fs::read_to_string(output.join("import.json")).unwrap();
    assert_eq!(printed, serde_json::from_str::<serde_json::Value>(&report).unwrap());
}

#[test]
fn a_table_without_a_name_is_called_as_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let schema = r#"{"properties": {"a": {"type": "integer"}}}"#;
    let (code, said) = import(&written(&folder, schema), &folder.path().join("out"), &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("  Events: 1 attributes"), "{said}");
    assert!(said.contains("open: Events: no column says"), "{said}");
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (contract, output) = (written(&folder, CONTRACT), folder.path().join("shop"));
    assert_eq!(import(&contract, &output, &[]).0, 0);
    let (code, said) = import(&contract, &output, &[]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("nothing is overwritten"), "{said}");
}

#[test]
fn rules_without_a_table_become_a_schema_that_releases_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rules = r#"{"ruleSet": {"domainRules": [{"name": "r", "type": "CEL"}]}}"#;
    let (code, said) = import(&written(&folder, rules), &folder.path().join("a"), &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("names nothing that can be an attribute"), "{said}");
    let schema = std::fs::read_to_string(folder.path().join("a/schema.yaml")).unwrap();
    assert_eq!(schema.matches("option: ").count(), 1, "{schema}");
    assert!(schema.contains("option: private"), "{schema}");
}

#[test]
fn a_file_of_no_known_standard_is_refused_with_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = import(&written(&folder, "a: 1\n"), &folder.path().join("out"), &[]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("Open Data Contract Standard 3.x"), "{said}");
    assert!(!folder.path().join("out").exists());
}

/// What a program in Python, which reads the contract by itself, finds wrong in an import.
fn faults(contract: &Path, output: &Path) -> String {
    let mut checker = Command::new(PYTHON);
    checker.args(["-B", CHECKER]).arg(contract).arg(output.join("import.json"));
    let ran = checker.output().unwrap();
    let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
    if ran.status.success() { String::new() } else { said }
}

/// As it is written in the guide, without any other flag.
#[test]
fn every_part_of_every_real_contract_is_listed() {
    let Some(contracts) = skip::real_data().map(|folder| folder.join("contracts")) else { return };
    let Ok(files) = std::fs::read_dir(&contracts) else {
        return skip::skip("there is no folder `contracts` in the folder of ALPHEUS_REAL_DATA");
    };
    if !Path::new(PYTHON).exists() {
        return skip::skip("there is no .venv (`make .venv/ready` makes it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for (number, file) in files.iter().enumerate() {
        let output = folder.path().join(number.to_string());
        let (code, said) = import(file, &output, &[]);
        assert_eq!(code, 0, "{}: {said}", file.display());
        assert!(output.join("schema.yaml").exists() && output.join("policies.yaml").exists());
        assert_eq!(faults(file, &output), "", "{}", file.display());
    }
}

#[test]
fn the_checker_notices_what_is_not_listed() {
    if !Path::new(PYTHON).exists() {
        return skip::skip("there is no .venv (`make .venv/ready` makes it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let (contract, output) = (written(&folder, CONTRACT), folder.path().join("shop"));
    assert_eq!(import(&contract, &output, &[]).0, 0);
    assert_eq!(faults(&contract, &output), "");
    let path = output.join("import.json");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for gone in [
        "schema[0]",
        "schema[0].properties[1]",
        "schema[0].properties[1].tags[0]",
        "schema[0].quality[0]",
        "schema[0].quality[0].mustBeGreaterThan",
    ] {
        let mut less = report.clone();
        for list in ["carried", "not_carried"] {
            less[list].as_array_mut().unwrap().retain(|entry| entry["path"] != gone);
        }
        std::fs::write(&path, less.to_string()).unwrap();
        let said = faults(&contract, &output);
        assert!(said.starts_with(&format!("{gone} (")) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn the_guide_works_as_it_is_written() {
    let guide = include_str!("../../../../../docs/standards.md");
    let folder = tempfile::tempdir().unwrap();
    for block in guide.split("```sh\n").skip(1) {
        if cfg!(not(feature = "otlp")) && block.contains("alpheus otlp") {
            continue;
        }
        let block = block.split("```").next().unwrap();
        let ran = bash(folder.path()).args(["-euc", block]).output().unwrap();
        let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        assert!(ran.status.success(), "{said}");
    }
    for file in ["schema.yaml", "policies.yaml", "quality.sql", "import.json"] {
        assert!(
            guide.contains(&format!("| `{file}` |"))
                && folder.path().join("shop").join(file).exists()
        );
    }
    #[cfg(feature = "otlp")]
    {
        let schema = std::fs::read_to_string(folder.path().join("checkout/schema.yaml")).unwrap();
        let named = ["orders_book", "orders_other", "latency_to_2_5", "latency_over_2_5"];
        for name in named {
            assert!(schema.contains(&format!("name: {name},")) && guide.contains(name), "{schema}");
        }
    }
}
