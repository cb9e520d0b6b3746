//! A server's role on a thread of its own: one writer. Writes that wait are taken
//! together and made durable by one flush of the disk.

use crate::pass::clock;
use crate::pass::ledger::FencedLedger;
use crate::service::engine::{Handle, Reply};
use crate::service::shutdown::Trigger;
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::auditor::{Auditor, NotJudged, Verdict};
use alpheus_anonymous_board::configuration::{Epoch, Party, Pinned, Time};
use alpheus_anonymous_board::database::{Database, Done, Output};
use alpheus_anonymous_board::error::Refused;
use alpheus_anonymous_board::messages::{
    Complaint, Receipt, Spoken, Statement, Submission, WriteName,
};
use alpheus_anonymous_board::reader::Reading;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::signed::Signed;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::mpsc;

/// As many are taken together.
const BATCH: usize = 256;
/// Epochs that are kept for readers.
const KEPT: usize = 64;
/// Of the last so many tables and what was read from them are in memory; older tables are
/// read from the ledger.
const TABLES: usize = 3;
/// Epochs before the current one of which the other servers are still asked.
const ASKED: u64 = 3;

/// Something to do.
pub enum Job {
    /// A write from its writer.
    Submit(Box<Submission>, Reply<Result<Signed<Receipt>, Refused>>),
    /// A write from that other database.
    Forwarded(Party, Box<Submission>),
    /// Statements of another server.
    Hear(Party, Epoch, Vec<Signed<Statement>>),
    /// Another database's share.
    Share(Party, Epoch, Vec<u8>),
    /// A complaint.
    Judge(Box<Complaint>, Reply<Result<Verdict, NotJudged>>),
    /// A write that is held.
    Held(Epoch, WriteName, Reply<Option<Submission>>),
    /// What this server has heard of an epoch.
    Heard(Epoch, Reply<Option<Transcript>>),
    /// What is to be fetched.
    Wants(Reply<Wants>),
    /// Where another server has heard something else, by the digests of what it has heard.
    Differs(Epoch, Vec<Vec<Digest>>, Reply<Vec<(Party, usize)>>),
    /// Time has passed.
    Tick,
    /// Something was computed.
    Done(Box<Done>),
    /// The process stops.
    Stop,
}

/// What is to be fetched from the other servers.
#[derive(Default)]
pub struct Wants {
    /// Statements: of whom, of which epoch, from which on.
    pub statements: Vec<(Party, Epoch, usize)>,
    /// Writes that other databases have, and which of them are asked for it.
    pub writes: Vec<(Vec<Party>, Epoch, WriteName)>,
    /// Their shares.
    pub shares: Vec<(Party, Epoch)>,
    /// Epochs of which servers compare what they have heard.
    pub compared: Vec<Epoch>,
}

/// What everybody may read here. Clones are one.
#[derive(Clone, Default)]
pub struct Bulletin(Arc<RwLock<BTreeMap<Epoch, Page>>>);

/// One epoch of it.
#[derive(Clone, Default)]
pub struct Page {
    /// What each server has said, as this one has heard it.
    pub said: BTreeMap<Party, Vec<Arc<Signed<Statement>>>>,
    /// Of each, the first that cannot stand beside those.
    pub conflicts: BTreeMap<Party, Arc<Signed<Statement>>>,
    /// Its masked share.
    pub share: Option<Arc<Vec<u8>>>,
    /// Whether there is a table, here or in the ledger.
    pub published: bool,
    /// The table, of one of the last epochs.
    pub table: Option<Arc<Vec<u8>>>,
    /// What was read from it, once somebody has asked.
    pub reading: Option<Arc<Reading>>,
}

impl Bulletin {
    /// One epoch.
    #[must_use]
    pub fn page(&self, epoch: Epoch) -> Option<Page> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&epoch).cloned()
    }

    /// The last epoch that has a table.
    #[must_use]
    pub fn last(&self) -> Option<Epoch> {
        let pages = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pages.iter().rev().find(|(_, page)| page.published).map(|(epoch, _)| *epoch)
    }

    /// Publishes what a database gives.
    pub fn put_out(&self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Said(said) => self.say(said),
                Output::Share(epoch, share) => self.change(epoch, |page| page.share = Some(share)),
                Output::NoShare(epoch) => self.change(epoch, |page| page.share = None),
                Output::Table(epoch, table) => self.change(epoch, |page| {
                    (page.published, page.table) = (true, Some(table));
                }),
            }
        }
    }

    /// Keeps what was read from a table for whoever asks next.
    pub fn keep(&self, reading: Arc<Reading>) {
        self.change(reading.epoch, |page| page.reading = Some(reading));
    }

    /// Publishes a statement.
    pub fn say(&self, spoken: Spoken) {
        let Spoken { epoch, by, conflicts, signed } = spoken;
        let signed = Arc::new(signed);
        self.change(epoch, |page| {
            if conflicts {
                tracing::warn!(%by, epoch = epoch.0, "it has said two things; both are signed");
                page.conflicts.insert(by, signed);
            } else {
                page.said.entry(by).or_default().push(signed);
            }
        });
    }

    fn change(&self, epoch: Epoch, change: impl FnOnce(&mut Page)) {
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(pages.entry(epoch).or_default());
        while pages.len() > KEPT {
            pages.pop_first();
        }
        let held = |page: &&mut Page| page.table.is_some() || page.reading.is_some();
        for page in pages.values_mut().rev().filter(held).skip(TABLES) {
            (page.table, page.reading) = (None, None);
        }
    }
}

/// Who may write.
pub type Admitting = dyn Admission + Send;

/// The role.
pub enum Server {
    /// A database, and who may write to it.
    Database(Box<Database>, Box<Admitting>),
    /// The auditor.
    Auditor(Box<Auditor>),
}

/// What the thread works on.
pub struct Engine {
    /// The role.
    pub server: Server,
    /// Its ledger.
    pub ledger: FencedLedger,
    /// What it publishes.
    pub bulletin: Bulletin,
    /// The board.
    pub board: Pinned,
    /// Randomness.
    pub rng: ChaCha20Rng,
}

/// Works until it is told to stop or the ledger fails; then it drops `trigger`, so
/// that the process stops, and starts again from what is durable.
///
/// # Errors
/// [`LedgerError`].
pub fn run(
    mut engine: Engine,
    mut jobs: mpsc::Receiver<Job>,
    own: &Handle<Job>,
    trigger: Trigger,
) -> Result<(), LedgerError> {
    let worked = engine.work(&mut jobs, own);
    if let Err(error) = &worked {
        tracing::error!(%error, "the board stops");
    }
    drop(trigger);
    worked
}

/// A write, and whom it is from.
type Waiting = (Box<Submission>, Source);

enum Source {
    /// Its writer, who waits.
    Writer(Reply<Result<Signed<Receipt>, Refused>>),
    /// Another database, which has handed it on.
    Database(Party),
}

impl Engine {
    fn work(
        &mut self,
        jobs: &mut mpsc::Receiver<Job>,
        own: &Handle<Job>,
    ) -> Result<(), LedgerError> {
        while let Some(first) = jobs.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            let mut writes: Vec<Waiting> = Vec::new();
            for job in batch {
                match job {
                    Job::Submit(submission, reply) => {
                        writes.push((submission, Source::Writer(reply)));
                    }
                    Job::Forwarded(from, submission) => {
                        writes.push((submission, Source::Database(from)));
                    }
                    Job::Stop => return self.take(std::mem::take(&mut writes)),
                    job => {
                        self.take(std::mem::take(&mut writes))?;
                        self.one(job)?;
                    }
                }
            }
            self.take(writes)?;
            self.advance()?;
            self.compute(own);
        }
        Ok(())
    }

    /// Writes, in one commit.
    fn take(&mut self, writes: Vec<Waiting>) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (submission, source) in writes {
            let Server::Database(database, members) = &mut self.server else { continue };
            let taken = match &source {
                Source::Writer(_) => database.submit(now(), *submission, members),
                Source::Database(from) => database.forwarded(*from, *submission, members),
            };
            match (taken, source) {
                (Ok(step), source) => {
                    steps.push(step);
                    replies.push(source);
                }
                (Err(refused), Source::Writer(reply)) => drop(reply.send(Err(refused))),
                (Err(refused), Source::Database(from)) => {
                    tracing::warn!(%refused, %from, "a write of another database");
                }
            }
        }
        let receipts = Step::join(steps).commit(&mut self.ledger)?;
        for (reply, receipt) in replies.into_iter().zip(receipts) {
            if let Source::Writer(reply) = reply {
                let _ = reply.send(Ok(receipt));
            }
        }
        Ok(())
    }

    fn one(&mut self, job: Job) -> Result<(), LedgerError> {
        match job {
            Job::Hear(by, epoch, said) => return self.hear(by, epoch, &said),
            Job::Judge(complaint, reply) => return self.judge(&complaint, reply),
            Job::Wants(reply) => drop(reply.send(self.wants())),
            Job::Differs(epoch, theirs, reply) => drop(reply.send(self.differs(epoch, &theirs))),
            Job::Heard(epoch, reply) => drop(reply.send(self.transcript(epoch).cloned())),
            job => {
                let Server::Database(database, _) = &mut self.server else { return Ok(()) };
                match job {
                    Job::Share(by, epoch, share) => {
                        if let Err(error) = database.hear_share(by, epoch, share) {
                            tracing::warn!(%error, %by, "its share");
                        }
                    }
                    Job::Held(epoch, name, reply) => {
                        let _ = reply.send(database.submission(epoch, &name).cloned());
                    }
                    Job::Done(done) => database.worked(*done),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn transcript(&self, epoch: Epoch) -> Option<&Transcript> {
        match &self.server {
            Server::Database(database, _) => database.transcript(epoch),
            Server::Auditor(auditor) => auditor.transcript(epoch),
        }
    }

    fn hear(
        &mut self,
        by: Party,
        epoch: Epoch,
        said: &[Signed<Statement>],
    ) -> Result<(), LedgerError> {
        for said in said {
            let heard = match (&mut self.server, by) {
                (Server::Database(database, _), _) => database.hear(by, epoch, said).map(|step| {
                    step.commit(&mut self.ledger).map(|outputs| self.bulletin.put_out(outputs))
                }),
                (Server::Auditor(auditor), Party::Database(side)) => {
                    auditor.hear(now(), side, epoch, said).map(|step| {
                        let said = step.commit(&mut self.ledger);
                        said.map(|said| said.into_iter().for_each(|said| self.bulletin.say(said)))
                    })
                }
                (Server::Auditor(_), Party::Auditor | Party::Server(_)) => return Ok(()),
            };
            match heard {
                Ok(committed) => committed?,
                Err(error) => {
                    tracing::debug!(%error, %by, "a statement");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The first place, of each server, where this one has heard something else.
    fn differs(&self, epoch: Epoch, theirs: &[Vec<Digest>]) -> Vec<(Party, usize)> {
        let Some(transcript) = self.transcript(epoch) else { return Vec::new() };
        let parties = self.board.parties().iter().copied();
        let unknown = parties.filter(|of| transcript.conflict(*of).is_none());
        unknown
            .filter_map(|of| {
                let mut pairs = transcript.digests(of).zip(theirs.get(of.index())?);
                pairs.position(|(ours, theirs)| ours != *theirs).map(|place| (of, place))
            })
            .collect()
    }

    fn judge(
        &mut self,
        complaint: &Complaint,
        reply: Reply<Result<Verdict, NotJudged>>,
    ) -> Result<(), LedgerError> {
        let Server::Auditor(auditor) = &mut self.server else { return Ok(()) };
        let judged = match auditor.judge(complaint) {
            Ok(step) => {
                let (verdict, said) = step.commit(&mut self.ledger)?;
                said.into_iter().for_each(|said| self.bulletin.say(said));
                Ok(verdict)
            }
            Err(error) => Err(error),
        };
        let _ = reply.send(judged);
        Ok(())
    }

    fn advance(&mut self) -> Result<(), LedgerError> {
        match &mut self.server {
            Server::Database(database, _) => {
                while let Some(step) = database.advance(now(), &mut self.rng) {
                    self.bulletin.put_out(step.commit(&mut self.ledger)?);
                }
            }
            Server::Auditor(auditor) => {
                while let Some(step) = auditor.advance(now()) {
                    self.bulletin.say(step.commit(&mut self.ledger)?);
                }
            }
        }
        Ok(())
    }

    /// Starts what is to be computed on a thread of its own.
    fn compute(&mut self, own: &Handle<Job>) {
        let Server::Database(database, _) = &mut self.server else { return };
        while let Some(work) = database.work() {
            let own = own.clone();
            std::thread::spawn(move || match work.run() {
                Ok(done) => own.tell_blocking(Job::Done(Box::new(done))),
                Err(error) => tracing::error!(%error, "the audit; the epoch will be burnt"),
            });
        }
    }

    /// What others have that this server lacks, of the last epochs.
    fn wants(&self) -> Wants {
        let mut wants = Wants::default();
        let Some(current) = self.board.schedule.at(now()) else { return wants };
        let own = match &self.server {
            Server::Database(database, _) => {
                for epoch in database.unfinished() {
                    let missing = database.missing(epoch).into_iter().take(BATCH);
                    let listed = missing.map(|(name, from)| (from, epoch, name));
                    wants.writes.extend(listed);
                    let shares = database.wants_shares(epoch).into_iter();
                    wants.shares.extend(shares.map(|by| (by, epoch)));
                }
                let first = database.transcript(current).is_some();
                first.then_some(current)
            }
            Server::Auditor(_) => Some(current),
        };
        for number in current.0.saturating_sub(ASKED)..=own.map_or(0, |epoch| epoch.0) {
            let epoch = Epoch(number);
            if self.transcript(epoch).is_some() {
                wants.compared.push(epoch);
            }
            for of in self.board.parties().iter().copied() {
                let heard = self.transcript(epoch).map_or(0, |t| t.heard_of(of));
                let known =
                    matches!(&self.server, Server::Auditor(_)) || self.transcript(epoch).is_some();
                let over = self.transcript(epoch).is_some_and(|t| over(t, of));
                if known && !over {
                    wants.statements.push((of, epoch, heard));
                }
            }
        }
        wants
    }
}

/// Whether a server has nothing more to say of an epoch.
fn over(transcript: &Transcript, of: Party) -> bool {
    let last = of != Party::Auditor && transcript.published(of).is_some();
    last || transcript.aborted(of).is_some() || transcript.all_published().is_some()
}

fn now() -> Time {
    Time(clock::now().0)
}
