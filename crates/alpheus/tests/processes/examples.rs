//! READMEs are true: every command in them runs as it is typed, every query in
//! the first is one.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::{self, copy_folder};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block of shell commands and the exit code that it promises.
struct Block {
    commands: Vec<String>,
    exit: i32,
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The blocks of a README that begin with the fence "```sh", and `exit=3` where
/// each of the block's commands shall end so.
fn blocks(readme: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```sh") else { continue };
        let exit = info.trim().strip_prefix("exit=").map_or(0, |code| code.parse().unwrap());
        let within = lines.by_ref().take_while(|line| *line != "```");
        blocks.push(Block { commands: within.map(str::to_owned).collect(), exit });
    }
    blocks
}

/// Runs an example's README in a copy of its folder and returns all output.
fn follow(example: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&examples().join(example), folder.path());
    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    follow_in(folder.path(), example, &readme)
}

fn follow_in(folder: &Path, example: &str, readme: &str) -> String {
    let path = common::path();
    let mut said = String::new();
    for block in blocks(readme) {
        for command in &block.commands {
            let ran = Command::new("sh")
                .args(["-c", command])
                .current_dir(folder)
                .env("PATH", &path)
                .output()
                .unwrap();
            let output = [ran.stdout, ran.stderr].concat();
            let output = String::from_utf8_lossy(&output);
            assert_eq!(ran.status.code(), Some(block.exit), "{example}: {command}\n{output}");
            said.push_str(&output);
        }
    }
    said
}

/// The forbidden query is refused with the nearest, and these many windows of
/// each replay open, in the README's order.
fn holds(example: &str, opened: &[u32]) {
    let said = follow(example);
    let replays = said.lines().filter(|line| line.ends_with(" opened, 0 did not"));
    let found: Vec<u32> =
        replays.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(found, opened, "{example}: {said}");
    assert_eq!(said.matches("The nearest query that would be allowed:").count(), 1, "{said}");
    assert!(!said.contains("dead letters"), "{said}");
}

#[test]
fn the_first_readme_runs_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&examples(), &folder.path().join("examples"));
    let readme = std::fs::read_to_string(examples().join("../README.md")).unwrap();
    let query = readme.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let file = std::fs::read_to_string(examples().join("fitness/queries/heart-rate.sql")).unwrap();
    assert!(file.ends_with(query), "the query that is shown is the one that is run");
    let said = follow_in(folder.path(), "README.md", &readme);
    assert!(said.contains("6 windows opened, 0 did not"), "{said}");
    assert!(said.contains("HeartRate from FitnessTracker"), "{said}");
}

#[test]
fn fitness_runs_as_its_readme_says() {
    holds("fitness", &[6, 6, 3, 6]);
}

#[test]
fn web_analytics_runs_as_its_readme_says() {
    holds("web-analytics", &[6, 6, 1, 6, 6]);
}

#[test]
fn car_maintenance_runs_as_its_readme_says() {
    holds("car-maintenance", &[6, 6, 1]);
}

#[test]
fn homes_with_noise_run_as_their_readme_says() {
    let said = follow("household");
    assert!(said.contains("(asked: 5 %) in 95 of 100 windows of"), "{said}");
    assert!(said.contains("policies allow: laplace noise of ε = 5"), "{said}");
    assert!(
        said.contains("the schema bounds `energy` by 0 and 450 instead of 0 and 2000"),
        "{said}"
    );
}

/// The real recordings themselves are run by `real_data.rs`; here only the files
/// that the README names must be there.
#[test]
fn the_real_recordings_readme_names_files_that_exist() {
    let folder = examples().join("real");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let blocks = blocks_named_real(&readme);
    let named =
        |word: &&str| word.ends_with(".yaml") || word.ends_with(".sql") || word.ends_with(".py");
    let files: Vec<&str> = blocks.split_whitespace().filter(named).collect();
    assert!(files.len() >= 25, "{files:?}");
    for file in files {
        assert!(folder.join(file).is_file(), "{file}");
    }
}

fn blocks_named_real(readme: &str) -> String {
    readme.split("```sh real\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
