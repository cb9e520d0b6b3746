//! A backup of what an owner must not lose: the identity folder with the key that
//! signs their choices, and the files of their devices.
//!
//! The file is `ALPHOWN1`, the header's length in two little-endian bytes, the
//! header (salt and hardness, in the clear), and the files, encrypted under the key
//! that Argon2id derives from a key file or a passphrase.
//!
//! # Privacy
//! Anyone with the backup and the key file can choose, revoke and erase in the owner's
//! name, and read the streams of the devices in it. Erasing a stream does not
//! reach a backup that holds its device.

use crate::deployment::{OWNER_CERTIFICATE, OWNER_SEED};
use alpheus_crypto::vault::{Hardness, VaultKey};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_key_file;
use alpheus_node::files::{Readers, make_private_folder, other_format, write_new};
use alpheus_node::network::identity::{CERTIFICATE, IdentityFolder, KEY};
use alpheus_node::network::role::Role;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"ALPHOWN1";
const NAME: &[u8] = b"alpheus owner backup";
/// The subfolder for devices' files in the restored folder.
const DEVICES: &str = "devices";
/// Maximum size of a file; those of an identity or a device are far smaller.
const MAX_FILE: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Backup {
    /// The owner's identity folder, with the signing key
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// A device's file to back up as well; may be repeated
    #[arg(long, value_name = "FILE")]
    device: Vec<PathBuf>,
    /// The file with the secret that opens the backup; keep it apart from the backup
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Where to write the backup
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    /// The backup
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The file with the secret that opens it
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// A new identity folder to write; devices' files go to `devices` in it
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Header {
    salt: [u8; 16],
    hardness: Hardness,
}

#[derive(Serialize, Deserialize)]
struct BackedUpFile {
    is_device: bool,
    name: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// Why a backup cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BackupError {
    #[error("not a backup written by `alpheus owner backup`")]
    Other,
    #[error(
        "the backup has format {0}, but this version reads format 1: use the version that made it"
    )]
    Format(char),
    #[error("the backup cannot be opened: it was made with another key file, or it is corrupted")]
    Locked,
}

/// Why a folder cannot be backed up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum IncompleteBackupError {
    #[error("{0} is missing: without it a backup could not restore the owner")]
    Missing(&'static str),
    #[error("two files are named {0}: rename one, or back it up separately")]
    Twice(String),
}

pub(super) fn back_up(args: &Backup) -> Result<(), Failure> {
    // The backup is useless unless the folder is an owner's.
    IdentityFolder::open(&args.identity, Role::Owner)?;
    let mut kept = keep_all(&args.identity, false)?;
    let devices = args.identity.join(DEVICES);
    if devices.is_dir() {
        kept.extend(keep_all(&devices, true)?);
    }
    for path in &args.device {
        kept.push(keep(path, true)?);
    }
    check(&kept).blame_input(&args.identity)?;
    let (mut rng, mut salt) = (entropy::rng()?, [0; 16]);
    rng.fill_bytes(&mut salt);
    let secret = read_key_file(&args.key_file)?;
    let header = Header { salt, hardness: Hardness::of(&secret) };
    let key = key_of(&secret, &header)?;
    // Allocated at its final size, since growing would leave copies in memory.
    let size = postcard::experimental::serialized_size(&kept).blame(Category::Check)?;
    let mut bytes = Zeroizing::new(vec![0; size]);
    postcard::to_slice(&kept, &mut bytes).blame(Category::Check)?;
    let header = postcard::to_allocvec(&header).blame(Category::Check)?;
    let length = u16::try_from(header.len()).blame(Category::Check)?.to_le_bytes();
    let locked = key.lock(NAME, &bytes, &mut rng);
    write_new(&args.to, [MAGIC, &length[..], &header, &locked].concat(), Readers::Owner)?;
    print_names(&kept);
    Ok(())
}

pub(super) fn restore(args: &Restore) -> Result<(), Failure> {
    let bytes = fs::read(&args.from).blame_io(&args.from)?;
    let (header, locked) = split(&bytes).blame_input(&args.from)?;
    let opened = key_of(&read_key_file(&args.key_file)?, &header)?.unlock(NAME, locked);
    let opened = opened.map_err(|_| BackupError::Locked).blame_input(&args.from)?;
    let kept: Vec<BackedUpFile> =
        postcard::from_bytes(&opened).map_err(|_| BackupError::Other).blame_input(&args.from)?;
    make_private_folder(&args.identity)?;
    let devices = args.identity.join(DEVICES);
    if kept.iter().any(|kept| kept.is_device) {
        make_private_folder(&devices)?;
    }
    for BackedUpFile { is_device, name, bytes } in &kept {
        let folder = if *is_device { &devices } else { &args.identity };
        write_new(&folder.join(plain(name).blame_input(&args.from)?), bytes, Readers::Owner)?;
    }
    print_names(&kept);
    Ok(())
}

/// Prints their names, one per line.
fn print_names(kept: &[BackedUpFile]) {
    for BackedUpFile { is_device, name, .. } in kept {
        println!("{}{name}", if *is_device { "devices/" } else { "" });
    }
}

/// Checks that it is an owner's folder with each file once.
fn check(kept: &[BackedUpFile]) -> Result<(), IncompleteBackupError> {
    let has = |wanted: &str| kept.iter().any(|kept| !kept.is_device && kept.name == wanted);
    if let Some(missing) =
        [OWNER_SEED, OWNER_CERTIFICATE, CERTIFICATE, KEY].into_iter().find(|name| !has(name))
    {
        return Err(IncompleteBackupError::Missing(missing));
    }
    let mut seen = BTreeSet::new();
    match kept.iter().find(|kept| !seen.insert((kept.is_device, &kept.name))) {
        Some(twice) => Err(IncompleteBackupError::Twice(twice.name.clone())),
        None => Ok(()),
    }
}

fn keep_all(folder: &Path, are_devices: bool) -> Result<Vec<BackedUpFile>, Failure> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder).blame_io(folder)? {
        // Links are followed.
        let path = entry.blame_io(folder)?.path();
        if fs::metadata(&path).blame_io(&path)?.is_file() {
            kept.push(keep(&path, are_devices)?);
        }
    }
    Ok(kept)
}

fn keep(path: &Path, is_device: bool) -> Result<BackedUpFile, Failure> {
    if fs::metadata(path).blame_io(path)?.len() > MAX_FILE {
        return Err("larger than any file of an identity or a device should be").blame_input(path);
    }
    let name = path.file_name().unwrap_or_default().to_str();
    let name = name.ok_or("its name is not UTF-8").blame_input(path)?.to_owned();
    Ok(BackedUpFile { is_device, name, bytes: Zeroizing::new(fs::read(path).blame_io(path)?) })
}

/// A plain file name, which stays in its folder.
fn plain(name: &str) -> Result<&str, BackupError> {
    let path = Path::new(name);
    if path.file_name() == Some(path.as_os_str()) { Ok(name) } else { Err(BackupError::Other) }
}

fn split(bytes: &[u8]) -> Result<(Header, &[u8]), BackupError> {
    let other = || other_format(bytes, MAGIC).map_or(BackupError::Other, BackupError::Format);
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(other)?;
    let (length, rest) = rest.split_first_chunk().ok_or(BackupError::Other)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (header, locked) = rest.split_at_checked(length).ok_or(BackupError::Other)?;
    Ok((postcard::from_bytes(header).map_err(|_| BackupError::Other)?, locked))
}

fn key_of(secret: &[u8], header: &Header) -> Result<VaultKey, Failure> {
    VaultKey::derive(secret, &header.salt, header.hardness).blame(Category::Input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder() {
        assert_eq!(plain("tls.key"), Ok("tls.key"));
        for bad in ["", "..", ".", "/etc/passwd", "../x", "a/b", "a/"] {
            assert_eq!(plain(bad), Err(BackupError::Other), "{bad}");
        }
    }

    #[test]
    fn a_backup_must_hold_the_owners_keys_and_each_file_once() {
        let kept = |name: &str, is_device| BackedUpFile {
            is_device,
            name: name.into(),
            bytes: Zeroizing::default(),
        };
        let own = [OWNER_SEED, OWNER_CERTIFICATE, CERTIFICATE, KEY];
        let mut all: Vec<_> = own.iter().map(|name| kept(name, false)).collect();
        assert_eq!(check(&all[1..]), Err(IncompleteBackupError::Missing(OWNER_SEED)));
        all.extend([kept("watch.json", true), kept(KEY, true)]);
        assert_eq!(check(&all), Ok(()));
        all.push(kept("watch.json", true));
        assert_eq!(check(&all), Err(IncompleteBackupError::Twice("watch.json".into())));
    }

    #[test]
    fn a_truncated_or_foreign_file_is_refused() {
        let header = Header { salt: [7; 16], hardness: Hardness::default() };
        let header = postcard::to_allocvec(&header).unwrap();
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        let whole = [MAGIC, &length[..], &header, b"locked"].concat();
        assert_eq!(split(&whole).map(|(_, locked)| locked.len()).unwrap(), 6);
        for end in 0..whole.len() - 6 {
            assert!(split(&whole[..end]).is_err(), "{end}");
        }
        assert!(split(b"ALPHOWN2\x00\x00").is_err());
    }
}
