//! The auditor: keeps the signed transcript, judges complaints and settles the set. It cannot
//! influence what the set is: the databases check each other themselves.

use crate::configuration::{Board, Epoch, Party};
use crate::dpf::pass::{Pass, Share};
use crate::dpf::{Key, Side};
use crate::envelope;
use crate::error::RestoreError;
use crate::messages::{
    Body, BurnReason, Complaint, Fault, Grounds, Opening, PublishedStatement, Receipt, Statement,
    Submission, WriteDigest,
};
use crate::transcript::{Dispute, Effect, StatementError, Transcript};
use alpheus_crypto::ledger::{Change, DamagedLedgerError, StateOrigin, Step, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;

/// How many epochs' transcripts are kept.
const RETAINED_EPOCHS: u64 = 64;

/// The index in the ledger of the statement that conflicts with a server's others.
const CONFLICT: usize = 255;

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
    /// Restores an auditor from its ledger. A new auditor has an empty one. Also returns the
    /// statements it had made and received, to be published again.
    ///
    /// After a log that may be an old copy, this burns all epochs that have not ended, and all that
    /// may have begun without a trace in the copy: they may be settled already.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        board: &Board,
        key: SigningKey,
        origin: StateOrigin,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<(Self, Step<Vec<PublishedStatement>>), RestoreError> {
        if Some(&key.verifying_key()) != board.key(Party::Auditor) {
            return Err(RestoreError::OtherKey);
        }
        let mut auditor = Self { board: board.clone(), key, epochs: BTreeMap::new() };
        let (mut outputs, mut changes) = (Vec::new(), Vec::new());
        for (key, value) in records {
            let (epoch, by, conflicts) = read_key(&key)?;
            let signed = postcard::from_bytes(&value).map_err(|_| DamagedLedgerError)?;
            let case = auditor.case(epoch);
            match case.transcript.record(by, &signed).map_err(|_| DamagedLedgerError)? {
                Effect::New if !conflicts => {}
                Effect::Fault(fault) if conflicts => case.fault = Some((by, fault)),
                _ => return Err(DamagedLedgerError.into()),
            }
            outputs.push(PublishedStatement { epoch, by, conflicts, signed });
        }
        if (origin == StateOrigin::New) != auditor.epochs.is_empty()
            && origin != StateOrigin::Restored
        {
            return Err(DamagedLedgerError.into());
        }
        for epoch in
            if origin == StateOrigin::Restored { auditor.open_epochs(now) } else { Vec::new() }
        {
            let (statement, change) =
                auditor.make_statement(epoch, Body::Abort { reason: BurnReason::Restored });
            outputs.push(statement);
            changes.push(change);
        }
        Ok((auditor, Step::new(changes, outputs)))
    }

    /// Epochs that have begun by now and have not ended, as far as this auditor knows.
    fn open_epochs(&mut self, now: Timestamp) -> Vec<Epoch> {
        if let Some(current) = self.board.schedule.epoch_at(now) {
            for epoch in (current.0.saturating_sub(RETAINED_EPOCHS)..=current.0).map(Epoch) {
                if now < self.board.schedule.burn_time(epoch) {
                    self.case(epoch);
                }
            }
        }
        let open = self.epochs.iter().filter(|(_, case)| !has_ended(&case.transcript));
        open.map(|(epoch, _)| *epoch).collect()
    }

    fn case(&mut self, epoch: Epoch) -> &mut Case {
        let board = &self.board;
        self.epochs.entry(epoch).or_insert_with(|| Case {
            transcript: Transcript::new(board, epoch),
            agreed_since: None,
            fault: None,
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
        let case = self.case(epoch);
        let sequence = case.transcript.statement_count(by);
        let known = case.transcript.conflict(by).is_some();
        let mut published = Vec::new();
        let mut publish = |conflicts| {
            published.push(PublishedStatement { epoch, by, conflicts, signed: signed.clone() });
            record(epoch, by, if conflicts { CONFLICT } else { sequence }, signed)
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
    pub fn poll(&mut self, now: Timestamp) -> Option<Step<PublishedStatement>> {
        let board = &self.board;
        let next = self
            .epochs
            .iter_mut()
            .find_map(|(epoch, case)| case.next_statement(board, now).map(|body| (*epoch, body)));
        let (epoch, body) = next?;
        let (statement, change) = self.make_statement(epoch, body);
        Some(Step::new(vec![change], statement))
    }

    /// When [`poll`](Self::poll) is next due if no message arrives. Valid once `poll` has
    /// returned `None`.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.epochs.values().filter_map(|case| case.deadline(&self.board)).min()
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
        let case = self.epochs.get(&epoch).ok_or(ComplaintError::Epoch)?;
        let over = has_ended(&case.transcript);
        // In an epoch that was burnt without blame, a server that left writes out may have burnt it
        // for that reason.
        let unblamed = match case.transcript.abort_reason(Party::Auditor) {
            Some(reason) => !matches!(reason, BurnReason::Blamed(..)),
            None => false,
        };
        if over && !(unblamed && matches!(complaint.grounds, Grounds::LeftOut(_))) {
            return Err(ComplaintError::TooLate);
        }
        let verdict = judge(&self.board, &case.transcript, complaint)?;
        let Verdict::Upheld(by, fault) = verdict else {
            return Ok(Step::new(Vec::new(), (verdict, None)));
        };
        if over {
            return Ok(Step::new(Vec::new(), (verdict, None)));
        }
        let (statement, change) =
            self.make_statement(epoch, Body::Abort { reason: BurnReason::Blamed(by, fault) });
        Ok(Step::new(vec![change], (verdict, Some(statement))))
    }

    fn make_statement(&mut self, epoch: Epoch, body: Body) -> (PublishedStatement, Change) {
        let (board, by) = (self.board.fingerprint(), Party::Auditor);
        let sequence = self.case(epoch).transcript.next_sequence(by);
        let signed = Signed::new(&Statement { board, epoch, by, sequence, body }, &self.key);
        // This cannot fail: the statement is the auditor's own and in turn.
        let _ = self.case(epoch).transcript.record(by, &signed);
        let change = record(epoch, by, usize::from(sequence), &signed);
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
                let sequences = (0..case.transcript.statement_count(by)).chain([CONFLICT]);
                changes.extend(
                    sequences.map(|sequence| Change { key: key(epoch, by, sequence), value: None }),
                );
            }
        }
        changes
    }
}

impl Case {
    fn next_statement(&mut self, board: &Board, now: Timestamp) -> Option<Body> {
        if has_ended(&self.transcript) {
            return None;
        }
        let abort = |reason| Some(Body::Abort { reason });
        if let Some((by, fault)) = self.fault {
            return abort(BurnReason::Blamed(by, fault));
        }
        let databases = Side::BOTH.map(Party::Database);
        if let Some(by) =
            databases.into_iter().find(|by| self.transcript.abort_reason(*by).is_some())
        {
            return abort(BurnReason::Reported(by));
        }
        if now >= board.schedule.burn_time(self.transcript.epoch()) {
            return abort(BurnReason::Late);
        }
        let set = match self.transcript.set()? {
            Ok(set) => set,
            Err(dispute) => return abort(dispute.into()),
        };
        for side in Side::BOTH {
            if let Err(dispute) = self.transcript.agrees(side, set)? {
                return abort(dispute.into());
            }
        }
        let since = *self.agreed_since.get_or_insert(now);
        let over = now >= since.plus(board.schedule.complaints);
        over.then_some(Body::Settle { set: set.digest })
    }

    /// When the passing of time alone calls for a statement.
    fn deadline(&self, board: &Board) -> Option<Timestamp> {
        if has_ended(&self.transcript) {
            return None;
        }
        let complaints_end = self.agreed_since.map(|since| since.plus(board.schedule.complaints));
        let burn_time = board.schedule.burn_time(self.transcript.epoch());
        complaints_end.into_iter().chain([burn_time]).min()
    }
}

/// Whether the auditor has made its last statement.
fn has_ended(transcript: &Transcript) -> bool {
    transcript.statement_count(Party::Auditor) > 0
}

fn judge(
    board: &Board,
    transcript: &Transcript,
    complaint: &Complaint,
) -> Result<Verdict, ComplaintError> {
    match &complaint.grounds {
        Grounds::LeftOut(receipt) => left_out(board, transcript, &complaint.submission, receipt),
        Grounds::Digest { side, opening } => {
            wrong_digest(board, transcript, &complaint.submission, *side, opening)
        }
    }
}

fn left_out(
    board: &Board,
    transcript: &Transcript,
    submission: &Submission,
    receipt: &Signed<Receipt>,
) -> Result<Verdict, ComplaintError> {
    let name = submission.name(&board.fingerprint());
    for side in Side::BOTH {
        let by = Party::Database(side);
        let Some(Ok(receipt)) = board.key(by).map(|key| receipt.open(key)) else { continue };
        let (board, epoch) = (board.fingerprint(), submission.epoch);
        if *receipt != (Receipt { board, epoch, by, write: name }) {
            return Ok(Verdict::Void);
        }
        let (writes, _) = transcript.candidates_of(side).ok_or(ComplaintError::TooEarly)?;
        let there = writes.contains(&name);
        return Ok(if there { Verdict::Void } else { Verdict::Upheld(by, Fault::LeftOut) });
    }
    Ok(Verdict::Void)
}

/// Reseals the claimed content of the envelope, so that the writer cannot show another key than it
/// sent, and computes that key's digest.
fn wrong_digest(
    board: &Board,
    transcript: &Transcript,
    submission: &Submission,
    side: Side,
    opening: &Opening,
) -> Result<Verdict, ComplaintError> {
    let audited = match transcript.opened_digests(side).ok_or(ComplaintError::TooEarly)? {
        Ok(audited) => audited,
        Err(Dispute::Blamed(by, fault)) => return Ok(Verdict::Upheld(by, fault)),
        Err(Dispute::Contradiction) => return Ok(Verdict::Void),
    };
    let candidates = transcript.candidates().ok_or(ComplaintError::TooEarly)?;
    // First check that the write exists: the rest costs a decryption and a pass.
    let name = submission.name(&board.fingerprint());
    let Ok(at) = candidates.writes.binary_search(&name) else { return Ok(Verdict::Void) };
    let (keys, prgs) = (transcript.keys(side), transcript.permutations());
    let (Some((sealing, _)), Some(prgs)) = (keys, prgs) else {
        return Err(ComplaintError::TooEarly);
    };
    let root = Secret::from_bytes(opening.root);
    let seed = Secret::from_bytes(opening.seal);
    let sealed = envelope::seal(&sealing, side, &opening.shared, &root, &seed);
    if sealed.ok().as_ref() != submission.envelopes.get(side.index()) {
        return Ok(Verdict::Void);
    }
    let key = Key { root, words: opening.shared.words.clone() };
    if key.check(&board.shape()).is_err() || opening.shared.board != board.fingerprint() {
        return Ok(Verdict::Void);
    }
    let pass = Pass::new(&prgs, board.shape(), side);
    let share = Share { root: &key.root, words: &key.words };
    let digest = pass.digests(&[share], &candidates.kappa).ok();
    let Some(digest) = digest.and_then(|digests| digests.first().copied()) else {
        return Ok(Verdict::Void);
    };
    let right = audited.get(at) == Some(&WriteDigest { digest, shared: opening.shared.digest() });
    let upheld = Verdict::Upheld(Party::Database(side), Fault::WrongDigest);
    Ok(if right { Verdict::Void } else { upheld })
}

fn key(epoch: Epoch, by: Party, sequence: usize) -> Vec<u8> {
    let sequence = u8::try_from(sequence).unwrap_or(u8::MAX);
    [epoch.0.to_be_bytes().as_slice(), &[u8::try_from(by.index()).unwrap_or(u8::MAX), sequence]]
        .concat()
}

fn read_key(key: &[u8]) -> Result<(Epoch, Party, bool), DamagedLedgerError> {
    let (epoch, rest) = key.split_first_chunk::<8>().ok_or(DamagedLedgerError)?;
    let by =
        rest.first().and_then(|by| Party::ALL.get(usize::from(*by))).ok_or(DamagedLedgerError)?;
    let conflicts = rest.get(1).is_some_and(|sequence| usize::from(*sequence) == CONFLICT);
    Ok((Epoch(u64::from_be_bytes(*epoch)), *by, conflicts))
}

fn record(epoch: Epoch, by: Party, sequence: usize, signed: &Signed<Statement>) -> Change {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    put(key(epoch, by, sequence), postcard::to_allocvec(signed).expect("plain data serialises"))
}
