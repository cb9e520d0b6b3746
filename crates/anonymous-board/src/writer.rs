//! A writer: makes one write, keeps what it needs to see that it counts, and
//! complains if it does not.

use crate::configuration::{Epoch, Party, Pinned};
use crate::dpf::generate::from_roots;
use crate::dpf::pass::{Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{BLOCK, Key, Side};
use crate::envelope::seal;
use crate::error::NotWritten;
use crate::messages::{
    Audited, Complaint, Grounds, Opening, Receipt, Shared, Submission, Tag, WriteName, write_name,
};
use crate::row::Row;
use crate::transcript::Transcript;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// An epoch that both databases have begun, as a writer sees it.
pub struct View {
    board: Pinned,
    epoch: Epoch,
    prgs: Prgs,
    sealing: [SealingPublic; 2],
}

/// What to write.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// A message.
    Message(&'a [u8]),
    /// Nothing, which looks the same to everybody: it makes the crowd larger.
    Cover,
}

/// A write that was made: what its writer keeps until the table is out.
pub struct Written {
    board: Pinned,
    epoch: Epoch,
    name: WriteName,
    tag: Tag,
    row: u32,
    cover: bool,
    encoded: Zeroizing<Vec<u8>>,
    seed: Secret<32>,
    /// The one side whose key may be shown: once chosen, the other's never is, whatever is
    /// heard later.
    shown: OnceLock<Side>,
}

/// How a write stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no agreed set yet.
    Open,
    /// It is in the set.
    In,
    /// It is not, and a database is to blame: give this to the auditor before it settles.
    Complain(Box<Grounds>),
    /// It is not, and nobody can be shown to be to blame.
    Out,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message stands alone in its row.
    Delivered,
    /// The message met another one, and both were recovered.
    Recovered,
    /// The message met others and is lost: write it again in another epoch.
    Lost,
    /// It was a cover.
    Covered,
}

/// A receipt is not that database's for this write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receipt is not that database's for this write; keep it and ask again")]
pub struct NoReceipt;

/// Both databases are bound to a write by their receipts.
pub struct Received(pub(crate) [Signed<Receipt>; 2]);

impl View {
    /// An epoch by what its databases have said.
    ///
    /// # Errors
    /// [`NotWritten::NotBegun`].
    pub fn open(board: &Pinned, transcript: &Transcript) -> Result<Self, NotWritten> {
        let keys = |side| transcript.keys(side).map(|(sealing, _)| sealing);
        let (Some(first), Some(second), Some(prgs)) =
            (keys(Side::First), keys(Side::Second), transcript.permutations())
        else {
            return Err(NotWritten::NotBegun);
        };
        let epoch = transcript.epoch();
        Ok(Self { board: board.clone(), epoch, prgs, sealing: [first, second] })
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Makes a write into a row that is drawn here. `ticket` makes the ticket for the
    /// write's name, under the quota that `tag` names.
    ///
    /// # Errors
    /// [`NotWritten`].
    ///
    /// # Privacy
    /// No two of the three servers that do not work together learn row or message,
    /// or whether it is a cover. Send it over a channel of your own to each database.
    pub fn write(
        &self,
        content: Content<'_>,
        tag: Tag,
        ticket: impl FnOnce(&WriteName) -> Vec<u8>,
        rng: &mut impl CryptoRng,
    ) -> Result<(Written, Submission), NotWritten> {
        // A cover takes the same path: a message is made and masked away.
        let (cover, encoded) = match content {
            Content::Message(message) => (false, self.board.format.encode(message, rng)?),
            Content::Cover => {
                let mut encoded = self.board.format.encode(&[], rng)?;
                encoded.fill(0);
                (true, encoded)
            }
        };
        let row = below(self.board.rows, rng);
        let seed = Secret::random(rng);
        let (epoch, board) = (self.epoch, self.board.clone());
        let made = Made::new(self, tag, row, &encoded, &seed)?;
        let envelopes = made.envelopes(&self.sealing)?;
        let name = write_name(&board.fingerprint(), epoch, &envelopes);
        let submission = Submission { epoch, envelopes, ticket: ticket(&name) };
        let written =
            Written { board, epoch, name, tag, row, cover, encoded, seed, shown: OnceLock::new() };
        Ok((written, submission))
    }
}

/// Both keys and all that goes with them, made from one seed.
struct Made {
    keys: [Key; 2],
    shared: Shared,
    seals: [Secret<32>; 2],
}

impl Made {
    fn new(
        view: &View,
        tag: Tag,
        row: u32,
        encoded: &[u8],
        seed: &Secret<32>,
    ) -> Result<Self, NotWritten> {
        let root = |which: &[u8]| -> Secret<BLOCK> {
            let root: Secret<BLOCK> = derive(seed.expose(), labels::BOARD_WRITE, &[b"root", which]);
            let mut root = Zeroizing::new(*root.expose());
            root[0] &= !1;
            Secret::from_bytes(*root)
        };
        let seal = |which: &[u8]| derive(seed.expose(), labels::BOARD_WRITE, &[b"seal", which]);
        let nonce: Secret<16> = derive(seed.expose(), labels::BOARD_WRITE, &[b"nonce"]);
        let roots = [root(b"first"), root(b"second")];
        let keys = from_roots(&view.prgs, &view.board.shape(), row, encoded, roots)?;
        let shared = Shared {
            board: view.board.fingerprint(),
            epoch: view.epoch,
            tag,
            nonce: *nonce.expose(),
            words: keys[0].words.clone(),
        };
        Ok(Self { keys, shared, seals: [seal(b"first"), seal(b"second")] })
    }

    fn envelopes(
        &self,
        to: &[SealingPublic; 2],
    ) -> Result<[alpheus_crypto::seal::Sealed; 2], NotWritten> {
        let sealed = |side: Side| {
            let i = side.index();
            seal(&to[i], side, &self.shared, &self.keys[i].root, &self.seals[i])
        };
        Ok([sealed(Side::First)?, sealed(Side::Second)?])
    }
}

impl Written {
    /// Names the write.
    #[must_use]
    pub fn name(&self) -> WriteName {
        self.name
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Checks both databases' receipts.
    ///
    /// # Errors
    /// [`NoReceipt`].
    pub fn received(&self, receipts: [Signed<Receipt>; 2]) -> Result<Received, NoReceipt> {
        for side in Side::BOTH {
            let key = self.board.key(Party::Database(side));
            let receipt = receipts[side.index()].open(key).map_err(|_| NoReceipt)?;
            let expected = Receipt {
                board: self.board.fingerprint(),
                epoch: self.epoch,
                by: side,
                write: self.name,
            };
            if *receipt != expected {
                return Err(NoReceipt);
            }
        }
        Ok(Received(receipts))
    }

    /// How the write stands by what the servers have said.
    ///
    /// # Privacy
    /// Whoever complains shows the auditor one key at most, of the database whose
    /// digest is wrong: that one alone tells nothing of row and message.
    #[must_use]
    pub fn standing(&self, transcript: &Transcript, received: &Received) -> Standing {
        let left_out = Side::BOTH.into_iter().find(|side| {
            let own = transcript.own_candidates(*side);
            own.is_some_and(|(writes, _)| !writes.contains(&self.name))
        });
        if let Some(side) = left_out {
            let receipt = received.0[side.index()].clone();
            return Standing::Complain(Box::new(Grounds::LeftOut(receipt)));
        }
        match transcript.set() {
            None => Standing::Open,
            Some(Ok(set)) if set.accepted.binary_search(&self.name).is_ok() => Standing::In,
            // Only here is a key what decides: of all else the statements are proof.
            Some(Ok(_)) => self.wrong_digest(transcript).unwrap_or(Standing::Out),
            Some(Err(_)) => Standing::Out,
        }
    }

    /// The complaint to send for grounds.
    #[must_use]
    pub fn complaint(&self, submission: &Submission, grounds: Grounds) -> Complaint {
        Complaint { submission: submission.clone(), grounds }
    }

    /// Finds the side whose digest is not that of its key. An honest database signs with
    /// its digests what they follow from, so none is found wrong in a view that was made
    /// up for this writer.
    fn wrong_digest(&self, transcript: &Transcript) -> Option<Standing> {
        let view = View::open(&self.board, transcript).ok()?;
        let made = Made::new(&view, self.tag, self.row, &self.encoded, &self.seed).ok()?;
        let candidates = transcript.candidates()?;
        let at = candidates.writes.binary_search(&self.name).ok()?;
        let side = Side::BOTH.into_iter().find(|side| {
            let key = &made.keys[side.index()];
            let pass = Pass::new(&view.prgs, self.board.shape(), *side);
            let share = Share { root: &key.root, words: &key.words };
            let digest = pass.digests(&[share], &candidates.kappa).ok();
            let expected = digest.and_then(|digests| {
                Some(Audited { digest: *digests.first()?, shared: made.shared.digest() })
            });
            let said = transcript.audited(*side).and_then(Result::ok);
            matches!((said.and_then(|a| a.get(at).copied()), expected), (Some(a), Some(b)) if a != b)
        })?;
        if *self.shown.get_or_init(|| side) != side {
            return None;
        }
        let i = side.index();
        let opening = Opening {
            shared: made.shared.clone(),
            root: *made.keys[i].root.expose(),
            seal: *made.seals[i].expose(),
        };
        Some(Standing::Complain(Box::new(Grounds::Digest { side, opening })))
    }

    /// What became of the write, by a table that [was read](crate::reader::Reading). An
    /// equal message of somebody else does not count as this one.
    #[must_use]
    pub fn fate(&self, table: &[u8]) -> Fate {
        if self.cover {
            return Fate::Covered;
        }
        let width = self.board.shape().width();
        let row = table.chunks_exact(width).nth(self.row as usize).unwrap_or_default();
        if row == self.encoded.as_slice() {
            return Fate::Delivered;
        }
        let format = &self.board.format;
        let rest: Vec<u8> = row.iter().zip(self.encoded.iter()).map(|(a, b)| a ^ b).collect();
        match (format.decode(row), format.decode(&rest)) {
            (Row::Two(_), Row::One(_)) => Fate::Recovered,
            _ => Fate::Lost,
        }
    }
}

/// A number below `end`, each alike.
fn below(end: u32, rng: &mut impl CryptoRng) -> u32 {
    loop {
        let drawn = u64::from(rng.next_u32()) * u64::from(end);
        // Rejects what would make some numbers likelier (Lemire).
        #[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits")]
        let (high, low) = ((drawn >> 32) as u32, drawn as u32);
        if low >= end.wrapping_neg() % end {
            return high;
        }
    }
}
