//! The cryptography that all parts of Alpheus share: secret types, key
//! derivation, a PRF in counter mode, MACs, signatures, key agreement, Merkle
//! trees.
//!
//! The crate knows nothing of streams, policies or transports. It does no I/O
//! and reads no clock. Callers that need randomness pass a generator. The crate
//! forbids unsafe code and builds on vetted crates
//! (`aes`, `sha2`, `hkdf`, `hmac`, `curve25519-dalek`, `ed25519-dalek`,
//! `x25519-dalek`, `hpke`, `argon2`, `chacha20poly1305`). Its own types make
//! them hard to misuse.
//!
//! | module | provides | built on |
//! | --- | --- | --- |
//! | [`secret`] | bytes that are wiped and never printed | `zeroize`, `subtle` |
//! | [`hash`] | labelled digests, the public link hash | SHA-256 |
//! | [`kdf`] | independent keys from one secret | HKDF-SHA256 |
//! | [`prf`] | key vectors and mask pads | AES-128 |
//! | [`mac`] | 16-byte tags | HMAC-SHA256 |
//! | [`sign`], [`signed_message`] | signatures, signed messages | Ed25519 |
//! | [`agree`] | a key shared by two parties | X25519 |
//! | [`seal`] | a secret that only one party can open | HPKE |
//! | [`hybrid`] | the same, for what strangers can keep for decades | HPKE with X-Wing |
//! | [`onetime`] | one message of a sender without an account, whose recipient can prove what it opens to | ristretto255, ChaCha20-Poly1305 |
//! | [`vault`] | secrets at rest | Argon2id, XChaCha20-Poly1305 |
//! | [`merkle`] | one digest for many leaves, short proofs | SHA-256 |
//! | [`group`] | elements of a group, and its scalars, with separate types for secret and public ones | ristretto255 |
//! | [`cells`] | tables of sums of elements; bytes embedded in elements | ristretto255 |
//! | [`sigma`] | proofs of linear statements, checked one by one or in batches | Fiat–Shamir |
//! | [`ledger`] | state that must be durable before a message is sent | |
//! | [`labels`] | all domain-separation labels | |

pub mod agree;
pub mod cells;
pub mod group;
pub mod hash;
mod hpke_base;
pub mod hybrid;
pub mod kdf;
mod keystream;
pub mod labels;
pub mod ledger;
pub mod mac;
pub mod merkle;
pub mod onetime;
pub mod prf;
pub mod seal;
pub mod secret;
pub mod sigma;
pub mod sign;
pub mod signed_message;
pub mod vault;

/// Runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExample;
