//! `alpheus restore`: new folders from a backup, and what that means.

use crate::backup::lacking;
use alpheus_node::backup::BackupError;
use alpheus_node::backup::archive::{About, Item, Origin, Reader};
use alpheus_node::backup::source::FENCE_BACKUP;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, make_private_folder, read_key_file, write_new};
use alpheus_node::globals::Globals;
use alpheus_node::local_time;
use alpheus_transport::{ExportEntry, local};
use std::fs::{self, DirBuilder, File};
use std::io::BufReader;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus restore --from service.backup --key-file backup.key --identity pki/service \\
      --state run/service
  alpheus restore --from first.backup --slots-from first-slots.backup --key-file backup.key \\
      --identity pki/first --state run/first

The folders must not exist. The process that was backed up must never run again: two processes with
one identity block each other, and the stream of a copied device is excluded. The command prints
what the restored state means.";

/// Arguments of `alpheus restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The backup of the slot file, for a controller
    #[arg(long, value_name = "FILE", requires = "state")]
    slots_from: Option<PathBuf>,
    /// The file with the key or passphrase that opens it
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// The identity folder to create
    #[arg(long, value_name = "FOLDER")]
    identity: Option<PathBuf>,
    /// The state folder to create
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

/// Why a backup is not restored.
#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error("the backup has {0}: say where to put it")]
    NoPlace(&'static str),
    #[error("the backup has no {0}")]
    Missing(&'static str),
    #[error("{0}: it exists, and nothing is overwritten; name another folder")]
    Exists(PathBuf),
    #[error("the backup names a file outside its folder")]
    Outside,
}

/// From a store or a backup.
#[derive(Debug, thiserror::Error)]
enum ImportError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
}

/// Runs the command.
///
/// # Errors
/// The backup is not whole, or does not open, or a folder exists. Then no folder is left behind.
pub fn run(args: &Args, _: &Globals) -> Result<(), Failure> {
    for folder in [&args.identity, &args.state].into_iter().flatten() {
        if folder.exists() {
            return Err(RestoreError::Exists(folder.clone())).blame(Category::Input);
        }
    }
    let secret = read_key_file(&args.key_file)?;
    // Complete or not there: the folders get their names last.
    let [identity, state] =
        [&args.identity, &args.state].map(|folder| folder.as_deref().map(unfinished_name));
    let mut place = RestoreTarget {
        identity: identity.clone(),
        state: state.clone(),
        ..RestoreTarget::default()
    };
    let mut made = Vec::new();
    let all_made = [&identity, &state].into_iter().flatten().try_for_each(|folder| {
        make_private_folder(folder)?;
        made.push(folder);
        Ok(())
    });
    let restored = all_made.and_then(|()| place.all(args, &secret));
    let moved = restored.and_then(|about| {
        for (from, to) in [(&identity, &args.identity), (&state, &args.state)] {
            if let (Some(from), Some(to)) = (from, to) {
                fs::rename(from, to).blame_io(to)?;
            }
        }
        Ok(about)
    });
    let about = moved.inspect_err(|_| {
        made.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
    })?;
    place.say(&about);
    Ok(())
}

/// The name of a folder that is not complete yet.
fn unfinished_name(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    folder.with_file_name(name)
}

/// Where things go, and what came.
#[derive(Default)]
struct RestoreTarget {
    identity: Option<PathBuf>,
    state: Option<PathBuf>,
    has_identity: bool,
    has_state: bool,
    has_fence: bool,
    has_slots: bool,
}

impl RestoreTarget {
    fn all(&mut self, args: &Args, secret: &[u8]) -> Result<About, Failure> {
        let about = self.one(&args.from, secret)?;
        if let Some(slots) = &args.slots_from {
            self.one(slots, secret)?;
            if !self.has_slots {
                return Err(RestoreError::Missing("slot file")).blame_input(slots);
            }
        }
        let missing = [
            (self.identity.is_some() && !self.has_identity, "identity folder"),
            (self.state.is_some() && !self.has_state, "state"),
        ];
        match missing.into_iter().find(|(is_missing, _)| *is_missing) {
            Some((_, what)) => Err(RestoreError::Missing(what)).blame_input(&args.from),
            None => Ok(about),
        }
    }

    /// Puts all items of a backup into place.
    fn one(&mut self, path: &Path, secret: &[u8]) -> Result<About, Failure> {
        let file = BufReader::with_capacity(1 << 20, File::open(path).blame_io(path)?);
        let (mut reader, about) = Reader::open(file, secret).blame_input(path)?;
        while let Some(item) = reader.next_item().blame_input(path)? {
            match item {
                Item::File { origin, name, bytes } => self.file(origin, &name, &bytes)?,
                Item::Entry { is_log, key, value } => {
                    let first = ExportEntry { is_log, key: key.into(), value: value.into() };
                    self.store(path, first, &mut reader)?;
                    break;
                }
                Item::About(_) | Item::End(_) => {
                    return Err(BackupError::Changed).blame_input(path);
                }
            }
        }
        Ok(about)
    }

    /// The store: all entries stand together, and files after them.
    fn store<R: std::io::Read>(
        &mut self,
        path: &Path,
        first: ExportEntry,
        reader: &mut Reader<R>,
    ) -> Result<(), Failure> {
        let state = self.state.clone().ok_or(RestoreError::NoPlace("a state (--state)"));
        let state = state.blame_input(path)?;
        let (mut next, mut rest) = (Some(first), None);
        let imported = local::import::<ImportError>(&state, || {
            if let Some(entry) = next.take() {
                return Ok(Some(entry));
            }
            match reader.next_item()? {
                Some(Item::Entry { is_log, key, value }) => {
                    Ok(Some(ExportEntry { is_log, key: key.into(), value: value.into() }))
                }
                file @ (Some(Item::File { .. }) | None) => {
                    rest = file;
                    Ok(None)
                }
                Some(_) => Err(BackupError::Changed.into()),
            }
        });
        imported.map_err(|error| match error {
            ImportError::Backup(error) => {
                Failure::new(Category::Input, error).at(path.display().to_string())
            }
            ImportError::Store(error) => Failure::new(Category::Io, error),
        })?;
        self.has_state = true;
        while let Some(item) = rest {
            let Item::File { origin, name, bytes } = item else {
                return Err(BackupError::Changed).blame_input(path);
            };
            self.file(origin, &name, &bytes)?;
            rest = reader.next_item().blame_input(path)?;
        }
        Ok(())
    }

    fn file(&mut self, origin: Origin, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        if origin == Origin::State && name == FENCE_BACKUP {
            // Of a restore before this backup was made; its own fence follows.
            return Ok(());
        }
        let (folder, name) = match origin {
            Origin::Identity => (&self.identity, name.to_owned()),
            Origin::State => (&self.state, name.to_owned()),
            Origin::Slots => (&self.state, "slots".to_owned()),
            // It would say that this is the latest state.
            Origin::Fence => (&self.state, FENCE_BACKUP.to_owned()),
        };
        let what = match origin {
            Origin::Identity => "an identity folder (--identity)",
            _ => "a state (--state)",
        };
        let folder = folder.as_ref().ok_or(RestoreError::NoPlace(what)).blame(Category::Usage)?;
        let path = Path::new(&name);
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(RestoreError::Outside).blame(Category::Input);
        }
        let target = folder.join(path);
        if let Some(above) = target.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(above).blame_io(above)?;
        }
        write_new(&target, bytes, Readers::Owner)?;
        match origin {
            Origin::Identity => self.has_identity = true,
            Origin::State => self.has_state = true,
            Origin::Slots => self.has_slots = true,
            Origin::Fence => self.has_fence = true,
        }
        Ok(())
    }

    /// Says what the restored state means.
    fn say(&self, about: &About) {
        let role = about.role.as_deref().unwrap_or("process");
        let created = local_time::iso_time(about.created / 1000);
        println!("restored: {role} {}, as of {created}", about.name.as_deref().unwrap_or_default());
        for line in meaning(role, self.has_slots) {
            println!("- {line}");
        }
        for line in lacking(role) {
            println!("- Not in the backup, unless it lay in a folder of it: {line}");
        }
        if self.has_fence {
            println!(
                "- fence.backup says how far ledgers had come. Do not rename it to fence: that would say \
                 that nothing was released since."
            );
        }
    }
}

/// What the restored state of a role means for windows, owners and fences.
fn meaning(role: &str, has_slots: bool) -> Vec<&'static str> {
    match role {
        "server" => vec![
            "Windows: those since the backup have no row here, and none that controllers have \
             settled is opened. Data that devices have sent since then is lost; devices open new \
             sessions by themselves.",
            "Owners: nobody has to act. Hosts report registrations, choices and withdrawals again.",
            "Queries that were asked since the backup must be asked again.",
        ],
        "controller" => {
            let mut lines = vec![
                "Windows: each that had begun before the start counts as released, so nothing is released \
                 twice. If the fence of the lost state is still there, beside its folder, the host goes by \
                 it: if nothing came after the backup, this state is the latest, and no window is lost.",
                "Owners: streams are left out until their owners submit their policies again (alpheus owner \
                 choose); alpheus_controller_streams_to_confirm counts them. Budgets are charged at their \
                 highest rate for the time since the backup.",
            ];
            if !has_slots {
                lines.push(
                    "Slots: the host needs its slot file at the state folder's `slots`, or named by --slots; \
                     without it streams have no key.",
                );
            }
            lines
        }
        "producer" => vec![
            "The device opens a new session, and sends the data that was waiting at the backup \
             under a new name. Do not run a second copy of it: its stream would be left out until its owner confirms.",
        ],
        "board" => vec![
            "The epochs that had begun are burnt: the state serves old tables, and new epochs begin.",
        ],
        "issuer" => vec![
            "Start it with --restored-state: it issues passes for later periods only, so that nobody gets two.",
        ],
        "verifier" => vec![
            "An older copy serves from the next epoch on, with logins ended, so that no pass is used twice. Its \
             fence is not in use: docs/pass.md says when --restored-state is needed.",
        ],
        "registrar" | "smoother" | "aggregator" => vec![
            "Anything that arrived since the backup is not known here. A smoother whose fence is \
             gone sits out once others show that its state is old: see docs/statistics.md, on \
             backups.",
        ],
        _ => vec!["What was written since the backup is lost."],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state = Some(folder.path().join("state"));
        let mut place = RestoreTarget { state, ..RestoreTarget::default() };
        for bad in ["../x", "/x", "a/../../x", "..", "", "."] {
            let refused = place.file(Origin::State, bad, b"x").is_err();
            assert!(refused || bad.is_empty(), "{bad}");
        }
        place.file(Origin::State, "a/b", b"x").unwrap();
        assert!(place.file(Origin::State, "a/b", b"x").is_err(), "nothing is overwritten");
        assert!(place.file(Origin::Identity, "c", b"x").is_err(), "there is no such folder");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn unfinished_folders_have_names_of_their_own() {
        let names = ["a/first.id", "a/first.state", "a/first"].map(Path::new).map(unfinished_name);
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert!(names.iter().all(|name| name.parent() == Some(Path::new("a"))), "{names:?}");
    }

    #[test]
    fn each_role_has_its_meaning() {
        for role in ["server", "controller", "producer", "board", "issuer", "verifier", "smoother"]
        {
            assert!(!meaning(role, true).is_empty(), "{role}");
        }
        assert!(meaning("controller", false).len() > meaning("controller", true).len());
    }
}
