//! A database, or one of the equal servers of mode 2: accepts writes, audits them and releases its
//! share of the table once.
//!
//! Everything that is sent comes out of a [`Step`], so it is durable first. The expensive part is
//! [`Work`], which can run anywhere.

mod crowd;
mod epoch;
mod records;
mod restore;
mod reveal;
mod work;

pub use work::{Work, WorkResult};

use crate::admission::Admission;
use crate::configuration::{Board, Epoch, Party};
use crate::error::SubmissionError;
use crate::messages::{
    Body, PublishedStatement, Receipt, Reveal, Statement, Submission, Tag, WriteName, knock_name,
};
use crate::secrets::Secrets;
use crate::transcript::{Effect, StatementError, Transcript};
use alpheus_crypto::ledger::{Change, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use epoch::EpochState;
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many epochs' statements and tables are kept for readers.
const RETAINED_EPOCHS: u64 = 64;

/// What a database publishes to anyone who asks.
#[derive(Clone, Debug)]
pub enum Output {
    /// A statement: its own, or another server's that it forwards.
    Statement(PublishedStatement),
    /// The masked share of an epoch's table.
    Share(Epoch, Arc<Vec<u8>>),
    /// That share is no longer needed.
    ShareRemoved(Epoch),
    /// An epoch's table.
    Table(Epoch, Arc<Vec<u8>>),
    /// This database's keys of the accepted writes, for the auditor alone, which checks its share.
    Reveal(Epoch, Arc<Signed<Reveal>>),
}

/// A database.
pub struct Database {
    board: Board,
    party: Party,
    key: SigningKey,
    epochs: BTreeMap<Epoch, EpochState>,
    /// The last epoch that this database must not begin again.
    last_begun: Option<Epoch>,
}

/// The bytes are not the share that the other server committed to, or it has not committed to one
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not the share that the other server has committed to")]
pub struct ShareError;

impl Database {
    /// The epoch that accepts writes here now.
    #[must_use]
    pub fn open_epoch(&self, now: Timestamp) -> Option<Epoch> {
        let epoch = self.board.schedule.epoch_at(now)?;
        let state = self.epochs.get(&epoch)?;
        let open =
            state.transcript.closing_list(self.party).is_none() && !state.has_ended(self.party);
        open.then_some(epoch)
    }

    /// The transcript of an epoch.
    #[must_use]
    pub fn transcript(&self, epoch: Epoch) -> Option<&Transcript> {
        self.epochs.get(&epoch).map(|state| &state.transcript)
    }

    /// The epochs that have not ended here.
    pub fn unfinished_epochs(&self) -> impl Iterator<Item = Epoch> {
        let party = self.party;
        self.epochs.iter().filter(move |(_, r)| !r.has_ended(party)).map(|(epoch, _)| *epoch)
    }

    /// The number of writes in an epoch.
    #[must_use]
    pub fn write_count(&self, epoch: Epoch) -> usize {
        self.epochs.get(&epoch).map_or(0, |state| state.writes.len())
    }

    /// Handles a write from its writer. The same write gets the same receipt again.
    ///
    /// Checks happen in this order: the epoch is open; the ticket allows this write; its quota is
    /// unspent; the envelope opens to a key that fits. No key is expanded.
    ///
    /// # Errors
    /// [`SubmissionError`]: no quota is spent. A write that does not open here still counts towards
    /// the crowd that came, because other servers may have accepted it.
    ///
    /// # Privacy
    /// The database learns whose quota is spent and when, and one key, which reveals nothing about
    /// row and message.
    pub fn handle_submission(
        &mut self,
        submission: Submission,
        now: Timestamp,
        admission: &impl Admission,
    ) -> Result<Step<Signed<Receipt>>, SubmissionError> {
        let epoch = submission.epoch;
        let state = self.begun(epoch, now)?;
        let full = state.writes.len() >= self.board.writers as usize;
        let name = submission.name(&self.board.fingerprint());
        if !state.writes.contains_key(&name) {
            if full {
                return Err(SubmissionError::Full);
            }
            if state.transcript.closing_list(self.party).is_some() {
                return Err(SubmissionError::Late);
            }
        }
        let tag = admission.tag(epoch, &name, &submission.ticket)?;
        let taken = self.accept(submission, name, tag);
        if taken.is_err()
            && let Some(state) = self.epochs.get_mut(&epoch)
            && !state.tags.contains_key(&tag)
        {
            state.other_quotas.note(tag);
        }
        taken
    }

    /// Handles a knock: its writer came, and could not reach all servers. It counts towards the
    /// crowd that came, and spends nothing. [`poll`](Self::poll) makes it durable.
    ///
    /// # Errors
    /// [`SubmissionError`].
    ///
    /// # Privacy
    /// The database learns who came, as from a write.
    pub fn handle_knock(
        &mut self,
        epoch: Epoch,
        ticket: &[u8],
        now: Timestamp,
        admission: &impl Admission,
    ) -> Result<(), SubmissionError> {
        let (board, party) = (self.board.fingerprint(), self.party);
        let state = self.begun(epoch, now)?;
        if state.transcript.closing_list(party).is_some() {
            return Err(SubmissionError::Late);
        }
        let tag = admission.tag(epoch, &knock_name(&board, epoch), ticket)?;
        if let Some(state) = self.epochs.get_mut(&epoch) {
            state.other_quotas.note(tag);
        }
        Ok(())
    }

    /// The state of the open epoch.
    fn begun(&self, epoch: Epoch, now: Timestamp) -> Result<&EpochState, SubmissionError> {
        if self.board.schedule.epoch_at(now) != Some(epoch) {
            let over = self.board.schedule.end(epoch) <= now;
            return Err(if over { SubmissionError::Late } else { SubmissionError::Epoch });
        }
        let state = self.epochs.get(&epoch).ok_or(SubmissionError::Epoch)?;
        if state.transcript.abort_reason(self.party).is_some() {
            return Err(SubmissionError::Burnt);
        }
        Ok(state)
    }

    /// Handles a write that another database forwards because this one lacks it.
    ///
    /// # Errors
    /// [`SubmissionError`]: that database is not asked for the write again. If nobody else lists
    /// it, this database stops waiting for it and leaves it out of the candidates.
    pub fn handle_forwarded(
        &mut self,
        submission: Submission,
        from: impl Into<Party>,
        admission: &impl Admission,
    ) -> Result<Step<Signed<Receipt>>, SubmissionError> {
        let (epoch, name) = (submission.epoch, submission.name(&self.board.fingerprint()));
        let state = self.epochs.get(&epoch).ok_or(SubmissionError::Epoch)?;
        if !state.is_waiting_for(self.party, &name) {
            return Err(SubmissionError::NotListed);
        }
        let full = state.writes.len() >= self.board.writers as usize;
        let tag = admission.tag(epoch, &name, &submission.ticket);
        let taken = match tag {
            _ if full => Err(SubmissionError::Full),
            Err(refused) => Err(refused.into()),
            Ok(tag) => self.accept(submission, name, tag),
        };
        if taken.is_err()
            && let Some(state) = self.epochs.get_mut(&epoch)
        {
            state.ask_no_more(from.into(), &name);
        }
        taken
    }

    fn accept(
        &mut self,
        submission: Submission,
        name: WriteName,
        tag: Tag,
    ) -> Result<Step<Signed<Receipt>>, SubmissionError> {
        let epoch = submission.epoch;
        let receipt =
            Receipt { board: self.board.fingerprint(), epoch, by: self.party, write: name };
        let receipt = Signed::new(&receipt, &self.key);
        let state = self.epochs.get_mut(&epoch).ok_or(SubmissionError::Epoch)?;
        match state.tags.get(&tag) {
            Some(known) if *known == name => return Ok(Step::new(Vec::new(), receipt)),
            Some(_) => return Err(SubmissionError::Spent),
            None => {}
        }
        let change = records::write(epoch, &name, &tag, &submission);
        state.accept(&self.board, self.party, name, tag, submission)?;
        Ok(Step::new(vec![change], receipt))
    }

    /// Writes that this database lacks, and the databases that list them. Fetch each from one of
    /// those and pass it to [`Database::handle_forwarded`].
    #[must_use]
    pub fn missing_writes(&self, epoch: Epoch) -> Vec<(WriteName, Vec<Party>)> {
        let state = self.epochs.get(&epoch).into_iter();
        let missing = state.flat_map(|state| state.missing_writes(self.party));
        missing.map(|(name, from)| (*name, from.iter().copied().collect())).collect()
    }

    /// The ledger key of an epoch's table. A database keeps no table in memory.
    #[must_use]
    pub fn table_key(epoch: Epoch) -> Vec<u8> {
        records::table(epoch, None).key
    }

    /// A write, for another database that lacks it.
    #[must_use]
    pub fn submission(&self, epoch: Epoch, name: &WriteName) -> Option<&Submission> {
        self.epochs.get(&epoch)?.writes.get(name).map(|held| &held.submission)
    }

    /// Handles a statement of another server, or one of this server that another one has received.
    ///
    /// # Errors
    /// [`StatementError`]: nothing has changed.
    pub fn handle_statement(
        &mut self,
        signed: &Signed<Statement>,
        by: Party,
        epoch: Epoch,
    ) -> Result<Step<Vec<Output>>, StatementError> {
        if by == self.party {
            return self.handle_own_statement(signed, epoch);
        }
        let none = || Step::new(Vec::new(), Vec::new());
        let Some(state) = self.epochs.get_mut(&epoch) else {
            return Err(StatementError::Mismatch);
        };
        let sequence = state.transcript.statement_count(by);
        let known = state.transcript.conflict(by).is_some();
        let publish = |conflicts| {
            Output::Statement(PublishedStatement { epoch, by, conflicts, signed: signed.clone() })
        };
        match state.transcript.record(by, signed)? {
            Effect::Duplicate => Ok(none()),
            Effect::Fault(fault) => {
                state.fault = Some((by, fault));
                if known {
                    return Ok(none());
                }
                // Keep it even if the epoch has ended: it is the proof.
                let change = records::conflict(epoch, by, Some(signed));
                Ok(Step::new(vec![change], vec![publish(true)]))
            }
            Effect::New => {
                state.note_missing_writes(&self.board, self.party);
                let mut changes = vec![records::statement(epoch, by, sequence, signed)];
                let mut outputs = vec![publish(false)];
                changes.extend(remove_unneeded_share(state, &mut outputs));
                outputs.extend(released_share(state));
                outputs.extend(reveal::due(&self.board, self.party, &self.key, state));
                Ok(Step::new(changes, outputs))
            }
        }
    }

    /// Handles another database's masked share.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn handle_share(
        &mut self,
        bytes: Vec<u8>,
        by: impl Into<Party>,
        epoch: Epoch,
    ) -> Result<(), ShareError> {
        let by = by.into();
        let state = self.epochs.get_mut(&epoch).ok_or(ShareError)?;
        let (set, bound) = state.transcript.latch(by).ok_or(ShareError)?;
        let digest = Transcript::share_digest(by, &set, &bytes);
        if digest != bound || bytes.len() != self.board.shape().bytes() {
            return Err(ShareError);
        }
        state.other_shares.insert(by, bytes);
        Ok(())
    }

    /// The servers whose shares this database still needs for an epoch.
    #[must_use]
    pub fn missing_shares(&self, epoch: Epoch) -> Vec<Party> {
        let Some(state) = self.epochs.get(&epoch) else { return Vec::new() };
        if state.has_ended(self.party) || !state.transcript.is_released() {
            return Vec::new();
        }
        let lacks = |by: &Party| !state.other_shares.contains_key(by);
        epoch::others(&self.board, self.party).filter(lacks).collect()
    }

    /// The next computation, if any. Each is returned once.
    pub fn next_work(&mut self) -> Option<Work> {
        let (board, party) = (&self.board, self.party);
        self.epochs.values_mut().find_map(|state| state.next_work(board, party))
    }

    /// Handles the result of [`Work::run`].
    pub fn handle_result(&mut self, done: WorkResult) {
        if let Some(state) = self.epochs.get_mut(&done.epoch) {
            state.handle_result(done);
        }
    }

    /// The next step of some epoch, if one is due. Call it until it returns `None`.
    pub fn poll(&mut self, now: Timestamp, rng: &mut impl CryptoRng) -> Option<Step<Vec<Output>>> {
        if let Some(step) = self.begin(now, rng) {
            return Some(step);
        }
        let unsaved: Vec<Change> = self.epochs.values_mut().flat_map(EpochState::unsaved).collect();
        if !unsaved.is_empty() {
            return Some(Step::new(unsaved, Vec::new()));
        }
        let (board, party) = (self.board.clone(), self.party);
        let next = self.epochs.iter_mut().find_map(|(epoch, state)| {
            state.next_statement(&board, party, now).map(|body| (*epoch, body))
        });
        let (epoch, body) = next?;
        let mut outputs = Vec::new();
        let changes = self.make_statement(epoch, body, &mut outputs);
        Some(Step::new(changes, outputs))
    }

    /// When [`poll`](Self::poll) is next due if no message arrives. Valid once `poll` has
    /// returned `None`.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let next = self.last_begun.map_or(Epoch(0), |last| Epoch(last.0.saturating_add(1)));
        let epochs = self.epochs.values();
        let deadlines = epochs.filter_map(|state| state.deadline(&self.board, self.party));
        deadlines.chain([self.board.schedule.start_of(next)]).min()
    }

    fn begin(&mut self, now: Timestamp, rng: &mut impl CryptoRng) -> Option<Step<Vec<Output>>> {
        let epoch =
            self.board.schedule.epoch_at(now).filter(|epoch| self.last_begun < Some(*epoch))?;
        self.last_begun = Some(epoch);
        let seed = Secret::random(rng);
        let secrets = Secrets::new(&seed);
        let (sealing, agreement) = (secrets.sealing.public().clone(), secrets.agreement.public());
        let mut state = EpochState::new(&self.board, epoch);
        state.secrets = Some(secrets);
        self.epochs.insert(epoch, state);
        let (mut changes, mut outputs) = (vec![records::seed(epoch, &seed)], Vec::new());
        changes.extend(self.make_statement(
            epoch,
            Body::Begin { sealing, agreement },
            &mut outputs,
        ));
        changes.extend(self.forget(epoch));
        Some(Step::new(changes, outputs))
    }

    /// Makes a statement, with all changes that must be durable with it.
    fn make_statement(
        &mut self,
        epoch: Epoch,
        body: Body,
        outputs: &mut Vec<Output>,
    ) -> Vec<Change> {
        let Some(state) = self.epochs.get_mut(&epoch) else { return Vec::new() };
        let (board, by) = (self.board.fingerprint(), self.party);
        let sequence = state.transcript.statement_count(by);
        let ends = matches!(body, Body::Abort { .. } | Body::Publish { .. });
        let statement =
            Statement { board, epoch, by, sequence: state.transcript.next_sequence(by), body };
        let signed = Signed::new(&statement, &self.key);
        // This cannot fail: the statement is this database's own and in turn.
        let _ = state.transcript.record(by, &signed);
        let mut changes = vec![records::statement(epoch, by, sequence, &signed)];
        outputs.push(Output::Statement(PublishedStatement { epoch, by, conflicts: false, signed }));
        if state.transcript.abort_reason(by).is_some() && state.masked.take().is_some() {
            changes.push(records::masked(epoch, None));
            outputs.push(Output::ShareRemoved(epoch));
        }
        if state.transcript.latch(self.party).is_some() && !ends {
            changes.push(records::masked(epoch, state.masked.as_deref().map(Vec::as_slice)));
            outputs.extend(released_share(state));
        }
        if ends && let Some(table) = state.table.take() {
            changes.push(records::table(epoch, Some(&table)));
            outputs.push(Output::Table(epoch, table));
        }
        if ends {
            changes.extend(remove_unneeded_share(state, outputs));
            changes.extend(state.remove_secrets());
        }
        changes
    }

    /// Deletes epochs that are past the time for readers.
    fn forget(&mut self, now: Epoch) -> Vec<Change> {
        let old: Vec<Epoch> =
            self.epochs.keys().copied().take_while(|e| e.0 + RETAINED_EPOCHS < now.0).collect();
        let mut changes = Vec::new();
        for epoch in old {
            let Some(mut state) = self.epochs.remove(&epoch) else { continue };
            changes.extend(state.remove_secrets());
            changes.extend([records::masked(epoch, None), records::table(epoch, None)]);
            for by in self.board.parties() {
                let sequences = 0..state.transcript.statement_count(*by);
                changes.extend(
                    sequences.map(|sequence| records::remove_statement(epoch, *by, sequence)),
                );
                changes.push(records::conflict(epoch, *by, None));
            }
        }
        changes
    }
}

/// Deletes the masked share once all databases have published the same table: nobody asks for it
/// any more. If the tables differ it stays, because together with the other shares it shows who
/// published a table that is not the sum.
fn remove_unneeded_share(state: &mut EpochState, outputs: &mut Vec<Output>) -> Option<Change> {
    state.transcript.agreed_table()?;
    state.masked.take()?;
    let epoch = state.transcript.epoch();
    outputs.push(Output::ShareRemoved(epoch));
    Some(records::masked(epoch, None))
}

/// The masked share, once all databases are bound to theirs for one set, and in mode 1 the auditor
/// has checked one of them.
fn released_share(state: &EpochState) -> Option<Output> {
    state.transcript.agreed_latch().filter(|_| state.transcript.is_cleared())?;
    let share = state.masked.as_ref()?;
    Some(Output::Share(state.transcript.epoch(), Arc::clone(share)))
}
