//! `alpheus completions`: a completion script for a shell.

use super::Cli;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;

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
/// None today; the signature is every command's.
pub fn run(args: Args) -> Result<(), Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "alpheus", &mut std::io::stdout());
    Ok(())
}
