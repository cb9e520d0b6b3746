//! One epoch at one database: its state and its next statement.

use super::crowd::{CrowdStage, OtherQuotas};
use super::records;
use super::work::{Keys, Openings, Outcome, TableShare, Task, Work, WorkResult};
use crate::coalition::audit;
use crate::configuration::{Board, Epoch, Party};
use crate::envelope::{self, Content, EnvelopeError, UnsealedKey};
use crate::error::SubmissionError;
use crate::messages::{Body, BurnReason, Fault, Submission, Tag, WriteName};
use crate::secrets::{Secrets, mask};
use crate::transcript::{Dispute, Set, Transcript, sorted};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::ledger::Change;
use alpheus_time::{Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use zeroize::Zeroizing;

/// An accepted write.
pub(super) struct AcceptedWrite {
    pub(super) submission: Submission,
    part: OwnPart,
}

/// This server's part of a write.
#[derive(Clone)]
enum OwnPart {
    /// Mode 1.
    Tree(Arc<UnsealedKey>),
    /// Mode 2.
    Parity(Arc<audit::CheckedPart>),
}

/// The state of an epoch.
pub(super) struct EpochState {
    pub(super) transcript: Transcript,
    /// `None` once the epoch has ended.
    pub(super) secrets: Option<Secrets>,
    pub(super) writes: BTreeMap<WriteName, AcceptedWrite>,
    pub(super) tags: HashMap<Tag, WriteName>,
    /// Digests of the keys that were accepted.
    pub(super) roots: HashSet<Digest>,
    pub(super) other_quotas: OtherQuotas,
    /// Writes that other databases listed when they closed and this one waits for, each with the
    /// databases that list it and have not forwarded it invalidly. `None` until all others have
    /// closed.
    missing: Option<BTreeMap<WriteName, BTreeSet<Party>>>,
    audited: Option<(Openings, TableShare)>,
    /// The share of the table with accepted writes only.
    share: Option<TableShare>,
    /// The same share masked, which is what gets sent.
    pub(super) masked: Option<Arc<Vec<u8>>>,
    /// The other databases' masked shares.
    pub(super) other_shares: BTreeMap<Party, Vec<u8>>,
    pub(super) table: Option<Arc<Vec<u8>>>,
    pub(super) fault: Option<(Party, Fault)>,
    /// When this database learnt that all others have closed.
    all_closed: Option<Timestamp>,
    /// Whether a computation is under way.
    working: bool,
}

impl EpochState {
    pub(super) fn new(board: &Board, epoch: Epoch) -> Self {
        Self {
            transcript: Transcript::new(board, epoch),
            secrets: None,
            writes: BTreeMap::new(),
            tags: HashMap::new(),
            roots: HashSet::new(),
            other_quotas: OtherQuotas::default(),
            missing: None,
            audited: None,
            share: None,
            masked: None,
            other_shares: BTreeMap::new(),
            table: None,
            fault: None,
            all_closed: None,
            working: false,
        }
    }

    pub(super) fn has_ended(&self, own: Party) -> bool {
        self.transcript.abort_reason(own).is_some()
            || self.transcript.published_table(own).is_some()
    }

    /// Opens this server's envelope and accepts the write, if its key is new.
    pub(super) fn accept(
        &mut self,
        board: &Board,
        own: Party,
        name: WriteName,
        tag: Tag,
        submission: Submission,
    ) -> Result<(), SubmissionError> {
        let (part, key) = self.open_part(board, own, &tag, &submission)?;
        if !self.roots.insert(key) {
            return Err(SubmissionError::Replayed);
        }
        if let Some(missing) = &mut self.missing {
            missing.remove(&name);
        }
        self.tags.insert(tag, name);
        self.writes.insert(name, AcceptedWrite { submission, part });
        Ok(())
    }

    /// This server's part of a write, and a digest that identifies its key.
    fn open_part(
        &self,
        board: &Board,
        own: Party,
        tag: &Tag,
        submission: &Submission,
    ) -> Result<(OwnPart, Digest), SubmissionError> {
        let sealing = &self.secrets.as_ref().ok_or(EnvelopeError::Unreadable)?.sealing;
        let Submission { epoch, envelopes, common, lock, .. } = submission;
        let sealed = envelopes.get(own.index()).ok_or(EnvelopeError::Envelopes)?;
        let one_each = envelopes.len() == board.databases().len();
        match (own, common, lock) {
            (Party::Database(side), None, Some(_)) if one_each => {
                // As in mode 2: a writer knows both databases' keys, and this one may not yet.
                let begun = self.transcript.begun().ok_or(SubmissionError::Beginning)?;
                let bound = (*epoch, &begun);
                let opened = envelope::open(sealing, board, bound, side, tag, sealed)?;
                let root = labelled_hash(labels::BOARD_ROOT, &[opened.key.root.expose()]);
                Ok((OwnPart::Tree(Arc::new(opened)), root))
            }
            (Party::Server(place), Some(common), None) if one_each => {
                // A writer knows all servers' keys; this server may not know them yet.
                let bound = self.transcript.bound(tag).ok_or(SubmissionError::Beginning)?;
                let engine = self.transcript.parity().ok_or(SubmissionError::Beginning)?;
                let held = envelope::open_part(sealing, &engine, &bound, place, common, sealed)?;
                let key = common.keys.get(own.index()).ok_or(EnvelopeError::Envelopes)?;
                Ok((OwnPart::Parity(Arc::new(held)), *key))
            }
            _ => Err(EnvelopeError::Envelopes.into()),
        }
    }

    /// Notes which writes this database lacks, once all others have closed.
    pub(super) fn note_missing_writes(&mut self, board: &Board, own: Party) {
        if self.missing.is_some()
            || !others(board, own).all(|by| self.transcript.closing_list(by).is_some())
        {
            return;
        }
        let mut missing: BTreeMap<WriteName, BTreeSet<Party>> = BTreeMap::new();
        for by in others(board, own) {
            let listed = self.transcript.closing_list(by).unwrap_or_default().iter();
            for name in listed.filter(|name| !self.writes.contains_key(name)) {
                missing.entry(*name).or_default().insert(by);
            }
        }
        self.missing = Some(missing);
    }

    /// Writes that other databases listed when they closed and this one lacks, with the databases
    /// to ask. They are fetched even before this database closes, since another may have closed
    /// because it was full.
    pub(super) fn missing_writes(
        &self,
        own: Party,
    ) -> impl Iterator<Item = (&WriteName, &BTreeSet<Party>)> {
        let over = self.has_ended(own) || self.transcript.candidates_of(own).is_some();
        self.missing.iter().flatten().filter(move |_| !over)
    }

    /// Whether this database waits for a write.
    pub(super) fn is_waiting_for(&self, own: Party, name: &WriteName) -> bool {
        self.missing_writes(own).any(|(missing, _)| missing == name)
    }

    /// Notes that this server forwarded an invalid write under this name. It is not asked again.
    /// Once nobody else lists the write, this database stops waiting for it.
    pub(super) fn ask_no_more(&mut self, from: Party, name: &WriteName) {
        let Some(missing) = &mut self.missing else { return };
        let Some(listing) = missing.get_mut(name) else { return };
        listing.remove(&from);
        if listing.is_empty() {
            missing.remove(name);
        }
    }

    /// This database's next statement, if one is due.
    pub(super) fn next_statement(
        &mut self,
        board: &Board,
        own: Party,
        now: Timestamp,
    ) -> Option<Body> {
        if self.has_ended(own) {
            return None;
        }
        if let Some(reason) = self.abort_reason(board, own, now) {
            return Some(Body::Abort { reason });
        }
        match self.transcript.statement_count(own) {
            Body::CLOSE => self.close(board, now),
            Body::CANDIDATES => self.candidates(board, own, now),
            Body::COMMIT => self.commit(board, own),
            Body::OPEN => self.open(board, own),
            Body::AGREE => self.agree(board, own),
            Body::LATCH => self.latch(board, own),
            Body::PUBLISH => self.publish(board, own),
            _ => None,
        }
    }

    /// Why the epoch must end without a table, if it must. Once shares are released, this server's
    /// may have been sent without the others' arriving. Writers must learn that
    /// first, because a server that withholds its share could also abort or provoke blame for
    /// something else.
    fn abort_reason(&self, board: &Board, own: Party, now: Timestamp) -> Option<BurnReason> {
        let mut others = board.parties().iter().copied().filter(|by| *by != own);
        let reported = others.find(|by| self.transcript.abort_reason(*by).is_some());
        let reason = match (self.fault, reported) {
            (Some((by, fault)), _) => BurnReason::Blamed(by, fault),
            (None, Some(by)) => BurnReason::Reported(by),
            (None, None) if now < board.schedule.burn_time(self.transcript.epoch()) => return None,
            (None, None) => BurnReason::Late,
        };
        Some(match (own, reason) {
            _ if !self.transcript.is_released() => reason,
            (Party::Database(side), BurnReason::Late) => BurnReason::Withheld(side.other().into()),
            _ => BurnReason::Unshared,
        })
    }

    /// Closes by this server's own count or clock, whatever the others state. A database that could
    /// close for both would choose the crowd.
    fn close(&self, board: &Board, now: Timestamp) -> Option<Body> {
        let full = self.writes.len() >= board.writers as usize;
        let over = now >= board.schedule.end(self.transcript.epoch());
        let writes = || sorted(self.writes.keys().copied());
        let came = u32::try_from(self.came()).unwrap_or(u32::MAX);
        (full || over).then(|| Body::Close { writes: writes(), came })
    }

    /// Waits until the others have closed and forwarded the missing writes, or until half of
    /// `patience` has passed since all closed. So a server that withholds writes cannot burn the
    /// epoch.
    fn candidates(&mut self, board: &Board, own: Party, now: Timestamp) -> Option<Body> {
        if !others(board, own).all(|by| self.transcript.closing_list(by).is_some()) {
            return None;
        }
        let since = *self.all_closed.get_or_insert(now);
        let waited = now >= self.end_of_forwarding(board, since);
        if self.missing_writes(own).next().is_some() && !waited {
            return None;
        }
        let coin = *self.secrets.as_ref()?.coin.expose();
        Some(Body::Candidates { writes: sorted(self.writes.keys().copied()), coin })
    }

    /// When this server stops waiting for forwarded writes, given when all had closed.
    fn end_of_forwarding(&self, board: &Board, all_closed: Timestamp) -> Timestamp {
        let end = board.schedule.end(self.transcript.epoch());
        all_closed.min(end).plus(Span(board.schedule.patience.0 / 2))
    }

    /// When the passing of time alone calls for a statement.
    pub(super) fn deadline(&self, board: &Board, own: Party) -> Option<Timestamp> {
        if self.has_ended(own) {
            return None;
        }
        let epoch = self.transcript.epoch();
        let next = match self.transcript.statement_count(own) {
            Body::CLOSE => Some(board.schedule.end(epoch)),
            Body::CANDIDATES if self.secrets.is_some() => {
                self.all_closed.map(|since| self.end_of_forwarding(board, since))
            }
            _ => None,
        };
        next.into_iter().chain([board.schedule.burn_time(epoch)]).min()
    }

    fn commit(&self, board: &Board, own: Party) -> Option<Body> {
        let candidates = self.transcript.candidates()?;
        if let Some(reason) = self.too_few(board, own, &candidates.writes, CrowdStage::Candidates) {
            return Some(Body::Abort { reason });
        }
        let (audited, _) = self.audited.as_ref()?;
        let nonce = self.secrets.as_ref()?.nonce.expose();
        let (transcript, named) = (&self.transcript, candidates.digest);
        let digests = match (own, audited) {
            (Party::Database(side), Openings::Digests(audited)) => {
                transcript.digest_commitment(side, &named, audited, nonce)
            }
            (_, Openings::Answers(answers)) => {
                transcript.answer_commitment(own, &named, answers, nonce)
            }
            _ => return None,
        };
        Some(Body::Commit { candidates: named, digests })
    }

    /// In mode 2 this opens only if all servers committed to the same candidates. Openings at two
    /// points would reveal something about the row.
    fn open(&self, board: &Board, own: Party) -> Option<Body> {
        let committed: Option<Vec<Digest>> =
            others(board, own).map(|by| self.transcript.commitment(by)).collect();
        let (committed, named) = (committed?, self.transcript.candidates()?.digest);
        let (audited, _) = self.audited.as_ref()?;
        let nonce = *self.secrets.as_ref()?.nonce.expose();
        match audited {
            Openings::Digests(digests) => Some(Body::Open { digests: digests.clone(), nonce }),
            Openings::Answers(_) if committed.iter().any(|theirs| *theirs != named) => {
                Some(Body::Abort { reason: BurnReason::Contradiction })
            }
            Openings::Answers(answers) => Some(Body::Answer { answers: answers.clone(), nonce }),
        }
    }

    fn agree(&self, board: &Board, own: Party) -> Option<Body> {
        let set = match self.transcript.set()? {
            Ok(set) => set,
            Err(dispute) => return Some(Body::Abort { reason: dispute.into() }),
        };
        // The others may have had any write rejected. In mode 1 the writers' complaints then show
        // who is to blame.
        if let Some(reason) = self.too_few(board, own, &set.accepted, CrowdStage::Accepted) {
            return Some(Body::Abort { reason });
        }
        let size = u32::try_from(set.accepted.len()).ok()?;
        Some(Body::Agree { opens: set.opens, set: set.digest, size })
    }

    /// The set, if all others state the same one. An honest auditor settles only a set that both
    /// databases agreed on in statements to it, so this database did too.
    fn agreed_set(&self, board: &Board, own: Party) -> Option<Result<&Set, Dispute>> {
        let set = self.transcript.set()?.ok()?;
        for by in others(board, own) {
            if let Err(dispute) = self.transcript.agrees(by, set)? {
                return Some(Err(dispute));
            }
        }
        let same = board.grid().is_some() || self.transcript.settled_set()? == set.digest;
        Some(if same { Ok(set) } else { Err(Dispute::Blamed(Party::Auditor, Fault::Set)) })
    }

    fn latch(&mut self, board: &Board, own: Party) -> Option<Body> {
        let set = match self.agreed_set(board, own)? {
            Ok(set) => set.digest,
            Err(dispute) => return Some(Body::Abort { reason: dispute.into() }),
        };
        let mut masked = Zeroizing::new(self.share.as_ref()?.to_vec());
        for by in others(board, own) {
            let (_, theirs) = self.transcript.keys(by)?;
            let Ok(agreed) = self.secrets.as_ref()?.agreement.agree(&theirs) else {
                return Some(Body::Abort { reason: BurnReason::Blamed(by, Fault::Keys) });
            };
            mask(&agreed, &set, &mut masked);
        }
        let masked = std::mem::take(&mut *masked);
        let digest = Transcript::share_digest(own, &set, &masked);
        self.masked = Some(Arc::new(masked));
        Some(Body::Latch { set, settle: self.transcript.settle_digest(), share: digest })
    }

    fn publish(&mut self, board: &Board, own: Party) -> Option<Body> {
        let (set, _) = self.transcript.latch(own)?;
        let mut table = self.masked.as_ref()?.to_vec();
        for by in others(board, own) {
            let theirs = self.other_shares.get(&by)?;
            table.iter_mut().zip(theirs).for_each(|(byte, b)| *byte ^= b);
        }
        let digest = Transcript::table_digest(&set, &table);
        self.table = Some(Arc::new(table));
        Some(Body::Publish { set, table: digest })
    }

    /// The next computation. Each is returned once.
    pub(super) fn next_work(&mut self, board: &Board, own: Party) -> Option<Work> {
        if self.has_ended(own) || self.working || self.share.is_some() || self.masked.is_some() {
            return None;
        }
        let candidates = self.transcript.candidates()?;
        if self.too_few(board, own, &candidates.writes, CrowdStage::Candidates).is_some() {
            return None;
        }
        let (keys, task) = if self.audited.is_none() {
            let keys = self.keys(board, own, &candidates.writes)?;
            let (kappa, randomness, candidates) =
                (candidates.kappa, candidates.randomness, candidates.digest);
            (keys, Task::Audit { kappa, randomness, candidates })
        } else {
            let keys = self.keys(board, own, &self.transcript.set()?.ok()?.rejected)?;
            let (_, table) = self.audited.as_mut()?;
            (keys, Task::Remove { table: std::mem::take(table) })
        };
        self.working = true;
        Some(Work { epoch: self.transcript.epoch(), keys, task })
    }

    /// What this database's envelopes of these writes hold.
    pub(super) fn contents(&self, board: &Board, names: &[WriteName]) -> Option<Vec<Content>> {
        let (board, epoch) = (board.fingerprint(), self.transcript.epoch());
        let content = |name| match &self.writes.get(name)?.part {
            OwnPart::Tree(opened) => Some(opened.content(board, epoch)),
            OwnPart::Parity(_) => None,
        };
        names.iter().map(content).collect()
    }

    /// This server's keys for these writes.
    fn keys(&self, board: &Board, own: Party, names: &[WriteName]) -> Option<Keys> {
        let parts = names.iter().map(|name| self.writes.get(name).map(|held| &held.part));
        if let Party::Database(side) = own {
            let key = |part: Option<&OwnPart>| match part? {
                OwnPart::Tree(opened) => Some(Arc::clone(opened)),
                OwnPart::Parity(_) => None,
            };
            let (prgs, shape) = (Box::new(self.transcript.permutations()?), board.shape());
            return Some(Keys::Tree {
                prgs,
                shape,
                side,
                keys: parts.map(key).collect::<Option<_>>()?,
            });
        }
        let key = |part: Option<&OwnPart>| match part? {
            OwnPart::Parity(held) => Some(Arc::clone(held)),
            OwnPart::Tree(_) => None,
        };
        let keys = parts.map(key).collect::<Option<_>>()?;
        Some(Keys::Parity { engine: Box::new(self.transcript.parity()?), keys })
    }

    pub(super) fn handle_result(&mut self, done: WorkResult) {
        self.working = false;
        match done.result {
            Outcome::Audited { candidates, audited, table } => {
                if self.transcript.candidates().is_some_and(|c| c.digest == candidates) {
                    self.audited = Some((audited, table));
                }
            }
            Outcome::Removed { table } => self.share = Some(table),
        }
    }

    /// Deletes what an ended epoch no longer needs, in memory and in the ledger.
    pub(super) fn remove_secrets(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let mut changes = vec![records::remove_seed(epoch)];
        changes.extend(self.writes.keys().map(|name| records::remove_write(epoch, name)));
        changes.extend(self.forget_other_quotas());
        self.secrets = None;
        self.writes.clear();
        self.tags.clear();
        self.roots.clear();
        self.audited = None;
        self.share = None;
        self.other_shares.clear();
        self.missing = None;
        changes
    }
}

/// The other servers that hold shares.
pub(super) fn others(board: &Board, own: Party) -> impl Iterator<Item = Party> {
    board.databases().iter().copied().filter(move |by| *by != own)
}
