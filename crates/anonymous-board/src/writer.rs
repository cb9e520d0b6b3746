//! A writer: makes one write, keeps what it needs to check that the write counts, and complains if
//! it does not.

mod saved_write;

use crate::coalition::audit::{self, CommonPart, Part};
use crate::coalition::engine::Parity;
use crate::configuration::{Board, Epoch, Party};
use crate::dpf::generate::from_roots;
use crate::dpf::pass::{Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{BLOCK, Key, Side};
use crate::envelope::{seal, seal_part};
use crate::error::WriteError;
use crate::messages::{
    Complaint, Grounds, Opening, Receipt, SharedPart, Submission, Tag, WriteDigest, WriteName, lock,
};
use crate::row::Row;
use crate::transcript::{Dispute, Set, Transcript};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use rand_core::CryptoRng;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// An epoch that all databases have begun, as a writer sees it.
pub struct View {
    board: Board,
    epoch: Epoch,
    sealing: Vec<HybridPublic>,
    transcript: Transcript,
    keys: Keys,
}

/// The construction of keys.
enum Keys {
    /// Mode 1.
    Tree(Box<Prgs>),
    /// Mode 2.
    Parity(Box<Parity>),
}

/// The content of a write.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// A message.
    Message(&'a [u8]),
    /// Nothing. It looks like any write and enlarges the crowd.
    Cover,
}

/// A write that was made. Its writer keeps this until the table is published.
pub struct PendingWrite {
    board: Board,
    epoch: Epoch,
    name: WriteName,
    tag: Tag,
    row: u32,
    cover: bool,
    encoded: Zeroizing<Vec<u8>>,
    seed: Secret<32>,
    /// The only side whose key a complaint may reveal. Once it is chosen, the other side's key is
    /// never revealed, whatever statements arrive later.
    complaint_side: OnceLock<Side>,
}

/// The status of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteStatus {
    /// There is no agreed set yet.
    Open,
    /// The write is in the set.
    In,
    /// It is not in the set, and a database is to blame. Send these grounds to the auditor before
    /// it settles.
    Complain(Box<Grounds>),
    /// Databases build on different versions of a statement. No key decides who made two. Send each
    /// server the statements of which it has received other versions: both together are proof.
    Contradicted,
    /// It is not in the set, and the writer can prove nobody's fault.
    Out,
}

/// The final result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message is alone in its row.
    Delivered,
    /// The message collided with another, and both were recovered.
    Recovered,
    /// The message collided with others and is lost. Write it again in another epoch.
    Lost,
    /// It was a cover.
    Covered,
    /// A server left the write out, or made its audit fail. The table may be published without it,
    /// and that server may be waiting for the writer to write the same again.
    LeftOut,
}

/// A receipt is not from that database for this write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receipt is not from that database for this write; keep it and ask the database again")]
pub struct ReceiptError;

/// Receipts that bind databases to a write.
pub struct Receipts(Vec<Option<Signed<Receipt>>>);

impl Receipts {
    /// Whether every database has given one.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }
}

impl View {
    /// The epoch of a transcript.
    ///
    /// # Errors
    /// [`WriteError::NotBegun`].
    pub fn open(board: &Board, transcript: &Transcript) -> Result<Self, WriteError> {
        let key = |by: &Party| transcript.keys(*by).map(|(sealing, _)| sealing.clone());
        let sealing: Option<Vec<_>> = board.databases().iter().map(key).collect();
        let keys = match board.grid() {
            None => transcript.permutations().map(Box::new).map(Keys::Tree),
            Some(_) => transcript.parity().map(Box::new).map(Keys::Parity),
        };
        let (Some(sealing), Some(keys)) = (sealing, keys) else { return Err(WriteError::NotBegun) };
        let (epoch, transcript) = (transcript.epoch(), transcript.clone());
        Ok(Self { board: board.clone(), epoch, sealing, transcript, keys })
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Makes a write into a randomly drawn row. `ticket` makes the ticket for the write's name,
    /// under the quota that `tag` identifies.
    ///
    /// # Errors
    /// [`WriteError`].
    ///
    /// # Privacy
    /// In mode 1 none of the three servers learns the row, the message or whether it is a cover,
    /// while no two of them collude; in mode 2, while not all of them collude. Send the submission
    /// to each database over a separate channel.
    pub fn write(
        &self,
        content: Content<'_>,
        tag: Tag,
        ticket: impl FnOnce(&WriteName) -> Vec<u8>,
        rng: &mut impl CryptoRng,
    ) -> Result<(PendingWrite, Submission), WriteError> {
        // A cover takes the same path: an empty message is encoded and then zeroed.
        let (cover, encoded) = match content {
            Content::Message(message) => (false, self.board.format.encode(message, rng)?),
            Content::Cover => {
                let mut encoded = self.board.format.encode(&[], rng)?;
                encoded.fill(0);
                (true, encoded)
            }
        };
        let row = uniform_below(self.board.rows, rng);
        let seed = Secret::random(rng);
        let (epoch, board) = (self.epoch, self.board.clone());
        let (envelopes, common, lock) = match &self.keys {
            Keys::Tree(_) => {
                let pair = KeyPair::new(self, tag, row, &encoded, &seed)?;
                (pair.envelopes(self)?, None, Some(lock(pair.unlocks.expose())))
            }
            Keys::Parity(engine) => {
                let (envelopes, common) = self.parts(engine, &tag, row, &encoded, rng)?;
                (envelopes, Some(common), None)
            }
        };
        let submission = self.submission(envelopes, common, lock, ticket);
        let name = submission.name(&board.fingerprint());
        let written = PendingWrite {
            board,
            epoch,
            name,
            tag,
            row,
            cover,
            encoded,
            seed,
            complaint_side: OnceLock::new(),
        };
        Ok((written, submission))
    }

    /// Each server's envelope of a write in mode 2, and the common part.
    fn parts(
        &self,
        engine: &Parity,
        tag: &Tag,
        row: u32,
        encoded: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<(Vec<HybridSealed>, CommonPart), WriteError> {
        let bound = self.transcript.bound(tag).ok_or(WriteError::NotBegun)?;
        let (common, parts) = audit::write(engine, &bound, row, encoded, rng)?;
        Ok((self.seal_parts(&bound, &common, &parts, rng)?, common))
    }

    fn seal_parts(
        &self,
        bound: &Digest,
        common: &CommonPart,
        parts: &[Part],
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<HybridSealed>, WriteError> {
        let mut envelopes = Vec::with_capacity(parts.len());
        for (server, (to, part)) in (0..).zip(self.sealing.iter().zip(parts)) {
            envelopes.push(seal_part(to, bound, server, common, part, rng)?);
        }
        Ok(envelopes)
    }

    /// Submits a write of mode 2 that `make` constructs, to test writers that break the protocol.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn dangerous_submission<R: CryptoRng>(
        &self,
        tag: &Tag,
        make: impl FnOnce(&Parity, &Digest, &mut R) -> (CommonPart, Vec<Part>),
        ticket: impl FnOnce(&WriteName) -> Vec<u8>,
        rng: &mut R,
    ) -> Result<Submission, WriteError> {
        let Keys::Parity(engine) = &self.keys else { return Err(WriteError::NotBegun) };
        let bound = self.transcript.bound(tag).ok_or(WriteError::NotBegun)?;
        let (common, parts) = make(engine, &bound, rng);
        let envelopes = self.seal_parts(&bound, &common, &parts, rng)?;
        Ok(self.submission(envelopes, Some(common), None, ticket))
    }

    fn submission(
        &self,
        envelopes: Vec<HybridSealed>,
        common: Option<CommonPart>,
        lock: Option<Digest>,
        ticket: impl FnOnce(&WriteName) -> Vec<u8>,
    ) -> Submission {
        let (epoch, unsigned) = (self.epoch, Vec::new());
        let mut made = Submission { epoch, envelopes, common, lock, ticket: unsigned };
        made.ticket = ticket(&made.name(&self.board.fingerprint()));
        made
    }
}

/// Both keys and everything that goes with them, derived from one seed.
struct KeyPair {
    keys: [Key; 2],
    shared: SharedPart,
    seals: [Secret<32>; 2],
    /// Opens the write's lock.
    unlocks: Secret<32>,
}

impl KeyPair {
    fn new(
        view: &View,
        tag: Tag,
        row: u32,
        encoded: &[u8],
        seed: &Secret<32>,
    ) -> Result<Self, WriteError> {
        let root = |which: &[u8]| -> Secret<BLOCK> {
            let root: Secret<BLOCK> = derive(seed.expose(), labels::BOARD_WRITE, &[b"root", which]);
            let mut root = Zeroizing::new(*root.expose());
            root[0] &= !1;
            Secret::from_bytes(*root)
        };
        let seal = |which: &[u8]| derive(seed.expose(), labels::BOARD_WRITE, &[b"seal", which]);
        let nonce: Secret<16> = derive(seed.expose(), labels::BOARD_WRITE, &[b"nonce"]);
        let roots = [root(b"first"), root(b"second")];
        let Keys::Tree(prgs) = &view.keys else { return Err(WriteError::NotBegun) };
        let keys = from_roots(prgs, &view.board.shape(), row, encoded, roots)?;
        let shared = SharedPart {
            board: view.board.fingerprint(),
            epoch: view.epoch,
            tag,
            nonce: *nonce.expose(),
            words: keys[0].words.clone(),
        };
        let unlocks = derive(seed.expose(), labels::BOARD_WRITE, &[b"lock"]);
        Ok(Self { keys, shared, seals: [seal(b"first"), seal(b"second")], unlocks })
    }

    fn envelopes(&self, view: &View) -> Result<Vec<HybridSealed>, WriteError> {
        let begun = view.transcript.begun().ok_or(WriteError::NotBegun)?;
        let sides = Side::BOTH.into_iter().zip(&view.sealing);
        sides
            .map(|(side, to)| {
                let i = side.index();
                Ok(seal(to, &begun, side, &self.shared, &self.keys[i].root, &self.seals[i])?)
            })
            .collect()
    }
}

impl PendingWrite {
    /// The write's name.
    #[must_use]
    pub fn name(&self) -> WriteName {
        self.name
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Checks the receipts of all databases, given in server order.
    ///
    /// # Errors
    /// [`ReceiptError`].
    pub fn handle_receipts(
        &self,
        receipts: impl IntoIterator<Item = Signed<Receipt>>,
    ) -> Result<Receipts, ReceiptError> {
        self.handle_some_receipts(receipts.into_iter().map(Some))
    }

    /// The same, where some databases may not have answered. Without a receipt there is no complaint
    /// that its database left the write out.
    ///
    /// # Errors
    /// [`ReceiptError`].
    pub fn handle_some_receipts(
        &self,
        receipts: impl IntoIterator<Item = Option<Signed<Receipt>>>,
    ) -> Result<Receipts, ReceiptError> {
        let receipts: Vec<Option<Signed<Receipt>>> = receipts.into_iter().collect();
        let databases = self.board.databases();
        if receipts.len() != databases.len() {
            return Err(ReceiptError);
        }
        for (by, receipt) in databases.iter().copied().zip(&receipts) {
            let Some(receipt) = receipt else { continue };
            let key = self.board.key(by).ok_or(ReceiptError)?;
            let receipt = receipt.open(key).map_err(|_| ReceiptError)?;
            let (board, epoch, write) = (self.board.fingerprint(), self.epoch, self.name);
            if *receipt != (Receipt { board, epoch, by, write }) {
                return Err(ReceiptError);
            }
        }
        Ok(Receipts(receipts))
    }

    /// The write's status according to the servers' statements.
    ///
    /// # Privacy
    /// A complaint reveals to the auditor at most one key, that of the database whose digest is
    /// wrong. That key alone reveals nothing about row or message. It is revealed only once the other
    /// database holds to what is seen here, or has ended the epoch: the auditor that settles anything
    /// has then upheld the complaint or seen a contradiction, and never asks for the other key.
    #[must_use]
    pub fn status(&self, transcript: &Transcript, receipts: &Receipts) -> WriteStatus {
        let left_out = self.board.databases().iter().zip(&receipts.0).find(|(by, _)| {
            let own = transcript.candidates_of(**by);
            own.is_some_and(|(writes, _)| !writes.contains(&self.name))
        });
        if let Some((_, receipt)) = left_out {
            // Mode 2 has no complaints.
            return match (self.board.grid(), receipt) {
                (None, Some(receipt)) => {
                    WriteStatus::Complain(Box::new(Grounds::LeftOut(receipt.clone())))
                }
                _ => WriteStatus::Out,
            };
        }
        let set = match transcript.set() {
            None => return WriteStatus::Open,
            Some(Err(Dispute::Contradiction)) => return WriteStatus::Contradicted,
            Some(Err(Dispute::Blamed(..))) => return WriteStatus::Out,
            Some(Ok(set)) => set,
        };
        let contradicts =
            |by: &Party| transcript.agrees(*by, set) == Some(Err(Dispute::Contradiction));
        if self.board.databases().iter().any(contradicts) {
            return WriteStatus::Contradicted;
        }
        if set.accepted.binary_search(&self.name).is_ok() {
            return WriteStatus::In;
        }
        // Only here does the decision need a key: in all other cases the statements are proof. Once
        // the set is settled it is too late, and the auditor may ask for the other key.
        if transcript.settled_set().is_some() {
            return WriteStatus::Out;
        }
        self.wrong_digest(transcript, set).unwrap_or(WriteStatus::Out)
    }

    /// The complaint to send for these grounds.
    #[must_use]
    pub fn complaint(&self, submission: &Submission, grounds: Grounds) -> Complaint {
        Complaint { submission: submission.clone(), grounds }
    }

    /// Finds the side whose digest does not match its key. With its digests an honest database
    /// signs what they follow from. So it is never found at fault in a view fabricated for this
    /// writer. The other side's database must have bound itself to this view, or have ended the
    /// epoch: else this may be a version for this writer alone, and the auditor, which cannot
    /// uphold the complaint, may learn the other key in the check of a share.
    fn wrong_digest(&self, transcript: &Transcript, set: &Set) -> Option<WriteStatus> {
        let view = View::open(&self.board, transcript).ok()?;
        let pair = KeyPair::new(&view, self.tag, self.row, &self.encoded, &self.seed).ok()?;
        let Keys::Tree(prgs) = &view.keys else { return None };
        let candidates = transcript.candidates()?;
        let at = candidates.writes.binary_search(&self.name).ok()?;
        let side = Side::BOTH.into_iter().find(|side| {
            let key = &pair.keys[side.index()];
            let pass = Pass::new(prgs, self.board.shape(), *side);
            let share = Share { root: &key.root, words: &key.words };
            let digest = pass.digests(&[share], &candidates.kappa).ok();
            let expected = digest.and_then(|digests| {
                Some(WriteDigest { digest: *digests.first()?, shared: pair.shared.digest() })
            });
            let stated = transcript.opened_digests(*side).and_then(Result::ok);
            matches!((stated.and_then(|a| a.get(at).copied()), expected), (Some(a), Some(b)) if a != b)
        })?;
        match transcript.holds_to(side.other(), set) {
            None => return Some(WriteStatus::Open),
            Some(false) => return None,
            Some(true) => {}
        }
        if *self.complaint_side.get_or_init(|| side) != side {
            return None;
        }
        let i = side.index();
        let opening = Opening {
            shared: pair.shared.clone(),
            root: *pair.keys[i].root.expose(),
            seal: *pair.seals[i].expose(),
            unlocks: *pair.unlocks.expose(),
        };
        Some(WriteStatus::Complain(Box::new(Grounds::Digest { side, opening })))
    }

    /// The write's result in a published epoch. The table must have passed
    /// [`read`](crate::reader::read).
    #[must_use]
    pub fn fate(&self, transcript: &Transcript, table: &[u8]) -> Fate {
        let set = transcript.set().and_then(Result::ok);
        match set.map(|set| set.accepted.binary_search(&self.name)) {
            Some(Ok(_)) => self.fate_in(table),
            _ => Fate::LeftOut,
        }
    }

    /// The result of a write that is in the set. Somebody else's equal message does not count as
    /// this one.
    #[must_use]
    pub fn fate_in(&self, table: &[u8]) -> Fate {
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

/// A uniform number below `end`.
fn uniform_below(end: u32, rng: &mut impl CryptoRng) -> u32 {
    loop {
        let drawn = u64::from(rng.next_u32()) * u64::from(end);
        // Rejects draws that would bias the result (Lemire).
        #[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits")]
        let (high, low) = ((drawn >> 32) as u32, drawn as u32);
        if low >= end.wrapping_neg() % end {
            return high;
        }
    }
}
