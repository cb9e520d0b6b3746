//! The cryptography that all parts of Alpheus share: secret types, key
//! derivation, a PRF in counter mode, MACs, signatures, key agreement, Merkle
//! trees.
//!
//! The crate knows nothing of streams, policies or transports. It does no I/O,
//! reads no clock and draws no randomness of its own: whoever needs randomness
//! passes a generator. It forbids unsafe code and leans on vetted crates
//! (`aes`, `sha2`, `hkdf`, `hmac`, `curve25519-dalek`, `ed25519-dalek`,
//! `x25519-dalek`, `hpke`, `argon2`, `chacha20poly1305`); what is
//! here are the types that make them hard to misuse.
//!
//! | module | gives | built on |
//! | --- | --- | --- |
//! | [`secret`] | bytes that are wiped and never printed | `zeroize`, `subtle` |
//! | [`hash`] | labelled digests, the public link hash | SHA-256 |
//! | [`kdf`] | independent keys from one secret | HKDF-SHA256 |
//! | [`prf`] | key vectors and mask pads | AES-128 |
//! | [`mac`] | 16-byte tags | HMAC-SHA256 |
//! | [`sign`], [`signed`] | signatures, signed messages | Ed25519 |
//! | [`agree`] | a key that two parties share | X25519 |
//! | [`seal`] | a secret for one party alone | HPKE |
//! | [`vault`] | secrets at rest | Argon2id, XChaCha20-Poly1305 |
//! | [`merkle`] | one digest for many leaves, short proofs | SHA-256 |
//! | [`group`] | elements and scalars of a group, secret and public apart | ristretto255 |
//! | [`cells`] | tables of sums of elements, bytes as elements | ristretto255 |
//! | [`sigma`] | proofs of linear statements, checked alone or in batches | Fiat–Shamir |
//! | [`ledger`] | what must be durable before something leaves | |
//! | [`labels`] | every domain-separation label | |

pub mod agree;
pub mod cells;
pub mod group;
pub mod hash;
pub mod kdf;
mod keystream;
pub mod labels;
pub mod ledger;
pub mod mac;
pub mod merkle;
pub mod prf;
pub mod seal;
pub mod secret;
pub mod sigma;
pub mod sign;
pub mod signed;
pub mod vault;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
