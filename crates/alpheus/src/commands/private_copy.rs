//! `alpheus private-copy`: keys that a container gets, for its user alone.
//!
//! Files that an orchestrator mounts belong to somebody else, or a group can read them, and such keys are
//! refused. An image need not have a shell that could copy them.

use alpheus_node::failure::{Blame, Failure};
use alpheus_node::files::{Readers, remove_if_there, write_new};
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus private-copy /from/identity /from/key --to /identity";

/// Arguments of `alpheus private-copy`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders whose files are copied, except files whose names begin with a dot
    #[arg(required = true, value_name = "FOLDER")]
    from: Vec<PathBuf>,
    /// The folder to copy them to; files of these names in it are replaced
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

/// Copies the files.
///
/// # Errors
/// One cannot be read or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.from.iter().try_for_each(|folder| copy(folder, &args.to))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from).blame_io(from)? {
        let (name, file) = entry.map(|entry| (entry.file_name(), entry.path())).blame_io(from)?;
        // Kubernetes keeps what it mounts in folders of such names, and links to it.
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if is_hidden || !fs::metadata(&file).blame_io(&file)?.is_file() {
            continue;
        }
        let copied = to.join(name);
        remove_if_there(&copied).blame_io(&copied)?;
        write_new(&copied, fs::read(&file).blame_io(&file)?, Readers::Owner)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn keys_are_copied_through_links_for_the_user_alone_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [mounted, to] = ["mounted", "to"].map(|name| folder.path().join(name));
        fs::create_dir_all(mounted.join("..data")).unwrap();
        fs::create_dir(&to).unwrap();
        symlink("..data/tls.key", mounted.join("tls.key")).unwrap();
        let args = Args { from: vec![mounted.clone()], to: to.clone() };
        for key in ["a key", "another key"] {
            fs::write(mounted.join("..data/tls.key"), key).unwrap();
            fs::set_permissions(mounted.join("..data/tls.key"), fs::Permissions::from_mode(0o440))
                .unwrap();
            run(&args).unwrap();
            assert_eq!(fs::read_to_string(to.join("tls.key")).unwrap(), key);
            let mode = fs::metadata(to.join("tls.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            fs::remove_file(mounted.join("..data/tls.key")).unwrap();
        }
        assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
    }
}
