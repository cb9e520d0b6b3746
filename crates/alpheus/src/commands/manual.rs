//! `alpheus manual`: manual pages, one for each command, for those who make packages.

use super::Cli;
use alpheus_node::failure::{Blame, Failure};
use clap::CommandFactory;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus manual /usr/local/share/man/man1";

/// Arguments of `alpheus manual`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder to write them to; it must exist
    pub folder: PathBuf,
}

/// Writes the pages: `alpheus.1`, `alpheus-server.1` and so on.
///
/// # Errors
/// The folder cannot be written to.
pub fn run(args: &Args) -> Result<(), Failure> {
    clap_mangen::generate_to(Cli::command(), &args.folder).blame_io(&args.folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let folder = tempfile::tempdir().unwrap();
        run(&Args { folder: folder.path().to_owned() }).unwrap();
        for page in ["alpheus", "alpheus-server", "alpheus-controller-run", "alpheus-ca"] {
            let text = std::fs::read_to_string(folder.path().join(format!("{page}.1"))).unwrap();
            assert!(text.contains(".TH"), "{page}");
            assert!(page == "alpheus" || text.contains("Examples:"), "{page}: {text}");
        }
        assert!(!folder.path().join("alpheus-manual.1").exists(), "it is hidden");
    }
}
