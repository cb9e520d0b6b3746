//! Files and folders: read whole, created once and never overwritten, or replaced as a whole.

use crate::entropy;
use crate::errors::ErrorId;
use crate::failure::{Blame, Category, Failure, printed};
use data_encoding::HEXLOWER;
use rustix::fs::Mode;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everybody.
    Everybody,
}

impl Readers {
    fn mode(self) -> Mode {
        let own = Mode::RUSR | Mode::WUSR;
        match self {
            Readers::Owner => own,
            Readers::Everybody => own | Mode::RGRP | Mode::ROTH,
        }
    }
}

/// Writes a new file, durably.
///
/// # Errors
/// If it exists already or cannot be written.
pub fn write_new(path: &Path, bytes: impl AsRef<[u8]>, readers: Readers) -> Result<(), Failure> {
    let mode = readers.mode().bits();
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.blame_io(path)?;
    file.write_all(bytes.as_ref()).and_then(|()| file.sync_all()).blame_io(path)
}

/// Replaces a file as a whole, durably: after a crash there is the old one or the new one. Its mode
/// stays, and its owner if this user may give files away. Nothing is written where a link leads to.
///
/// # Errors
/// The system's error; the old file is still there then.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>, readers: Readers) -> io::Result<()> {
    // Several processes may use one folder at a time, some with one number in containers of their own,
    // and several threads of each.
    let mut random = [0; 8];
    entropy::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let new = beside(path, &format!(".{}.new", HEXLOWER.encode(&random)));
    let written =
        write_like(path, (&new, readers), bytes.as_ref()).and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| drop(fs::remove_file(&new)))?;
    sync_name(path)
}

/// The path of a file in the same folder whose name is this one's with an ending.
#[must_use]
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a file, if there is one. A link goes, and what it leads to stays.
///
/// # Errors
/// The system's error.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a file's name durable, which is stored in its folder.
///
/// # Errors
/// The system's error.
pub fn sync_name(path: &Path) -> io::Result<()> {
    // The parent of a bare name is empty.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a new file with the mode and the owner of another one, if that is there.
fn write_like(path: &Path, (new, readers): (&Path, Readers), bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(readers.mode().bits()).open(new)?;
    if let Ok(before) = fs::metadata(path) {
        let new = file.metadata()?;
        if (before.uid(), before.gid()) != (new.uid(), new.gid()) {
            match fchown(&file, Some(before.uid()), Some(before.gid())) {
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
                _ => {}
            }
        }
        file.set_permissions(before.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Locks a folder until what is returned is dropped. Others who lock it wait for that long.
///
/// # Errors
/// If it cannot be opened or locked.
pub fn lock_folder(folder: &Path) -> Result<File, Failure> {
    let opened = File::open(folder).blame_io(folder)?;
    opened.lock().blame_io(folder)?;
    Ok(opened)
}

/// The name of standard output, where a command writes a file.
pub const STANDARD_OUTPUT: &str = "-";

/// Writes the output of a command: to standard output for `-`, else a new file, durably.
///
/// # Errors
/// As [`write_new`].
pub fn write_output(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    if path != Path::new(STANDARD_OUTPUT) {
        return write_new(path, bytes, Readers::Everybody);
    }
    let mut out = std::io::stdout().lock();
    // A reader that has read enough is no failure.
    printed(out.write_all(bytes.as_ref()).and_then(|()| out.flush())).map(drop)
}

/// Creates a folder that only its owner can read.
///
/// # Errors
/// If it exists already or cannot be created.
pub fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    let is_file = folder.ancestors().any(|part| part.exists() && !part.is_dir());
    let help = if is_file {
        "nothing is overwritten: the path, or the beginning of it, is a file; name another folder"
    } else {
        "nothing is overwritten: remove the folder, or name another one"
    };
    let made = DirBuilder::new().mode(Mode::RWXU.bits()).create(folder);
    made.blame_io(folder).map_err(|failure| failure.with_help(help))
}

/// The format of a file by another version of the program: the last character of its magic,
/// if only that differs.
#[must_use]
pub fn other_format(bytes: &[u8], magic: &[u8; 8]) -> Option<char> {
    let (found, same) = (bytes.get(7)?, bytes.get(..7)? == &magic[..7]);
    (same && *found != magic[7] && found.is_ascii_digit()).then_some(char::from(*found))
}

/// Reads a text file.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).blame_io(path)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(Category::Input, "not UTF-8 text")
            .at(path.display().to_string())
            .with_help("save it as UTF-8; decompress a compressed file first")
            .with_id(ErrorId::FileNotText)
    })
}

/// Permission bits of the group and of everybody else.
const OTHERS: u32 = 0o077;

/// Other users can read a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "other users can read this key file (mode {0:o}): run `chmod 600` on it, and replace the key if somebody may have read it"
)]
pub struct OpenKeyFileError(u32);

/// Other users can look into a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "other users can look into this folder (mode {0:o}), and sizes and times of its files are secret: run `chmod 700` on it"
)]
pub struct OpenFolderError(u32);

/// Checks that only its owner can look into a folder.
///
/// # Errors
/// If it cannot be read, or others can look into it.
pub fn check_private_folder(folder: &Path) -> Result<(), Failure> {
    let mode = fs::metadata(folder).blame_io(folder)?.permissions().mode();
    let open = mode & OTHERS != 0;
    if open { Err(OpenFolderError(mode & 0o777)).blame_input(folder) } else { Ok(()) }
}

/// Reads a key file, which only its owner may read; white space at its end does not count.
///
/// # Errors
/// If it cannot be read, or others can read it.
pub fn read_key_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mode = fs::metadata(path).blame_io(path)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(OpenKeyFileError(mode & 0o777)).blame_input(path);
    }
    let mut bytes = Zeroizing::new(fs::read(path).blame_io(path)?);
    while bytes.last().is_some_and(u8::is_ascii_whitespace) {
        bytes.pop();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_with_its_mode_and_not_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let (path, far) = (folder.path().join("list"), folder.path().join("far"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, "one", Readers::Owner).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("one", 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(&far, "far").unwrap();
        replace(&path, "two", Readers::Owner).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o640));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&far, &path).unwrap();
        replace(&path, "three", Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(fs::read_to_string(&far).unwrap(), "far");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
    }

    #[test]
    fn a_folder_at_the_place_of_a_file_is_refused_with_other_help() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        for (path, says) in [
            (folder.path().to_owned(), "remove the folder"),
            (file.clone(), "is a file; name another folder"),
            (file.join("inner"), "is a file; name another folder"),
        ] {
            let failure = make_private_folder(&path).unwrap_err().said().to_string();
            assert!(failure.contains(says), "{failure}");
        }
    }

    /// A name that all share would have one write into what another one is about to rename.
    #[test]
    fn a_file_that_many_replace_at_once_is_always_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let text = |by: u8| String::from(char::from(b'a' + by)).repeat(100_000);
        std::thread::scope(|scope| {
            for by in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        replace(path, text(by), Readers::Owner).unwrap();
                        let found = fs::read_to_string(path).unwrap();
                        assert!((0..8).any(|by| found == text(by)), "a torn file");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside");
    }

    #[test]
    fn a_folder_that_others_can_look_into_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, good) in [(0o700, true), (0o500, true), (0o750, false), (0o701, false)] {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(folder.path(), permissions).unwrap();
            assert_eq!(check_private_folder(folder.path()).is_ok(), good, "{mode:o}");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "a key file of some length\n").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read_key_file(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Ok(bytes) = read {
                assert_eq!(*bytes, b"a key file of some length");
            }
        }
    }
}
