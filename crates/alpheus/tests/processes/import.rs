//! `alpheus import`: a contract becomes files that other commands read, and what is not in them
//! is listed.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::{alpheus, bash};
use alpheus_test_support::skip;
use std::path::{Path, PathBuf};

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
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (contract, output) = (written(&folder, CONTRACT), folder.path().join("shop"));
    assert_eq!(import(&contract, &output, &[]).0, 0);
    let (code, said) = import(&contract, &output, &[]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("nothing is overwritten"), "{said}");
}

#[test]
fn rules_without_a_table_are_undecided_until_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let rules = r#"{"ruleSet": {"domainRules": [{"name": "r", "type": "CEL"}]}}"#;
    let contract = written(&folder, rules);
    let (code, said) = import(&contract, &folder.path().join("a"), &[]);
    assert_eq!(code, 6, "{said}");
    assert!(folder.path().join("a/import.json").exists());
    assert_eq!(import(&contract, &folder.path().join("b"), &["--yes"]).0, 0);
}

#[test]
fn a_file_of_no_known_standard_is_refused_with_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = import(&written(&folder, "a: 1\n"), &folder.path().join("out"), &[]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("Open Data Contract Standard 3.x"), "{said}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn every_real_contract_is_imported() {
    let Some(contracts) = skip::real_data().map(|folder| folder.join("contracts")) else { return };
    let Ok(files) = std::fs::read_dir(&contracts) else {
        return skip::skip("there is no folder `contracts` in the folder of ALPHEUS_REAL_DATA");
    };
    let folder = tempfile::tempdir().unwrap();
    for (number, file) in files.enumerate() {
        let file = file.unwrap().path();
        let output = folder.path().join(number.to_string());
        let (code, said) = import(&file, &output, &["--yes"]);
        assert_eq!(code, 0, "{}: {said}", file.display());
        let report = std::fs::read_to_string(output.join("import.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert!(!report["not_carried"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_guide_works_as_it_is_written() {
    let guide = include_str!("../../../../docs/standards.md");
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
