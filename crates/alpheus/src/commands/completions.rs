//! `alpheus completions`: a completion script for a shell.

use super::Cli;
use alpheus_node::failure::{Failure, printed};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  alpheus completions bash > ~/.local/share/bash-completion/completions/alpheus
  alpheus completions fish > ~/.config/fish/completions/alpheus.fish";

/// Arguments of `alpheus completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell to write for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "alpheus", &mut script);
    let mut out = std::io::stdout().lock();
    printed(out.write_all(&script).and_then(|()| out.flush())).map(drop)
}
