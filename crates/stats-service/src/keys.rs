//! Key files: secrets in hexadecimal digits that only their owner can read, in one folder per
//! party.

use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_crypto::labels;
use alpheus_crypto::onetime::RecipientKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, read_key_file, write_new};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::path::Path;
use zeroize::Zeroizing;

/// The file of a party's signing key.
pub const SIGNING: &str = "signing.key";
/// The file of a party's sealing key.
pub const SEALING: &str = "sealing.key";
/// The file of the issuer key for upload credentials.
pub const UPLOADS: &str = "uploads.key";
/// The file of the issuer key for slot credentials; the registrar has one per smoother.
pub const SLOTS: &str = "slots.key";

/// A key file is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Wrong number of digits.
    #[error("a key file holds {0} hexadecimal digits; create one with `alpheus stats init`")]
    Digits(usize),
}

/// Writes a secret.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write(path: &Path, secret: &[u8]) -> Result<(), Failure> {
    write_new(path, Zeroizing::new(HEXLOWER.encode(secret)), Readers::Owner)
}

/// Reads a secret of `N` bytes.
///
/// # Errors
/// If the file cannot be read, if others can read it, or if it holds no such secret.
pub fn read<const N: usize>(path: &Path) -> Result<Secret<N>, Failure> {
    let text = read_key_file(path)?;
    let bytes = HEXLOWER_PERMISSIVE.decode(text.trim_ascii()).ok().map(Zeroizing::new);
    let secret = bytes.and_then(|bytes| Secret::from_slice(&bytes));
    secret.ok_or(KeyFileError::Digits(2 * N)).blame_input(path)
}

/// Reads a signing key.
///
/// # Errors
/// As [`read`].
pub fn signing(path: &Path) -> Result<SigningKey, Failure> {
    Ok(SigningKey::from_seed(&read(path)?))
}

/// The key that uploads are sealed for, from its seed.
///
/// # Errors
/// With a probability of 2^-252.
pub fn recipient(seed: &Secret<32>) -> Result<RecipientKey, Failure> {
    RecipientKey::from_seed(labels::STATISTICS_RECIPIENT, seed).blame(Category::Io)
}

/// Reads the key that uploads are sealed for.
///
/// # Errors
/// As [`read`].
pub fn sealing(path: &Path) -> Result<RecipientKey, Failure> {
    recipient(&read(path)?)
}

/// Reads an issuer's key.
///
/// # Errors
/// As [`read`].
pub fn issuing(path: &Path) -> Result<IssuerKey, Failure> {
    IssuerKey::from_bytes(&read::<128>(path)?).blame_input(path)
}

/// The registrar's file with the slot key of a smoother; the index starts at 0.
#[must_use]
pub fn slots_of(index: usize) -> String {
    format!("slots-{}.key", index + 1)
}
