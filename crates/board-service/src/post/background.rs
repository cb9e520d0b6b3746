//! `--background`: another process writes, waits and complains, and this one returns once the write
//! is made.

use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::service::children;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The process in the background ended before it had written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the write was not made; see the messages above")]
pub(crate) struct NotWrittenError;

/// Starts this command again without `--background`, gives it the message, and waits for its first
/// report.
pub(super) fn run(message: &[u8]) -> Result<(), Failure> {
    let mut command = Command::new(children::program()?);
    command.args(arguments(std::env::args_os().skip(1))).arg("--report-first");
    // A file without a name, which ends with the last process that has it open.
    let mut errors = tempfile::tempfile().blame(Category::Io)?;
    // In a group of its own, it survives an interrupt at the terminal. It holds on to nothing of this
    // process, so nobody who reads this process's output waits for it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(errors.try_clone().blame(Category::Io)?);
    let mut child = command.spawn().blame(Category::Io)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(message).blame(Category::Io)?;
    }
    let mut lines = String::new();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        output.read_line(&mut lines).blame(Category::Io)?;
        if lines.starts_with("epoch,") {
            output.read_line(&mut lines).blame(Category::Io)?;
        }
    }
    if lines.is_empty() {
        let mut said = String::new();
        errors.rewind().and_then(|()| errors.read_to_string(&mut said)).blame(Category::Io)?;
        std::io::stderr().write_all(said.as_bytes()).blame(Category::Io)?;
        return Err(NotWrittenError).blame(Category::Io);
    }
    write!(std::io::stdout(), "{lines}").blame(Category::Io)
}

/// The arguments without `--background` and `--file`: the message goes through a pipe.
fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut skip) = (Vec::new(), false);
    for one in all {
        let text = one.to_string_lossy();
        if std::mem::take(&mut skip) || text == "--background" || text.starts_with("--file=") {
            continue;
        }
        skip = text == "--file";
        if !skip {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_in_the_background_gets_neither_file_nor_flag() {
        let given = ["board", "post", "--file", "a", "--key", "k", "--background", "--file=b"];
        let kept = arguments(given.into_iter().map(OsString::from));
        assert_eq!(kept, ["board", "post", "--key", "k"]);
    }
}
