//! Envelopes: one database's key of a write, sealed for that database in that
//! epoch, with all that may go with it.

use crate::coalition::audit::{BadPart, Common, Held, Part};
use crate::coalition::engine::Parity;
use crate::configuration::{Epoch, Pinned};
use crate::dpf::{BLOCK, BadKey, Key, Side};
use crate::messages::{Shared, Tag};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{BadSealingKey, Sealed, SealingKey, SealingPublic, seal_bytes};
use alpheus_crypto::secret::Secret;
use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// Why an envelope holds nothing that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEnvelope {
    /// It does not open with this database's key of this epoch, or holds no key.
    #[error("the envelope does not open here, or holds no key")]
    Unreadable,
    /// It is for another board, another epoch, or goes with another's ticket.
    #[error("the envelope is for another board or epoch, or another's ticket")]
    Elsewhere,
    /// Its key fits no table of this board.
    #[error("the envelope's key is malformed: {0}")]
    Key(#[from] BadKey),
    /// In mode 2: it holds nothing that counts.
    #[error("the envelope's part of the write is malformed: {0}")]
    Part(#[from] BadPart),
    /// Not one envelope for each server, or with them what this board has no use for.
    #[error("the write has not one envelope for each server of this board")]
    Envelopes,
}

#[derive(Serialize, Deserialize)]
struct Content {
    shared: Shared,
    root: [u8; BLOCK],
}

impl Drop for Content {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

/// An opened envelope of mode 1.
pub(crate) struct Opened {
    pub(crate) key: Key,
    pub(crate) shared: Digest,
}

/// Seals one server's part of a write of mode 2, with the randomness of the caller.
pub(crate) fn seal_part(
    to: &SealingPublic,
    bound: &Digest,
    server: u8,
    common: &Common,
    part: &Part,
    rng: &mut impl CryptoRng,
) -> Result<Sealed, BadSealingKey> {
    let room = Vec::with_capacity(64 + part.key.len() + part.salt.len() + part.proofs.len());
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = Zeroizing::new(postcard::to_extend(part, room).expect("plain data serialises"));
    let common = common.digest();
    let context = [bound.as_ref(), &[server], common.as_ref()];
    seal_bytes(to, labels::BOARD_PART, &context, &bytes, rng)
}

/// Opens one server's part of a write of mode 2 and checks all of it that can be checked
/// before the audit. `bound` names board, epoch, keys of the epoch and whose write it is.
pub(crate) fn open_part(
    key: &SealingKey,
    engine: &Parity,
    bound: &Digest,
    server: u8,
    common: &Common,
    sealed: &Sealed,
) -> Result<Held, BadEnvelope> {
    let named = common.digest();
    let context = [bound.as_ref(), &[server], named.as_ref()];
    let opened = key.open_bytes(labels::BOARD_PART, &context, sealed);
    let bytes = opened.map_err(|_| BadEnvelope::Unreadable)?;
    let part: Part = canonical(&bytes).ok_or(BadEnvelope::Unreadable)?;
    Ok(Held::open(engine, bound, server, common, part)?)
}

fn context<'a>(board: &'a Digest, epoch: &'a [u8; 8], side: Side) -> [&'a [u8]; 3] {
    [board.as_ref(), epoch, side.name()]
}

/// Seals one side's key. The randomness comes from a seed, so that whoever is told
/// the seed can check what was sealed.
pub(crate) fn seal(
    to: &SealingPublic,
    side: Side,
    shared: &Shared,
    root: &Secret<BLOCK>,
    seed: &Secret<32>,
) -> Result<Sealed, BadSealingKey> {
    let content = Content { shared: shared.clone(), root: *root.expose() };
    // Room for all of it: a vector that grows leaves copies of the root behind.
    let words = &shared.words;
    let room = Vec::with_capacity(512 + 32 * words.levels.len() + words.payload.len());
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = Zeroizing::new(postcard::to_extend(&content, room).expect("plain data serialises"));
    let epoch = shared.epoch.0.to_be_bytes();
    let context = context(&shared.board, &epoch, side);
    let mut rng = ChaCha20Rng::from_seed(*seed.expose());
    seal_bytes(to, labels::BOARD_ENVELOPE, &context, &bytes, &mut rng)
}

/// Opens one side's envelope and checks all of it that can be checked before the
/// audit. The tag is that of the ticket, whose quota is spent.
pub(crate) fn open(
    key: &SealingKey,
    board: &Pinned,
    epoch: Epoch,
    side: Side,
    tag: &Tag,
    sealed: &Sealed,
) -> Result<Opened, BadEnvelope> {
    let fingerprint = board.fingerprint();
    let number = epoch.0.to_be_bytes();
    let context = context(&fingerprint, &number, side);
    let opened = key.open_bytes(labels::BOARD_ENVELOPE, &context, sealed);
    let bytes = opened.map_err(|_| BadEnvelope::Unreadable)?;
    let content: Content = canonical(&bytes).ok_or(BadEnvelope::Unreadable)?;
    let shared = &content.shared;
    if shared.board != fingerprint || shared.epoch != epoch || shared.tag != *tag {
        return Err(BadEnvelope::Elsewhere);
    }
    let digest = shared.digest();
    let key = Key { root: Secret::from_bytes(content.root), words: shared.words.clone() };
    key.check(&board.shape())?;
    Ok(Opened { key, shared: digest })
}

/// Bytes that are the one encoding of a value, and nothing else.
pub(crate) fn canonical<T: Serialize + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    let again = Zeroizing::new(postcard::to_allocvec(&value).ok()?);
    (again.as_slice() == bytes).then_some(value)
}
