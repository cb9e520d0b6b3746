//! What the servers have said of an epoch, checked as it is heard, and what
//! follows from it for everybody alike: candidates, κ, the agreed set.

mod follows;

use crate::configuration::{Epoch, Party, Pinned};
use crate::dpf::digest::Kappa;
use crate::messages::{Fault, Statement, What, Why, WriteName};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::{Rejected, Signed, Verified};
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
    said: Vec<Vec<Said>>,
    /// The first statement of each server that cannot stand beside what it had said.
    conflicts: Vec<Option<Signed<Statement>>>,
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
    /// Of each server: whether what it opened is what it committed to.
    bound: Vec<OnceLock<Result<(), Dispute>>>,
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

/// The writes that all databases can audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Sorted.
    pub writes: Vec<WriteName>,
    /// Of board, epoch, all databases' Begin and Candidates, and the writes: who signs
    /// it is bound to permutations and κ too.
    pub digest: Digest,
    /// What the databases' coins and the candidates give: nobody could know it before.
    pub drawn: Digest,
    /// Where digests are evaluated, in mode 1.
    pub kappa: Kappa,
}

/// The agreed set: the candidates that passed the audit, and those that did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Sorted.
    pub accepted: Vec<WriteName>,
    /// Sorted.
    pub rejected: Vec<WriteName>,
    /// Of all databases' Commit and Open.
    pub opens: Digest,
    /// Of candidates, opens and accepted writes.
    pub digest: Digest,
}

impl Transcript {
    /// Of an epoch of which nothing was said.
    #[must_use]
    pub fn new(board: &Pinned, epoch: Epoch) -> Self {
        let servers = board.parties().len();
        let (said, conflicts) = (vec![Vec::new(); servers], vec![None; servers]);
        let known = Known { bound: vec![OnceLock::new(); servers], ..Known::default() };
        Self { board: board.clone(), epoch, said, conflicts, known }
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
        let statement = signed.open(self.board.key(by).ok_or(NotHeard::Elsewhere)?)?;
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
        self.of(by).iter().map(|said| &said.signed)
    }

    /// What names those: servers compare them to find who says different things to
    /// different hearers.
    pub fn digests(&self, by: Party) -> impl Iterator<Item = Digest> {
        self.of(by).iter().map(|said| said.statement.digest())
    }

    /// A statement that cannot stand, alone or beside those: it proves that its signer has
    /// not kept to the protocol.
    #[must_use]
    pub fn conflict(&self, by: Party) -> Option<&Signed<Statement>> {
        self.conflicts.get(by.index())?.as_ref()
    }

    /// How many statements of a server were heard.
    #[must_use]
    pub fn heard_of(&self, by: Party) -> usize {
        self.of(by).len()
    }

    /// The number of a server's next statement.
    #[must_use]
    pub fn next_place(&self, by: Party) -> u8 {
        u8::try_from(self.heard_of(by)).unwrap_or(u8::MAX)
    }

    fn of(&self, by: Party) -> &[Said] {
        self.said.get(by.index()).map_or(&[], Vec::as_slice)
    }

    fn by(&self, by: impl Into<Party>, place: usize) -> Option<&What> {
        self.of(by.into()).get(place).map(Said::what)
    }

    fn digest_of(&self, by: Party, place: usize) -> Option<Digest> {
        self.of(by).get(place).map(|said| said.statement.digest())
    }

    /// Why a server burnt the epoch, if it did.
    #[must_use]
    pub fn aborted(&self, by: Party) -> Option<Why> {
        match self.of(by).last().map(Said::what) {
            Some(What::Abort { why }) => Some(*why),
            _ => None,
        }
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
    let equal = matches!(by, Party::Server(_));
    match what {
        What::Abort { .. } => Some(0),
        What::Settle { .. } => (!database).then_some(0),
        _ if !database => None,
        What::Begin { .. } => Some(What::BEGIN),
        What::Close { .. } => Some(What::CLOSE),
        What::Candidates { .. } => Some(What::CANDIDATES),
        What::Commit { .. } => Some(What::COMMIT),
        What::Open { .. } => (!equal).then_some(What::OPEN),
        What::Answer { .. } => equal.then_some(What::OPEN),
        What::Agree { .. } => Some(What::AGREE),
        What::Latch { .. } => Some(What::LATCH),
        What::Publish { .. } => Some(What::PUBLISH),
    }
}
