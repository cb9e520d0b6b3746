//! The messages between the parties of a board.

use crate::coalition::audit::{Answer, CommonPart};
use crate::configuration::{Epoch, Party};
use crate::dpf::digest::KeyDigest;
use crate::dpf::{BLOCK, Side, Words};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::hybrid::{HybridPublic, HybridSealed};
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::{Message, Signed};
use serde::{Deserialize, Serialize};

/// What a writer sends to every server that holds a share. All of them get the same bytes, so that
/// none can deny having a write and each can forward it to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The epoch.
    pub epoch: Epoch,
    /// One key for each server, sealed for it, in server order.
    pub envelopes: Vec<HybridSealed>,
    /// The part that all servers share, in mode 2.
    pub common: Option<CommonPart>,
    /// Only who knows what it was made from complains about a digest of this write, in mode 1: a
    /// digest of [`Opening::unlocks`].
    pub lock: Option<Digest>,
    /// Entitles the writer to one write. The admission checks it.
    pub ticket: Vec<u8>,
}

impl Submission {
    /// The write's name: a digest of board, epoch, envelopes, common part and lock. It excludes the
    /// ticket, which signs it.
    #[must_use]
    pub fn name(&self, board: &Digest) -> WriteName {
        write_name(board, self.epoch, &self.envelopes, self.common.as_ref(), self.lock.as_ref())
    }
}

/// The lock of a write whose complaint shows these bytes.
#[must_use]
pub fn lock(unlocks: &[u8; 32]) -> Digest {
    labelled_hash(labels::BOARD_COMPLAINT, &[unlocks])
}

pub(crate) fn write_name(
    board: &Digest,
    epoch: Epoch,
    envelopes: &[HybridSealed],
    common: Option<&CommonPart>,
    lock: Option<&Digest>,
) -> WriteName {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = postcard::to_allocvec(&(envelopes, common, lock)).expect("plain data serialises");
    let parts = [board.as_ref(), &epoch.0.to_be_bytes(), &bytes];
    WriteName(labelled_hash(labels::BOARD_SUBMISSION, &parts))
}

/// The name that a knock's ticket is for: one in each epoch of a board, and no write's.
#[must_use]
pub fn knock_name(board: &Digest, epoch: Epoch) -> WriteName {
    WriteName(labelled_hash(labels::BOARD_KNOCK, &[board.as_ref(), &epoch.0.to_be_bytes()]))
}

/// Identifies one write of one epoch of one board. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteName(pub Digest);

/// The part that both keys of a write share, inside both envelopes (mode 1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPart {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// The writer's tag. It binds an envelope to its ticket.
    pub tag: Tag,
    /// Distinguishes writes.
    pub nonce: [u8; 16],
    /// The words that both keys share.
    pub words: Words,
}

impl SharedPart {
    /// The digest that databases compare. It differs for keys that do not belong together.
    #[must_use]
    pub fn digest(&self) -> Digest {
        #[expect(clippy::expect_used, reason = "plain data serialises")]
        let bytes = postcard::to_allocvec(self).expect("plain data serialises");
        labelled_hash(labels::BOARD_SHARED_PART, &[&bytes])
    }
}

/// Identifies the quota that a write spends in an epoch. Whether it reveals the writer depends on the
/// admission; it reveals nothing about the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(pub [u8; 32]);

/// A database's promise that it has accepted a write and will add it to the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// The server.
    pub by: Party,
    /// The write.
    pub write: WriteName,
}

impl Message for Receipt {
    const LABEL: &'static str = labels::BOARD_RECEIPT;
}

/// A server's signed statement about an epoch. Each server publishes its statements in order for
/// everybody to read, and never retracts one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// The server that makes it.
    pub by: Party,
    /// How many statements of the epoch this server made before. Two statements with one number are
    /// proof against it, no matter who forwards them and in which order.
    pub sequence: u8,
    /// The content.
    pub body: Body,
}

/// A statement as a server publishes it: its own, or another's as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedStatement {
    /// The epoch.
    pub epoch: Epoch,
    /// The server that made it.
    pub by: Party,
    /// Whether it is invalid by itself or contradicts an earlier statement of that server.
    pub conflicts: bool,
    /// The statement as it was signed.
    pub signed: Signed<Statement>,
}

impl Message for Statement {
    const LABEL: &'static str = labels::BOARD_STATEMENT;
}

/// A statement's content. A server that holds shares makes these statements in this order, all but
/// [`Body::Settle`], [`Body::Draw`] and [`Body::Clear`], which are the auditor's. In mode 2
/// [`Body::Answer`] replaces [`Body::Open`]. Each server may make [`Body::Abort`] in place of its next statement, and none
/// after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// The epoch's keys. They leave the ledger when the epoch ends.
    Begin {
        /// Writers seal envelopes for it.
        sealing: HybridPublic,
        /// The databases derive the masks of their shares with it.
        agreement: AgreementPublic,
    },
    /// The epoch accepts no more writes; these were accepted. The other databases fetch those that
    /// they lack.
    Close {
        /// All accepted writes, sorted.
        writes: Vec<WriteName>,
        /// The quotas that came here before: those of the accepted writes, of rejected ones, and
        /// of knocks.
        came: u32,
    },
    /// The writes that this database can audit.
    Candidates {
        /// All accepted writes, forwarded ones included, sorted.
        writes: Vec<WriteName>,
        /// This database's contribution to κ.
        coin: [u8; 32],
    },
    /// Commits to the digests of all common candidates.
    Commit {
        /// The common candidates, with the statements of all databases that they follow from.
        candidates: Digest,
        /// A digest of party, candidates, digests and nonce.
        digests: Digest,
    },
    /// The digests.
    Open {
        /// In the order of the candidates.
        digests: Vec<WriteDigest>,
        /// The commitment's nonce.
        nonce: [u8; 32],
    },
    /// The agreed set as this database computes it.
    Agree {
        /// The opened digests of all databases, as this one received them.
        opens: Digest,
        /// The set.
        set: Digest,
        /// Its size.
        size: u32,
    },
    /// The time for complaints is over, and no complaint was upheld.
    Settle {
        /// The set.
        set: Digest,
        /// A commitment to the coin that chooses whose share is checked.
        draw: Digest,
        /// That database seals its keys of the accepted writes for it.
        sealing: HybridPublic,
    },
    /// The latch: binds this database to its share of the table. It is durable before the first
    /// byte of the share is sent, and there is one per epoch.
    Latch {
        /// The set.
        set: Digest,
        /// The auditor's statement of the set as this database received it, in mode 1. A database
        /// lets its share be checked only if both have received the same.
        settle: Option<Digest>,
        /// A digest of party, set and masked share.
        share: Digest,
    },
    /// The table.
    Publish {
        /// The set.
        set: Digest,
        /// A digest of set and table.
        table: Digest,
    },
    /// The epoch is burnt.
    Abort {
        /// The reason.
        reason: BurnReason,
    },
    /// Mode 2: the opened answer for each write.
    Answer {
        /// In the order of the candidates.
        answers: Vec<Answer>,
        /// The commitment's nonce.
        nonce: [u8; 32],
    },
    /// Opens the coin, once both databases are bound to their shares.
    Draw {
        /// The coin. Its lowest bit is the index of the database whose share is checked.
        coin: [u8; 32],
    },
    /// The auditor has recomputed that share. The databases may send theirs.
    Clear {
        /// The set.
        set: Digest,
    },
}

/// Lets the auditor check a database's share: the database's keys of the accepted writes, and the seed
/// of the key that its mask is agreed with, sealed for the auditor. Signed, so that wrong ones are
/// proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// The database.
    pub by: Party,
    /// The keys.
    pub keys: HybridSealed,
}

impl Message for Reveal {
    const LABEL: &'static str = labels::BOARD_REVEAL;
}

/// The sequence numbers of statements.
impl Body {
    pub(crate) const BEGIN: usize = 0;
    pub(crate) const CLOSE: usize = 1;
    pub(crate) const CANDIDATES: usize = 2;
    pub(crate) const COMMIT: usize = 3;
    pub(crate) const OPEN: usize = 4;
    pub(crate) const AGREE: usize = 5;
    pub(crate) const LATCH: usize = 6;
    pub(crate) const PUBLISH: usize = 7;

    pub(crate) const SETTLE: usize = 0;
    pub(crate) const DRAW: usize = 1;
    pub(crate) const CLEAR: usize = 2;
}

/// The digest of one write at one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteDigest {
    /// The digest of this database's key.
    pub digest: KeyDigest,
    /// The digest of the part that this key shares with the other database's.
    pub shared: Digest,
}

/// Why an epoch is burnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BurnReason {
    /// A server provably broke the protocol.
    Blamed(Party, Fault),
    /// Servers build on different versions of a statement. The versions prove who made them; this
    /// reason alone does not.
    Contradiction,
    /// Fewer writes than the board's minimum.
    TooFew,
    /// A database left out more than half of the writes that this server closed with, so the crowd
    /// would be of its choice. This is no proof: it may claim that the writes were invalid.
    Thinned(Party),
    /// The table was not published in time.
    Late,
    /// Both databases were bound to their shares. That one's did not arrive, though it may have
    /// received this one's. This is no proof: it may claim that it was not asked.
    Withheld(Party),
    /// This server was restored from a ledger that may lack some of its statements. So it may have sent
    /// its share, and another server may have read the table alone.
    Restored,
    /// Another server reports that the epoch is burnt.
    Reported(Party),
    /// More than half of the writes that had come to a server were lost, because some server did not
    /// list them or the audit rejected them. Somebody may have chosen the crowd. In mode 1 a
    /// writer's complaint shows who; in mode 2 nobody can tell.
    Dwindled,
    /// All servers were bound to their shares, and then not all shares arrived or something else
    /// ended the epoch. Some server may have read the table alone.
    Unshared,
    /// This server was killed before it was bound to its share, by a ledger that has all that it did.
    Killed,
    /// The auditor chose that database's share to check, and the database did not let it. This is
    /// no proof: it may claim that it was not asked.
    Unchecked(Party),
}

impl std::fmt::Display for BurnReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Blamed(by, fault) => return write!(f, "the {by} broke the protocol: {fault}"),
            Self::Contradiction => {
                "the servers received different versions of a statement; comparing them shows who \
                 made them"
            }
            Self::TooFew => "fewer writes than this board reveals",
            Self::Thinned(by) => {
                return write!(
                    f,
                    "the {by} left out more than half of the writes that had arrived"
                );
            }
            Self::Unchecked(by) => {
                return write!(f, "the {by} did not let the auditor check its share in time");
            }
            Self::Late => "not published in time",
            Self::Withheld(by) => {
                return write!(
                    f,
                    "the {by} did not send its share in time and may have read the table alone; \
                     do not write the same again"
                );
            }
            Self::Restored => {
                "a server was restored from a ledger that may be an old copy, and some server may have \
                 read the table; do not write the same again"
            }
            Self::Killed => {
                "a server was killed before it was bound to its share, or is a copy of it"
            }
            Self::Reported(by) => return write!(f, "the {by} reports that the epoch is burnt"),
            Self::Dwindled => {
                "more than half of the writes that had arrived were left out or rejected"
            }
            Self::Unshared => {
                "not all servers sent their shares in time, and some may have read the table; \
                 do not write the same again"
            }
        };
        f.write_str(text)
    }
}

impl BurnReason {
    /// Whether some server may have read the table. Writers must then not write the same again.
    #[must_use]
    pub fn warns(&self) -> bool {
        matches!(self, Self::Withheld(_) | Self::Unshared | Self::Restored)
    }
}

/// What a server is blamed for. A receipt and a statement, both held by the writer, prove
/// [`LeftOut`](Self::LeftOut). Only the auditor can check [`WrongDigest`](Self::WrongDigest),
/// [`Seed`](Self::Seed) and [`Share`](Self::Share), because keys are opened to it alone. Everybody can check all others from signed
/// statements, which every server forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// It made two different statements with one sequence number, or one out of turn.
    Equivocation,
    /// Its opened digests do not match its commitment, or their number is wrong.
    Digests,
    /// It computed another set from the same statements.
    Set,
    /// It issued a receipt for a write and left the write out of its candidates.
    LeftOut,
    /// Its digest of a write does not match the key that the write holds for it.
    WrongDigest,
    /// A key of the epoch is invalid: everybody would know the secrets agreed with it, or what is
    /// sealed for it would rest on one of two ciphers alone.
    Keys,
    /// The auditor's coin does not match its commitment.
    Draw,
    /// What it revealed to the auditor is no set of keys, or its seed is not that of its key of the
    /// epoch.
    Seed,
    /// Its share of the table is not the sum of its keys. The auditor holds the proof: the signed
    /// latch, and the signed reveal, which it can open for an arbiter.
    Share,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Equivocation => {
                "it made two different statements where one was due, or one out of turn"
            }
            Self::Digests => "its digests do not match its commitment",
            Self::Set => "it computed another set",
            Self::LeftOut => "it left out a write for which it issued a receipt",
            Self::WrongDigest => "its digest of a write is wrong",
            Self::Keys => "a key of the epoch is invalid, or has small order",
            Self::Draw => "its coin does not match its commitment",
            Self::Seed => "what it revealed to the auditor does not fit its key of the epoch",
            Self::Share => "its share of the table is not the sum of its keys",
        })
    }
}

/// A writer's complaint to the auditor, after the digests and before the table is revealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaint {
    /// The write.
    pub submission: Submission,
    /// The grounds.
    pub grounds: Grounds,
}

/// Grounds for a complaint. They concern only membership of the set: a server could watch who
/// complains about rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grounds {
    /// A database issued this receipt, and the write is not among its candidates.
    LeftOut(Signed<Receipt>),
    /// A database's digest is wrong. The opening covers that side's envelope only: with both, the
    /// auditor would learn row and message.
    Digest {
        /// The side with the wrong digest.
        side: Side,
        /// The content of its envelope, and the seed that sealed it.
        opening: Opening,
    },
}

/// The content of one envelope, and the seed of the randomness that sealed it. Sealing it again
/// produces the same bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The shared part.
    pub shared: SharedPart,
    /// That side's root.
    pub root: [u8; BLOCK],
    /// Seed of the sealing randomness.
    pub seal: [u8; 32],
    /// Opens the submission's lock: nobody but the writer complains about its digests.
    pub unlocks: [u8; 32],
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening(one side's key)")
    }
}
