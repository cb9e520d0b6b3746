//! The auditor: keeps the signed transcript, judges complaints, settles the set, and recomputes one
//! database's share. It cannot influence what the set is: the databases check each other themselves.

mod judgement;
mod records;
mod restore;
mod share_check;

pub use share_check::{CheckedShare, ShareCheck};

use crate::configuration::{Board, Epoch, Party};
use crate::dpf::Side;
use crate::messages::{
    Body, BurnReason, Complaint, Fault, PublishedStatement, Reveal, Statement, WriteName,
};
use crate::transcript::{Effect, StatementError, Transcript};
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use judgement::judge;
use rand_core::CryptoRng;
use share_check::{Evidence, Progress};
use std::collections::{BTreeMap, BTreeSet};

/// How many epochs' transcripts are kept.
const RETAINED_EPOCHS: u64 = 64;

/// The auditor.
pub struct Auditor {
    board: Board,
    key: SigningKey,
    epochs: BTreeMap<Epoch, Case>,
}

struct Case {
    transcript: Transcript,
    /// When both databases' agreement arrived. The time for complaints starts then.
    agreed_since: Option<Timestamp>,
    fault: Option<(Party, Fault)>,
    /// The seed of the coin and of the key for the reveal, drawn when the set is settled.
    seed: Option<Secret<32>>,
    evidence: Evidence,
    /// The writes of which a complaint about a digest was judged.
    judged: BTreeSet<WriteName>,
}

/// A verdict, and the statement that burns the epoch if it is upheld and is not burnt yet.
pub type Judgement = (Verdict, Option<PublishedStatement>);

/// The judgement of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A server is to blame. The epoch is burnt.
    Upheld(Party, Fault),
    /// The complaint proves nothing: the server acted as the write demands.
    Void,
}

/// Why a complaint is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComplaintError {
    /// The epoch is unknown here.
    #[error("that epoch is unknown here")]
    Epoch,
    /// The digests have not arrived yet.
    #[error("the databases have not opened their digests yet; complain again once they have")]
    TooEarly,
    /// The set is settled, or the epoch has ended.
    #[error("the epoch is settled or has ended; complaints must arrive before that")]
    TooLate,
}

impl Auditor {
    fn case(&mut self, epoch: Epoch) -> &mut Case {
        let board = &self.board;
        self.epochs.entry(epoch).or_insert_with(|| Case {
            transcript: Transcript::new(board, epoch),
            agreed_since: None,
            fault: None,
            seed: None,
            evidence: Evidence::default(),
            judged: BTreeSet::new(),
        })
    }

    /// The transcript of an epoch.
    #[must_use]
    pub fn transcript(&self, epoch: Epoch) -> Option<&Transcript> {
        self.epochs.get(&epoch).map(|case| &case.transcript)
    }

    /// Handles a statement of a database.
    ///
    /// # Errors
    /// [`StatementError`]: nothing has changed.
    pub fn handle_statement(
        &mut self,
        signed: &Signed<Statement>,
        side: Side,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Step<Vec<PublishedStatement>>, StatementError> {
        let current = self.board.schedule.epoch_at(now).ok_or(StatementError::Mismatch)?;
        if epoch.0 > current.0.saturating_add(1) || epoch.0 + RETAINED_EPOCHS < current.0 {
            return Err(StatementError::Mismatch);
        }
        let by = Party::Database(side);
        // Somebody's bytes that no server has signed open no case.
        signed.open(self.board.key(by).ok_or(StatementError::Mismatch)?)?;
        let case = self.case(epoch);
        let sequence = case.transcript.statement_count(by);
        let known = case.transcript.conflict(by).is_some();
        let mut published = Vec::new();
        let mut publish = |conflicts| {
            published.push(PublishedStatement { epoch, by, conflicts, signed: signed.clone() });
            if conflicts {
                records::conflict(epoch, by, signed)
            } else {
                records::statement(epoch, by, sequence, signed)
            }
        };
        let mut changes = match case.transcript.record(by, signed)? {
            Effect::Duplicate => Vec::new(),
            Effect::New => vec![publish(false)],
            Effect::Fault(fault) => {
                case.fault = Some((by, fault));
                if known { Vec::new() } else { vec![publish(true)] }
            }
        };
        // This comes last, because the deletions must reach the ledger.
        changes.extend(self.forget(current));
        Ok(Step::new(changes, published))
    }

    /// The next step of some epoch, if one is due. Call it until it returns `None`.
    pub fn poll(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Option<Step<PublishedStatement>> {
        let board = &self.board;
        let next = self.epochs.iter_mut().find_map(|(epoch, case)| {
            let body = case.next_statement(board, now, rng)?;
            let is_settle = matches!(body, Body::Settle { .. });
            let drawn = case.seed.as_ref().filter(|_| is_settle);
            Some((*epoch, body, drawn.map(|seed| records::seed(*epoch, seed))))
        });
        let (epoch, body, seed) = next?;
        let is_blame = matches!(body, Body::Abort { reason: BurnReason::Blamed(..) });
        let (statement, change) = self.make_statement(epoch, body);
        let mut changes: Vec<Change> = seed.into_iter().chain([change]).collect();
        if let Some(case) = self.epochs.get_mut(&epoch).filter(|case| case.has_ended()) {
            // Blame rests on the reveal: keep it, and the key that opens it, for an arbiter.
            if !is_blame {
                (case.seed, case.evidence.reveal) = (None, None);
                changes.extend(records::remove_check(epoch));
            }
        }
        Some(Step::new(changes, statement))
    }

    /// The databases whose reveals are awaited.
    pub fn awaited_reveals(&self) -> impl Iterator<Item = (Epoch, Party)> {
        self.epochs.iter().filter_map(|(epoch, case)| Some((*epoch, case.awaited_reveal()?)))
    }

    /// Handles a database's reveal.
    ///
    /// # Errors
    /// [`StatementError`]: it is not that database's, or not awaited.
    ///
    /// # Privacy
    /// The auditor learns one key of each accepted write, and never asks the other database for the other:
    /// no honest database gives it.
    pub fn handle_reveal(
        &mut self,
        signed: &Signed<Reveal>,
        by: Party,
        epoch: Epoch,
    ) -> Result<Step<()>, StatementError> {
        let board = self.board.fingerprint();
        let reveal = signed.open(self.board.key(by).ok_or(StatementError::Mismatch)?)?;
        let case = self.epochs.get_mut(&epoch).ok_or(StatementError::Mismatch)?;
        let is_right = reveal.board == board && reveal.epoch == epoch && reveal.by == by;
        if !is_right || case.awaited_reveal() != Some(by) {
            return Err(StatementError::Mismatch);
        }
        case.evidence.reveal = Some(signed.clone());
        Ok(Step::new(vec![records::reveal(epoch, by, signed)], ()))
    }

    /// The next check of a share, if any. Each is returned once.
    pub fn next_check(&mut self) -> Option<ShareCheck> {
        let board = &self.board;
        self.epochs.values_mut().find_map(|case| case.next_check(board))
    }

    /// Handles the result of [`ShareCheck::run`].
    pub fn handle_check(&mut self, done: &CheckedShare) {
        if let Some(case) = self.epochs.get_mut(&done.epoch) {
            case.evidence.progress = Progress::Done(done.result);
        }
    }

    /// When [`poll`](Self::poll) is next due if no message arrives. Valid once `poll` has
    /// returned `None`.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.epochs.values().filter_map(|case| case.deadline(&self.board)).min()
    }

    /// The number of complaints of an epoch that have cost this auditor more than a hash: at most one
    /// for each write.
    #[must_use]
    pub fn costly_complaints(&self, epoch: Epoch) -> usize {
        self.epochs.get(&epoch).map_or(0, |case| case.judged.len())
    }

    /// Judges a complaint. If it is upheld, the epoch is burnt, and the statement that burns it
    /// accompanies the verdict.
    ///
    /// # Errors
    /// [`ComplaintError`].
    ///
    /// # Privacy
    /// The auditor sees at most one key of the write, and so neither row nor message.
    pub fn handle_complaint(
        &mut self,
        complaint: &Complaint,
    ) -> Result<Step<Judgement>, ComplaintError> {
        let epoch = complaint.submission.epoch;
        let case = self.epochs.get_mut(&epoch).ok_or(ComplaintError::Epoch)?;
        let over = case.transcript.statement_count(Party::Auditor) > 0;
        // In an epoch that was burnt without blame, a server that had left writes out, or had them
        // rejected, may have burnt it for that reason. The set was never settled, so no database has
        // revealed anything to this auditor.
        let unblamed = match case.transcript.abort_reason(Party::Auditor) {
            Some(BurnReason::Blamed(..)) | None => false,
            Some(_) => case.transcript.statement_count(Party::Auditor) == 1,
        };
        if over && !unblamed {
            return Err(ComplaintError::TooLate);
        }
        let judged = case.judged.len();
        let verdict = judge(&self.board, &case.transcript, &mut case.judged, complaint)?;
        let mut changes = Vec::new();
        if case.judged.len() > judged {
            let write = complaint.submission.name(&self.board.fingerprint());
            changes.push(records::judged(epoch, &write));
        }
        let Verdict::Upheld(by, fault) = verdict else {
            return Ok(Step::new(changes, (verdict, None)));
        };
        if over {
            return Ok(Step::new(changes, (verdict, None)));
        }
        let (statement, change) =
            self.make_statement(epoch, Body::Abort { reason: BurnReason::Blamed(by, fault) });
        changes.push(change);
        Ok(Step::new(changes, (verdict, Some(statement))))
    }

    fn make_statement(&mut self, epoch: Epoch, body: Body) -> (PublishedStatement, Change) {
        let (board, by) = (self.board.fingerprint(), Party::Auditor);
        let sequence = self.case(epoch).transcript.next_sequence(by);
        let signed = Signed::new(&Statement { board, epoch, by, sequence, body }, &self.key);
        // This cannot fail: the statement is the auditor's own and in turn.
        let _ = self.case(epoch).transcript.record(by, &signed);
        let change = records::statement(epoch, by, usize::from(sequence), &signed);
        (PublishedStatement { epoch, by, conflicts: false, signed }, change)
    }

    fn forget(&mut self, now: Epoch) -> Vec<Change> {
        let old: Vec<Epoch> = self
            .epochs
            .keys()
            .copied()
            .take_while(|epoch| epoch.0 + RETAINED_EPOCHS < now.0)
            .collect();
        let mut changes = Vec::new();
        for epoch in old {
            let Some(case) = self.epochs.remove(&epoch) else { continue };
            for by in Party::ALL {
                let many = case.transcript.statement_count(by);
                changes.extend(records::remove_statements(epoch, by, many));
            }
            changes.extend(records::remove_check(epoch));
            changes.extend(case.judged.iter().map(|write| records::remove_judged(epoch, write)));
        }
        changes
    }
}

impl Case {
    /// Whether the auditor has made its last statement.
    fn has_ended(&self) -> bool {
        let by = Party::Auditor;
        self.transcript.abort_reason(by).is_some()
            || self.transcript.statement_count(by) > Body::CLEAR
    }

    fn next_statement(
        &mut self,
        board: &Board,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Option<Body> {
        if self.has_ended() {
            return None;
        }
        if let Some(reason) = self.abort_reason(board, now) {
            return Some(Body::Abort { reason });
        }
        match self.transcript.statement_count(Party::Auditor) {
            Body::SETTLE => self.settle(board, now, rng),
            Body::DRAW => {
                let seed = self.seed.as_ref().filter(|_| self.transcript.agreed_settle())?;
                Some(Body::Draw { coin: share_check::coin(seed) })
            }
            _ => {
                let cleared = self.evidence.progress == Progress::Done(Ok(()));
                let set = self.transcript.settled_set().filter(|_| cleared)?;
                Some(Body::Clear { set })
            }
        }
    }

    /// Why the epoch must end, if it must.
    fn abort_reason(&self, board: &Board, now: Timestamp) -> Option<BurnReason> {
        if let Some((by, fault)) = self.fault {
            return Some(BurnReason::Blamed(by, fault));
        }
        let checked = self.transcript.checked_side().and_then(Result::ok).map(Party::Database);
        if let (Progress::Done(Err(fault)), Some(by)) = (self.evidence.progress, checked) {
            return Some(BurnReason::Blamed(by, fault));
        }
        let mut databases = Side::BOTH.into_iter().map(Party::Database);
        if let Some(by) = databases.find(|by| self.transcript.abort_reason(*by).is_some()) {
            return Some(BurnReason::Reported(by));
        }
        if now < board.schedule.burn_time(self.transcript.epoch()) {
            return None;
        }
        Some(self.awaited_reveal().map_or(BurnReason::Late, BurnReason::Unchecked))
    }

    /// Settles the set once the time for complaints is over, if it is a crowd.
    fn settle(&mut self, board: &Board, now: Timestamp, rng: &mut impl CryptoRng) -> Option<Body> {
        let abort = |reason| Some(Body::Abort { reason });
        let set = match self.transcript.set()? {
            Ok(set) => set,
            Err(dispute) => return abort(dispute.into()),
        };
        for side in Side::BOTH {
            if let Err(dispute) = self.transcript.agrees(side, set)? {
                return abort(dispute.into());
            }
        }
        if set.accepted.len() < board.min_writes as usize {
            return abort(BurnReason::TooFew);
        }
        if self.transcript.thinned().is_some() {
            return abort(BurnReason::Dwindled);
        }
        let since = *self.agreed_since.get_or_insert(now);
        if now < since.plus(board.schedule.complaints) {
            return None;
        }
        let seed = self.seed.get_or_insert_with(|| Secret::random(rng));
        let draw = self.transcript.draw_commitment(&set.digest, &share_check::coin(seed));
        let sealing = share_check::sealing(seed).public().clone();
        Some(Body::Settle { set: set.digest, draw, sealing })
    }

    /// When the passing of time alone calls for a statement.
    fn deadline(&self, board: &Board) -> Option<Timestamp> {
        if self.has_ended() {
            return None;
        }
        let settled = self.transcript.settled_set().is_some();
        let since = self.agreed_since.filter(|_| !settled);
        let complaints_end = since.map(|since| since.plus(board.schedule.complaints));
        let burn_time = board.schedule.burn_time(self.transcript.epoch());
        complaints_end.into_iter().chain([burn_time]).min()
    }
}
