//! The program `alpheus`, which holds the consumer's keys and checks rows. This program holds no key.

use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;

/// How `alpheus` is called.
#[derive(Clone, Debug)]
pub(crate) struct Alpheus {
    /// The program.
    pub(crate) program: PathBuf,
    /// The service's URL.
    pub(crate) server: String,
    /// The consumer's identity folder.
    pub(crate) identity: PathBuf,
}

impl Alpheus {
    /// `alpheus query` with more arguments. It ends when this program does.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("query")
            .arg("--server")
            .arg(&self.server)
            .arg("--identity")
            .arg(&self.identity);
        command.args(more).stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}
