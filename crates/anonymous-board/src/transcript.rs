//! What the three servers have said of an epoch, checked as it is heard, and what
//! follows from it for everybody alike: candidates, κ, the agreed set.

use crate::configuration::{Epoch, Party, Pinned};
use crate::dpf::Side;
use crate::dpf::digest::Kappa;
use crate::dpf::prg::Prgs;
use crate::messages::{Audited, Fault, Statement, What, Why, WriteName};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::signed::{Rejected, Signed, Verified};
use std::collections::HashSet;

/// Why a statement is not heard. What its signer is to blame for is a
/// [`Fault`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeard {
    /// Not signed by that server.
    #[error("the statement is not that server's: {0}")]
    Signature(#[from] Rejected),
    /// Of another board or epoch, or by another server than it says.
    #[error("the statement is of another board or epoch, or another server's")]
    Elsewhere,
    /// Earlier ones of that server are missing.
    #[error("earlier statements of that server are missing; send them first")]
    TooEarly,
}

/// What hearing a statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is new.
    New,
    /// It was known.
    Known,
    /// It cannot stand beside what its signer has said before.
    Fault(Fault),
}

/// All that was said of one epoch.
#[derive(Clone)]
pub struct Transcript {
    board: Pinned,
    epoch: Epoch,
    said: [Vec<Verified<Statement>>; 3],
}

/// The writes that both databases can audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Sorted.
    pub writes: Vec<WriteName>,
    /// Of board, epoch and writes.
    pub digest: Digest,
    /// Where digests are evaluated.
    pub kappa: Kappa,
}

/// The agreed set: the candidates that passed the audit, and those that did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Sorted.
    pub accepted: Vec<WriteName>,
    /// Sorted.
    pub rejected: Vec<WriteName>,
    /// Of candidates and accepted writes.
    pub digest: Digest,
}

impl Transcript {
    /// Of an epoch of which nothing was said.
    #[must_use]
    pub fn new(board: &Pinned, epoch: Epoch) -> Self {
        Self { board: board.clone(), epoch, said: [Vec::new(), Vec::new(), Vec::new()] }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Takes a statement that a server is said to have made.
    ///
    /// # Errors
    /// [`NotHeard`]: nothing has changed, and nobody is to blame but who sent it.
    pub fn hear(&mut self, by: Party, signed: &Signed<Statement>) -> Result<Heard, NotHeard> {
        let statement = signed.open(self.board.key(by))?;
        if statement.board != self.board.fingerprint()
            || statement.epoch != self.epoch
            || statement.by != by
        {
            return Err(NotHeard::Elsewhere);
        }
        let said = &mut self.said[by.index()];
        if said.iter().any(|known| known.digest() == statement.digest()) {
            return Ok(Heard::Known);
        }
        let Some(place) = place(by, &statement.what) else {
            return Ok(Heard::Fault(Fault::Equivocation));
        };
        let over = matches!(said.last().map(|last| &last.what), Some(What::Abort { .. }));
        let abort = matches!(statement.what, What::Abort { .. });
        if over || (!abort && place < said.len()) {
            return Ok(Heard::Fault(Fault::Equivocation));
        }
        if !abort && place > said.len() {
            return Err(NotHeard::TooEarly);
        }
        said.push(statement);
        Ok(Heard::New)
    }

    /// How many statements of a server were heard.
    #[must_use]
    pub fn heard_of(&self, by: Party) -> usize {
        self.said[by.index()].len()
    }

    fn what(&self, by: Party, place: usize) -> Option<&What> {
        self.said[by.index()].get(place).map(|statement| &statement.what)
    }

    fn by(&self, side: Side, place: usize) -> Option<&What> {
        self.what(Party::Database(side), place)
    }

    /// Why a server burnt the epoch, if it did.
    #[must_use]
    pub fn aborted(&self, by: Party) -> Option<Why> {
        match self.said[by.index()].last().map(|last| &last.what) {
            Some(What::Abort { why }) => Some(*why),
            _ => None,
        }
    }

    /// A database's keys of the epoch.
    #[must_use]
    pub fn keys(&self, side: Side) -> Option<(SealingPublic, AgreementPublic)> {
        match self.by(side, 0)? {
            What::Begin { sealing, agreement } => Some((*sealing, *agreement)),
            _ => None,
        }
    }

    /// The epoch's permutations, once both databases have begun it: nobody could
    /// have worked on them before.
    #[must_use]
    pub fn permutations(&self) -> Option<Prgs> {
        let begun = |side: Side| {
            self.keys(side)?;
            self.said[side.index()].first().map(Verified::digest)
        };
        let (first, second) = (begun(Side::First)?, begun(Side::Second)?);
        let [tree, payload, hash] = [b"tree".as_slice(), b"payload", b"hash"].map(|what| {
            let parts = [first.as_ref(), second.as_ref(), what];
            let digest = labelled(labels::BOARD_PERMUTATIONS, &parts);
            std::array::from_fn(|i| digest.0[i])
        });
        Some(Prgs::new(&tree, &payload, &hash))
    }

    /// The writes that a database had when it closed.
    #[must_use]
    pub fn closed(&self, side: Side) -> Option<&[WriteName]> {
        match self.by(side, 1)? {
            What::Close { writes } => Some(writes),
            _ => None,
        }
    }

    /// A database's own candidates and its part of κ.
    #[must_use]
    pub fn own_candidates(&self, side: Side) -> Option<(&[WriteName], &[u8; 32])> {
        match self.by(side, 2)? {
            What::Candidates { writes, coin } => Some((writes, coin)),
            _ => None,
        }
    }

    /// The candidates, once both databases have said theirs.
    #[must_use]
    pub fn candidates(&self) -> Option<Candidates> {
        let (ours, one) = self.own_candidates(Side::First)?;
        let (theirs, other) = self.own_candidates(Side::Second)?;
        let theirs: HashSet<&WriteName> = theirs.iter().collect();
        let common = ours.iter().filter(|name| theirs.contains(name)).copied();
        let writes: Vec<WriteName> = sorted(common);
        let digest = self.names(labels::BOARD_CANDIDATES, &[], &writes);
        let kappa = labelled(labels::BOARD_KAPPA, &[one, other, digest.as_ref()]);
        let kappa = Kappa(std::array::from_fn(|i| kappa.0[i]));
        Some(Candidates { writes, digest, kappa })
    }

    fn names(&self, label: &str, more: &[&[u8]], writes: &[WriteName]) -> Digest {
        let board = self.board.fingerprint();
        let epoch = self.epoch.0.to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch];
        parts.extend(more);
        parts.extend(writes.iter().map(|name| name.0.as_ref()));
        labelled(label, &parts)
    }

    /// What a database's commitment is to be for digests and a nonce.
    #[must_use]
    pub fn binding(
        &self,
        side: Side,
        candidates: &Digest,
        audited: &[Audited],
        nonce: &[u8; 32],
    ) -> Digest {
        let mut bytes = Vec::with_capacity(96 * audited.len());
        for one in audited {
            bytes.extend_from_slice(&one.low);
            bytes.extend_from_slice(&one.high);
            bytes.extend_from_slice(one.shared.as_ref());
        }
        let side: &[u8] = if side == Side::First { b"first" } else { b"second" };
        labelled(labels::BOARD_DIGESTS, &[side, candidates.as_ref(), &bytes, nonce])
    }

    /// Whether a database has bound itself to digests.
    #[must_use]
    pub fn committed(&self, side: Side) -> bool {
        self.by(side, 3).is_some_and(|what| matches!(what, What::Commit { .. }))
    }

    /// A database's digests, if they are those that it committed to.
    #[must_use]
    pub fn audited(&self, side: Side) -> Option<Result<&[Audited], Fault>> {
        let (What::Commit { candidates, digests }, What::Open { digests: opened, nonce }) =
            (self.by(side, 3)?, self.by(side, 4)?)
        else {
            return None;
        };
        let known = self.candidates()?;
        let bound = self.binding(side, &known.digest, opened, nonce);
        let good =
            *candidates == known.digest && bound == *digests && opened.len() == known.writes.len();
        Some(if good { Ok(opened) } else { Err(Fault::Digests) })
    }

    /// The agreed set, or who is to blame that there is none; none before both
    /// databases have opened their digests.
    #[must_use]
    pub fn set(&self) -> Option<Result<Set, (Party, Fault)>> {
        let [first, second] = [self.audited(Side::First)?, self.audited(Side::Second)?];
        let blamed = |side, fault| (Party::Database(side), fault);
        let first = match first {
            Ok(first) => first,
            Err(fault) => return Some(Err(blamed(Side::First, fault))),
        };
        let second = match second {
            Ok(second) => second,
            Err(fault) => return Some(Err(blamed(Side::Second, fault))),
        };
        let candidates = self.candidates()?;
        let equal: Vec<bool> = first.iter().zip(second).map(|(a, b)| a == b).collect();
        let names = candidates.writes.iter().zip(&equal);
        let accepted: Vec<_> = names.clone().filter(|(_, e)| **e).map(|(n, _)| *n).collect();
        let rejected = names.filter(|(_, e)| !**e).map(|(n, _)| *n).collect();
        let digest = self.names(labels::BOARD_SET, &[candidates.digest.as_ref()], &accepted);
        Some(Ok(Set { accepted, rejected, digest }))
    }

    /// The set that a database computed.
    #[must_use]
    pub fn agreed(&self, side: Side) -> Option<(Digest, u32)> {
        match self.by(side, 5)? {
            What::Agree { set, size } => Some((*set, *size)),
            _ => None,
        }
    }

    /// The set that the auditor settled.
    #[must_use]
    pub fn settled(&self) -> Option<Digest> {
        match self.what(Party::Auditor, 0)? {
            What::Settle { set } => Some(*set),
            _ => None,
        }
    }

    /// The set and the share that a database is bound to.
    #[must_use]
    pub fn latched(&self, side: Side) -> Option<(Digest, Digest)> {
        match self.by(side, 6)? {
            What::Latch { set, share } => Some((*set, *share)),
            _ => None,
        }
    }

    /// The set and the table that a database published.
    #[must_use]
    pub fn published(&self, side: Side) -> Option<(Digest, Digest)> {
        match self.by(side, 7)? {
            What::Publish { set, table } => Some((*set, *table)),
            _ => None,
        }
    }

    /// What a database's latch is to bind.
    #[must_use]
    pub fn share_digest(side: Side, set: &Digest, share: &[u8]) -> Digest {
        let side: &[u8] = if side == Side::First { b"first" } else { b"second" };
        labelled(labels::BOARD_SHARE, &[side, set.as_ref(), share])
    }

    /// What a published table is named by.
    #[must_use]
    pub fn table_digest(set: &Digest, table: &[u8]) -> Digest {
        labelled(labels::BOARD_TABLE, &[set.as_ref(), table])
    }
}

/// Writes in their one order, each once.
pub(crate) fn sorted(writes: impl IntoIterator<Item = WriteName>) -> Vec<WriteName> {
    let mut writes: Vec<WriteName> = writes.into_iter().collect();
    writes.sort_unstable();
    writes.dedup();
    writes
}

/// Where a statement stands among a server's; none for what that server never says.
fn place(by: Party, what: &What) -> Option<usize> {
    let database = by != Party::Auditor;
    match what {
        What::Abort { .. } => Some(0),
        What::Settle { .. } => (!database).then_some(0),
        _ if !database => None,
        What::Begin { .. } => Some(0),
        What::Close { .. } => Some(1),
        What::Candidates { .. } => Some(2),
        What::Commit { .. } => Some(3),
        What::Open { .. } => Some(4),
        What::Agree { .. } => Some(5),
        What::Latch { .. } => Some(6),
        What::Publish { .. } => Some(7),
    }
}
