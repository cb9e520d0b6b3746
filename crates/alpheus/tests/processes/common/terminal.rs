//! A command at a terminal, at which somebody types.

use super::deployment::until_or;
use alpheus_test_support::skip;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The terminal.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    said: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

/// The end of the input: Ctrl-D.
pub(crate) const END: &str = "\x04";

impl Terminal {
    /// Starts a line of shell at a terminal; none if this machine has no `script`.
    pub(crate) fn start(line: &str) -> Option<Self> {
        if !skip::has_program("script") {
            return None;
        }
        let mut script = Command::new("script");
        let mut child = script
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let reader = std::thread::spawn({
            let said = said.clone();
            move || {
                let (mut shown, mut some) = (shown, [0; 4096]);
                while let Ok(length @ 1..) = shown.read(&mut some) {
                    said.lock().unwrap().push_str(&String::from_utf8_lossy(&some[..length]));
                }
            }
        });
        Some(Self { child, keys, said, reader })
    }

    /// Types, once these words have appeared and `prompt` after them. Input typed before the prompt is
    /// there would be lost.
    pub(crate) fn types(&mut self, after: &str, prompt: &str, keys: &str) {
        let is_there = || {
            let said = self.said.lock().unwrap();
            // The empty text is looked for everywhere.
            let at = if after.is_empty() { Some(0) } else { said.rfind(after) };
            at.is_some_and(|at| said[at..].contains(prompt)).then_some(())
        };
        until_or(|| format!("no `{prompt}`: {:?}", self.said.lock().unwrap()), is_there);
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for its end; all that it has shown.
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        let said = self.said.lock().unwrap().clone();
        (status, said)
    }
}
