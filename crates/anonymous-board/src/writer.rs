//! A writer: makes one write, keeps what it needs to see that it counts, and
//! complains if it does not.

use crate::coalition::audit::{self, Common, Part};
use crate::coalition::engine::Parity;
use crate::configuration::{Epoch, Party, Pinned};
use crate::dpf::generate::from_roots;
use crate::dpf::pass::{Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{BLOCK, Key, Side};
use crate::envelope::{seal, seal_part};
use crate::error::NotWritten;
use crate::messages::{
    Audited, Complaint, Grounds, Opening, Receipt, Shared, Submission, Tag, WriteName, write_name,
};
use crate::row::Row;
use crate::transcript::Transcript;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingPublic};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// An epoch that all databases have begun, as a writer sees it.
pub struct View {
    board: Pinned,
    epoch: Epoch,
    sealing: Vec<SealingPublic>,
    transcript: Transcript,
    keys: Keys,
}

/// How keys are made.
enum Keys {
    /// Mode 1.
    Tree(Box<Prgs>),
    /// Mode 2.
    Parity(Box<Parity>),
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
    /// A server left the write out, or made its audit fail; the table may be out without it.
    /// Whoever did so may wait for the same to be written again.
    LeftOut,
}

/// A receipt is not that database's for this write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receipt is not that database's for this write; keep it and ask again")]
pub struct NoReceipt;

/// All databases are bound to a write by their receipts.
pub struct Received(Vec<Signed<Receipt>>);

impl View {
    /// An epoch by what its databases have said.
    ///
    /// # Errors
    /// [`NotWritten::NotBegun`].
    pub fn open(board: &Pinned, transcript: &Transcript) -> Result<Self, NotWritten> {
        let key = |by: &Party| transcript.keys(*by).map(|(sealing, _)| sealing);
        let sealing: Option<Vec<_>> = board.databases().iter().map(key).collect();
        let keys = match board.grid() {
            None => transcript.permutations().map(Box::new).map(Keys::Tree),
            Some(_) => transcript.parity().map(Box::new).map(Keys::Parity),
        };
        let (Some(sealing), Some(keys)) = (sealing, keys) else { return Err(NotWritten::NotBegun) };
        let (epoch, transcript) = (transcript.epoch(), transcript.clone());
        Ok(Self { board: board.clone(), epoch, sealing, transcript, keys })
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
    /// In mode 1 none of the three servers learns row or message, or whether it is a cover,
    /// while no two of them work together; in mode 2 while not all of them do. Send it over a
    /// channel of your own to each database.
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
        let (envelopes, common) = match &self.keys {
            Keys::Tree(_) => (Made::new(self, tag, row, &encoded, &seed)?.envelopes(self)?, None),
            Keys::Parity(engine) => {
                let (envelopes, common) = self.parts(engine, &tag, row, &encoded, rng)?;
                (envelopes, Some(common))
            }
        };
        let name = write_name(&board.fingerprint(), epoch, &envelopes, common.as_ref());
        let submission = Submission { epoch, envelopes, common, ticket: ticket(&name) };
        let written =
            Written { board, epoch, name, tag, row, cover, encoded, seed, shown: OnceLock::new() };
        Ok((written, submission))
    }

    /// Each server's envelope of a write of mode 2, and what goes with them.
    fn parts(
        &self,
        engine: &Parity,
        tag: &Tag,
        row: u32,
        encoded: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<Sealed>, Common), NotWritten> {
        let bound = self.transcript.bound(tag).ok_or(NotWritten::NotBegun)?;
        let (common, parts) = audit::write(engine, &bound, row, encoded, rng)?;
        Ok((self.sealed(&bound, &common, &parts, rng)?, common))
    }

    fn sealed(
        &self,
        bound: &Digest,
        common: &Common,
        parts: &[Part],
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<Sealed>, NotWritten> {
        let mut envelopes = Vec::with_capacity(parts.len());
        for (server, (to, part)) in (0..).zip(self.sealing.iter().zip(parts)) {
            envelopes.push(seal_part(to, bound, server, common, part, rng)?);
        }
        Ok(envelopes)
    }

    /// Sends what `make` gives as a write of mode 2, for tests of writers who do not keep to
    /// the protocol.
    ///
    /// # Errors
    /// [`NotWritten`].
    pub fn dangerous_submission<R: CryptoRng>(
        &self,
        tag: &Tag,
        make: impl FnOnce(&Parity, &Digest, &mut R) -> (Common, Vec<Part>),
        ticket: impl FnOnce(&WriteName) -> Vec<u8>,
        rng: &mut R,
    ) -> Result<Submission, NotWritten> {
        let Keys::Parity(engine) = &self.keys else { return Err(NotWritten::NotBegun) };
        let (epoch, bound) = (self.epoch, self.transcript.bound(tag).ok_or(NotWritten::NotBegun)?);
        let (common, parts) = make(engine, &bound, rng);
        let (envelopes, common) = (self.sealed(&bound, &common, &parts, rng)?, Some(common));
        let name = write_name(&self.board.fingerprint(), epoch, &envelopes, common.as_ref());
        Ok(Submission { epoch, envelopes, common, ticket: ticket(&name) })
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
        let Keys::Tree(prgs) = &view.keys else { return Err(NotWritten::NotBegun) };
        let keys = from_roots(prgs, &view.board.shape(), row, encoded, roots)?;
        let shared = Shared {
            board: view.board.fingerprint(),
            epoch: view.epoch,
            tag,
            nonce: *nonce.expose(),
            words: keys[0].words.clone(),
        };
        Ok(Self { keys, shared, seals: [seal(b"first"), seal(b"second")] })
    }

    fn envelopes(&self, view: &View) -> Result<Vec<Sealed>, NotWritten> {
        let sides = Side::BOTH.into_iter().zip(&view.sealing);
        sides
            .map(|(side, to)| {
                let i = side.index();
                Ok(seal(to, side, &self.shared, &self.keys[i].root, &self.seals[i])?)
            })
            .collect()
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

    /// Checks all databases' receipts, in their order.
    ///
    /// # Errors
    /// [`NoReceipt`].
    pub fn received(
        &self,
        receipts: impl IntoIterator<Item = Signed<Receipt>>,
    ) -> Result<Received, NoReceipt> {
        let receipts: Vec<Signed<Receipt>> = receipts.into_iter().collect();
        let databases = self.board.databases();
        if receipts.len() != databases.len() {
            return Err(NoReceipt);
        }
        for (by, receipt) in databases.iter().copied().zip(&receipts) {
            let key = self.board.key(by).ok_or(NoReceipt)?;
            let receipt = receipt.open(key).map_err(|_| NoReceipt)?;
            let (board, epoch, write) = (self.board.fingerprint(), self.epoch, self.name);
            if *receipt != (Receipt { board, epoch, by, write }) {
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
        let left_out = self.board.databases().iter().zip(&received.0).find(|(by, _)| {
            let own = transcript.own_candidates(**by);
            own.is_some_and(|(writes, _)| !writes.contains(&self.name))
        });
        if let Some((_, receipt)) = left_out {
            // In mode 2 nobody hears complaints.
            return match self.board.grid() {
                None => Standing::Complain(Box::new(Grounds::LeftOut(receipt.clone()))),
                Some(_) => Standing::Out,
            };
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
        let Keys::Tree(prgs) = &view.keys else { return None };
        let candidates = transcript.candidates()?;
        let at = candidates.writes.binary_search(&self.name).ok()?;
        let side = Side::BOTH.into_iter().find(|side| {
            let key = &made.keys[side.index()];
            let pass = Pass::new(prgs, self.board.shape(), *side);
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

    /// What became of the write in an epoch that was published, by its table that [was
    /// read](crate::reader::Reading).
    #[must_use]
    pub fn became(&self, transcript: &Transcript, table: &[u8]) -> Fate {
        let set = transcript.set().and_then(Result::ok);
        match set.map(|set| set.accepted.binary_search(&self.name)) {
            Some(Ok(_)) => self.fate(table),
            _ => Fate::LeftOut,
        }
    }

    /// What became of a write that is in the set, by the table. An equal message of somebody
    /// else does not count as this one.
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
