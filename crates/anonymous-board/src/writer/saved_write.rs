//! A pending write on its writer's own disk, so that a restart neither repeats nor forgets it.

use super::PendingWrite;
use crate::configuration::{Board, Epoch};
use crate::dpf::Side;
use crate::messages::{Tag, WriteName};
use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct SavedWrite {
    #[zeroize(skip)]
    epoch: Epoch,
    #[zeroize(skip)]
    name: WriteName,
    #[zeroize(skip)]
    tag: Tag,
    row: u32,
    cover: bool,
    encoded: Vec<u8>,
    seed: [u8; 32],
    #[zeroize(skip)]
    complaint_side: Option<Side>,
}

impl PendingWrite {
    /// The write as bytes, for its writer alone: they hold row and message. Covers and messages have
    /// equally many. Save them again after a complaint, which binds the write to one side.
    #[must_use]
    pub fn dangerous_to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let saved = SavedWrite {
            epoch: self.epoch,
            name: self.name,
            tag: self.tag,
            row: self.row,
            cover: self.cover,
            encoded: self.encoded.to_vec(),
            seed: *self.seed.expose(),
            complaint_side: self.complaint_side.get().copied(),
        };
        // Reserve the full size: a growing vector leaves copies behind.
        let room = Vec::with_capacity(256 + saved.encoded.len());
        // Writing into memory does not fail.
        Zeroizing::new(postcard::to_extend(&saved, room).unwrap_or_default())
    }

    /// A copy, for the writer's own disk.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            board: self.board.clone(),
            epoch: self.epoch,
            name: self.name,
            tag: self.tag,
            row: self.row,
            cover: self.cover,
            encoded: self.encoded.clone(),
            seed: self.seed.duplicate(),
            complaint_side: self.complaint_side.clone(),
        }
    }

    /// Reads a write back. `None` if the bytes hold none for this board.
    #[must_use]
    pub fn from_bytes(board: &Board, bytes: &[u8]) -> Option<Self> {
        let saved: SavedWrite = postcard::from_bytes(bytes).ok()?;
        if saved.encoded.len() != board.shape().width() || saved.row >= board.rows {
            return None;
        }
        let complaint_side = OnceLock::new();
        if let Some(side) = saved.complaint_side {
            complaint_side.get_or_init(|| side);
        }
        Some(Self {
            board: board.clone(),
            epoch: saved.epoch,
            name: saved.name,
            tag: saved.tag,
            row: saved.row,
            cover: saved.cover,
            encoded: Zeroizing::new(saved.encoded.clone()),
            seed: Secret::from_bytes(saved.seed),
            complaint_side,
        })
    }
}
