//! The tour's deployment in separate terminals, exactly as it is written, but on
//! ports that are free: each command runs in a shell of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common;
use crate::common::{Process, free_row};
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tour's processes serve at so many ports.
const PORTS: u16 = 5;

struct Block {
    terminal: bool,
    text: String,
}

/// The fenced commands of a section.
fn blocks(text: &str, section: &str) -> Vec<Block> {
    let section = text.split(section).nth(1).unwrap().split("\n## ").next().unwrap();
    let fenced = section.split("```sh").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = |fenced: &str| {
        let (kind, text) = fenced.split_once('\n').unwrap();
        Block { terminal: kind.trim() == "terminal", text: text.to_owned() }
    };
    fenced.map(block).collect()
}

fn shell(folder: &Path, text: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-e", "-c", text]).current_dir(folder).env("PATH", common::path());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// A terminal, that is closed with all that runs in it.
struct Terminal(Process);

impl Drop for Terminal {
    fn drop(&mut self) {
        self.0.hang_up();
        if std::thread::panicking() {
            eprintln!("a terminal said:\n{}", self.0.log());
        }
    }
}

#[test]
fn the_deployment_runs_as_the_tour_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    std::os::unix::fs::symlink(root.join("examples/household"), examples.join("household"))
        .unwrap();
    let mut text = std::fs::read_to_string(root.join("docs/tour.md")).unwrap();
    let first = free_row(PORTS);
    for number in 0..PORTS {
        text = text.replace(&format!("740{number}"), &(first + number).to_string());
    }
    let (mut terminals, mut results, mut homes) = (Vec::new(), None, 3);
    for block in blocks(&text, "\n## In separate terminals") {
        if !block.terminal {
            if let Some(results) = &mut results {
                row(results, homes, 0);
            }
            let before = results.as_ref().map_or(0, lines);
            done(folder.path(), &block.text);
            if let Some(results) = results.as_mut().filter(|_| block.text.contains("-STOP")) {
                shut(results, before);
                let before = lines(results);
                row(results, homes, before);
            }
            if block.text.contains("DROP") {
                (results, homes) = (None, 4);
            }
            continue;
        }
        let mut process = Process::start(&mut shell(folder.path(), &block.text));
        if block.text.contains("--api") {
            process.wait_for_prefix("serving at ");
        } else if block.text.contains("alpheus console") {
            process.wait_for_prefix("http://");
        }
        match block.text.contains("--follow") {
            true => results = Some(Terminal(process)),
            false => terminals.push(Terminal(process)),
        }
    }
    assert_eq!(terminals.len(), 9, "all terminals of the tour");
    row(&mut results.unwrap(), homes, 0);
}

fn lines(results: &Terminal) -> usize {
    results.0.log().lines().count()
}

/// A window over all homes, after so many lines.
fn row(results: &mut Terminal, homes: u32, after: usize) {
    let end = format!(",{homes},0,0,ok");
    line(results, after, &format!("row over {homes} homes"), |line| line.ends_with(&end));
}

/// A window that stayed shut.
fn shut(results: &mut Terminal, after: usize) {
    line(results, after, "window that stays shut", |line| !line.ends_with(",ok"));
}

fn line(results: &mut Terminal, after: usize, what: &str, is_it: impl Fn(&str) -> bool) {
    let seen = Cell::new(0);
    results.0.wait_for(what, |line| {
        seen.set(seen.get() + 1);
        (seen.get() > after && is_it(line)).then_some(())
    });
}

/// Runs to its end. A command that has to wait for another terminal is tried again.
fn done(folder: &Path, text: &str) {
    let until = std::time::Instant::now() + common::PATIENCE;
    loop {
        let ran = shell(folder, text).stdin(Stdio::null()).output().unwrap();
        if ran.status.success() {
            return;
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let early = said.contains("owners with data are required") || said.contains("no stream of");
        if !early || std::time::Instant::now() > until {
            panic!("{text}\n{said}");
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}
