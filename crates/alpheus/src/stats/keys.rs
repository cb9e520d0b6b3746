//! Key files: secrets in hexadecimal digits, readable by their owner only, in a folder
//! for each party.

use crate::failure::{Blame, Failure};
use crate::pass::init::write_new;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::path::Path;
use zeroize::Zeroizing;

/// Signs what a party says.
pub const SIGNING: &str = "signing.key";
/// Opens what is sealed for a party.
pub const SEALING: &str = "sealing.key";
/// Issues and checks the credential of uploads.
pub const UPLOADS: &str = "uploads.key";
/// Issues and checks the credential of slots; the registrar has one for each smoother.
pub const SLOTS: &str = "slots.key";

/// A key file that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKeyFile {
    /// Not so many digits.
    #[error("a key file holds {0} hexadecimal digits; `alpheus stats init` makes one")]
    Digits(usize),
}

/// Writes a secret.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write(path: &Path, secret: &[u8]) -> Result<(), Failure> {
    write_new(path, &Zeroizing::new(HEXLOWER.encode(secret)), 0o600)
}

/// Reads a secret of so many bytes.
///
/// # Errors
/// If the file cannot be read or holds none.
pub fn read<const N: usize>(path: &Path) -> Result<Secret<N>, Failure> {
    let text = Zeroizing::new(std::fs::read_to_string(path).blame_io(path)?);
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok().map(Zeroizing::new);
    let secret = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    secret.ok_or(BadKeyFile::Digits(2 * N)).blame_input(path)
}

/// Reads a signing key.
///
/// # Errors
/// As [`read`].
pub fn signing(path: &Path) -> Result<SigningKey, Failure> {
    Ok(SigningKey::from_seed(&read(path)?))
}

/// Reads a sealing key.
///
/// # Errors
/// As [`read`].
pub fn sealing(path: &Path) -> Result<SealingKey, Failure> {
    Ok(SealingKey::from_seed(&read(path)?))
}

/// Reads an issuer's key.
///
/// # Errors
/// As [`read`].
pub fn issuing(path: &Path) -> Result<IssuerKey, Failure> {
    IssuerKey::from_bytes(&read::<128>(path)?).blame_input(path)
}

/// Where a registrar has the key of a smoother's slots, which counts from 0.
#[must_use]
pub fn slots_of(index: usize) -> String {
    format!("slots-{}.key", index + 1)
}
