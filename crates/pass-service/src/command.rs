//! Commands that operators and subscribers write: a shell runs one, for a limited time, with text
//! as input, and takes what it prints.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// A pipe holds this much, so writing to it does not block.
pub const MAX_INPUT: usize = 4 << 10;
/// No command prints more.
const MAX_OUTPUT: u64 = 64 << 10;

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It cannot be run.
    #[error("the command cannot be run: {0}")]
    Io(#[from] std::io::Error),
    /// It did not end.
    #[error("the command took longer than {} seconds", .0.as_secs())]
    Slow(Duration),
    /// It printed too much.
    #[error("the command printed more than 64 KiB")]
    Long,
}

/// What a command prints, if it exits with 0. Input goes to its standard input: arguments would
/// be visible to other users of the machine, and would need quoting.
///
/// # Errors
/// [`CommandError`]. A command that takes too long is killed, with all that it started.
pub fn run(
    command: &str,
    input: &str,
    limit: Duration,
) -> Result<Option<Zeroizing<Vec<u8>>>, CommandError> {
    let end = Instant::now() + limit;
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.process_group(0).spawn()?;
    let printed = child.stdout.take().map(printed);
    if let Some(mut stdin) = child.stdin.take() {
        // The command may exit without reading its input.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = wait(&mut child, end)?;
    let left = || end.saturating_duration_since(Instant::now());
    // Something that it started may still hold its output open.
    let output = printed.and_then(|printed| printed.recv_timeout(left()).ok());
    match (ended, output) {
        (Some(true), Some(output)) if output.len() as u64 > MAX_OUTPUT => Err(CommandError::Long),
        (Some(true), Some(output)) => Ok(Some(output)),
        (Some(false), _) => Ok(None),
        _ => {
            // Without a process group, at least the command itself.
            kill_all(child.id()).or_else(|_| child.kill())?;
            child.wait()?;
            Err(CommandError::Slow(limit))
        }
    }
}

/// Whether it exits with 0; `None` if it has not ended in time.
fn wait(child: &mut Child, end: Instant) -> std::io::Result<Option<bool>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() > end {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads the output on a thread of its own: a full pipe would stop the command.
fn printed(stdout: ChildStdout) -> Receiver<Zeroizing<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = Zeroizing::new(Vec::with_capacity(4 << 10));
        if stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output).is_ok() {
            // Nobody may wait for it any more.
            let _ = sender.send(output);
        }
    });
    receiver
}

/// Kills a process group: a command and all processes that it started.
fn kill_all(group: u32) -> std::io::Result<()> {
    let mut kill = Command::new("sh");
    let kill = kill.args(["-c", "kill -s KILL -- \"-$1\"", "sh", &group.to_string()]);
    let killed = kill.status()?.success();
    if killed { Ok(()) } else { Err(std::io::Error::other("no such process group")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_command_reads_its_input_and_prints_its_result() {
        let result = |command: &str| run(command, "one\ntwo\n", LIMIT).unwrap();
        assert_eq!(result("read a; read b; echo \"$b$a\"").unwrap().as_slice(), b"twoone\n");
        assert!(result("echo no; exit 1").is_none());
        assert!(matches!(run("yes", "", LIMIT), Ok(None) | Err(CommandError::Long)));
        let long = "head -c 100000 /dev/zero || true";
        assert!(matches!(run(long, "", LIMIT), Err(CommandError::Long)));
    }

    /// The processes that it started are killed too.
    #[test]
    fn a_command_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ticks = folder.path().join("ticks");
        let every = format!("while sleep 0.05; do echo >> {}; done", ticks.display());
        let length = || std::fs::metadata(&ticks).map_or(0, |file| file.len());
        let mut short = Duration::from_millis(300);
        for hangs in [format!("({every}) & wait"), format!("({every}) &")] {
            let _ = std::fs::remove_file(&ticks);
            // On a loaded machine it may be killed before its first tick. That shows nothing.
            while length() == 0 {
                assert!(matches!(run(&hangs, "", short), Err(CommandError::Slow(_))), "{hangs}");
                short *= if length() == 0 { 2 } else { 1 };
                assert!(short < LIMIT * 10, "it never ran: {hangs}");
            }
            let then = length();
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(length(), then, "it still runs");
        }
    }
}
