//! A backup of what an owner must not lose: the folder that says who they are,
//! with the key that signs their choices, and the files of their devices.
//!
//! The file is `ALPHOWN1`, the header's length in two little-endian bytes, the
//! header (salt and hardness, in the clear), and the files, locked under the key
//! that Argon2id makes of a key file or a passphrase.
//!
//! # Privacy
//! Whoever has it and the key file can choose, revoke and erase in the owner's
//! name, and read the streams of the devices in it. Erasing a stream does not
//! reach a backup that holds its device.

use crate::ca::OWNER_SEED;
use crate::controller::keystore::read_key_file;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::files::{For, make_private_folder, other_format, write_new};
use crate::network::identity::{CERTIFICATE, IdentityFolder, KEY};
use crate::network::role::Role;
use alpheus_crypto::vault::{Hardness, VaultKey};
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"ALPHOWN1";
const NAME: &[u8] = b"alpheus owner backup";
/// Where devices' files go, in the restored folder.
const DEVICES: &str = "devices";
/// A file of an identity or device is far smaller.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Backup {
    /// The folder that says who it is, with the owner's key
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
    /// A device's file, to be kept as well; may be repeated
    #[arg(long, value_name = "FILE")]
    device: Vec<PathBuf>,
    /// The file with the secret that opens the backup; keep it elsewhere
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
    /// Where to write the identity, a new folder; devices' files go to `devices` in it
    #[arg(long, value_name = "FOLDER")]
    identity: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Header {
    salt: [u8; 16],
    hardness: Hardness,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    is_device: bool,
    name: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// Why a backup does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum NoBackup {
    #[error("not a backup of `alpheus owner backup`: give the file that it wrote")]
    Other,
    #[error(
        "the backup has format {0}, and this version reads format 1: use the version that made it"
    )]
    Format(char),
    #[error("the backup does not open: it was made with another key file, or is damaged")]
    Locked,
}

/// Why there is nothing to back up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NotKept {
    #[error("there is no {0} there: a backup without it would not bring the owner back")]
    Missing(&'static str),
    #[error("two files are called {0}: rename one, or back it up by itself")]
    Twice(String),
}

pub(super) fn back_up(args: &Backup) -> Result<(), Failure> {
    // A folder of somebody else would be kept for nothing.
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
    let header = Header { salt, hardness: Hardness::default() };
    let key = key_of(&args.key_file, &header)?;
    // As large as it needs: growing would leave copies behind.
    let size = postcard::experimental::serialized_size(&kept).blame(Category::Check)?;
    let mut bytes = Zeroizing::new(vec![0; size]);
    postcard::to_slice(&kept, &mut bytes).blame(Category::Check)?;
    let header = postcard::to_allocvec(&header).blame(Category::Check)?;
    let length = u16::try_from(header.len()).blame(Category::Check)?.to_le_bytes();
    let locked = key.lock(NAME, &bytes, &mut rng);
    write_new(&args.to, &[MAGIC, &length[..], &header, &locked].concat(), For::Owner)?;
    tell(&kept);
    Ok(())
}

pub(super) fn restore(args: &Restore) -> Result<(), Failure> {
    let bytes = fs::read(&args.from).blame_io(&args.from)?;
    let (header, locked) = split(&bytes).blame_input(&args.from)?;
    let opened = key_of(&args.key_file, &header)?.unlock(NAME, locked);
    let opened = opened.map_err(|_| NoBackup::Locked).blame_input(&args.from)?;
    let kept: Vec<Kept> =
        postcard::from_bytes(&opened).map_err(|_| NoBackup::Other).blame_input(&args.from)?;
    make_private_folder(&args.identity)?;
    let devices = args.identity.join(DEVICES);
    if kept.iter().any(|kept| kept.is_device) {
        make_private_folder(&devices)?;
    }
    for Kept { is_device, name, bytes } in &kept {
        let folder = if *is_device { &devices } else { &args.identity };
        write_new(&folder.join(plain(name).blame_input(&args.from)?), bytes, For::Owner)?;
    }
    tell(&kept);
    Ok(())
}

/// Their names, one a line.
fn tell(kept: &[Kept]) {
    for Kept { is_device, name, .. } in kept {
        println!("{}{name}", if *is_device { "devices/" } else { "" });
    }
}

/// Whether it is worth having: an owner's folder, each file once.
fn check(kept: &[Kept]) -> Result<(), NotKept> {
    let has = |wanted: &str| kept.iter().any(|kept| !kept.is_device && kept.name == wanted);
    if let Some(missing) = [OWNER_SEED, CERTIFICATE, KEY].into_iter().find(|name| !has(name)) {
        return Err(NotKept::Missing(missing));
    }
    let mut seen = BTreeSet::new();
    match kept.iter().find(|kept| !seen.insert((kept.is_device, &kept.name))) {
        Some(twice) => Err(NotKept::Twice(twice.name.clone())),
        None => Ok(()),
    }
}

fn keep_all(folder: &Path, are_devices: bool) -> Result<Vec<Kept>, Failure> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder).blame_io(folder)? {
        // Links count as what they lead to.
        let path = entry.blame_io(folder)?.path();
        if fs::metadata(&path).blame_io(&path)?.is_file() {
            kept.push(keep(&path, are_devices)?);
        }
    }
    Ok(kept)
}

fn keep(path: &Path, is_device: bool) -> Result<Kept, Failure> {
    if fs::metadata(path).blame_io(path)?.len() > LARGEST {
        return Err("larger than any file of an identity or a device").blame_input(path);
    }
    let name = path.file_name().unwrap_or_default().to_str();
    let name = name.ok_or("its name is not UTF-8").blame_input(path)?.to_owned();
    Ok(Kept { is_device, name, bytes: Zeroizing::new(fs::read(path).blame_io(path)?) })
}

/// A name that leads nowhere else.
fn plain(name: &str) -> Result<&str, NoBackup> {
    let path = Path::new(name);
    if path.file_name() == Some(path.as_os_str()) { Ok(name) } else { Err(NoBackup::Other) }
}

fn split(bytes: &[u8]) -> Result<(Header, &[u8]), NoBackup> {
    let other = || other_format(bytes, MAGIC).map_or(NoBackup::Other, NoBackup::Format);
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(other)?;
    let (length, rest) = rest.split_first_chunk().ok_or(NoBackup::Other)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (header, locked) = rest.split_at_checked(length).ok_or(NoBackup::Other)?;
    Ok((postcard::from_bytes(header).map_err(|_| NoBackup::Other)?, locked))
}

fn key_of(key_file: &Path, header: &Header) -> Result<VaultKey, Failure> {
    let secret = read_key_file(key_file)?;
    VaultKey::derive(&secret, &header.salt, header.hardness).blame(Category::Input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder() {
        assert_eq!(plain("tls.key"), Ok("tls.key"));
        for bad in ["", "..", ".", "/etc/passwd", "../x", "a/b", "a/"] {
            assert_eq!(plain(bad), Err(NoBackup::Other), "{bad}");
        }
    }

    #[test]
    fn what_would_not_bring_the_owner_back_is_refused() {
        let kept = |name: &str, is_device| Kept {
            is_device,
            name: name.into(),
            bytes: Zeroizing::default(),
        };
        let mut all = vec![kept(OWNER_SEED, false), kept(CERTIFICATE, false), kept(KEY, false)];
        assert_eq!(check(&all[1..]), Err(NotKept::Missing(OWNER_SEED)));
        all.extend([kept("watch.json", true), kept(KEY, true)]);
        assert_eq!(check(&all), Ok(()));
        all.push(kept("watch.json", true));
        assert_eq!(check(&all), Err(NotKept::Twice("watch.json".into())));
    }

    #[test]
    fn what_is_cut_short_or_strange_is_named() {
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
