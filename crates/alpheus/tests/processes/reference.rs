//! The reference is true: pages that are made from the code are the same as the code makes them,
//! and every word of the languages has an example that is read here.
//!
//! With the variable `WRITE_REFERENCE` the pages are written instead of compared.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use alpheus::commands::Cli;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Function, Statement, parse};
use alpheus_policy::schema::Schema;
use clap::CommandFactory;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

fn is_made(name: &str, made: &str) {
    if std::env::var_os("WRITE_REFERENCE").is_some() {
        fs::write(page(name), made).unwrap();
    }
    let found = fs::read_to_string(page(name)).unwrap();
    let differs = found.lines().zip(made.lines()).find(|(found, made)| found != made);
    assert!(
        found == made,
        "docs/reference/{name} is not what the code makes: {differs:?}; write it with WRITE_REFERENCE=1"
    );
}

/// The help of a command and of all below it.
fn describe(command: &mut clap::Command, above: &str, out: &mut String) {
    let name = format!("{above} {}", command.get_name()).trim().to_owned();
    let help = command.render_long_help().to_string();
    // Common options are the same everywhere.
    let (before, after) = help.split_once("\nCommon options:\n").unwrap_or((&help, ""));
    let examples = after.find("\nExamples:").map_or("", |at| &after[at..]);
    let shown = if above.is_empty() { help.clone() } else { format!("{before}{examples}") };
    let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## {name}\n\n```text\n{}\n```\n", shown.join("\n").trim_end());
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        describe(below, &name, out);
    }
}

#[test]
#[cfg(all(feature = "board", feature = "pass", feature = "stats", feature = "table"))]
fn the_pages_of_commands_and_errors_are_made_from_the_code() {
    is_made("errors.md", &alpheus::errors::page());
    let mut commands = String::from(
        "# Commands\n\nEvery command as its `--help` shows it. Options that all commands have are \
         listed once, under `alpheus`.\n",
    );
    let mut all = Cli::command();
    all.build();
    describe(&mut all, "", &mut commands);
    is_made("commands.md", &commands);
}

/// The fenced blocks of a language on a page.
fn blocks(name: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(page(name)).unwrap();
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_example_of_the_languages_is_read() {
    let schemas = blocks("schema.md", "yaml");
    assert!(!schemas.is_empty());
    let read: Vec<Schema> = schemas.iter().map(|text| Schema::from_yaml(text).unwrap()).collect();
    for text in blocks("policies.md", "yaml") {
        let named = text.lines().find_map(|line| line.strip_prefix("schema: ")).unwrap();
        let schema = read.iter().find(|schema| schema.name == named.trim()).unwrap();
        Policies::from_yaml(&text, schema).unwrap();
    }
    for text in blocks("source.md", "yaml") {
        let named = text.lines().find_map(|line| line.strip_prefix("schema: ")).unwrap();
        let schema = read.iter().find(|schema| schema.name == named.trim()).unwrap();
        alpheus_input::source::Source::parse(&text, schema).unwrap();
    }
    for text in blocks("settings.md", "toml") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alpheus.toml");
        fs::write(&path, &text).unwrap();
        let output = alpheus(["check", path.to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{text}");
    }
}

/// With the schema and the policies of the reference, each statement is planned, but for the one that the page
/// says needs a service.
#[test]
fn every_statement_is_planned() {
    const REFUSED: &str = "there is no running query to drop";
    let folder = tempfile::tempdir().unwrap();
    for (page, name) in [("schema.md", "schema.yaml"), ("policies.md", "policies.yaml")] {
        fs::write(folder.path().join(name), &blocks(page, "yaml")[0]).unwrap();
    }
    let statements = blocks("query-language.md", "sql");
    assert!(statements.len() >= 25, "{}", statements.len());
    let mut refused = 0;
    for text in statements {
        let is_create = matches!(parse(&text), Ok(Statement::Create(_)));
        let sql = if is_create { format!("EXPLAIN {text}") } else { text };
        let files = ["query", "--schema", "schema.yaml", "--policies", "policies.yaml"];
        let owners = ["--controllers", "per-owner", "--metadata", "floor=1,2", "--query", &sql];
        let output = alpheus([&files[..], &owners].concat()).current_dir(folder.path()).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        match sql.starts_with("DROP") {
            true => assert!(said.contains(REFUSED), "{said}"),
            false => assert!(output.status.success(), "{sql}\n{said}"),
        }
        refused += usize::from(!output.status.success());
    }
    assert!(
        refused == 1 && fs::read_to_string(page("query-language.md")).unwrap().contains(REFUSED)
    );
}

/// The keys and words of a JSON Schema, at all depths.
fn keys_and_words(of: &Value, found: &mut BTreeSet<String>) {
    match of {
        Value::Object(map) => {
            // A key may have this name, too; its rule is not that of a map.
            let is_rule = map.contains_key("type") || map.contains_key("required");
            let keys = map.get("properties").filter(|_| is_rule).and_then(Value::as_object);
            found.extend(keys.into_iter().flatten().map(|(key, _)| key.clone()));
            let words = map.get("enum").and_then(Value::as_array);
            found.extend(
                words.into_iter().flatten().filter_map(|word| Some(word.as_str()?.to_owned())),
            );
            map.values().for_each(|own| keys_and_words(own, found));
        }
        Value::Array(list) => list.iter().for_each(|own| keys_and_words(own, found)),
        _ => {}
    }
}

/// The JSON Schemas agree with the parsers, so these are all keys that there are.
#[test]
fn every_key_of_the_files_that_people_write_is_on_its_page() {
    for (kind, least) in [("schema", 50), ("policies", 10), ("source", 40), ("settings", 60)] {
        let ran = alpheus(["check", "--json-schema", kind]).output().unwrap();
        let mut found = BTreeSet::new();
        keys_and_words(&serde_json::from_slice(&ran.stdout).unwrap(), &mut found);
        assert!(found.len() > least, "{kind}: {}", found.len());
        // A bar ends a cell of a table.
        let text = fs::read_to_string(page(&format!("{kind}.md"))).unwrap().replace("\\|", "|");
        let within = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let words: BTreeSet<&str> = text.split(|c: char| !within(c)).collect();
        let is_there = |word: &str| words.contains(word) || text.contains(&format!("`{word}`"));
        let missing: Vec<&String> = found.iter().filter(|word| !is_there(word)).collect();
        assert_eq!(missing, [""; 0], "{kind}.md does not explain these");
    }
}

/// Every function, and every word that begins a part of a statement, stands in one that is read.
#[test]
fn every_word_of_the_query_language_is_in_a_statement() {
    let all = blocks("query-language.md", "sql").join("\n").to_uppercase();
    let words: BTreeSet<&str> = all.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let missing: Vec<&str> = Function::names().filter(|name| !words.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
    for file in ["parser", "windows", "settings"] {
        for word in words_of(&format!("crates/policy/src/query/{file}.rs")) {
            // It stands where the parser says what there is not.
            let none = word == "ADVANCE";
            assert!(none || words.contains(&*word.to_uppercase()), "{word} of {file}.rs");
        }
    }
}

/// The words that a parser knows stand on the page of its language.
fn has_words(source: &str, name: &str) -> usize {
    let text = fs::read_to_string(page(name)).unwrap();
    let words = words_of(source);
    for word in &words {
        assert!(text.contains(word.as_str()), "{name} does not explain `{word}` of {source}");
    }
    words.len()
}

/// The words that a parser's code asks for.
fn words_of(source: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let code = fs::read_to_string(root.join(source)).unwrap();
    // What tests say is no word of the language.
    let code = code.split("#[cfg(test)]").next().unwrap();
    let asked = ["need(\"", "word(\"", "is(\""];
    let found = asked.iter().flat_map(|before| code.split(before).skip(1));
    let word = |rest: &str| rest.split('"').next().unwrap().to_owned();
    let is_word = |word: &String| {
        let plain = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        !word.is_empty() && word.chars().all(plain)
    };
    found.map(word).filter(is_word).collect()
}

#[test]
fn every_word_of_the_query_language_is_on_its_page() {
    let mut words = 0;
    for file in ["parser", "windows", "settings"] {
        words += has_words(&format!("crates/policy/src/query/{file}.rs"), "query-language.md");
    }
    assert!(words >= 20, "{words}");
}
