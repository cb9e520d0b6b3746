//! A server's role on its own thread, the only writer of its ledger. Waiting writes are handled in
//! one batch and made durable by one flush of the disk.

use super::erasing_ledger::ErasingLedger;
use super::outbox::Outbox;
use alpheus_anonymous_board::admission::Admission;
use alpheus_anonymous_board::auditor::{Auditor, CheckedShare, ComplaintError, Verdict};
use alpheus_anonymous_board::configuration::{Board, Epoch, Party};
use alpheus_anonymous_board::database::{Database, WorkResult};
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{
    Complaint, Receipt, Reveal, Statement, Submission, WriteName,
};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::engine::{self, BATCH, Handle, Reply};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The number of past epochs for which statements are still fetched.
const PAST_EPOCHS: u64 = 3;

/// A call to the engine.
pub enum Call {
    /// A writer submits a write.
    Submit(Box<Submission>, Reply<Result<Signed<Receipt>, SubmissionError>>),
    /// A writer leaves a knock: its ticket.
    Knock(Epoch, Vec<u8>, Reply<Result<(), SubmissionError>>),
    /// Another database forwards a write.
    Forwarded(Party, Box<Submission>),
    /// Statements of another server arrive.
    Hear(Party, Epoch, Vec<Signed<Statement>>),
    /// Another database's share arrives.
    Share(Party, Epoch, Vec<u8>),
    /// A database reveals its keys of accepted writes to the auditor.
    Reveal(Party, Epoch, Box<Signed<Reveal>>),
    /// A writer complains.
    Judge(Box<Complaint>, Reply<Result<Verdict, ComplaintError>>),
    /// Asks for a stored write.
    Stored(Epoch, WriteName, Reply<Option<Submission>>),
    /// Asks for an epoch's transcript.
    Transcript(Epoch, Reply<Option<Transcript>>),
    /// Asks what to fetch.
    FetchList(Reply<FetchList>),
    /// Compares another server's digests of statements with those received here.
    Differs(Epoch, Vec<Vec<Digest>>, Reply<Vec<(Party, usize)>>),
    /// Time has passed.
    Tick,
    /// A computation has finished.
    Done(Box<WorkResult>),
    /// The auditor has checked a share.
    Checked(CheckedShare),
    /// The process stops.
    Stop,
}

/// The items to fetch from the other servers.
#[derive(Default)]
pub struct FetchList {
    /// Statements: the server, the epoch and the first index.
    pub statements: Vec<(Party, Epoch, usize)>,
    /// Missing writes, and the databases that have them.
    pub writes: Vec<(Vec<Party>, Epoch, WriteName)>,
    /// Missing shares.
    pub shares: Vec<(Party, Epoch)>,
    /// The keys that databases reveal to the auditor.
    pub reveals: Vec<(Party, Epoch)>,
    /// Epochs for which servers compare the statements they have received.
    pub compared: Vec<Epoch>,
}

/// The admission of writers.
pub type Admitter = dyn Admission + Send;

/// The role.
pub enum Server {
    /// A database, and its admission of writers.
    Database(Box<Database>, Box<Admitter>),
    /// The auditor.
    Auditor(Box<Auditor>),
}

/// The state of the thread.
pub struct Engine {
    /// The role.
    pub server: Server,
    /// Its ledger.
    pub ledger: ErasingLedger,
    /// The items it publishes.
    pub outbox: Outbox,
    /// The board.
    pub board: Board,
    /// Randomness.
    pub rng: ChaCha20Rng,
    /// Takes the results of computations.
    pub own: Handle<Call>,
    /// Knocks that are not durable yet, and who waits for an answer.
    pub knocks: Vec<KnockReply>,
}

/// The answer to a knock.
pub type KnockReply = (Result<(), SubmissionError>, Reply<Result<(), SubmissionError>>);

/// A write and its source.
type WaitingWrite = (Box<Submission>, Source);

enum Source {
    /// Its writer, which waits for a receipt.
    Writer(Reply<Result<Signed<Receipt>, SubmissionError>>),
    /// Another database, which forwarded it.
    Database(Party),
}

impl engine::Engine for Engine {
    type Call = Call;
    type Error = LedgerError;

    fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, LedgerError> {
        let mut writes: Vec<WaitingWrite> = Vec::new();
        for call in calls {
            match call {
                Call::Submit(submission, reply) => {
                    writes.push((submission, Source::Writer(reply)));
                }
                Call::Forwarded(from, submission) => {
                    writes.push((submission, Source::Database(from)));
                }
                Call::Stop => {
                    self.take(writes)?;
                    self.stop()?;
                    return Ok(ControlFlow::Break(()));
                }
                call => {
                    self.take(std::mem::take(&mut writes))?;
                    self.one(call)?;
                }
            }
        }
        self.take(writes)?;
        self.advance()?;
        self.compute();
        Ok(ControlFlow::Continue(()))
    }
}

impl Engine {
    /// Handles writes in one commit.
    fn take(&mut self, writes: Vec<WaitingWrite>) -> Result<(), LedgerError> {
        let (mut steps, mut replies) = (Vec::new(), Vec::new());
        for (submission, source) in writes {
            let Server::Database(database, members) = &mut self.server else { continue };
            let taken = match &source {
                Source::Writer(_) => database.handle_submission(*submission, now(), members),
                Source::Database(from) => database.handle_forwarded(*submission, *from, members),
            };
            match (taken, source) {
                (Ok(step), source) => {
                    steps.push(step);
                    replies.push(source);
                }
                (Err(refused), Source::Writer(reply)) => drop(reply.send(Err(refused))),
                (Err(refused), Source::Database(from)) => {
                    tracing::warn!(%refused, %from, "rejected a forwarded write");
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

    fn one(&mut self, call: Call) -> Result<(), LedgerError> {
        match call {
            Call::Hear(by, epoch, said) => return self.hear(by, epoch, &said),
            Call::Judge(complaint, reply) => return self.judge(&complaint, reply),
            Call::Reveal(by, epoch, reveal) => return self.reveal(by, epoch, &reveal),
            Call::Checked(done) => {
                if let Server::Auditor(auditor) = &mut self.server {
                    auditor.handle_check(&done);
                }
            }
            Call::FetchList(reply) => drop(reply.send(self.wants())),
            Call::Differs(epoch, theirs, reply) => drop(reply.send(self.differs(epoch, &theirs))),
            Call::Transcript(epoch, reply) => drop(reply.send(self.transcript(epoch).cloned())),
            call => {
                let Server::Database(database, members) = &mut self.server else { return Ok(()) };
                match call {
                    Call::Knock(epoch, ticket, reply) => {
                        let taken = database.handle_knock(epoch, &ticket, now(), members);
                        // Nothing is answered before the poll below has made it durable.
                        self.knocks.push((taken, reply));
                    }
                    Call::Share(by, epoch, share) => {
                        if let Err(error) = database.handle_share(share, by, epoch) {
                            tracing::warn!(%error, %by, "rejected a share");
                        }
                    }
                    Call::Stored(epoch, name, reply) => {
                        let _ = reply.send(database.submission(epoch, &name).cloned());
                    }
                    Call::Done(done) => database.handle_result(*done),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Marks the end as orderly.
    fn stop(&mut self) -> Result<(), LedgerError> {
        match &self.server {
            Server::Database(database, _) => database.stop().commit(&mut self.ledger),
            Server::Auditor(_) => Ok(()),
        }
    }

    fn reveal(
        &mut self,
        by: Party,
        epoch: Epoch,
        reveal: &Signed<Reveal>,
    ) -> Result<(), LedgerError> {
        let Server::Auditor(auditor) = &mut self.server else { return Ok(()) };
        match auditor.handle_reveal(reveal, by, epoch) {
            Ok(step) => step.commit(&mut self.ledger),
            Err(error) => {
                tracing::warn!(%error, %by, "rejected a reveal");
                Ok(())
            }
        }
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
                (Server::Database(database, _), _) => {
                    database.handle_statement(said, by, epoch).map(|step| {
                        step.commit(&mut self.ledger).map(|outputs| self.outbox.put_out(outputs))
                    })
                }
                (Server::Auditor(auditor), Party::Database(side)) => {
                    auditor.handle_statement(said, side, epoch, now()).map(|step| {
                        let said = step.commit(&mut self.ledger);
                        said.map(|said| said.into_iter().for_each(|said| self.outbox.say(said)))
                    })
                }
                (Server::Auditor(_), Party::Auditor | Party::Server(_)) => return Ok(()),
            };
            match heard {
                Ok(committed) => committed?,
                Err(error) => {
                    tracing::debug!(%error, %by, "rejected a statement");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// For each server, the index of the first statement that differs from the one received here.
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
        reply: Reply<Result<Verdict, ComplaintError>>,
    ) -> Result<(), LedgerError> {
        let Server::Auditor(auditor) = &mut self.server else { return Ok(()) };
        let judged = match auditor.handle_complaint(complaint) {
            Ok(step) => {
                let (verdict, said) = step.commit(&mut self.ledger)?;
                said.into_iter().for_each(|said| self.outbox.say(said));
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
                while let Some(step) = database.poll(now(), &mut self.rng) {
                    self.outbox.put_out(step.commit(&mut self.ledger)?);
                }
                for (taken, reply) in self.knocks.drain(..) {
                    let _ = reply.send(taken);
                }
            }
            Server::Auditor(auditor) => {
                while let Some(step) = auditor.poll(now(), &mut self.rng) {
                    self.outbox.say(step.commit(&mut self.ledger)?);
                }
            }
        }
        Ok(())
    }

    /// Starts pending computations, each on its own thread.
    fn compute(&mut self) {
        match &mut self.server {
            Server::Database(database, _) => {
                while let Some(work) = database.next_work() {
                    let own = self.own.clone();
                    std::thread::spawn(move || match work.run() {
                        Ok(done) => own.tell_blocking(Call::Done(Box::new(done))),
                        Err(error) => {
                            tracing::error!(%error, "the audit failed; the epoch will be burnt");
                        }
                    });
                }
            }
            Server::Auditor(auditor) => {
                while let Some(check) = auditor.next_check() {
                    let own = self.own.clone();
                    std::thread::spawn(move || own.tell_blocking(Call::Checked(check.run())));
                }
            }
        }
    }

    /// The items of the last epochs that this server lacks.
    fn wants(&self) -> FetchList {
        let mut wants = FetchList::default();
        let Some(current) = self.board.schedule.epoch_at(now()) else { return wants };
        let own = match &self.server {
            Server::Database(database, _) => {
                for epoch in database.unfinished_epochs() {
                    let missing = next_of_each(database.missing_writes(epoch), BATCH);
                    let listed = missing.map(|(name, from)| (from, epoch, name));
                    wants.writes.extend(listed);
                    let shares = database.missing_shares(epoch).into_iter();
                    wants.shares.extend(shares.map(|by| (by, epoch)));
                }
                let first = database.transcript(current).is_some();
                first.then_some(current)
            }
            Server::Auditor(auditor) => {
                wants.reveals.extend(auditor.awaited_reveals().map(|(epoch, by)| (by, epoch)));
                Some(current)
            }
        };
        for number in current.0.saturating_sub(PAST_EPOCHS)..=own.map_or(0, |epoch| epoch.0) {
            let epoch = Epoch(number);
            if self.transcript(epoch).is_some() {
                wants.compared.push(epoch);
            }
            for of in self.board.parties().iter().copied() {
                let heard = self.transcript(epoch).map_or(0, |t| t.statement_count(of));
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

/// Of writes and the servers that list each, the next so many of every server. Names that one server
/// has made up take no place from the writes that others list.
fn next_of_each(
    missing: Vec<(WriteName, Vec<Party>)>,
    many: usize,
) -> impl Iterator<Item = (WriteName, Vec<Party>)> {
    let mut taken: BTreeMap<Party, usize> = BTreeMap::new();
    missing.into_iter().filter(move |(_, from)| {
        let is_next = from.iter().any(|by| taken.get(by).is_none_or(|taken| *taken < many));
        if is_next {
            from.iter().for_each(|by| *taken.entry(*by).or_default() += 1);
        }
        is_next
    })
}

/// Whether a server has published its last statement of an epoch.
fn over(transcript: &Transcript, of: Party) -> bool {
    let last = of != Party::Auditor && transcript.published_table(of).is_some();
    last || transcript.abort_reason(of).is_some() || transcript.agreed_table().is_some()
}

fn now() -> Timestamp {
    Timestamp(clock::now().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One server's made-up names come before all others in order, and there are more than a batch.
    #[test]
    fn made_up_names_do_not_hold_up_the_writes_of_others() {
        let name = |n: u8| WriteName(Digest([n; 32]));
        let (liar, honest) = (Party::Server(1), Party::Server(2));
        let made_up = (0..10).map(|n| (name(n), vec![liar]));
        let shared = (10..12).map(|n| (name(n), vec![liar, honest]));
        let own = (12..20).map(|n| (name(n), vec![honest]));
        let next = next_of_each(made_up.chain(shared).chain(own).collect(), 4);
        let names: Vec<WriteName> = next.map(|(name, _)| name).collect();
        let expected: Vec<WriteName> = (0..4).chain(10..14).map(name).collect();
        assert_eq!(names, expected);
    }
}
