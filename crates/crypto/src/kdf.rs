//! Independent keys from one secret: HKDF-SHA256.

use crate::secret::Secret;
use hkdf::Hkdf;
use sha2::Sha256;

/// Derives `N` bytes from `secret`, bound to a label and parts: HKDF-SHA256 without
/// salt. Its info is the label and the parts, each preceded by its length as eight
/// big-endian bytes. An output reveals nothing about `secret` or any other output.
#[must_use]
pub fn derive<const N: usize>(secret: &[u8], label: &str, parts: &[&[u8]]) -> Secret<N> {
    const { assert!(N <= 255 * 32, "HKDF-SHA256 returns at most 8160 bytes") };
    let hkdf = Hkdf::<Sha256>::new(None, secret);
    let lengths: Vec<[u8; 8]> = std::iter::once(label.len())
        .chain(parts.iter().map(|part| part.len()))
        .map(|length| (length as u64).to_be_bytes())
        .collect();
    let info: Vec<&[u8]> = std::iter::once(label.as_bytes())
        .chain(parts.iter().copied())
        .zip(&lengths)
        .flat_map(|(part, length)| [length.as_slice(), part])
        .collect();
    Secret::fill_with(|out| {
        #[expect(clippy::expect_used, reason = "the length is checked at compile time")]
        hkdf.expand_multi_info(&info, out).expect("at most 8160 bytes");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_secrets_labels_or_parts_derive_different_keys() {
        let keys: Vec<Secret<32>> = vec![
            derive(b"secret", "a", &[b"bc"]),
            derive(b"secret", "ab", &[b"c"]),
            derive(b"secret", "a", &[b"b", b"c"]),
            derive(b"secret", "a", &[b"bc", b""]),
            derive(b"other", "a", &[b"bc"]),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[i + 1..].iter().all(|b| a != b));
        }
    }
}
