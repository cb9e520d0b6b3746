//! Key files, which hold 32 bytes in hexadecimal digits and only their owner can read, and lists
//! of public keys.

use alpheus_anonymous_board::admission::Members;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, read_key_file, read_text, write_new};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  alpheus board key first.key > first.pub
  alpheus board key ada.key >> members.txt

Each operator and each member creates their own key, and passes on only the public half.";

/// Arguments of `alpheus board key`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The key file to create; it must not exist yet
    file: PathBuf,
}

/// A key file or a list of keys is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// A secret key is 64 hexadecimal digits.
    #[error("a key file holds 64 hexadecimal digits; create one with `alpheus board key`")]
    Secret,
    /// A public key is a curve point, written as 64 hexadecimal digits.
    #[error(
        "line {0} is not a public key; give the 64 hexadecimal digits that `alpheus board key` prints"
    )]
    Public(usize),
}

/// Creates a key and prints its public half.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    println!("{}", hex(&create(&args.file)?.verifying_key()));
    Ok(())
}

/// Creates a key file.
///
/// # Errors
/// If it exists or cannot be written.
pub fn create(path: &Path) -> Result<SigningKey, Failure> {
    let seed = Secret::random(&mut entropy::rng()?);
    let text = Zeroizing::new(HEXLOWER.encode(seed.expose()));
    write_new(path, &text, Readers::Owner)?;
    Ok(SigningKey::from_seed(&seed))
}

/// Reads a key file.
///
/// # Errors
/// If it cannot be read, if others can read it, or if it holds no key.
pub fn load(path: &Path) -> Result<SigningKey, Failure> {
    let text = read_key_file(path)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim_ascii()).ok().map(Zeroizing::new);
    let seed = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    Ok(SigningKey::from_seed(&seed.ok_or(KeyFileError::Secret).blame_input(path)?))
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

/// Reads a list of members; skips empty lines and lines that start with `#`.
///
/// # Errors
/// If it cannot be read, or a line is not a key.
pub fn members(path: &Path) -> Result<Members, Failure> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let keys: Result<Vec<_>, _> =
        lines.map(|(at, line)| public(line).ok_or(KeyFileError::Public(at + 1))).collect();
    Ok(Members::new(
        keys.map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.key");
        let key = create(&path).unwrap();
        assert_eq!(load(&path).unwrap().verifying_key(), key.verifying_key());
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(load(&path).is_err());
    }
}
