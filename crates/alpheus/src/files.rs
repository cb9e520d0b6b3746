//! Files and folders that are made once, and never written over.

use crate::failure::{Blame, Failure};
use rustix::fs::Mode;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Its owner.
    Owner,
    /// Everybody.
    Everybody,
}

/// Writes a file where nothing is yet, durably.
///
/// # Errors
/// If it is there already or cannot be written.
pub fn write_new(path: &Path, bytes: &[u8], readers: For) -> Result<(), Failure> {
    let own = Mode::RUSR | Mode::WUSR;
    let mode = match readers {
        For::Owner => own,
        For::Everybody => own | Mode::RGRP | Mode::ROTH,
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode.bits()).open(path);
    let mut file = file.blame_io(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).blame_io(path)
}

/// Makes a folder that only its owner can read.
///
/// # Errors
/// If it is there already or cannot be made.
pub fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    let help = "nothing is written over: remove the folder, or name another";
    let made = DirBuilder::new().mode(Mode::RWXU.bits()).create(folder);
    made.blame_io(folder).map_err(|failure| failure.with_help(help))
}

/// The last character of a file's magic where it is ours but for that: the format of
/// another version of the program.
#[must_use]
pub fn other_format(bytes: &[u8], magic: &[u8; 8]) -> Option<char> {
    let (found, same) = (bytes.get(7)?, bytes.get(..7)? == &magic[..7]);
    (same && *found != magic[7] && found.is_ascii_digit()).then_some(char::from(*found))
}
