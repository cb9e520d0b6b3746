//! Three servers and their writers in one process, with faults between them.

use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::auditor::{Auditor, Verdict};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, Epoch, Party, Schedule, Servers,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{
    Body, Complaint, PublishedStatement, Reveal, Statement, Submission,
};
use alpheus_anonymous_board::reader::{ReadError, Reading, read};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, PendingWrite, Receipts, View};
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// A different statement that one server makes to one receiver.
pub(crate) type Version = Box<dyn FnMut(&Transcript, &mut Body)>;

pub(crate) struct Town {
    pub(crate) board: Board,
    pub(crate) now: Timestamp,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) databases: [Database; 2],
    pub(crate) auditor: Auditor,
    pub(crate) ledgers: [Ledger; 3],
    /// Each server's statements, in order.
    pub(crate) statements: [Vec<Signed<Statement>>; 3],
    pub(crate) shares: [Option<Arc<Vec<u8>>>; 2],
    pub(crate) tables: [Option<Arc<Vec<u8>>>; 2],
    /// The keys that databases have revealed to the auditor.
    pub(crate) reveals: [Option<Arc<Signed<Reveal>>>; 2],
    pub(crate) members: Members,
    /// Number of commits between restarts of a database. `None` means no restarts.
    pub(crate) restarts: Option<usize>,
    pub(crate) commits: usize,
    /// This database gets no share yet.
    pub(crate) withheld: Option<Side>,
    /// This database accepts no forwarded writes.
    pub(crate) deaf: Option<Side>,
    /// Sender, receiver and the changed statement.
    pub(crate) versions: Vec<(Party, Party, Version)>,
    /// Whether servers forward the statements of others.
    pub(crate) relaying: bool,
    /// Whether a liar believes its lie and continues from there.
    pub(crate) believes_lies: bool,
    /// The auditor gets no reveal.
    pub(crate) unrevealed: bool,
    /// The auditor is killed after each commit.
    pub(crate) auditor_restarts: bool,
    /// This database adds noise to its share before it latches.
    pub(crate) garbles: Option<Side>,
}

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([number; 32]))
}

pub(crate) fn server(party: Party) -> SigningKey {
    key(200 + party.index() as u8)
}

fn members(number: u8) -> Members {
    Members::new((0..number).map(|i| key(i).verifying_key()))
}

pub(crate) fn configuration(writers: u32, rows: u32) -> Configuration {
    Configuration {
        board: [7; 32],
        format: Format::RECOVERED,
        rows,
        writers,
        min_writes: 2,
        schedule: Schedule {
            start: Timestamp(1_000 * SECOND),
            length: Span::seconds(60),
            complaints: Span::seconds(10),
            patience: Span::seconds(30),
        },
        servers: Servers::Audited(Party::ALL.map(|party| server(party).verifying_key())),
        admission: members(100).digest(),
    }
}

pub(crate) fn pinned(configuration: &Configuration) -> Board {
    let operator = key(255);
    Board::open(&Signed::new(configuration, &operator), &operator.verifying_key()).unwrap()
}

impl Town {
    pub(crate) fn new(writers: u32, rows: u32, seed: u8) -> Self {
        Self::of(&configuration(writers, rows), seed)
    }

    pub(crate) fn of(configuration: &Configuration, seed: u8) -> Self {
        let board = pinned(configuration);
        let now = Timestamp(1_000 * SECOND + 1);
        let database = |side| {
            let key = server(Party::Database(side));
            Database::restore(&board, side, key, StateOrigin::New, [], now).unwrap().0
        };
        let auditor =
            Auditor::restore(&board, server(Party::Auditor), StateOrigin::New, [], now).unwrap().0;
        let mut town = Self {
            databases: [database(Side::First), database(Side::Second)],
            auditor,
            board,
            now,
            rng: ChaCha20Rng::from_seed([seed; 32]),
            ledgers: Default::default(),
            statements: Default::default(),
            shares: Default::default(),
            tables: Default::default(),
            reveals: Default::default(),
            members: members(100),
            restarts: None,
            commits: 0,
            withheld: None,
            deaf: None,
            versions: Vec::new(),
            relaying: false,
            believes_lies: false,
            garbles: None,
            unrevealed: false,
            auditor_restarts: false,
        };
        town.turn();
        town
    }

    /// The transcript that everybody can read.
    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new(&self.board, Epoch(0));
        for party in Party::ALL {
            for said in &self.statements[party.index()] {
                let _ = transcript.record(party, said);
            }
        }
        transcript
    }

    pub(crate) fn write(&mut self, member: u8, content: Content) -> (PendingWrite, Submission) {
        let view = View::open(&self.board, &self.transcript()).unwrap();
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        view.write(content, tag, |name| Members::ticket(&key, name), &mut self.rng).unwrap()
    }

    pub(crate) fn submit(
        &mut self,
        side: Side,
        submission: &Submission,
    ) -> Result<(), SubmissionError> {
        self.receipt(side, submission).map(|_| ())
    }

    pub(crate) fn receipt(
        &mut self,
        side: Side,
        submission: &Submission,
    ) -> Result<Signed<alpheus_anonymous_board::messages::Receipt>, SubmissionError> {
        let i = side.index();
        let step =
            self.databases[i].handle_submission(submission.clone(), self.now, &self.members)?;
        Ok(self.commit(side, step))
    }

    /// Posts to both databases, as an honest writer does.
    pub(crate) fn post(
        &mut self,
        member: u8,
        content: Content,
    ) -> (PendingWrite, Submission, Receipts) {
        let (written, submission) = self.write(member, content);
        let receipts = Side::BOTH.map(|side| self.receipt(side, &submission).unwrap());
        let received = written.handle_receipts(receipts).unwrap();
        (written, submission, received)
    }

    pub(crate) fn commit<T>(&mut self, side: Side, step: Step<T>) -> T {
        let released = step.commit(&mut self.ledgers[side.index()]).unwrap();
        self.commits += 1;
        if self.restarts.is_some_and(|every| self.commits.is_multiple_of(every)) {
            self.restart(side, StateOrigin::Intact);
        }
        released
    }

    /// Kills a database and restores it from its ledger.
    pub(crate) fn restart(&mut self, side: Side, origin: StateOrigin) {
        let i = side.index();
        let key = server(Party::Database(side));
        let records = self.ledgers[i].clone();
        let (database, step) =
            Database::restore(&self.board, side, key, origin, records, self.now).unwrap();
        self.databases[i] = database;
        // It repeats its statements, and may add some.
        self.statements[i].clear();
        let outputs = step.commit(&mut self.ledgers[i]).unwrap();
        outputs.into_iter().for_each(|output| self.publish(side, output));
    }

    /// Commits a step and publishes its outputs.
    pub(crate) fn accept(&mut self, side: Side, step: Step<Vec<Output>>) {
        let outputs = self.commit(side, step);
        outputs.into_iter().for_each(|output| self.publish(side, output));
    }

    fn publish(&mut self, side: Side, output: Output) {
        let i = side.index();
        match output {
            // Forwarded statements are in its transcript.
            Output::Statement(said) if said.by == Party::Database(side) => {
                self.statements[i].push(said.signed);
            }
            Output::Statement(_) => {}
            Output::Share(_, share) => {
                if let Some(before) = &self.shares[i] {
                    assert!(*before == share, "another share left");
                }
                self.shares[i] = Some(share);
            }
            // A share that was sent stays known.
            Output::ShareRemoved(_) => {}
            Output::Table(_, table) => self.tables[i] = Some(table),
            Output::Reveal(_, reveal) => {
                if let Some(before) = &self.reveals[i] {
                    assert!(*before == reveal, "another reveal left");
                }
                assert!(self.reveals[1 - i].is_none(), "both databases' keys were revealed");
                self.reveals[i] = Some(reveal);
            }
        }
    }

    /// When some server is next due to be polled.
    pub(crate) fn deadline(&self) -> Timestamp {
        let databases = self.databases.iter().filter_map(Database::deadline);
        databases.chain(self.auditor.deadline()).min().unwrap()
    }

    pub(crate) fn later(&mut self, seconds: u64) {
        self.now.0 += seconds * SECOND;
    }

    /// Polls one database alone, with a clock that is ahead.
    pub(crate) fn ahead(&mut self, side: Side, seconds: u64) {
        let now = Timestamp(self.now.0 + seconds * SECOND);
        while let Some(step) = self.databases[side.index()].poll(now, &mut self.rng) {
            self.accept(side, step);
        }
    }

    pub(crate) fn turn(&mut self) {
        self.turn_with(&mut |_, _, _| ());
    }

    /// Lets everybody act and receive until nothing changes. `lie` may change a statement before
    /// the others receive it.
    pub(crate) fn turn_with(&mut self, lie: &mut dyn FnMut(Party, &Transcript, &mut Body)) {
        let mut still = 0;
        while still < 3 {
            let before = self.statements.each_ref().map(Vec::len);
            for side in Side::BOTH {
                self.act(side, lie);
                self.receive(side);
            }
            self.run_auditor(lie);
            // The last statements received may still cause work.
            let moved = self.statements.each_ref().map(Vec::len) != before;
            still = if moved { 0 } else { still + 1 };
        }
    }

    fn act(&mut self, side: Side, lie: &mut dyn FnMut(Party, &Transcript, &mut Body)) {
        let i = side.index();
        while let Some(work) = self.databases[i].next_work() {
            let done = work.run().unwrap();
            self.databases[i].handle_result(done);
        }
        loop {
            let (now, rng) = (self.now, &mut self.rng);
            let Some(step) = self.databases[i].poll(now, rng) else { return };
            for output in self.commit(side, step) {
                let Output::Statement(spoken) = output else {
                    self.publish(side, output);
                    continue;
                };
                if self.garbles == Some(side) && self.garble(side, &spoken) {
                    continue;
                }
                let honest = spoken.signed.clone();
                let said = self.with_lie(Party::Database(side), honest.clone(), lie);
                if said != honest && self.believes_lies {
                    self.adopt_lie(side, &honest, &said);
                } else if !self.statements[i].contains(&said) {
                    self.publish(
                        side,
                        Output::Statement(PublishedStatement { signed: said, ..spoken }),
                    );
                }
            }
        }
    }

    /// Replaces the truth by the lie in the liar's ledger.
    fn adopt_lie(&mut self, side: Side, honest: &Signed<Statement>, said: &Signed<Statement>) {
        let honest = postcard::to_allocvec(honest).unwrap();
        let lie = postcard::to_allocvec(said).unwrap();
        let ledger = &mut self.ledgers[side.index()];
        ledger.values_mut().filter(|value| **value == honest).for_each(|v| v.clone_from(&lie));
        self.restart(side, StateOrigin::Intact);
    }

    /// Adds noise to the share that the latch binds the database to. False for other statements.
    fn garble(&mut self, side: Side, spoken: &PublishedStatement) -> bool {
        let key = self.board.key(Party::Database(side)).unwrap();
        let mut statement = spoken.signed.open(key).unwrap().into_inner();
        let Body::Latch { set, share: digest, .. } = &mut statement.body else { return false };
        let ledger = &mut self.ledgers[side.index()];
        let (_, share) = ledger.iter_mut().find(|(key, _)| key.get(8) == Some(&b'm')).unwrap();
        let width = self.board.shape().width();
        share.chunks_exact_mut(width).step_by(2).for_each(|row| row[5] ^= 0x55);
        *digest = Transcript::share_digest(side, set, share);
        let lie = Signed::new(&statement, &server(Party::Database(side)));
        self.adopt_lie(side, &spoken.signed, &lie);
        true
    }

    fn with_lie(
        &self,
        by: Party,
        said: Signed<Statement>,
        lie: &mut dyn FnMut(Party, &Transcript, &mut Body),
    ) -> Signed<Statement> {
        let mut statement = said.open(self.board.key(by).unwrap()).unwrap().into_inner();
        let honest = statement.body.clone();
        lie(by, &self.transcript(), &mut statement.body);
        if statement.body == honest { said } else { Signed::new(&statement, &server(by)) }
    }

    /// The statements of `by` that `to` receives, with relaying also those that the third server
    /// received.
    fn statements_for(&mut self, by: Party, to: Party) -> Vec<Signed<Statement>> {
        let said = self.statements[by.index()].clone();
        let has_version = self.versions.iter().any(|version| (version.0, version.1) == (by, to));
        if !has_version && !self.relaying {
            return said;
        }
        let transcript = self.transcript();
        let mut versions = std::mem::take(&mut self.versions);
        let mut received: Vec<_> = said
            .into_iter()
            .map(|said| {
                let mut statement = said.open(self.board.key(by).unwrap()).unwrap().into_inner();
                let honest = statement.body.clone();
                for (_, _, version) in versions.iter_mut().filter(|v| (v.0, v.1) == (by, to)) {
                    version(&transcript, &mut statement.body);
                }
                let same = statement.body == honest;
                if same { said } else { Signed::new(&statement, &server(by)) }
            })
            .collect();
        self.versions = versions;
        let third = Party::ALL.into_iter().find(|party| *party != by && *party != to);
        if let (true, Some(third)) = (self.relaying, third) {
            let heard = match third {
                Party::Auditor => self.auditor.transcript(Epoch(0)),
                Party::Database(side) => self.databases[side.index()].transcript(Epoch(0)),
                Party::Server(_) => None,
            };
            received.extend(heard.into_iter().flat_map(|heard| heard.statements(by)).cloned());
        }
        received
    }

    fn receive(&mut self, side: Side) {
        let i = side.index();
        for party in [Party::Database(side.other()), Party::Auditor] {
            for said in self.statements_for(party, Party::Database(side)) {
                if let Ok(step) = self.databases[i].handle_statement(&said, party, Epoch(0)) {
                    let outputs = self.commit(side, step);
                    outputs.into_iter().for_each(|output| self.publish(side, output));
                }
            }
        }
        let deaf = self.deaf == Some(side);
        let missing = if deaf { Vec::new() } else { self.databases[i].missing_writes(Epoch(0)) };
        for (name, _) in missing {
            let other = &self.databases[side.other().index()];
            let Some(submission) = other.submission(Epoch(0), &name).cloned() else { continue };
            if let Ok(step) =
                self.databases[i].handle_forwarded(submission, side.other(), &self.members)
            {
                self.commit(side, step);
            }
        }
        if self.withheld != Some(side)
            && !self.databases[i].missing_shares(Epoch(0)).is_empty()
            && let Some(share) = &self.shares[1 - i]
        {
            let _ = self.databases[i].handle_share(share.to_vec(), side.other(), Epoch(0));
        }
    }

    fn run_auditor(&mut self, lie: &mut dyn FnMut(Party, &Transcript, &mut Body)) {
        for side in Side::BOTH {
            for said in self.statements_for(Party::Database(side), Party::Auditor) {
                if let Ok(step) = self.auditor.handle_statement(&said, side, Epoch(0), self.now) {
                    step.commit(&mut self.ledgers[2]).unwrap();
                }
            }
        }
        self.check_share();
        while let Some(step) = self.auditor.poll(self.now, &mut self.rng) {
            let said = step.commit(&mut self.ledgers[2]).unwrap();
            let said = self.with_lie(Party::Auditor, said.signed, lie);
            self.statements[2].push(said);
            if self.auditor_restarts {
                self.restart_auditor();
            }
        }
    }

    /// Kills the auditor and restores it from its ledger.
    pub(crate) fn restart_auditor(&mut self) {
        let (key, records) = (server(Party::Auditor), self.ledgers[2].clone());
        let origin = StateOrigin::Intact;
        let restored = Auditor::restore(&self.board, key, origin, records, self.now);
        self.auditor = restored.unwrap().0;
    }

    /// Polls the auditor alone.
    pub(crate) fn auditor_alone(&mut self) {
        self.run_auditor(&mut |_, _, _| ());
    }

    /// Gives the auditor what it needs for its check of a share, and lets it check.
    pub(crate) fn check_share(&mut self) {
        let awaited: Vec<_> = self.auditor.awaited_reveals().collect();
        for (epoch, by) in awaited {
            if let Some(reveal) = self.reveals[by.index()].as_ref().filter(|_| !self.unrevealed) {
                let step = self.auditor.handle_reveal(reveal, by, epoch).unwrap();
                step.commit(&mut self.ledgers[2]).unwrap();
            }
        }
        while let Some(check) = self.auditor.next_check() {
            self.auditor.handle_check(&check.run());
        }
    }

    pub(crate) fn complain(&mut self, complaint: &Complaint) -> Verdict {
        let step = self.auditor.handle_complaint(complaint).unwrap();
        let (verdict, said) = step.commit(&mut self.ledgers[2]).unwrap();
        self.statements[2].extend(said.map(|said| said.signed));
        verdict
    }

    /// Runs from the end of the epoch to its table.
    pub(crate) fn finish(&mut self) -> Result<Reading, ReadError> {
        self.later(61);
        self.turn();
        self.later(11);
        self.turn();
        self.read()
    }

    pub(crate) fn read(&self) -> Result<Reading, ReadError> {
        let table = self.tables.iter().flatten().next().cloned().unwrap_or_default();
        read(&self.board, &self.transcript(), &table)
    }
}
