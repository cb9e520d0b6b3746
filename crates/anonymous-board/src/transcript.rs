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
use std::sync::OnceLock;

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
    /// It cannot stand, alone or beside what its signer has said before.
    Fault(Fault),
}

/// All that was said of one epoch.
#[derive(Clone)]
pub struct Transcript {
    board: Pinned,
    epoch: Epoch,
    said: [Vec<Said>; 3],
    /// The first statement of each server that cannot stand beside what it had said.
    conflicts: [Option<Signed<Statement>>; 3],
    known: Known,
}

#[derive(Clone)]
struct Said {
    statement: Verified<Statement>,
    signed: Signed<Statement>,
}

/// What follows from statements, computed once: they never change.
#[derive(Clone, Default)]
struct Known {
    candidates: OnceLock<Candidates>,
    bound: [OnceLock<Result<(), Dispute>>; 2],
    set: OnceLock<Result<Set, Dispute>>,
}

/// Why there is no agreed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispute {
    /// A server's own statements show that it has not kept to the protocol.
    Blamed(Party, Fault),
    /// A server builds on statements other than those heard here: whoever made two
    /// versions of them is to blame, which shows once both are at hand.
    Contradiction,
}

impl From<Dispute> for Why {
    fn from(dispute: Dispute) -> Self {
        match dispute {
            Dispute::Blamed(by, fault) => Self::Blamed(by, fault),
            Dispute::Contradiction => Self::Contradiction,
        }
    }
}

/// The writes that both databases can audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Sorted.
    pub writes: Vec<WriteName>,
    /// Of board, epoch, both databases' Begin and Candidates, and the writes: who signs
    /// it is bound to permutations and κ too.
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
    /// Of both databases' Commit and Open.
    pub opens: Digest,
    /// Of candidates, opens and accepted writes.
    pub digest: Digest,
}

impl Transcript {
    /// Of an epoch of which nothing was said.
    #[must_use]
    pub fn new(board: &Pinned, epoch: Epoch) -> Self {
        let said = [Vec::new(), Vec::new(), Vec::new()];
        let conflicts = [None, None, None];
        Self { board: board.clone(), epoch, said, conflicts, known: Known::default() }
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
        let at = usize::from(statement.place);
        if said.get(at).is_some_and(|known| known.statement.digest() == statement.digest()) {
            return Ok(Heard::Known);
        }
        let over = matches!(said.last().map(|last| last.what()), Some(What::Abort { .. }));
        let abort = matches!(statement.what, What::Abort { .. });
        let in_turn = abort || place(by, &statement.what) == Some(at);
        if over || at < said.len() || !in_turn {
            // One is proof enough.
            self.conflicts[by.index()].get_or_insert_with(|| signed.clone());
            return Ok(Heard::Fault(Fault::Equivocation));
        }
        if at > said.len() {
            return Err(NotHeard::TooEarly);
        }
        if let What::Begin { agreement, .. } = &statement.what
            && agreement.has_small_order()
        {
            self.conflicts[by.index()].get_or_insert_with(|| signed.clone());
            return Ok(Heard::Fault(Fault::Keys));
        }
        said.push(Said { statement, signed: signed.clone() });
        Ok(Heard::New)
    }

    /// What was heard of a server, in its order, as it was signed: to be handed on.
    pub fn statements(&self, by: Party) -> impl Iterator<Item = &Signed<Statement>> {
        self.said[by.index()].iter().map(|said| &said.signed)
    }

    /// What names those: servers compare them to find who says different things to
    /// different hearers.
    pub fn digests(&self, by: Party) -> impl Iterator<Item = Digest> {
        self.said[by.index()].iter().map(|said| said.statement.digest())
    }

    /// A statement that cannot stand, alone or beside those: it proves that its signer has
    /// not kept to the protocol.
    #[must_use]
    pub fn conflict(&self, by: Party) -> Option<&Signed<Statement>> {
        self.conflicts[by.index()].as_ref()
    }

    /// How many statements of a server were heard.
    #[must_use]
    pub fn heard_of(&self, by: Party) -> usize {
        self.said[by.index()].len()
    }

    /// The number of a server's next statement.
    #[must_use]
    pub fn next_place(&self, by: Party) -> u8 {
        u8::try_from(self.heard_of(by)).unwrap_or(u8::MAX)
    }

    fn what(&self, by: Party, place: usize) -> Option<&What> {
        self.said[by.index()].get(place).map(Said::what)
    }

    fn by(&self, side: Side, place: usize) -> Option<&What> {
        self.what(Party::Database(side), place)
    }

    /// Why a server burnt the epoch, if it did.
    #[must_use]
    pub fn aborted(&self, by: Party) -> Option<Why> {
        match self.said[by.index()].last().map(Said::what) {
            Some(What::Abort { why }) => Some(*why),
            _ => None,
        }
    }

    /// A database's keys of the epoch.
    #[must_use]
    pub fn keys(&self, side: Side) -> Option<(SealingPublic, AgreementPublic)> {
        match self.by(side, What::BEGIN)? {
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
            self.digest_of(side, What::BEGIN)
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
        match self.by(side, What::CLOSE)? {
            What::Close { writes } => Some(writes),
            _ => None,
        }
    }

    /// A database's own candidates and its part of κ.
    #[must_use]
    pub fn own_candidates(&self, side: Side) -> Option<(&[WriteName], &[u8; 32])> {
        match self.by(side, What::CANDIDATES)? {
            What::Candidates { writes, coin } => Some((writes, coin)),
            _ => None,
        }
    }

    fn digest_of(&self, side: Side, place: usize) -> Option<Digest> {
        self.said[side.index()].get(place).map(|said| said.statement.digest())
    }

    /// The candidates, once both databases have said theirs.
    #[must_use]
    pub fn candidates(&self) -> Option<&Candidates> {
        if self.known.candidates.get().is_none() {
            let candidates = self.compute_candidates()?;
            return Some(self.known.candidates.get_or_init(|| candidates));
        }
        self.known.candidates.get()
    }

    fn compute_candidates(&self) -> Option<Candidates> {
        let (ours, one) = self.own_candidates(Side::First)?;
        let (theirs, other) = self.own_candidates(Side::Second)?;
        let theirs: HashSet<&WriteName> = theirs.iter().collect();
        let common = ours.iter().filter(|name| theirs.contains(name)).copied();
        let writes: Vec<WriteName> = sorted(common);
        let mut bases = Vec::new();
        for place in [What::BEGIN, What::CANDIDATES] {
            for side in Side::BOTH {
                bases.push(self.digest_of(side, place)?);
            }
        }
        let bases: Vec<&[u8]> = bases.iter().map(AsRef::as_ref).collect();
        let digest = self.names(labels::BOARD_CANDIDATES, &bases, &writes);
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
        let mut bytes = Vec::with_capacity(64 * audited.len());
        for one in audited {
            bytes.extend_from_slice(&one.digest.0);
            bytes.extend_from_slice(one.shared.as_ref());
        }
        labelled(labels::BOARD_DIGESTS, &[side.name(), candidates.as_ref(), &bytes, nonce])
    }

    /// Whether a database has bound itself to digests.
    #[must_use]
    pub fn committed(&self, side: Side) -> bool {
        self.by(side, What::COMMIT).is_some_and(|what| matches!(what, What::Commit { .. }))
    }

    /// A database's digests, if they are those that it committed to.
    #[must_use]
    pub fn audited(&self, side: Side) -> Option<Result<&[Audited], Dispute>> {
        let (What::Commit { candidates, digests }, What::Open { digests: opened, nonce }) =
            (self.by(side, What::COMMIT)?, self.by(side, What::OPEN)?)
        else {
            return None;
        };
        let known = self.candidates()?;
        let bound = self.known.bound[side.index()].get_or_init(|| {
            if *candidates != known.digest {
                return Err(Dispute::Contradiction);
            }
            let bound = self.binding(side, &known.digest, opened, nonce);
            let good = bound == *digests && opened.len() == known.writes.len();
            let blamed = Dispute::Blamed(Party::Database(side), Fault::Digests);
            if good { Ok(()) } else { Err(blamed) }
        });
        Some(bound.map(|()| opened.as_slice()))
    }

    /// The agreed set, or why there is none; nothing before both databases have opened
    /// their digests.
    #[must_use]
    pub fn set(&self) -> Option<Result<&Set, Dispute>> {
        let [first, second] = [self.audited(Side::First)?, self.audited(Side::Second)?];
        let set = match self.known.set.get() {
            Some(set) => set,
            None => {
                let set = match (first, second) {
                    (Ok(first), Ok(second)) => Ok(self.compute_set(first, second)?),
                    // Whoever is to blame is named before what may be another's doing.
                    (Err(dispute @ Dispute::Blamed(..)), _) | (_, Err(dispute)) => Err(dispute),
                    (Err(dispute), Ok(_)) => Err(dispute),
                };
                self.known.set.get_or_init(|| set)
            }
        };
        Some(set.as_ref().map_err(|dispute| *dispute))
    }

    fn compute_set(&self, first: &[Audited], second: &[Audited]) -> Option<Set> {
        let candidates = self.candidates()?;
        let equal: Vec<bool> = first.iter().zip(second).map(|(a, b)| a == b).collect();
        let names = candidates.writes.iter().zip(&equal);
        let accepted: Vec<_> = names.clone().filter(|(_, e)| **e).map(|(n, _)| *n).collect();
        let rejected = names.filter(|(_, e)| !**e).map(|(n, _)| *n).collect();
        let mut bases = Vec::new();
        for side in Side::BOTH {
            bases.extend([self.digest_of(side, What::COMMIT)?, self.digest_of(side, What::OPEN)?]);
        }
        let bases: Vec<&[u8]> = bases.iter().map(AsRef::as_ref).collect();
        let opens = labelled(labels::BOARD_OPENS, &bases);
        let more = [candidates.digest.as_ref(), opens.as_ref()];
        let digest = self.names(labels::BOARD_SET, &more, &accepted);
        Some(Set { accepted, rejected, opens, digest })
    }

    /// Whether a database computes the set as it is computed here, from the same statements.
    ///
    /// # Errors
    /// Inside: [`Dispute`].
    #[must_use]
    pub fn agrees(&self, side: Side, set: &Set) -> Option<Result<(), Dispute>> {
        let What::Agree { opens, set: theirs, size } = self.by(side, What::AGREE)? else {
            return None;
        };
        if *opens != set.opens {
            return Some(Err(Dispute::Contradiction));
        }
        let same = *theirs == set.digest && usize::try_from(*size) == Ok(set.accepted.len());
        let blamed = Dispute::Blamed(Party::Database(side), Fault::Set);
        Some(if same { Ok(()) } else { Err(blamed) })
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
        match self.by(side, What::LATCH)? {
            What::Latch { set, share } => Some((*set, *share)),
            _ => None,
        }
    }

    /// The set and the table that a database published.
    #[must_use]
    pub fn published(&self, side: Side) -> Option<(Digest, Digest)> {
        match self.by(side, What::PUBLISH)? {
            What::Publish { set, table } => Some((*set, *table)),
            _ => None,
        }
    }

    /// What a database's latch is to bind.
    #[must_use]
    pub fn share_digest(side: Side, set: &Digest, share: &[u8]) -> Digest {
        labelled(labels::BOARD_SHARE, &[side.name(), set.as_ref(), share])
    }

    /// What a published table is named by.
    #[must_use]
    pub fn table_digest(set: &Digest, table: &[u8]) -> Digest {
        labelled(labels::BOARD_TABLE, &[set.as_ref(), table])
    }
}

impl Said {
    fn what(&self) -> &What {
        &self.statement.what
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
        What::Begin { .. } => Some(What::BEGIN),
        What::Close { .. } => Some(What::CLOSE),
        What::Candidates { .. } => Some(What::CANDIDATES),
        What::Commit { .. } => Some(What::COMMIT),
        What::Open { .. } => Some(What::OPEN),
        What::Agree { .. } => Some(What::AGREE),
        What::Latch { .. } => Some(What::LATCH),
        What::Publish { .. } => Some(What::PUBLISH),
    }
}
