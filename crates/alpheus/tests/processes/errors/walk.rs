//! Provokes failures by what people do wrong, in a shell, and holds each to what it must say.

use crate::common::bash;
use alpheus_policy::query::parse;
use std::path::Path;
use std::process::Command;

/// A failure: its id, the exit code, the command that is wrong, a part of what it says, and a part of
/// its line `help: …`, which is empty where there is no such line.
pub(super) struct Case(
    pub(super) &'static str,
    pub(super) i32,
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) &'static str,
);

/// A folder in which commands go wrong, and the variables that they use.
pub(super) struct Ground<'a> {
    pub(super) folder: &'a Path,
    pub(super) variables: &'a [(&'a str, String)],
}

impl Ground<'_> {
    fn shell(&self, script: &str) -> Command {
        let mut shell = bash(self.folder);
        shell.args(["-e", "-c", script]).stdin(std::process::Stdio::null());
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell
    }

    /// What is there before anything goes wrong.
    pub(super) fn prepare(&self, script: &str) {
        crate::common::ended_well(&mut self.shell(script));
    }

    /// Every case ends as it says. All that do not are reported at once.
    pub(super) fn walk(&self, cases: &[Case]) {
        let wrong: Vec<String> = cases.iter().filter_map(|case| self.provoke(case).err()).collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
    }

    fn provoke(&self, Case(id, code, command, says, help): &Case) -> Result<(), String> {
        let output = self.shell(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_wrong = |what: &str| Err(format!("{id}: {what}: {command}\n{said}"));
        if output.status.code() != Some(*code) {
            return is_wrong(&format!("it ended with {:?}, not {code}", output.status.code()));
        }
        let Some((before, after)) = said.split_once("more: alpheus errors ") else {
            return is_wrong("it printed no id");
        };
        let (printed, after) = after.split_once('\n').unwrap_or((after, ""));
        if printed != *id {
            return is_wrong(&format!("it printed the id {printed}"));
        }
        if !before.contains(says) {
            return is_wrong(&format!("it does not say {says:?}"));
        }
        // Some problems are explained over several lines, and its help is the last of them.
        let helps: Vec<&str> =
            before.lines().filter_map(|line| line.strip_prefix("help: ")).collect();
        let is_helped = match help.is_empty() {
            true => helps.is_empty(),
            false => helps.len() == 1 && helps[0].contains(help),
        };
        if !is_helped {
            return is_wrong(&format!("its help is {helps:?}, not {help:?}"));
        }
        // After it there is nothing but a query to paste.
        match after.strip_prefix("The nearest query that would be allowed:\n") {
            Some(query) if parse(query).is_err() => is_wrong("its query cannot be pasted"),
            None if !after.is_empty() => is_wrong("more follows"),
            _ => Ok(()),
        }
    }
}
