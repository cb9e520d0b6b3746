//! What goes into a backup: files of folders, and everything in a store, as it is at one moment.
//!
//! The store of a running process is open to that process alone. So each process provides copies of its own,
//! through a socket in a folder that only its user may enter ([`serve_exports`]). If nobody runs, the store
//! is opened instead.

use super::archive::{Item, Origin};
use crate::failure::{Blame, Category, Failure};
use crate::fence;
use crate::files::remove_if_there;
use alpheus_transport::{ExportEntry, Store, local};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use zeroize::Zeroizing;

/// The folder of the socket, in the state folder.
pub const CONTROL: &str = "control";
const SOCKET: &str = "socket";
/// Files in a state folder that no backup has: the store and its lock, and what only this machine's process
/// uses.
const LEFT_OUT: [&str; 6] = ["FORMAT", "LOCK", "data", "data.new", CONTROL, "heartbeat"];
/// What marks a folder as a store's.
const MARKER: &str = "FORMAT";
/// The fence's usual name in the state folder.
pub const FENCE: &str = "fence";
/// What a fence that came out of a backup is named: it does not say which state is the latest.
pub const FENCE_BACKUP: &str = "fence.backup";
/// The largest file that is backed up: a block of a table.
const MAX_FILE: u64 = 120 << 20;

/// How long a reader of a copy may pause.
const PATIENCE: Duration = Duration::from_secs(60);
/// Before the next copy after one that failed, as where descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

const ENTRY: [u8; 2] = [0, 1];
const END: u8 = 2;
const FAILED: u8 = 3;

/// A copy was not delivered completely.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The process failed to read its store.
    #[error("the process could not read its store; see its log")]
    Store,
    /// The process ended meanwhile.
    #[error("the process ended while it was handing out its state; try again")]
    Ended,
    /// A file was replaced meanwhile.
    #[error("{0}: it changed while it was read; try again")]
    Moved(PathBuf),
    /// A file is larger than any that a role writes.
    #[error("{0}: larger than any file that belongs here")]
    Large(PathBuf),
    /// A file's name cannot be kept.
    #[error("{0}: its name is not UTF-8")]
    Name(PathBuf),
    /// The folder holds another one with a store, which cannot be copied file by file.
    #[error("{0} is not a state folder, but contains one: name {1}")]
    Above(PathBuf, PathBuf),
    /// There is nothing that a process must not lose, as where the state lies in Kafka.
    #[error(
        "{0} holds no state: if the state is in Kafka, copy its topics, and back up the identity alone"
    )]
    Nothing(PathBuf),
}

/// Hands out copies of a store to anyone who may enter its folder, until the store is closed.
pub fn serve_exports(store: &Arc<dyn Store>, folder: &Path) {
    let (store, place) = (Arc::downgrade(store), folder.join(CONTROL));
    let listener = match listen(&place) {
        Ok(listener) => listener,
        // A long path, or a file system without sockets: a backup needs a stop then.
        Err(error) => return tracing::warn!(%error, "backups are not possible while this runs"),
    };
    let thread = std::thread::Builder::new().name("exports".into());
    let served = thread.spawn(move || {
        for stream in listener.incoming() {
            // One at a time: a copy holds old files of the store. Who stops reading ends its copy.
            let copied = stream.and_then(|stream| {
                stream.set_write_timeout(Some(PATIENCE))?;
                hand_out(&stream, &store)
            });
            if let Err(error) = copied {
                std::thread::sleep(PAUSE);
                tracing::warn!(%error, "a copy of the state was not handed out");
            }
        }
    });
    if let Err(error) = served {
        tracing::warn!(%error, "backups are not possible while this runs");
    }
}

fn listen(place: &Path) -> io::Result<UnixListener> {
    match DirBuilder::new().mode(0o700).create(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let socket = place.join(SOCKET);
    // The store is locked, so nobody else listens here.
    remove_if_there(&socket)?;
    UnixListener::bind(&socket)
}

fn hand_out(stream: &UnixStream, store: &Weak<dyn Store>) -> io::Result<()> {
    let Some(store) = store.upgrade() else { return Ok(()) };
    let (mut out, mut count, mut written) =
        (BufWriter::with_capacity(1 << 20, stream), 0_u64, Ok(()));
    let exported = store.export(&mut |entry| {
        count += 1;
        written = write_entry(&mut out, &entry);
        written.is_ok()
    });
    written?;
    if let Err(error) = exported {
        tracing::error!(%error, "the store could not be copied");
        out.write_all(&[FAILED])?;
        return out.flush();
    }
    out.write_all(&[END])?;
    out.write_all(&count.to_le_bytes())?;
    out.flush()
}

fn write_entry(out: &mut impl Write, entry: &ExportEntry) -> io::Result<()> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
    out.write_all(&[ENTRY[usize::from(entry.is_log)]])?;
    out.write_all(&length(&entry.key)?.to_le_bytes())?;
    out.write_all(&length(&entry.value)?.to_le_bytes())?;
    out.write_all(&entry.key)?;
    out.write_all(&entry.value)
}

/// Passes all entries of the store in a state folder to `each`, whether its process runs or not. Gives back
/// whether it runs.
///
/// # Errors
/// If the store cannot be read, or `each` fails.
pub fn export(
    folder: &Path,
    mut each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    if let Ok(stream) = UnixStream::connect(folder.join(CONTROL).join(SOCKET)) {
        take(BufReader::with_capacity(1 << 20, stream), each)?;
        return Ok(true);
    }
    let store = local::open(folder, &local::Options::default()).map_err(of_store)?;
    let mut taken = Ok(());
    let exported = store.export(&mut |ExportEntry { is_log, key, value }| {
        taken = each(Item::Entry { is_log, key: key.to_vec(), value: value.to_vec() });
        taken.is_ok()
    });
    taken?;
    exported.map_err(of_store)?;
    Ok(false)
}

fn of_store(error: alpheus_transport::Error) -> Failure {
    let help = error.help();
    let failure = Failure::new(Category::Io, error);
    help.into_iter().fold(failure, Failure::with_help)
}

/// Takes what [`hand_out`] says.
fn take(
    mut input: impl Read,
    mut each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ended = |_| Failure::new(Category::Io, ExportError::Ended);
    let mut count = 0_u64;
    loop {
        let mut kind = [0];
        input.read_exact(&mut kind).map_err(ended)?;
        let [kind] = kind;
        if kind == END {
            let mut said = [0; 8];
            input.read_exact(&mut said).map_err(ended)?;
            let is_whole = u64::from_le_bytes(said) == count;
            return if is_whole { Ok(()) } else { Err(ExportError::Ended).blame(Category::Io) };
        }
        if !ENTRY.contains(&kind) {
            return Err(ExportError::Store).blame(Category::Io);
        }
        let mut lengths = [[0; 4]; 2];
        for length in &mut lengths {
            input.read_exact(length).map_err(ended)?;
        }
        let mut parts = lengths.map(|length| vec![0; u32::from_le_bytes(length) as usize]);
        for part in &mut parts {
            input.read_exact(part).map_err(ended)?;
        }
        let [key, value] = parts;
        count += 1;
        each(Item::Entry { is_log: kind == ENTRY[1], key, value })?;
    }
}

/// Whether a folder holds a store.
#[must_use]
pub fn is_store(folder: &Path) -> bool {
    folder.join(MARKER).is_file()
}

/// The files of an identity folder, and of folders in it.
///
/// # Errors
/// If one cannot be read.
pub fn identity_files(
    folder: &Path,
    each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    hand_over(folder, Origin::Identity, names_below(folder, &[])?, each)
}

/// The files of a state folder beside its store. Slots are left out, so that what was erased stays erased, and
/// so is the fence: a copy of it would let two processes hold one state. Both are known by their content too.
///
/// # Errors
/// If one cannot be read, if a folder in it holds a store, or if there is neither a file nor a store.
pub fn state_files(
    folder: &Path,
    each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let kept = |name: &str| {
        let first = name.split('/').next().unwrap_or_default();
        let is_slots = first == "slots" || first.ends_with(".slots");
        // A block that is being written.
        let is_coming = name.rsplit('/').next().is_some_and(|last| last.starts_with(".coming-"));
        let is_fence = first == FENCE || first == FENCE_BACKUP || first.ends_with(fence::LOCK);
        !(LEFT_OUT.contains(&first) || is_slots || is_coming || is_fence)
    };
    let mut names = names_below(folder, &LEFT_OUT)?;
    if let Some(inner) = names.iter().find_map(|name| name.strip_suffix(&format!("/{MARKER}"))) {
        let inner = folder.join(inner);
        return Err(ExportError::Above(folder.to_owned(), inner)).blame(Category::Input);
    }
    // A fence or slots by any other name, and older ones, are left out as well.
    names.retain(|name| kept(name) && !is_kept_back(&folder.join(name)));
    if names.is_empty() && !is_store(folder) {
        return Err(ExportError::Nothing(folder.to_owned())).blame(Category::Input);
    }
    hand_over(folder, Origin::State, names, each)
}

/// Whether a file is a fence or a slot file, whatever its name.
fn is_kept_back(path: &Path) -> bool {
    let mut begins = [0; 7];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && [b"ALPHFNC", b"ALPHSLT"].contains(&&begins)
}

/// One file, under its own name.
///
/// # Errors
/// If it cannot be read.
pub fn file(path: &Path, origin: Origin) -> Result<Item, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| ExportError::Name(path.to_owned())).blame(Category::Input)?;
    item(path, origin, name)
}

fn item(path: &Path, origin: Origin, name: &str) -> Result<Item, Failure> {
    let known = fs::metadata(path);
    if known.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(ExportError::Moved(path.to_owned())).blame(Category::Io);
    }
    if known.blame_io(path)?.len() > MAX_FILE {
        return Err(ExportError::Large(path.to_owned())).blame(Category::Input);
    }
    let bytes = Zeroizing::new(fs::read(path).blame_io(path)?);
    Ok(Item::File { origin, name: name.to_owned(), bytes })
}

/// Files below a folder, by name: those that say what others belong to first.
fn hand_over(
    folder: &Path,
    origin: Origin,
    mut names: Vec<String>,
    mut each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // A table's state names its blocks: read before them, it names none that is not there.
    let is_block =
        |name: &String| !name.rsplit('/').next().is_some_and(|last| last.starts_with("state-"));
    names.sort_by_key(|name| (is_block(name), name.clone()));
    names.iter().try_for_each(|name| each(item(&folder.join(name), origin, name)?))
}

/// The files below a folder, by their names from there, also where a link leads to; none of the folders
/// that are left out.
fn names_below(folder: &Path, left_out: &[&str]) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    list(folder, "", left_out, &mut names)?;
    Ok(names)
}

fn list(
    folder: &Path,
    above: &str,
    left_out: &[&str],
    names: &mut Vec<String>,
) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).blame_io(folder)? {
        let path = entry.blame_io(folder)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| ExportError::Name(path.clone())).blame(Category::Input)?;
        let name = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        let known = fs::metadata(&path).blame_io(&path)?;
        // A store and its neighbours are copied otherwise.
        if known.is_dir() && !left_out.contains(&name.as_str()) {
            list(&path, &name, left_out, names)?;
        } else if known.is_file() {
            names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_transport::{Batch, Space};

    fn entries(folder: &Path) -> (bool, usize) {
        let mut count = 0;
        let runs = export(folder, |_| {
            count += 1;
            Ok(())
        });
        (runs.unwrap(), count)
    }

    #[test]
    fn a_store_is_copied_through_its_process_and_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = local::open(&path, &local::Options::default()).unwrap();
        let space = Space::new("s").unwrap();
        store.ensure_space(&space).unwrap();
        for number in 0..20_u8 {
            let mut batch = Batch::new();
            batch.put(&space, [number].to_vec(), vec![number; 1000]).unwrap();
            store.commit(batch).unwrap();
        }
        serve_exports(&store, &path);
        assert_eq!(entries(&path), (true, 21));
        drop(store);
        // Its socket is still there, and says nothing any more.
        let gone = export(&path, |_| Ok(()));
        assert!(gone.is_err_and(|failure| failure.to_string().contains("ended")));
        fs::remove_dir_all(path.join(CONTROL)).unwrap();
        assert_eq!(entries(&path), (false, 21));
    }

    #[test]
    fn a_copy_that_breaks_off_is_none() {
        let entry = [0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 8];
        let whole = [&entry[..], &[END], &1_u64.to_le_bytes()].concat();
        assert!(take(&whole[..], |_| Ok(())).is_ok());
        for end in 0..whole.len() {
            assert!(take(&whole[..end], |_| Ok(())).is_err(), "{end}");
        }
        let few = [&entry[..], &[END], &2_u64.to_le_bytes()].concat();
        assert!(take(&few[..], |_| Ok(())).is_err());
        assert!(take(&[FAILED][..], |_| Ok(())).is_err());
    }

    #[test]
    fn slots_fences_and_the_store_are_no_files_of_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["slots", "board.slots", "fence", "LOCK", "FORMAT", "heartbeat", "request.txt"]
        {
            fs::write(folder.path().join(name), name).unwrap();
        }
        for name in ["data", "control", "table"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            for file in ["block-1", "state-0", ".coming-2"] {
                fs::write(folder.path().join(name).join(file), name).unwrap();
            }
        }
        // By other names, and deeper.
        fs::write(folder.path().join("table/earlier"), b"ALPHFNC3, and more").unwrap();
        fs::write(folder.path().join("erasable"), b"ALPHSLT1, and more").unwrap();
        fs::write(folder.path().join(FENCE_BACKUP), "an old one").unwrap();
        let mut names = Vec::new();
        let taken = state_files(folder.path(), |item| {
            let Item::File { name, .. } = item else { unreachable!("a file") };
            names.push(name);
            Ok(())
        });
        taken.unwrap();
        assert_eq!(names, ["table/state-0", "request.txt", "table/block-1"]);
    }

    #[test]
    fn folders_of_an_identity_are_taken_whatever_their_names_and_behind_links() {
        let folder = tempfile::tempdir().unwrap();
        let (own, far) = (folder.path().join("identity"), folder.path().join("far"));
        fs::create_dir_all(own.join("data")).unwrap();
        fs::create_dir(&far).unwrap();
        for file in [own.join("data/key"), far.join("key"), own.join("tls.key")] {
            fs::write(file, "a key").unwrap();
        }
        std::os::unix::fs::symlink(&far, own.join("linked")).unwrap();
        let mut names = Vec::new();
        let mut taken = |item| {
            let Item::File { name, .. } = item else { unreachable!("a file") };
            names.push(name);
            Ok(())
        };
        identity_files(&own, &mut taken).unwrap();
        assert_eq!(names, ["data/key", "linked/key", "tls.key"]);
        std::os::unix::fs::symlink("nowhere", own.join("broken")).unwrap();
        assert!(identity_files(&own, |_| Ok(())).is_err(), "a link that leads nowhere is said");
    }

    #[test]
    fn a_folder_above_a_state_and_one_without_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (above, state) = (folder.path(), folder.path().join("state"));
        fs::create_dir(&state).unwrap();
        let said = |folder| state_files(folder, |_| Ok(())).unwrap_err().to_string();
        fs::write(state.join("fence"), b"ALPHFNC3").unwrap();
        assert!(said(&state).contains("holds no state"), "{}", said(&state));
        fs::write(state.join("FORMAT"), "").unwrap();
        let wrong = said(above);
        assert!(wrong.contains(&format!("name {}", state.display())), "{wrong}");
        assert!(state_files(&state, |_| Ok(())).is_ok());
    }
}
