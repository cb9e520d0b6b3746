//! Key files: 32 bytes in hexadecimal digits, readable by their owner only; and
//! lists of public keys.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::init::write_new;
use crate::replay::inputs::read_text;
use alpheus_anonymous_board::admission::Members;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  alpheus board key first.key
  alpheus board key ada.key >> members.txt

Who runs a server, or is a member, makes their own; only the public half is handed on.";

/// Arguments of `alpheus board key`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file, which is not there yet
    file: PathBuf,
}

/// Why text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKeyFile {
    /// A secret key is 64 hexadecimal digits.
    #[error("a key file holds 64 hexadecimal digits; `alpheus board key` makes one")]
    Secret,
    /// A public key is 64 hexadecimal digits that are a point.
    #[error("line {0} is no public key: 64 hexadecimal digits, as `alpheus board key` prints")]
    Public(usize),
}

/// Makes a key and prints its public half.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    println!("{}", hex(&create(&args.file)?.verifying_key()));
    Ok(())
}

/// Makes a key file.
///
/// # Errors
/// If it exists or cannot be written.
pub fn create(path: &Path) -> Result<SigningKey, Failure> {
    let seed = Secret::random(&mut entropy::rng()?);
    let text = Zeroizing::new(HEXLOWER.encode(seed.expose()));
    write_new(path, &text, 0o600)?;
    Ok(SigningKey::from_seed(&seed))
}

/// Reads a key file.
///
/// # Errors
/// If it cannot be read or holds no key.
pub fn load(path: &Path) -> Result<SigningKey, Failure> {
    let text = Zeroizing::new(read_text(path)?);
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok().map(Zeroizing::new);
    let seed = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    Ok(SigningKey::from_seed(&seed.ok_or(BadKeyFile::Secret).blame_input(path)?))
}

/// A public key as text.
#[must_use]
pub fn hex(key: &VerifyingKey) -> String {
    HEXLOWER.encode(key.as_bytes())
}

/// Reads a public key.
#[must_use]
pub fn public(text: &str) -> Option<VerifyingKey> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
    VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()
}

/// Reads a list of members; empty lines and those that start with `#` are none.
///
/// # Errors
/// If it cannot be read, or a line is no key.
pub fn members(path: &Path) -> Result<Members, Failure> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let keys: Result<Vec<_>, _> =
        lines.map(|(at, line)| public(line).ok_or(BadKeyFile::Public(at + 1))).collect();
    Ok(Members::new(
        keys.map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))?,
    ))
}
