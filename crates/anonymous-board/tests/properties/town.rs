//! Three servers and their writers in one process, and what may go wrong between
//! them.

use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::auditor::{Auditor, Verdict};
use alpheus_anonymous_board::configuration::{
    Configuration, Epoch, Party, Pinned, Schedule, Servers, Time,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::error::Refused;
use alpheus_anonymous_board::messages::{Complaint, Spoken, Statement, Submission, What};
use alpheus_anonymous_board::reader::{NotRead, Reading, read};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, Received, View, Written};
use alpheus_crypto::ledger::{Log, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) type Ledger = BTreeMap<Vec<u8>, Vec<u8>>;

/// What one server says to one hearer instead of what it says to the others.
pub(crate) type Version = Box<dyn FnMut(&Transcript, &mut What)>;

pub(crate) struct Town {
    pub(crate) board: Pinned,
    pub(crate) now: Time,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) databases: [Database; 2],
    pub(crate) auditor: Auditor,
    pub(crate) ledgers: [Ledger; 3],
    /// What each server has said, in its order.
    pub(crate) said: [Vec<Signed<Statement>>; 3],
    pub(crate) shares: [Option<Arc<Vec<u8>>>; 2],
    pub(crate) tables: [Option<Arc<Vec<u8>>>; 2],
    pub(crate) members: Members,
    /// Commits until the next restart of a database; none for no restarts.
    pub(crate) restarts: Option<usize>,
    pub(crate) commits: usize,
    /// This database gets no share yet.
    pub(crate) withheld: Option<Side>,
    /// This database takes no write that the other one has handed on.
    pub(crate) deaf: Option<Side>,
    /// Who says to whom something else.
    pub(crate) versions: Vec<(Party, Party, Version)>,
    /// Whether servers hand on what they have heard of others.
    pub(crate) relaying: bool,
    /// A liar believes what it says and goes on from there.
    pub(crate) convinced: bool,
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
        fewest: 2,
        schedule: Schedule {
            start: Time(1_000 * SECOND),
            length: 60 * SECOND,
            complaints: 10 * SECOND,
            patience: 30 * SECOND,
        },
        servers: Servers::Audited(Party::ALL.map(|party| server(party).verifying_key())),
        admission: members(100).digest(),
    }
}

pub(crate) fn pinned(configuration: &Configuration) -> Pinned {
    let operator = key(255);
    Pinned::open(&Signed::new(configuration, &operator), &operator.verifying_key()).unwrap()
}

impl Town {
    pub(crate) fn new(writers: u32, rows: u32, seed: u8) -> Self {
        Self::of(&configuration(writers, rows), seed)
    }

    pub(crate) fn of(configuration: &Configuration, seed: u8) -> Self {
        let board = pinned(configuration);
        let now = Time(1_000 * SECOND + 1);
        let database = |side| {
            let key = server(Party::Database(side));
            Database::restore(&board, side, key, Log::New, [], now).unwrap().0
        };
        let auditor =
            Auditor::restore(&board, server(Party::Auditor), Log::New, [], now).unwrap().0;
        let mut town = Self {
            databases: [database(Side::First), database(Side::Second)],
            auditor,
            board,
            now,
            rng: ChaCha20Rng::from_seed([seed; 32]),
            ledgers: Default::default(),
            said: Default::default(),
            shares: Default::default(),
            tables: Default::default(),
            members: members(100),
            restarts: None,
            commits: 0,
            withheld: None,
            deaf: None,
            versions: Vec::new(),
            relaying: false,
            convinced: false,
        };
        town.turn();
        town
    }

    /// What everybody can read.
    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new(&self.board, Epoch(0));
        for party in Party::ALL {
            for said in &self.said[party.index()] {
                let _ = transcript.hear(party, said);
            }
        }
        transcript
    }

    pub(crate) fn write(&mut self, member: u8, content: Content) -> (Written, Submission) {
        let view = View::open(&self.board, &self.transcript()).unwrap();
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        view.write(content, tag, |name| Members::ticket(&key, name), &mut self.rng).unwrap()
    }

    pub(crate) fn submit(&mut self, side: Side, submission: &Submission) -> Result<(), Refused> {
        self.receipt(side, submission).map(|_| ())
    }

    pub(crate) fn receipt(
        &mut self,
        side: Side,
        submission: &Submission,
    ) -> Result<Signed<alpheus_anonymous_board::messages::Receipt>, Refused> {
        let i = side.index();
        let step = self.databases[i].submit(self.now, submission.clone(), &self.members)?;
        Ok(self.commit(side, step))
    }

    /// Posts to both databases, as an honest writer does.
    pub(crate) fn post(&mut self, member: u8, content: Content) -> (Written, Submission, Received) {
        let (written, submission) = self.write(member, content);
        let receipts = Side::BOTH.map(|side| self.receipt(side, &submission).unwrap());
        let received = written.received(receipts).unwrap();
        (written, submission, received)
    }

    pub(crate) fn commit<T>(&mut self, side: Side, step: Step<T>) -> T {
        let released = step.commit(&mut self.ledgers[side.index()]).unwrap();
        self.commits += 1;
        if self.restarts.is_some_and(|every| self.commits.is_multiple_of(every)) {
            self.restart(side, Log::Whole);
        }
        released
    }

    /// Kills a database and starts it from its ledger.
    pub(crate) fn restart(&mut self, side: Side, log: Log) {
        let i = side.index();
        let key = server(Party::Database(side));
        let records = self.ledgers[i].clone();
        let (database, step) =
            Database::restore(&self.board, side, key, log, records, self.now).unwrap();
        self.databases[i] = database;
        // What it says again is what it had said, and perhaps more.
        self.said[i].clear();
        let outputs = step.commit(&mut self.ledgers[i]).unwrap();
        outputs.into_iter().for_each(|output| self.put_out(side, output));
    }

    /// Commits a step and publishes what comes out.
    pub(crate) fn accept(&mut self, side: Side, step: Step<Vec<Output>>) {
        let outputs = self.commit(side, step);
        outputs.into_iter().for_each(|output| self.put_out(side, output));
    }

    fn put_out(&mut self, side: Side, output: Output) {
        let i = side.index();
        match output {
            // What it hands on of the others stands in its transcript.
            Output::Said(said) if said.by == Party::Database(side) => {
                self.said[i].push(said.signed);
            }
            Output::Said(_) => {}
            Output::Share(_, share) => {
                if let Some(before) = &self.shares[i] {
                    assert!(*before == share, "another share left");
                }
                self.shares[i] = Some(share);
            }
            // What has left is known to whoever asked.
            Output::NoShare(_) => {}
            Output::Table(_, table) => self.tables[i] = Some(table),
        }
    }

    pub(crate) fn later(&mut self, seconds: u64) {
        self.now.0 += seconds * SECOND;
    }

    /// Lets one database alone do what it would do by a clock that is ahead.
    pub(crate) fn ahead(&mut self, side: Side, seconds: u64) {
        let now = Time(self.now.0 + seconds * SECOND);
        while let Some(step) = self.databases[side.index()].advance(now, &mut self.rng) {
            self.accept(side, step);
        }
    }

    pub(crate) fn turn(&mut self) {
        self.turn_with(&mut |_, _, _| ());
    }

    /// Lets everybody do and hear whatever there is, until nothing moves; `lie` may
    /// change what a server says before the others hear it.
    pub(crate) fn turn_with(&mut self, lie: &mut dyn FnMut(Party, &Transcript, &mut What)) {
        let mut still = 0;
        while still < 3 {
            let before = self.said.each_ref().map(Vec::len);
            for side in Side::BOTH {
                self.let_work(side, lie);
                self.let_hear(side);
            }
            self.let_audit(lie);
            // What was heard last may still be worked on.
            let moved = self.said.each_ref().map(Vec::len) != before;
            still = if moved { 0 } else { still + 1 };
        }
    }

    fn let_work(&mut self, side: Side, lie: &mut dyn FnMut(Party, &Transcript, &mut What)) {
        let i = side.index();
        while let Some(work) = self.databases[i].work() {
            let done = work.run().unwrap();
            self.databases[i].worked(done);
        }
        loop {
            let (now, rng) = (self.now, &mut self.rng);
            let Some(step) = self.databases[i].advance(now, rng) else { return };
            for output in self.commit(side, step) {
                let Output::Said(spoken) = output else {
                    self.put_out(side, output);
                    continue;
                };
                let honest = spoken.signed.clone();
                let said = self.lied(Party::Database(side), honest.clone(), lie);
                if said != honest && self.convinced {
                    self.convince(side, &honest, &said);
                } else if !self.said[i].contains(&said) {
                    self.put_out(side, Output::Said(Spoken { signed: said, ..spoken }));
                }
            }
        }
    }

    /// Puts a lie into the liar's ledger in place of the truth.
    fn convince(&mut self, side: Side, honest: &Signed<Statement>, said: &Signed<Statement>) {
        let honest = postcard::to_allocvec(honest).unwrap();
        let lie = postcard::to_allocvec(said).unwrap();
        let ledger = &mut self.ledgers[side.index()];
        ledger.values_mut().filter(|value| **value == honest).for_each(|v| v.clone_from(&lie));
        self.restart(side, Log::Whole);
    }

    fn lied(
        &self,
        by: Party,
        said: Signed<Statement>,
        lie: &mut dyn FnMut(Party, &Transcript, &mut What),
    ) -> Signed<Statement> {
        let mut statement = said.open(self.board.key(by).unwrap()).unwrap().into_inner();
        let honest = statement.what.clone();
        lie(by, &self.transcript(), &mut statement.what);
        if statement.what == honest { said } else { Signed::new(&statement, &server(by)) }
    }

    /// What `to` hears of `by`, and with relays what the third one has heard of it.
    fn told(&mut self, by: Party, to: Party) -> Vec<Signed<Statement>> {
        let said = self.said[by.index()].clone();
        if self.versions.is_empty() && !self.relaying {
            return said;
        }
        let transcript = self.transcript();
        let mut versions = std::mem::take(&mut self.versions);
        let mut told: Vec<_> = said
            .into_iter()
            .map(|said| {
                let mut statement = said.open(self.board.key(by).unwrap()).unwrap().into_inner();
                let honest = statement.what.clone();
                for (_, _, version) in versions.iter_mut().filter(|v| (v.0, v.1) == (by, to)) {
                    version(&transcript, &mut statement.what);
                }
                let same = statement.what == honest;
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
            told.extend(heard.into_iter().flat_map(|heard| heard.statements(by)).cloned());
        }
        told
    }

    fn let_hear(&mut self, side: Side) {
        let i = side.index();
        for party in [Party::Database(side.other()), Party::Auditor] {
            for said in self.told(party, Party::Database(side)) {
                if let Ok(step) = self.databases[i].hear(party, Epoch(0), &said) {
                    let outputs = self.commit(side, step);
                    outputs.into_iter().for_each(|output| self.put_out(side, output));
                }
            }
        }
        let deaf = self.deaf == Some(side);
        let missing = if deaf { Vec::new() } else { self.databases[i].missing(Epoch(0)) };
        for (name, _) in missing {
            let other = &self.databases[side.other().index()];
            let Some(submission) = other.submission(Epoch(0), &name).cloned() else { continue };
            if let Ok(step) = self.databases[i].forwarded(side.other(), submission, &self.members) {
                self.commit(side, step);
            }
        }
        if self.withheld != Some(side)
            && !self.databases[i].wants_shares(Epoch(0)).is_empty()
            && let Some(share) = &self.shares[1 - i]
        {
            let _ = self.databases[i].hear_share(side.other(), Epoch(0), share.to_vec());
        }
    }

    fn let_audit(&mut self, lie: &mut dyn FnMut(Party, &Transcript, &mut What)) {
        for side in Side::BOTH {
            for said in self.told(Party::Database(side), Party::Auditor) {
                if let Ok(step) = self.auditor.hear(self.now, side, Epoch(0), &said) {
                    step.commit(&mut self.ledgers[2]).unwrap();
                }
            }
        }
        while let Some(step) = self.auditor.advance(self.now) {
            let said = step.commit(&mut self.ledgers[2]).unwrap();
            let said = self.lied(Party::Auditor, said.signed, lie);
            self.said[2].push(said);
        }
    }

    pub(crate) fn complain(&mut self, complaint: &Complaint) -> Verdict {
        let step = self.auditor.judge(complaint).unwrap();
        let (verdict, said) = step.commit(&mut self.ledgers[2]).unwrap();
        self.said[2].extend(said.map(|said| said.signed));
        verdict
    }

    /// From the end of the epoch to its table.
    pub(crate) fn finish(&mut self) -> Result<Reading, NotRead> {
        self.later(61);
        self.turn();
        self.later(11);
        self.turn();
        self.read()
    }

    pub(crate) fn read(&self) -> Result<Reading, NotRead> {
        let table = self.tables.iter().flatten().next().cloned().unwrap_or_default();
        read(&self.board, &self.transcript(), &table)
    }
}
