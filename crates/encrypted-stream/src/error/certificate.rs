//! Why a certificate is not valid.

/// Why a certificate is not valid for its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not signed by the deployment's authority.
    #[error("the certificate is not signed by the deployment's authority; ask it for one")]
    Unsigned,
    /// Signed for another role.
    #[error("the certificate is for another role; use the one for this role")]
    Role,
    /// It lacks a key that its role needs, or has one that the role has no use for.
    #[error("the certificate does not have the keys of its role; ask for one with these keys")]
    KeysOfRole,
    /// Its agreement key has small order, so everybody knows the keys agreed on with it.
    #[error("the certificate's agreement key has small order; its holder must make a new one")]
    SmallOrder,
    /// For other keys than the holder's.
    #[error("the certificate is for other keys; ask for one for these")]
    OtherKeys,
    /// For another party than the one that presents it.
    #[error("the certificate names a different party from the one that presents it")]
    OtherName,
    /// The authority has revoked it.
    #[error("the authority has revoked the certificate; ask it for another")]
    Revoked,
    /// It names no hybrid key, so what is sealed for it would rest on X25519 alone.
    #[error(
        "the certificate names no hybrid key (X25519 with ML-KEM-768) to seal secrets for; have it issued again by `alpheus ca issue`"
    )]
    NoHybrid,
    /// It names another hybrid key.
    #[error(
        "the key to seal secrets for is not the one that the certificate names; ask its holder for the right one"
    )]
    OtherHybrid,
    /// One half of the hybrid key is no key.
    #[error(
        "one half of the key to seal secrets for is not a valid key, so the other half alone would protect them; its holder must create a new key"
    )]
    HalfHybrid,
}
