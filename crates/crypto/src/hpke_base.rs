//! HPKE (RFC 9180) in base mode, with HKDF-SHA256 and ChaCha20-Poly1305, for any KEM. Label and
//! context of a use are the `info` of the standard.

use crate::hash::labelled_hash;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::{Deserializable, HpkeError, Kem, OpModeR, OpModeS};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The encapsulated key and the ciphertext.
pub(crate) fn seal<K: Kem>(
    to: &K::PublicKey,
    label: &str,
    context: &[&[u8]],
    secret: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<(K::EncappedKey, Vec<u8>), HpkeError> {
    let info = labelled_hash(label, context);
    hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, K>(
        &OpModeS::Base,
        to,
        info.as_ref(),
        secret,
        &[],
        rng,
    )
}

pub(crate) fn open<K: Kem>(
    key: &K::PrivateKey,
    label: &str,
    context: &[&[u8]],
    encapsulated: &[u8],
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
    let encapsulated = K::EncappedKey::from_bytes(encapsulated)?;
    let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, K>(
        &OpModeR::Base,
        key,
        &encapsulated,
        labelled_hash(label, context).as_ref(),
        ciphertext,
        &[],
    );
    opened.map(Zeroizing::new)
}
