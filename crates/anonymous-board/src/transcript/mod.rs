//! The servers' statements of an epoch, checked on arrival, and what follows from them for
//! everybody alike: candidates, κ, the agreed set.

mod conclusions;
mod crowd;
mod release;

pub use crowd::Crowd;

use crate::configuration::{Board, Epoch, Party};
use crate::dpf::digest::Kappa;
use crate::messages::{Body, BurnReason, Fault, Statement, WriteName};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::{Signed, SignedMessageError, Verified};
use std::sync::OnceLock;

/// Why a statement is rejected. If its signer is to blame, it is a [`Fault`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// That server did not sign it.
    #[error("the statement is not that server's: {0}")]
    Signature(#[from] SignedMessageError),
    /// It belongs to another board, epoch or server.
    #[error("the statement belongs to another board, epoch or server")]
    Mismatch,
    /// Earlier statements of that server are missing.
    #[error("earlier statements of that server are missing; send them first")]
    TooEarly,
}

/// The effect of recording a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The statement is new.
    New,
    /// The transcript had it already.
    Duplicate,
    /// It is invalid by itself or contradicts its signer's earlier statements.
    Fault(Fault),
}

/// All statements of one epoch.
#[derive(Clone)]
pub struct Transcript {
    board: Board,
    epoch: Epoch,
    entries: Vec<Vec<Entry>>,
    /// The first statement of each server that is invalid or contradicts its earlier ones.
    conflicts: Vec<Option<Signed<Statement>>>,
    derived: DerivedValues,
}

#[derive(Clone)]
struct Entry {
    statement: Verified<Statement>,
    signed: Signed<Statement>,
}

/// Values derived from the statements. Each is computed once, because statements never change.
#[derive(Clone, Default)]
struct DerivedValues {
    candidates: OnceLock<Candidates>,
    /// For each server: whether its opening matches its commitment.
    bound: Vec<OnceLock<Result<(), Dispute>>>,
    set: OnceLock<Result<Set, Dispute>>,
}

/// Why there is no agreed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispute {
    /// A server's own statements prove that it broke the protocol.
    Blamed(Party, Fault),
    /// A server builds on other statements than those recorded here. The server that made two versions of
    /// them is to blame; comparing both versions proves it.
    Contradiction,
}

impl From<Dispute> for BurnReason {
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
    /// A digest of board, epoch, all databases' Begin and Candidates, and the writes. A signature
    /// of it also covers the permutations and κ.
    pub digest: Digest,
    /// A hash of the databases' coins and the candidates, which nobody could know before.
    pub randomness: Digest,
    /// The key of the audit's digests, in mode 1.
    pub kappa: Kappa,
}

/// The agreed set: the candidates that passed the audit, and those that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Sorted.
    pub accepted: Vec<WriteName>,
    /// Sorted.
    pub rejected: Vec<WriteName>,
    /// A digest of all databases' Commit and Open.
    pub opens: Digest,
    /// A digest of candidates, opens and accepted writes.
    pub digest: Digest,
}

impl Transcript {
    /// The statements of a database up to its opening: a complaint about a digest is judged by them.
    pub const JUDGED_BY: usize = Body::OPEN + 1;

    /// The transcript of an epoch without statements.
    #[must_use]
    pub fn new(board: &Board, epoch: Epoch) -> Self {
        let servers = board.parties().len();
        let (entries, conflicts) = (vec![Vec::new(); servers], vec![None; servers]);
        let derived =
            DerivedValues { bound: vec![OnceLock::new(); servers], ..DerivedValues::default() };
        Self { board: board.clone(), epoch, entries, conflicts, derived }
    }

    /// The epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Records a statement that claims to be by this server.
    ///
    /// # Errors
    /// [`StatementError`]: nothing has changed, and only the sender is to blame.
    pub fn record(
        &mut self,
        by: Party,
        signed: &Signed<Statement>,
    ) -> Result<Effect, StatementError> {
        let statement = signed.open(self.board.key(by).ok_or(StatementError::Mismatch)?)?;
        if statement.board != self.board.fingerprint()
            || statement.epoch != self.epoch
            || statement.by != by
        {
            return Err(StatementError::Mismatch);
        }
        let entries = &mut self.entries[by.index()];
        let at = usize::from(statement.sequence);
        if entries.get(at).is_some_and(|known| known.statement.digest() == statement.digest()) {
            return Ok(Effect::Duplicate);
        }
        let over = matches!(entries.last().map(|last| last.body()), Some(Body::Abort { .. }));
        let abort = matches!(statement.body, Body::Abort { .. });
        let in_turn = abort || sequence(by, &statement.body) == Some(at);
        if over || at < entries.len() || !in_turn {
            // One conflict is proof enough.
            self.conflicts[by.index()].get_or_insert_with(|| signed.clone());
            return Ok(Effect::Fault(Fault::Equivocation));
        }
        if at > entries.len() {
            return Err(StatementError::TooEarly);
        }
        if has_bad_key(&statement.body) {
            self.conflicts[by.index()].get_or_insert_with(|| signed.clone());
            return Ok(Effect::Fault(Fault::Keys));
        }
        entries.push(Entry { statement, signed: signed.clone() });
        Ok(Effect::New)
    }

    /// A server's statements as they were signed, in order, for forwarding.
    pub fn statements(&self, by: Party) -> impl Iterator<Item = &Signed<Statement>> {
        self.of(by).iter().map(|entry| &entry.signed)
    }

    /// The digests of those statements. Servers compare them to find out who makes different
    /// statements to different receivers.
    pub fn digests(&self, by: Party) -> impl Iterator<Item = Digest> {
        self.of(by).iter().map(|entry| entry.statement.digest())
    }

    /// A statement that is invalid or contradicts those: proof that its signer broke the protocol.
    #[must_use]
    pub fn conflict(&self, by: Party) -> Option<&Signed<Statement>> {
        self.conflicts.get(by.index())?.as_ref()
    }

    /// The number of statements recorded for a server.
    #[must_use]
    pub fn statement_count(&self, by: Party) -> usize {
        self.of(by).len()
    }

    /// The sequence number of a server's next statement.
    #[must_use]
    pub fn next_sequence(&self, by: Party) -> u8 {
        u8::try_from(self.statement_count(by)).unwrap_or(u8::MAX)
    }

    fn of(&self, by: Party) -> &[Entry] {
        self.entries.get(by.index()).map_or(&[], Vec::as_slice)
    }

    fn by(&self, by: impl Into<Party>, sequence: usize) -> Option<&Body> {
        self.of(by.into()).get(sequence).map(Entry::body)
    }

    fn digest_of(&self, by: Party, sequence: usize) -> Option<Digest> {
        self.of(by).get(sequence).map(|entry| entry.statement.digest())
    }

    /// Why a server burnt the epoch, if it did.
    #[must_use]
    pub fn abort_reason(&self, by: Party) -> Option<BurnReason> {
        match self.of(by).last().map(Entry::body) {
            Some(Body::Abort { reason }) => Some(*reason),
            _ => None,
        }
    }
}

impl Entry {
    fn body(&self) -> &Body {
        &self.statement.body
    }
}

/// Whether a key that others seal or agree secrets with is none.
fn has_bad_key(body: &Body) -> bool {
    match body {
        Body::Begin { sealing, agreement } => agreement.has_small_order() || !sealing.is_good(),
        Body::Settle { sealing, .. } => !sealing.is_good(),
        _ => false,
    }
}

/// Sorts writes and removes duplicates.
pub(crate) fn sorted(writes: impl IntoIterator<Item = WriteName>) -> Vec<WriteName> {
    let mut writes: Vec<WriteName> = writes.into_iter().collect();
    writes.sort_unstable();
    writes.dedup();
    writes
}

/// The sequence number that belongs to a kind of statement. `None` for a kind that this server
/// never makes.
fn sequence(by: Party, body: &Body) -> Option<usize> {
    let database = by != Party::Auditor;
    let equal = matches!(by, Party::Server(_));
    match body {
        Body::Abort { .. } => Some(0),
        Body::Settle { .. } => (!database).then_some(Body::SETTLE),
        Body::Draw { .. } => (!database).then_some(Body::DRAW),
        Body::Clear { .. } => (!database).then_some(Body::CLEAR),
        _ if !database => None,
        Body::Begin { .. } => Some(Body::BEGIN),
        Body::Close { .. } => Some(Body::CLOSE),
        Body::Candidates { .. } => Some(Body::CANDIDATES),
        Body::Commit { .. } => Some(Body::COMMIT),
        Body::Open { .. } => (!equal).then_some(Body::OPEN),
        Body::Answer { .. } => equal.then_some(Body::OPEN),
        Body::Agree { .. } => Some(Body::AGREE),
        Body::Latch { .. } => Some(Body::LATCH),
        Body::Publish { .. } => Some(Body::PUBLISH),
    }
}
