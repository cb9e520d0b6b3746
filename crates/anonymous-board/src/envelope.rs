//! Envelopes: one server's key of a write, sealed for that server and epoch.

use crate::coalition::audit::{CheckedPart, CommonPart, Part, PartError};
use crate::coalition::engine::Parity;
use crate::configuration::{Board, Epoch};
use crate::dpf::{BLOCK, Key, KeyError, Side};
use crate::messages::{SharedPart, Tag};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridKey, HybridPublic, HybridSealed, seal_bytes};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingKeyError;
use alpheus_crypto::secret::Secret;
use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// Why an envelope is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It does not open with this server's key for the epoch, or holds no key.
    #[error("the envelope does not open with this server's key, or holds no key")]
    Unreadable,
    /// It belongs to another board, epoch or ticket.
    #[error("the envelope belongs to another board, epoch or ticket")]
    Mismatch,
    /// Its key does not fit this board's table.
    #[error("the envelope's key is malformed: {0}")]
    Key(#[from] KeyError),
    /// Mode 2: its part of the write is invalid.
    #[error("the envelope's part of the write is malformed: {0}")]
    Part(#[from] PartError),
    /// Not exactly one envelope for each server, or a common part or lock that does not fit the mode.
    #[error("the write must have exactly one envelope for each server of this board")]
    Envelopes,
}

/// The content of an envelope of mode 1. Secret.
#[derive(Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) shared: SharedPart,
    root: [u8; BLOCK],
}

impl Drop for Content {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

/// The content of an opened envelope of mode 1.
pub(crate) struct UnsealedKey {
    pub(crate) key: Key,
    pub(crate) shared: Digest,
    /// With the key, all of the shared part.
    tag: Tag,
    nonce: [u8; 16],
}

impl UnsealedKey {
    /// The content again.
    pub(crate) fn content(&self, board: Digest, epoch: Epoch) -> Content {
        let (tag, nonce, words) = (self.tag, self.nonce, self.key.words.clone());
        let shared = SharedPart { board, epoch, tag, nonce, words };
        Content { shared, root: *self.key.root.expose() }
    }
}

impl Content {
    /// The key, if it is for this board and epoch and fits the table.
    pub(crate) fn check(&self, board: &Board, epoch: Epoch) -> Result<UnsealedKey, EnvelopeError> {
        let shared = &self.shared;
        if shared.board != board.fingerprint() || shared.epoch != epoch {
            return Err(EnvelopeError::Mismatch);
        }
        let (tag, nonce, digest) = (shared.tag, shared.nonce, shared.digest());
        let key = Key { root: Secret::from_bytes(self.root), words: shared.words.clone() };
        key.check(&board.shape())?;
        Ok(UnsealedKey { key, shared: digest, tag, nonce })
    }
}

/// What a database reveals to the auditor that checks its share.
#[derive(Serialize, Deserialize)]
pub(crate) struct RevealedKeys {
    /// The seed of its agreement key of the epoch.
    pub(crate) agreement: [u8; 32],
    /// The contents of its envelopes of the accepted writes, in order.
    pub(crate) writes: Vec<Content>,
}

impl Drop for RevealedKeys {
    fn drop(&mut self) {
        self.agreement.zeroize();
    }
}

impl RevealedKeys {
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Reserve the full size: a growing vector leaves copies behind.
        let each = |content: &Content| {
            let words = &content.shared.words;
            512 + 32 * words.levels.len() + words.payload.len()
        };
        let room = Vec::with_capacity(64 + self.writes.iter().map(each).sum::<usize>());
        #[expect(clippy::expect_used, reason = "plain data serialises")]
        Zeroizing::new(postcard::to_extend(self, room).expect("plain data serialises"))
    }
}

/// Seals one server's part of a write in mode 2.
pub(crate) fn seal_part(
    to: &HybridPublic,
    bound: &Digest,
    server: u8,
    common: &CommonPart,
    part: &Part,
    rng: &mut impl CryptoRng,
) -> Result<HybridSealed, SealingKeyError> {
    let room = Vec::with_capacity(64 + part.key.len() + part.salt.len() + part.proofs.len());
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = Zeroizing::new(postcard::to_extend(part, room).expect("plain data serialises"));
    let common = common.digest();
    let context = [bound.as_ref(), &[server], common.as_ref()];
    seal_bytes(to, labels::BOARD_PART, &context, &bytes, rng)
}

/// Opens one server's part of a write in mode 2 and checks everything that precedes the audit.
/// `bound` covers the board, the epoch and its keys, and the writer's tag.
pub(crate) fn open_part(
    key: &HybridKey,
    engine: &Parity,
    bound: &Digest,
    server: u8,
    common: &CommonPart,
    sealed: &HybridSealed,
) -> Result<CheckedPart, EnvelopeError> {
    let named = common.digest();
    let context = [bound.as_ref(), &[server], named.as_ref()];
    let opened = key.open_bytes(labels::BOARD_PART, &context, sealed);
    let bytes = opened.map_err(|_| EnvelopeError::Unreadable)?;
    let part: Part = canonical(&bytes).ok_or(EnvelopeError::Unreadable)?;
    Ok(CheckedPart::open(engine, bound, server, common, part)?)
}

/// Seals one side's key. The randomness comes from a seed, so that anyone who learns the seed can
/// check what was sealed. `begun` covers the board, the epoch and both databases' keys.
pub(crate) fn seal(
    to: &HybridPublic,
    begun: &Digest,
    side: Side,
    shared: &SharedPart,
    root: &Secret<BLOCK>,
    seed: &Secret<32>,
) -> Result<HybridSealed, SealingKeyError> {
    let content = Content { shared: shared.clone(), root: *root.expose() };
    // Reserve the full size: a growing vector leaves copies of the root behind.
    let words = &shared.words;
    let room = Vec::with_capacity(512 + 32 * words.levels.len() + words.payload.len());
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = Zeroizing::new(postcard::to_extend(&content, room).expect("plain data serialises"));
    let context = [begun.as_ref(), side.name()];
    let mut rng = ChaCha20Rng::from_seed(*seed.expose());
    seal_bytes(to, labels::BOARD_ENVELOPE, &context, &bytes, &mut rng)
}

/// Opens one side's envelope and checks everything that precedes the audit. `tag` is the tag of the
/// ticket whose quota is spent.
pub(crate) fn open(
    key: &HybridKey,
    board: &Board,
    (epoch, begun): (Epoch, &Digest),
    side: Side,
    tag: &Tag,
    sealed: &HybridSealed,
) -> Result<UnsealedKey, EnvelopeError> {
    let context = [begun.as_ref(), side.name()];
    let opened = key.open_bytes(labels::BOARD_ENVELOPE, &context, sealed);
    let bytes = opened.map_err(|_| EnvelopeError::Unreadable)?;
    let content: Content = canonical(&bytes).ok_or(EnvelopeError::Unreadable)?;
    if content.shared.tag != *tag {
        return Err(EnvelopeError::Mismatch);
    }
    content.check(board, epoch)
}

/// Decodes a value and rejects any encoding but the canonical one.
pub(crate) fn canonical<T: Serialize + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    let again = Zeroizing::new(postcard::to_allocvec(&value).ok()?);
    (again.as_slice() == bytes).then_some(value)
}
