//! Every example in `--help` is pasted into a shell and does what it says: in a folder with the files
//! that it names, and beside the servers that it calls. Those that cannot run here are listed with
//! the reason.
//!
//! - [`files`]: commands over files,
//! - [`authority`]: the certificate authority, and owners' requests to it,
//! - [`operations`]: what is wrong, backups, and what is restored,
//! - [`streams`]: one deployment of encrypted streams, and those who call it,
//! - [`moves`]: owners who move to another controller,
//! - [`tables`]: one table on a server, and its owner,
//! - [`passes`]: access passes, a service behind them, and gates,
//! - [`statistics`]: accountable statistics,
//! - [`boards`]: an anonymous board of each kind,
//! - [`verified`]: rows that prove themselves, and evidence,
//! - [`clock`]: a clock that a group moves,
//! - [`elsewhere`]: what does not run here, and why.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

mod authority;
mod boards;
mod clock;
mod elsewhere;
mod files;
mod moves;
mod operations;
mod passes;
mod statistics;
mod streams;
mod tables;
mod verified;

use crate::common::deployment::free;
use crate::common::{Process, bash};
use crate::help;
use alpheus::commands::Cli;
use clap::CommandFactory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

/// A step in a folder. An example is named by its beginning, with single spaces; that of a longer
/// example must say more.
pub(crate) enum Step {
    /// What somebody has done before, whose help has no example of it.
    Own(&'static str),
    /// An example that ends well.
    Runs(&'static str),
    /// An example that serves: a line of its output begins so. It ends with the group.
    Serves(&'static str, &'static str),
    /// The same of somebody else, whose help has no example of it.
    Beside(&'static str, &'static str),
    /// All that serve are stopped.
    Stops,
    /// An example that goes on beside the next steps.
    Begins(&'static str),
    /// All that were begun so end, and end well.
    Ends,
    /// An example that goes on until it is stopped, and has not failed by the end of the group.
    Lasts(&'static str),
}
use Step::{Begins, Beside, Ends, Lasts, Own, Runs, Serves, Stops};

impl Step {
    fn example(&self) -> Option<&'static str> {
        match self {
            Own(_) | Beside(..) | Stops | Ends => None,
            Runs(name) | Serves(name, _) | Begins(name) | Lasts(name) => Some(name),
        }
    }
}

/// All examples, as they are pasted, by their text on one line.
fn examples() -> &'static BTreeMap<String, String> {
    static ALL: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut pages = Vec::new();
        help::all(&Cli::command(), "", &mut pages);
        let of = |(_, mut page): (String, clap::Command)| {
            help::examples(&page.render_long_help().to_string())
        };
        pages.into_iter().flat_map(of).map(|text| (on_one_line(&text), text)).collect()
    })
}

fn on_one_line(text: &str) -> String {
    text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The example of this beginning: the one that is it, else the only one that begins so.
fn example(beginning: &str) -> (&'static str, &'static str) {
    let all = examples();
    if let Some((line, text)) = all.get_key_value(beginning) {
        return (line, text);
    }
    let mut found = all.iter().filter(|(line, _)| line.starts_with(beginning));
    match (found.next(), found.next()) {
        (Some((line, text)), None) => (line, text),
        (None, _) => panic!("no example begins so: {beginning}"),
        (Some(_), Some(_)) => panic!("several examples begin so: {beginning}"),
    }
}

/// A folder with examples, and ports in place of those that examples name.
struct Group {
    folder: tempfile::TempDir,
    ports: Vec<(&'static str, String)>,
    variables: &'static [(&'static str, &'static str)],
    servers: Vec<Process>,
    begun: Vec<Process>,
}

impl Group {
    fn new(ports: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let examples = root().join("examples");
        std::os::unix::fs::symlink(examples, folder.path().join("examples")).unwrap();
        let free = || free().rsplit_once(':').unwrap().1.to_owned();
        let ports = ports.iter().map(|port| (*port, free())).collect();
        Self { folder, ports, variables: &[], servers: Vec::new(), begun: Vec::new() }
    }

    /// The same on a clock that its steps move.
    fn on_a_clock(ports: &[&'static str]) -> Self {
        Self { variables: &[("BASH_ENV", "around.sh")], ..Self::new(ports) }
    }

    /// As it is pasted, but for ports that others may use.
    fn command(&self, text: &str) -> std::process::Command {
        let with_ports = |text: &str| {
            let each = |text: String, (named, free): &(&str, String)| {
                text.replace(&format!(":{named}"), &format!(":{free}"))
            };
            self.ports.iter().fold(text.to_owned(), each)
        };
        let mut command = bash(self.folder.path());
        command.args(["-e", "-c", &with_ports(text)]).env("HOME", self.folder.path());
        for (name, value) in self.variables {
            command.env(name, with_ports(value));
        }
        command
    }

    fn ends_well(&self, text: &str) {
        let output = self.command(text).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}\n{said}\n{log}");
        assert!(!log.contains("panicked"), "{text}\n{log}");
    }

    fn start(&self, text: &str) -> Process {
        Process::start_script(&mut self.command(text))
    }

    fn serves(&mut self, text: &str, line: &str) {
        let mut server = self.start(text);
        server.wait_for_prefix(line);
        self.servers.push(server);
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            let text = step.example().map(|beginning| example(beginning).1);
            match (step, text) {
                (Own(text), _) => self.ends_well(text),
                (Runs(_), Some(text)) => self.ends_well(text),
                (Beside(text, line), _) => self.serves(text, line),
                (Serves(_, line), Some(text)) => self.serves(text, line),
                (Begins(_), Some(text)) => self.begun.push(self.start(text)),
                (Lasts(_), Some(text)) => self.servers.push(self.start(text)),
                (Ends, _) => self.all_end_well(),
                (Stops, _) => self.servers.clear(),
                (_, None) => unreachable!(),
            }
        }
        self.all_end_well();
        for server in &mut self.servers {
            assert!(!server.has_ended(), "{}", server.log());
        }
    }

    fn all_end_well(&mut self) {
        for mut begun in self.begun.drain(..) {
            assert!(begun.wait().success(), "{}", begun.log());
        }
    }
}

#[test]
fn examples_over_files_run() {
    Group::new(&[]).run(files::STEPS);
}

#[test]
fn examples_of_the_authority_run() {
    Group::new(&[]).run(authority::STEPS);
}

#[test]
fn examples_of_streams_run_beside_one_deployment() {
    Group::new(&["7400", "7401", "9400", "7410"]).run(streams::STEPS);
}

#[test]
fn examples_of_operating_run() {
    Group::new(&["7400", "7401"]).run(operations::STEPS);
}

#[test]
fn examples_of_moves_run_beside_two_controllers() {
    Group::new(&["7400", "7401", "7402"]).run(moves::STEPS);
}

#[test]
fn examples_of_tables_run_beside_one_server() {
    let variables = &[
        ("ALPHEUS_IDENTITY", "pki/ada"),
        ("ALPHEUS_STATE", "ada"),
        ("ALPHEUS_SERVER", "https://localhost:7601"),
    ];
    Group { variables, ..Group::new(&["7601"]) }.run(tables::STEPS);
}

#[test]
fn examples_of_passes_run_beside_one_deployment() {
    Group::on_a_clock(&["7443", "7444", "7501", "7502", "7503", "7600", "8000"]).run(passes::STEPS);
}

#[test]
fn examples_of_statistics_run_beside_one_deployment() {
    Group::on_a_clock(&["7701", "7702", "7711", "7721"]).run(statistics::STEPS);
}

#[test]
fn examples_of_boards_run_beside_each_kind() {
    Group::on_a_clock(&["7501", "7601", "7602", "7603", "7604"]).run(boards::STEPS);
}

#[test]
fn examples_of_verified_rows_run_beside_one_deployment() {
    Group::on_a_clock(&["7400", "7401"]).run(verified::STEPS);
}

/// The examples that the groups above run.
fn run_here() -> BTreeSet<&'static str> {
    let groups = [
        files::STEPS,
        authority::STEPS,
        streams::STEPS,
        operations::STEPS,
        moves::STEPS,
        tables::STEPS,
        passes::STEPS,
        statistics::STEPS,
        boards::STEPS,
        verified::STEPS,
    ];
    let steps = groups.into_iter().flatten().filter_map(Step::example);
    steps.map(|beginning| example(beginning).0).collect()
}

/// A reason stands for one example, not for all that begin alike. A guide is one only if it has the
/// example as it is, and a test runs the guide.
#[test]
fn every_example_runs_or_says_why_not() {
    let run = run_here();
    let mut left: BTreeSet<&str> = examples().keys().map(String::as_str).collect();
    left.retain(|line| !run.contains(line));
    for (beginning, why) in elsewhere::EXAMPLES {
        let (line, _) = example(beginning);
        assert!(left.remove(line), "it runs, or stands here twice: {line}");
        match why {
            Ok(guide) => assert!(is_run_in(guide, line), "no test of {guide} runs this: {line}"),
            Err(reason) => assert!(reason.len() > 20, "{line}: {reason}"),
        }
    }
    assert_eq!(left, BTreeSet::new(), "these examples are run by no test");
    assert!(run.len() >= 180, "only {} examples are run", run.len());
}

/// Whether a guide has this command, in a block that a test runs.
fn is_run_in(guide: &str, line: &str) -> bool {
    let text = std::fs::read_to_string(root().join(guide)).unwrap();
    let is_run = elsewhere::GUIDES.iter().any(|(page, by)| *page == guide && by.is_ok());
    let is_typed = |begins: &str| line.starts_with(begins);
    let is_run_typed = elsewhere::TERMINALS
        .iter()
        .find(|(page, begins, _)| *page == guide && is_typed(begins))
        .is_some_and(|(.., by)| by.is_ok());
    let blocks = text.split("\n```sh").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let mut lines = blocks.flat_map(|block| block.lines().skip(1));
    is_run && lines.any(|has| has == line)
        || is_run_typed && in_terminals(&text).iter().any(|has| has == line)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn has_commands(page: &Path) -> bool {
    std::fs::read_to_string(page).unwrap().lines().any(|line| line.starts_with("```sh"))
}

#[test]
fn every_guide_is_run_or_says_why_not() {
    let root = root();
    let mut found = BTreeSet::from(["README.md".to_owned()]);
    ["docs", "examples"].iter().for_each(|folder| pages_below(&root, folder, &mut found));
    found.retain(|page| has_commands(&root.join(page)));
    let known: BTreeSet<String> =
        elsewhere::GUIDES.iter().map(|(page, _)| (*page).to_owned()).collect();
    assert_eq!(found, known);
    for (page, by) in elsewhere::GUIDES {
        let Ok(test) = by else { continue };
        let path = root.join("crates/alpheus/tests/processes").join(test);
        let code = std::fs::read_to_string(path).unwrap();
        // Examples are followed by the names of their folders.
        let name = page.strip_prefix("examples/").and_then(|rest| rest.split('/').next());
        assert!(code.contains(name.unwrap_or(page)), "{test} does not run {page}");
    }
}

/// The commands of a page's blocks of a terminal, each on one line, without what they print.
fn in_terminals(page: &str) -> Vec<String> {
    let blocks = page.split("\n```console\n").skip(1);
    let mut found: Vec<String> = Vec::new();
    for block in blocks.map(|rest| rest.split("\n```").next().unwrap()) {
        let mut goes_on = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "));
            match (command, found.last_mut()) {
                (Some(command), _) => found.push(command.to_owned()),
                (None, Some(last)) if goes_on => *last = format!("{last}\n{line}"),
                _ => continue,
            }
            goes_on = line.ends_with('\\');
        }
    }
    found.iter().map(|text| on_one_line(text.split("  #").next().unwrap())).collect()
}

/// Every command in a block of a terminal is an example that is run above, or is named with the test that
/// runs it, or with the reason why none does.
#[test]
fn every_command_in_a_terminal_is_run_or_says_why_not() {
    let root = root();
    let mut pages = BTreeSet::from(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]);
    for folder in ["docs", "examples", "bindings", "deploy", "drills"] {
        pages_below(&root, folder, &mut pages);
    }
    let (run, mut left, mut used) = (run_here(), Vec::new(), BTreeSet::new());
    for page in &pages {
        for command in in_terminals(&std::fs::read_to_string(root.join(page)).unwrap()) {
            let is_named = |(_, (own, begins, _)): &(usize, &(&str, &str, _))| {
                own == page && command.starts_with(begins)
            };
            match elsewhere::TERMINALS.iter().enumerate().find(is_named) {
                Some((position, _)) => drop(used.insert(position)),
                None if run.contains(&*command) => {}
                None => left.push(format!("{page}: {command}")),
            }
        }
    }
    assert_eq!(left, [""; 0], "no test runs these, and no reason is given");
    for (position, (page, begins, by)) in elsewhere::TERMINALS.iter().enumerate() {
        assert!(used.contains(&position), "{page} has no command that begins so: {begins}");
        match by {
            Ok(test) => {
                let path = root.join("crates/alpheus/tests/processes").join(test);
                let code = std::fs::read_to_string(path).unwrap();
                assert!(code.contains(page), "{test} does not run {page}");
            }
            Err(reason) => assert!(reason.len() > 20, "{page}: {reason}"),
        }
    }
}

/// The pages of a folder and those below it.
fn pages_below(root: &Path, folder: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        let is_ours = !["node_modules", "target", ".venv"].iter().any(|own| name.ends_with(own));
        if entry.file_type().unwrap().is_dir() && is_ours {
            pages_below(root, &name, found);
        } else if name.ends_with(".md") {
            found.insert(name);
        }
    }
}
