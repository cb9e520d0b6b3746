//! All that crosses between parties of a board.

use crate::coalition::audit::{Answer, Common};
use crate::configuration::{Epoch, Party};
use crate::dpf::digest::KeyDigest;
use crate::dpf::{BLOCK, Side, Words};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingPublic};
use alpheus_crypto::signed::{Message, Signed};
use serde::{Deserialize, Serialize};

/// What a writer sends, the same to all servers that hold shares, so that none can deny to
/// have it and each can hand it on to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The epoch it is for.
    pub epoch: Epoch,
    /// A key for each of them, sealed for it, in their order.
    pub envelopes: Vec<Sealed>,
    /// What goes with all of them, in mode 2.
    pub common: Option<Common>,
    /// What entitles to one write; read by the admission.
    pub ticket: Vec<u8>,
}

impl Submission {
    /// Names the write: a digest of board, epoch, envelopes and what goes with them. The
    /// ticket signs it, so it is not part of it.
    #[must_use]
    pub fn name(&self, board: &Digest) -> WriteName {
        write_name(board, self.epoch, &self.envelopes, self.common.as_ref())
    }
}

pub(crate) fn write_name(
    board: &Digest,
    epoch: Epoch,
    envelopes: &[Sealed],
    common: Option<&Common>,
) -> WriteName {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    let bytes = postcard::to_allocvec(&(envelopes, common)).expect("plain data serialises");
    let parts = [board.as_ref(), &epoch.0.to_be_bytes(), &bytes];
    WriteName(labelled(labels::BOARD_SUBMISSION, &parts))
}

/// Names one write of one epoch of one board. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WriteName(pub Digest);

/// What both keys of a write have in common, inside both envelopes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// Whose write it is, as the admission names it: an envelope goes with no other's ticket.
    pub tag: Tag,
    /// Tells writes apart.
    pub nonce: [u8; 16],
    /// The common words of the keys.
    pub words: Words,
}

impl Shared {
    /// What databases compare: unequal for keys that do not belong together.
    #[must_use]
    pub fn digest(&self) -> Digest {
        #[expect(clippy::expect_used, reason = "plain data serialises")]
        let bytes = postcard::to_allocvec(self).expect("plain data serialises");
        labelled(labels::BOARD_SHARED, &[&bytes])
    }
}

/// Whose quota a write spends, in one epoch. What it tells of the writer is the
/// admission's affair; it tells nothing of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(pub [u8; 32]);

/// A database says that it has accepted a write and will bring it into the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// Which server.
    pub by: Party,
    /// The write.
    pub write: WriteName,
}

impl Message for Receipt {
    const LABEL: &'static str = labels::BOARD_RECEIPT;
}

/// What a server says of an epoch. Each server publishes its statements in their
/// order, for everybody to read; what it has said it never takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The board.
    pub board: Digest,
    /// The epoch.
    pub epoch: Epoch,
    /// Who says it.
    pub by: Party,
    /// How much of the epoch it has said before: two statements with one number are proof
    /// against it, whoever hands them on and in whatever order.
    pub place: u8,
    /// What.
    pub what: What,
}

/// A statement as a server publishes it: its own, or another's as it was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The epoch.
    pub epoch: Epoch,
    /// Whose it is.
    pub by: Party,
    /// Whether it cannot stand, alone or beside what that server has said before.
    pub conflicts: bool,
    /// As it was signed.
    pub signed: Signed<Statement>,
}

impl Message for Statement {
    const LABEL: &'static str = labels::BOARD_STATEMENT;
}

/// What is said, in the order in which it is said: who holds shares says all but
/// [`What::Settle`], the auditor only that; in mode 2 [`What::Answer`] stands in place of
/// [`What::Open`]; each may say [`What::Abort`] instead of
/// what is next, and nothing after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The epoch's keys, removed from the ledger when it ends.
    Begin {
        /// Envelopes are sealed for it.
        sealing: SealingPublic,
        /// The databases agree on the shares' masks with it.
        agreement: AgreementPublic,
    },
    /// No more writes are taken; these are here. The other database fetches what it lacks.
    Close {
        /// All accepted writes, sorted.
        writes: Vec<WriteName>,
    },
    /// These can be audited.
    Candidates {
        /// All accepted writes, those from the other database included, sorted.
        writes: Vec<WriteName>,
        /// This database's part of κ.
        coin: [u8; 32],
    },
    /// Binds to the digests of all common candidates.
    Commit {
        /// The common candidates, and both databases' statements that they follow from.
        candidates: Digest,
        /// Of party, candidates, digests and nonce.
        digests: Digest,
    },
    /// The digests.
    Open {
        /// In the candidates' order.
        digests: Vec<Audited>,
        /// The commitment's.
        nonce: [u8; 32],
    },
    /// The agreed set, as this database computes it.
    Agree {
        /// Both databases' digests, as this one has heard them.
        opens: Digest,
        /// The set.
        set: Digest,
        /// How many are in it.
        size: u32,
    },
    /// The time for complaints is over and none was upheld.
    Settle {
        /// The set.
        set: Digest,
    },
    /// Binds to this database's share of the table: the latch. It is durable before the
    /// first byte of the share leaves, and there is one in an epoch.
    Latch {
        /// The set.
        set: Digest,
        /// Of party, set and masked share.
        share: Digest,
    },
    /// The table.
    Publish {
        /// The set.
        set: Digest,
        /// Of set and table.
        table: Digest,
    },
    /// The epoch is burnt.
    Abort {
        /// Why.
        why: Why,
    },
    /// Mode 2: what is opened of each write.
    Answer {
        /// In the candidates' order.
        answers: Vec<Answer>,
        /// The commitment's.
        nonce: [u8; 32],
    },
}

/// The places of a database's statements.
impl What {
    pub(crate) const BEGIN: usize = 0;
    pub(crate) const CLOSE: usize = 1;
    pub(crate) const CANDIDATES: usize = 2;
    pub(crate) const COMMIT: usize = 3;
    pub(crate) const OPEN: usize = 4;
    pub(crate) const AGREE: usize = 5;
    pub(crate) const LATCH: usize = 6;
    pub(crate) const PUBLISH: usize = 7;
}

/// One write's digest, at one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audited {
    /// The digest of this database's key.
    pub digest: KeyDigest,
    /// What this database's key has in common with the other's.
    pub shared: Digest,
}

/// Why an epoch is burnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Why {
    /// A server has evidently not kept to the protocol.
    #[error("the {0} has not kept to the protocol: {1}")]
    Blamed(Party, Fault),
    /// Servers build on different versions of a statement. Who made them shows from
    /// the versions, not from this.
    #[error("the servers have heard different things; who said them shows when they compare")]
    Contradiction,
    /// Fewer writes than the board reveals.
    #[error("fewer writes than this board reveals")]
    TooFew,
    /// A database left out more than half of the writes that this server closed with:
    /// the crowd would be of its choice. No proof: it may say that they were not valid.
    #[error("the {0} left out more than half of the writes that had come in")]
    Thinned(Party),
    /// It was not published in time.
    #[error("not published in time")]
    Late,
    /// Both databases were bound to their shares, and that one's did not come, though it
    /// may have had this one's. No proof: it may say that it was not asked.
    #[error(
        "the {0} did not give its share in time and may have read the table alone; do not write the same again"
    )]
    Withheld(Party),
    /// This server came back from a ledger that may lack what it has said.
    #[error("a server came back from a ledger that may be an old copy")]
    Restored,
    /// Another server says that the epoch is burnt.
    #[error("the {0} says that it is burnt")]
    Told(Party),
    /// Mode 2: more than half of the writes that this server closed with did not come through:
    /// not listed by all, or not accepted. The crowd would be of somebody's choice; of whose
    /// nobody can tell.
    #[error("more than half of the writes that had come in were left out or rejected")]
    Dwindled,
    /// All were bound to their shares, and not all came, or something ended the epoch then.
    /// Some server may have read the table alone.
    #[error(
        "not all servers gave their shares in time, and some may have read the table; do not write the same again"
    )]
    Unshared,
}

impl Why {
    /// Whether some server may have read the table: whoever wrote must not write the same again.
    #[must_use]
    pub fn warns(&self) -> bool {
        matches!(self, Self::Withheld(_) | Self::Unshared)
    }
}

/// What a server is blamed for. [`LeftOut`](Self::LeftOut) is shown by a receipt and a
/// statement, which the writer has, and [`WrongDigest`](Self::WrongDigest) to the auditor
/// alone, to whom the writer opens a key. All others everybody can check from signed
/// statements, which every server hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// It said two different things in one place, or something out of its turn.
    #[error("it said two things for one, or something out of turn")]
    Equivocation,
    /// Its opened digests are not those that it committed to, or not one for each candidate.
    #[error("its digests are not those that it committed to")]
    Digests,
    /// It computes another set from the same statements.
    #[error("it computed another set")]
    Set,
    /// It gave a receipt for a write and left it out of the candidates.
    #[error("it left out a write that it gave a receipt for")]
    LeftOut,
    /// Its digest of a write is not that of the key which the write holds for it.
    #[error("its digest of a write is wrong")]
    WrongDigest,
    /// Everybody would know what is agreed on with its key of the epoch.
    #[error("its key of the epoch has small order")]
    Keys,
}

/// A writer's complaint to the auditor, after the digests and before the reveal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaint {
    /// The write.
    pub submission: Submission,
    /// What is wrong.
    pub grounds: Grounds,
}

/// Only membership of the set is grounds for a complaint: whoever may complain of
/// rows is watched when they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grounds {
    /// A database gave this receipt, and the write is not among its candidates.
    LeftOut(Signed<Receipt>),
    /// A database's digest is wrong; here is what its envelope holds. One side's only:
    /// with both the auditor would have row and message.
    Digest {
        /// Whose.
        side: Side,
        /// What is sealed for it, and what sealed it.
        opening: Opening,
    },
}

/// What was sealed in one envelope, and the seed of the randomness that sealed it:
/// who seals it again gets the same bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The common part.
    pub shared: Shared,
    /// That side's root.
    pub root: [u8; BLOCK],
    /// Seed of the randomness.
    pub seal: [u8; 32],
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening(one side's key)")
    }
}
