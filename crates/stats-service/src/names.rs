//! Aggregates' names as text: 64 hexadecimal digits.

use alpheus_crypto::hash::Digest;
use alpheus_node::network::answer::ApiError;
use data_encoding::HEXLOWER;

/// A name as text.
#[must_use]
pub fn hex(name: &Digest) -> String {
    HEXLOWER.encode(name.as_bytes())
}

/// The name in a path.
///
/// # Errors
/// [`ApiError`] if it is invalid.
pub fn name_in(text: &str) -> Result<Digest, ApiError> {
    let bytes = HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes
        .map(Digest)
        .ok_or_else(|| ApiError::malformed("an aggregate's name is 64 hexadecimal digits"))
}
