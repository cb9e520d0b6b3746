//! A database, or one of the equal servers of mode 2: takes writes, audits them, and gives
//! its share of the table once.
//!
//! Whatever leaves comes out of a [`Step`], so that it is durable before. The
//! expensive part is [`Work`], which runs anywhere.

mod crowd;
mod records;
mod running;
mod work;

pub use work::{Done, Work};

use crate::admission::Admission;
use crate::configuration::{Epoch, Party, Pinned, Time};
use crate::error::{NotRestored, Refused};
use crate::messages::{Receipt, Spoken, Statement, Submission, Tag, What, Why, WriteName};
use crate::transcript::{Heard, NotHeard, Transcript};
use alpheus_crypto::ledger::{Change, DamagedLog, Log, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_core::CryptoRng;
use records::Record;
use running::{Running, Secrets};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Epochs whose statements and tables are kept for readers.
const KEPT: u64 = 64;

/// What a database gives to everybody who asks.
#[derive(Clone, Debug)]
pub enum Output {
    /// A statement: its own, or another server's that it hands on.
    Said(Spoken),
    /// The masked share of an epoch's table.
    Share(Epoch, Arc<Vec<u8>>),
    /// Nobody needs that share any more.
    NoShare(Epoch),
    /// An epoch's table.
    Table(Epoch, Arc<Vec<u8>>),
}

/// A database.
pub struct Database {
    board: Pinned,
    party: Party,
    key: SigningKey,
    epochs: BTreeMap<Epoch, Running>,
    /// The last epoch that may not be begun any more.
    last: Option<Epoch>,
}

/// The bytes are not the share that the other server is bound to, or it is bound
/// to none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not the share that the other server has committed to")]
pub struct NotTheShare;

impl Database {
    /// A database as its ledger has it; an empty one for a new database.
    ///
    /// After a log that may be an old copy all epochs that may have begun are burnt.
    ///
    /// # Errors
    /// [`NotRestored`].
    pub fn restore(
        board: &Pinned,
        party: impl Into<Party>,
        key: SigningKey,
        log: Log,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Time,
    ) -> Result<(Self, Step<Vec<Output>>), NotRestored> {
        let party = party.into();
        let holds = board.databases().contains(&party);
        if !holds || Some(&key.verifying_key()) != board.key(party) {
            return Err(NotRestored::OtherKey);
        }
        let mut database =
            Self { board: board.clone(), party, key, epochs: BTreeMap::new(), last: None };
        let (mut outputs, mut later) = (Vec::new(), Later::default());
        for (key, value) in records {
            let (epoch, record) = records::read(board, &key, &value)?;
            database.put_back(epoch, record, &mut later, &mut outputs)?;
        }
        if (log == Log::New) != database.epochs.is_empty() && log != Log::Doubtful {
            return Err(DamagedLog.into());
        }
        for (name, (tag, submission)) in later.writes {
            let running = database.epochs.get_mut(&submission.epoch).ok_or(DamagedLog)?;
            running.take(board, party, name, tag, submission).map_err(|_| DamagedLog)?;
        }
        database.epochs.values_mut().for_each(|running| running.note_lacking(board, party));
        for (epoch, by, signed) in later.conflicts {
            let running = database.epochs.get_mut(&epoch).ok_or(DamagedLog)?;
            let heard = running.transcript.hear(by, &signed).map_err(|_| DamagedLog)?;
            let Heard::Fault(fault) = heard else { return Err(DamagedLog.into()) };
            running.fault = Some((by, fault));
            outputs.push(Output::Said(Spoken { epoch, by, conflicts: true, signed }));
        }
        outputs.extend(database.epochs.values().filter_map(share));
        let changes =
            if log == Log::Doubtful { database.burn_all(now, &mut outputs) } else { Vec::new() };
        Ok((database, Step::new(changes, outputs)))
    }

    fn put_back(
        &mut self,
        epoch: Epoch,
        record: Record,
        later: &mut Later,
        outputs: &mut Vec<Output>,
    ) -> Result<(), DamagedLog> {
        self.last = self.last.max(Some(epoch));
        let board = &self.board;
        let running = self.epochs.entry(epoch).or_insert_with(|| Running::new(board, epoch));
        match record {
            Record::Seed(seed) => running.secrets = Some(Secrets::new(&seed)),
            // The keys of writes come after that of the seed, but a store may say otherwise.
            Record::Write(name, held) => later.writes.push((name, *held)),
            Record::Conflict(by, said) => later.conflicts.push((epoch, by, said)),
            Record::Statement(by, said) => {
                let heard = running.transcript.hear(by, &said).map_err(|_| DamagedLog)?;
                if heard != Heard::New {
                    return Err(DamagedLog);
                }
                outputs.push(Output::Said(Spoken { epoch, by, conflicts: false, signed: said }));
            }
            Record::TurnedAway(tag) => running.turned_away.put_back(tag),
            Record::Masked(share) => running.masked = Some(Arc::new(share)),
            Record::Table(table) => outputs.push(Output::Table(epoch, Arc::new(table))),
        }
        Ok(())
    }

    /// Burns what has begun, and what may have been begun and forgotten.
    fn burn_all(&mut self, now: Time, outputs: &mut Vec<Output>) -> Vec<Change> {
        let mut changes = Vec::new();
        let party = self.party;
        if let Some(now) = self.board.schedule.at(now) {
            self.last = self.last.max(Some(now));
            let board = &self.board;
            self.epochs.entry(now).or_insert_with(|| Running::new(board, now));
        }
        let open: Vec<Epoch> =
            self.epochs.iter().filter(|(_, r)| !r.ended(party)).map(|(e, _)| *e).collect();
        for epoch in open {
            changes.extend(self.say(epoch, What::Abort { why: Why::Restored }, outputs));
        }
        changes
    }

    /// The epoch that takes writes here now.
    #[must_use]
    pub fn open_epoch(&self, now: Time) -> Option<Epoch> {
        let epoch = self.board.schedule.at(now)?;
        let running = self.epochs.get(&epoch)?;
        let open = running.transcript.closed(self.party).is_none() && !running.ended(self.party);
        open.then_some(epoch)
    }

    /// The transcript of an epoch.
    #[must_use]
    pub fn transcript(&self, epoch: Epoch) -> Option<&Transcript> {
        self.epochs.get(&epoch).map(|running| &running.transcript)
    }

    /// Epochs that have not ended here.
    pub fn unfinished(&self) -> impl Iterator<Item = Epoch> {
        let party = self.party;
        self.epochs.iter().filter(move |(_, r)| !r.ended(party)).map(|(epoch, _)| *epoch)
    }

    /// How many writes an epoch has.
    #[must_use]
    pub fn writes(&self, epoch: Epoch) -> usize {
        self.epochs.get(&epoch).map_or(0, |running| running.writes.len())
    }

    /// Takes a write from its writer. The same write gets the same receipt again.
    ///
    /// The order is: is the epoch open, does the ticket entitle to this write, is its
    /// quota unspent, does the envelope open to a key that fits. No key is expanded.
    ///
    /// # Errors
    /// [`Refused`]: no quota is spent. In mode 2 one whose write does not open here counts
    /// into the crowd that has come, since others may have taken it.
    ///
    /// # Privacy
    /// The database learns whose quota is spent, when, and one key, which tells
    /// nothing of row and message.
    pub fn submit(
        &mut self,
        now: Time,
        submission: Submission,
        admission: &impl Admission,
    ) -> Result<Step<Signed<Receipt>>, Refused> {
        let epoch = submission.epoch;
        if self.board.schedule.at(now) != Some(epoch) {
            let over = self.board.schedule.end(epoch) <= now;
            return Err(if over { Refused::Late } else { Refused::Epoch });
        }
        let running = self.epochs.get(&epoch).ok_or(Refused::Epoch)?;
        if running.transcript.aborted(self.party).is_some() {
            return Err(Refused::Burnt);
        }
        let full = running.writes.len() >= self.board.writers as usize;
        let name = submission.name(&self.board.fingerprint());
        if !running.writes.contains_key(&name) {
            if full {
                return Err(Refused::Full);
            }
            if running.transcript.closed(self.party).is_some() {
                return Err(Refused::Late);
            }
        }
        let tag = admission.tag(epoch, &name, &submission.ticket)?;
        let taken = self.take(submission, name, tag);
        if let (Err(_), Party::Server(_)) = (&taken, self.party)
            && let Some(running) = self.epochs.get_mut(&epoch)
            && !running.tags.contains_key(&tag)
        {
            running.turned_away.note(tag);
        }
        taken
    }

    /// Takes a write that another database has handed on because this one lacked it.
    ///
    /// # Errors
    /// [`Refused`]: that database is not asked for it again; if nobody else lists it, the
    /// write is given up, and will not be among the candidates.
    pub fn forwarded(
        &mut self,
        from: impl Into<Party>,
        submission: Submission,
        admission: &impl Admission,
    ) -> Result<Step<Signed<Receipt>>, Refused> {
        let (epoch, name) = (submission.epoch, submission.name(&self.board.fingerprint()));
        let running = self.epochs.get(&epoch).ok_or(Refused::Epoch)?;
        if !running.waits_for(self.party, &name) {
            return Err(Refused::NotListed);
        }
        let full = running.writes.len() >= self.board.writers as usize;
        let tag = admission.tag(epoch, &name, &submission.ticket);
        let taken = match tag {
            _ if full => Err(Refused::Full),
            Err(refused) => Err(refused.into()),
            Ok(tag) => self.take(submission, name, tag),
        };
        if taken.is_err()
            && let Some(running) = self.epochs.get_mut(&epoch)
        {
            running.ask_no_more(from.into(), &name);
        }
        taken
    }

    fn take(
        &mut self,
        submission: Submission,
        name: WriteName,
        tag: Tag,
    ) -> Result<Step<Signed<Receipt>>, Refused> {
        let epoch = submission.epoch;
        let receipt =
            Receipt { board: self.board.fingerprint(), epoch, by: self.party, write: name };
        let receipt = Signed::new(&receipt, &self.key);
        let running = self.epochs.get_mut(&epoch).ok_or(Refused::Epoch)?;
        match running.tags.get(&tag) {
            Some(known) if *known == name => return Ok(Step::new(Vec::new(), receipt)),
            Some(_) => return Err(Refused::Spent),
            None => {}
        }
        let change = records::write(epoch, &name, &tag, &submission);
        running.take(&self.board, self.party, name, tag, submission)?;
        Ok(Step::new(vec![change], receipt))
    }

    /// Writes that other databases have and this one lacks, and which of them: to be fetched
    /// there and given to [`Database::forwarded`].
    #[must_use]
    pub fn missing(&self, epoch: Epoch) -> Vec<(WriteName, Vec<Party>)> {
        let running = self.epochs.get(&epoch).into_iter();
        let missing = running.flat_map(|running| running.missing(self.party));
        missing.map(|(name, from)| (*name, from.iter().copied().collect())).collect()
    }

    /// Where the ledger has an epoch's table: a database itself keeps none in memory.
    #[must_use]
    pub fn table_key(epoch: Epoch) -> Vec<u8> {
        records::table(epoch, None).key
    }

    /// A write for the other database, which lacks it.
    #[must_use]
    pub fn submission(&self, epoch: Epoch, name: &WriteName) -> Option<&Submission> {
        self.epochs.get(&epoch)?.writes.get(name).map(|held| &held.submission)
    }

    /// Takes a statement of another server.
    ///
    /// # Errors
    /// [`NotHeard`]: nothing has changed.
    pub fn hear(
        &mut self,
        by: Party,
        epoch: Epoch,
        signed: &Signed<Statement>,
    ) -> Result<Step<Vec<Output>>, NotHeard> {
        let none = || Step::new(Vec::new(), Vec::new());
        let Some(running) = self.epochs.get_mut(&epoch) else { return Err(NotHeard::Elsewhere) };
        let place = running.transcript.heard_of(by);
        let known = running.transcript.conflict(by).is_some();
        let spoken =
            |conflicts| Output::Said(Spoken { epoch, by, conflicts, signed: signed.clone() });
        match running.transcript.hear(by, signed)? {
            Heard::Known => Ok(none()),
            Heard::Fault(fault) => {
                running.fault = Some((by, fault));
                if known {
                    return Ok(none());
                }
                // Kept, ended or not: it is the proof.
                let change = records::conflict(epoch, by, Some(signed));
                Ok(Step::new(vec![change], vec![spoken(true)]))
            }
            Heard::New => {
                running.note_lacking(&self.board, self.party);
                let mut changes = vec![records::statement(epoch, by, place, signed)];
                let mut outputs = vec![spoken(false)];
                changes.extend(unneeded(running, &mut outputs));
                outputs.extend(share(running));
                Ok(Step::new(changes, outputs))
            }
        }
    }

    /// Takes another database's masked share.
    ///
    /// # Errors
    /// [`NotTheShare`].
    pub fn hear_share(
        &mut self,
        by: impl Into<Party>,
        epoch: Epoch,
        bytes: Vec<u8>,
    ) -> Result<(), NotTheShare> {
        let by = by.into();
        let running = self.epochs.get_mut(&epoch).ok_or(NotTheShare)?;
        let (set, bound) = running.transcript.latched(by).ok_or(NotTheShare)?;
        let digest = Transcript::share_digest(by, &set, &bytes);
        if digest != bound || bytes.len() != self.board.shape().bytes() {
            return Err(NotTheShare);
        }
        running.theirs.insert(by, bytes);
        Ok(())
    }

    /// Whose shares an epoch waits for here.
    #[must_use]
    pub fn wants_shares(&self, epoch: Epoch) -> Vec<Party> {
        let Some(running) = self.epochs.get(&epoch) else { return Vec::new() };
        let bound = |by: &Party| running.transcript.latched(*by).is_some();
        if running.ended(self.party) || !self.board.databases().iter().all(bound) {
            return Vec::new();
        }
        let lacks = |by: &Party| !running.theirs.contains_key(by);
        running::others(&self.board, self.party).filter(lacks).collect()
    }

    /// What is to be computed next, if anything. It is handed out once.
    pub fn work(&mut self) -> Option<Work> {
        let (board, party) = (&self.board, self.party);
        self.epochs.values_mut().find_map(|running| running.work(board, party))
    }

    /// Takes what [`Work::run`] gave.
    pub fn worked(&mut self, done: Done) {
        if let Some(running) = self.epochs.get_mut(&done.epoch) {
            running.worked(done);
        }
    }

    /// One step further in some epoch, if it is time; to be called until nothing comes.
    pub fn advance(&mut self, now: Time, rng: &mut impl CryptoRng) -> Option<Step<Vec<Output>>> {
        if let Some(step) = self.begin(now, rng) {
            return Some(step);
        }
        let unsaved: Vec<Change> = self.epochs.values_mut().flat_map(Running::unsaved).collect();
        if !unsaved.is_empty() {
            return Some(Step::new(unsaved, Vec::new()));
        }
        let (board, party) = (self.board.clone(), self.party);
        let next = self.epochs.iter_mut().find_map(|(epoch, running)| {
            running.next(&board, party, now).map(|what| (*epoch, what))
        });
        let (epoch, what) = next?;
        let mut outputs = Vec::new();
        let changes = self.say(epoch, what, &mut outputs);
        Some(Step::new(changes, outputs))
    }

    fn begin(&mut self, now: Time, rng: &mut impl CryptoRng) -> Option<Step<Vec<Output>>> {
        let epoch = self.board.schedule.at(now).filter(|epoch| self.last < Some(*epoch))?;
        self.last = Some(epoch);
        let seed = Secret::random(rng);
        let secrets = Secrets::new(&seed);
        let (sealing, agreement) = (secrets.sealing.public(), secrets.agreement.public());
        let mut running = Running::new(&self.board, epoch);
        running.secrets = Some(secrets);
        self.epochs.insert(epoch, running);
        let (mut changes, mut outputs) = (vec![records::seed(epoch, &seed)], Vec::new());
        changes.extend(self.say(epoch, What::Begin { sealing, agreement }, &mut outputs));
        changes.extend(self.forget(epoch));
        Some(Step::new(changes, outputs))
    }

    /// Says something, with all that must be durable beside it.
    fn say(&mut self, epoch: Epoch, what: What, outputs: &mut Vec<Output>) -> Vec<Change> {
        let Some(running) = self.epochs.get_mut(&epoch) else { return Vec::new() };
        let (board, by) = (self.board.fingerprint(), self.party);
        let place = running.transcript.heard_of(by);
        let ends = matches!(what, What::Abort { .. } | What::Publish { .. });
        let said = Statement { board, epoch, by, place: running.transcript.next_place(by), what };
        let signed = Signed::new(&said, &self.key);
        // One's own statement is in turn and one's own.
        let _ = running.transcript.hear(by, &signed);
        let mut changes = vec![records::statement(epoch, by, place, &signed)];
        outputs.push(Output::Said(Spoken { epoch, by, conflicts: false, signed }));
        if running.transcript.aborted(by).is_some() && running.masked.take().is_some() {
            changes.push(records::masked(epoch, None));
            outputs.push(Output::NoShare(epoch));
        }
        if running.transcript.latched(self.party).is_some() && !ends {
            changes.push(records::masked(epoch, running.masked.as_deref().map(Vec::as_slice)));
            outputs.extend(share(running));
        }
        if ends && let Some(table) = running.table.take() {
            changes.push(records::table(epoch, Some(&table)));
            outputs.push(Output::Table(epoch, table));
        }
        if ends {
            changes.extend(unneeded(running, outputs));
            changes.extend(running.remove_secrets());
        }
        changes
    }

    /// Removes epochs that nobody is expected to read any more.
    fn forget(&mut self, now: Epoch) -> Vec<Change> {
        let old: Vec<Epoch> =
            self.epochs.keys().copied().take_while(|e| e.0 + KEPT < now.0).collect();
        let mut changes = Vec::new();
        for epoch in old {
            let Some(mut running) = self.epochs.remove(&epoch) else { continue };
            changes.extend(running.remove_secrets());
            changes.extend([records::masked(epoch, None), records::table(epoch, None)]);
            for by in self.board.parties() {
                let places = 0..running.transcript.heard_of(*by);
                changes.extend(places.map(|place| records::no_statement(epoch, *by, place)));
                changes.push(records::conflict(epoch, *by, None));
            }
        }
        changes
    }
}

/// What a ledger has that is put back after all else.
#[derive(Default)]
struct Later {
    writes: Vec<(WriteName, (Tag, Submission))>,
    conflicts: Vec<(Epoch, Party, Signed<Statement>)>,
}

/// Removes the masked share when all have the same table: nobody asks for it any more.
/// If they differ it stays: with the others' it shows who published what is not the sum.
fn unneeded(running: &mut Running, outputs: &mut Vec<Output>) -> Option<Change> {
    running.transcript.all_published()?;
    running.masked.take()?;
    let epoch = running.transcript.epoch();
    outputs.push(Output::NoShare(epoch));
    Some(records::masked(epoch, None))
}

/// The masked share, once all databases are bound to theirs for one set.
fn share(running: &Running) -> Option<Output> {
    running.transcript.all_latched()?;
    let share = running.masked.as_ref()?;
    Some(Output::Share(running.transcript.epoch(), Arc::clone(share)))
}
