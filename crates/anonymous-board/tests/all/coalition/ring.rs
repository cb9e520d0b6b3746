//! Equal servers and their writers in one process, with faults between them.

use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, Epoch, Party, Schedule, Servers,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::error::SubmissionError;
use alpheus_anonymous_board::messages::{Body, Receipt, Statement, Submission};
use alpheus_anonymous_board::reader::{ReadError, Reading, read};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, PendingWrite, View};
use alpheus_crypto::ledger::{StateOrigin, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) const NOW: Epoch = Epoch(0);

/// A changed statement, to everybody or to one receiver.
pub(crate) type Lie<'a> = dyn FnMut(usize, &Transcript, &mut Body) + 'a;
/// Sender, receiver and the changed statement.
pub(crate) type Version = (usize, usize, Box<dyn FnMut(&Transcript, &mut Body)>);

pub(crate) struct Ring {
    pub(crate) board: Board,
    pub(crate) now: Timestamp,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) servers: Vec<Database>,
    pub(crate) ledgers: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Each server's statements, in order.
    pub(crate) statements: Vec<Vec<Signed<Statement>>>,
    pub(crate) shares: Vec<Option<Arc<Vec<u8>>>>,
    pub(crate) tables: Vec<Option<Arc<Vec<u8>>>>,
    pub(crate) members: Members,
    /// Number of commits between restarts of a server. `None` means no restarts.
    pub(crate) restarts: Option<usize>,
    commits: usize,
    /// A server that is killed after so many commits.
    pub(crate) killed: Option<(usize, usize)>,
    /// The transcript that everybody can read, as of the last call.
    cached: RefCell<Transcript>,
    /// The server whose share nobody receives.
    pub(crate) withheld: Option<usize>,
    /// A sender whose statements a receiver does not get.
    pub(crate) muted: Option<(usize, usize)>,
    /// Servers that fetch neither writes nor shares of others.
    pub(crate) idle: Vec<usize>,
    pub(crate) versions: Vec<Version>,
}

pub(crate) fn key(number: usize) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([number as u8; 32]))
}

pub(crate) fn server(place: usize) -> SigningKey {
    key(200 + place)
}

fn members() -> Members {
    Members::new((0..100).map(|i| key(i).verifying_key()))
}

pub(crate) fn configuration(servers: usize, rows: u32) -> Configuration {
    Configuration {
        board: [7; 32],
        format: Format { max_message: 40, recovery: true },
        rows,
        writers: 20,
        min_writes: 2,
        schedule: Schedule {
            start: Timestamp(1_000 * SECOND),
            length: Span::seconds(60),
            complaints: Span::seconds(10),
            patience: Span::seconds(30),
        },
        servers: Servers::Coalition((0..servers).map(|i| server(i).verifying_key()).collect()),
        admission: members().digest(),
    }
}

pub(crate) fn pinned(configuration: &Configuration) -> Board {
    let operator = key(255);
    Board::open(&Signed::new(configuration, &operator), &operator.verifying_key()).unwrap()
}

pub(crate) fn party(place: usize) -> Party {
    Party::Server(place as u8)
}

impl Ring {
    pub(crate) fn new(servers: usize, rows: u32, seed: u8) -> Self {
        Self::of(&configuration(servers, rows), seed)
    }

    pub(crate) fn of(configuration: &Configuration, seed: u8) -> Self {
        let mut ring = Self::started(configuration, seed);
        ring.turn();
        ring
    }

    /// Servers before any has begun.
    pub(crate) fn started(configuration: &Configuration, seed: u8) -> Self {
        let board = pinned(configuration);
        let now = Timestamp(configuration.schedule.start.0 + 1);
        let many = board.parties().len();
        let start = |i| {
            Database::restore(&board, party(i), server(i), StateOrigin::New, [], now).unwrap().0
        };
        Self {
            servers: (0..many).map(start).collect(),
            now,
            rng: ChaCha20Rng::from_seed([seed; 32]),
            ledgers: vec![BTreeMap::new(); many],
            statements: vec![Vec::new(); many],
            shares: vec![None; many],
            tables: vec![None; many],
            members: members(),
            restarts: None,
            commits: 0,
            killed: None,
            cached: RefCell::new(Transcript::new(&board, NOW)),
            withheld: None,
            muted: None,
            idle: Vec::new(),
            versions: Vec::new(),
            board,
        }
    }

    pub(crate) fn many(&self) -> usize {
        self.servers.len()
    }

    /// The transcript that everybody can read.
    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = self.cached.borrow_mut();
        for (i, said) in self.statements.iter().enumerate() {
            for said in said.iter().skip(transcript.statement_count(party(i))) {
                let _ = transcript.record(party(i), said);
            }
        }
        transcript.clone()
    }

    pub(crate) fn write(&mut self, member: usize, content: Content) -> (PendingWrite, Submission) {
        let view = View::open(&self.board, &self.transcript()).unwrap();
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        view.write(content, tag, |name| Members::ticket(&key, name), &mut self.rng).unwrap()
    }

    pub(crate) fn submit(
        &mut self,
        i: usize,
        submission: &Submission,
    ) -> Result<Signed<Receipt>, SubmissionError> {
        let step =
            self.servers[i].handle_submission(submission.clone(), self.now, &self.members)?;
        Ok(self.commit(i, step))
    }

    /// Posts to all servers, as an honest writer does.
    pub(crate) fn post(&mut self, member: usize, content: Content) -> (PendingWrite, Submission) {
        let (written, submission) = self.write(member, content);
        let receipts: Vec<_> =
            (0..self.many()).map(|i| self.submit(i, &submission).unwrap()).collect();
        written.handle_receipts(receipts).unwrap();
        (written, submission)
    }

    pub(crate) fn commit<T>(&mut self, i: usize, step: Step<T>) -> T {
        let released = step.commit(&mut self.ledgers[i]).unwrap();
        self.commits += 1;
        if self.restarts.is_some_and(|every| self.commits.is_multiple_of(every)) {
            self.restart(i, StateOrigin::Intact);
        }
        match &mut self.killed {
            Some((victim, 0)) if *victim == i => {
                self.killed = None;
                self.kill(i);
            }
            Some((victim, left)) if *victim == i => *left -= 1,
            _ => {}
        }
        released
    }

    /// Ends a server in an orderly way and restores it from its ledger.
    pub(crate) fn restart(&mut self, i: usize, origin: StateOrigin) {
        self.servers[i].stop().commit(&mut self.ledgers[i]).unwrap();
        self.start_again(i, origin);
    }

    /// Kills a server and restores it from its ledger.
    pub(crate) fn kill(&mut self, i: usize) {
        self.start_again(i, StateOrigin::Intact);
    }

    /// The same, and nobody receives what it repeats.
    pub(crate) fn kill_quietly(&mut self, i: usize) {
        let records = self.ledgers[i].clone();
        let origin = StateOrigin::Intact;
        let restored =
            Database::restore(&self.board, party(i), server(i), origin, records, self.now).unwrap();
        self.servers[i] = restored.0;
        restored.1.commit(&mut self.ledgers[i]).unwrap();
    }

    fn start_again(&mut self, i: usize, origin: StateOrigin) {
        let records = self.ledgers[i].clone();
        let restored =
            Database::restore(&self.board, party(i), server(i), origin, records, self.now).unwrap();
        self.servers[i] = restored.0;
        let before = std::mem::take(&mut self.statements[i]);
        let outputs = restored.1.commit(&mut self.ledgers[i]).unwrap();
        outputs.into_iter().for_each(|output| self.publish(i, output));
        // It repeats its statements, and may add some.
        assert!(
            origin != StateOrigin::Intact || self.statements[i].starts_with(&before),
            "it takes nothing back"
        );
    }

    fn publish(&mut self, i: usize, output: Output) {
        match output {
            Output::Statement(said)
                if said.by == party(i) && said.epoch == NOW && !said.conflicts =>
            {
                self.statements[i].push(said.signed);
            }
            Output::Statement(_) | Output::ShareRemoved(_) | Output::Reveal(..) => {}
            Output::Share(_, share) => {
                let before = self.shares[i].replace(Arc::clone(&share));
                assert!(before.is_none_or(|before| before == share), "another share left");
            }
            Output::Table(_, table) => self.tables[i] = Some(table),
        }
    }

    pub(crate) fn later(&mut self, seconds: u64) {
        self.now.0 += seconds * SECOND;
    }

    pub(crate) fn turn(&mut self) {
        self.turn_with(&mut |_, _, _| ());
    }

    /// Lets everybody act and receive until nothing changes. `lie` may change a statement before
    /// the others receive it.
    pub(crate) fn turn_with(&mut self, lie: &mut Lie) {
        let mut still = 0;
        while still < 2 {
            let before: Vec<usize> = self.statements.iter().map(Vec::len).collect();
            for i in 0..self.many() {
                self.act(i, lie);
                self.receive(i);
            }
            let moved = before != self.statements.iter().map(Vec::len).collect::<Vec<_>>();
            still = if moved { 0 } else { still + 1 };
        }
    }

    pub(crate) fn compute(&mut self, i: usize) {
        while let Some(work) = self.servers[i].next_work() {
            let done = work.run().unwrap();
            self.servers[i].handle_result(done);
        }
    }

    fn act(&mut self, i: usize, lie: &mut Lie) {
        self.compute(i);
        loop {
            let (now, rng) = (self.now, &mut self.rng);
            let Some(step) = self.servers[i].poll(now, rng) else { return };
            for output in self.commit(i, step) {
                match output {
                    Output::Statement(mut spoken) => {
                        let transcript = self.transcript();
                        spoken.signed = restated(&self.board, i, spoken.signed, |body| {
                            lie(i, &transcript, body);
                        });
                        if !self.statements[i].contains(&spoken.signed) {
                            self.publish(i, Output::Statement(spoken));
                        }
                    }
                    output => self.publish(i, output),
                }
            }
        }
    }

    /// The statements of `by` that `to` receives.
    fn statements_for(&mut self, by: usize, to: usize) -> Vec<Signed<Statement>> {
        if self.muted == Some((by, to)) {
            return Vec::new();
        }
        if !self.versions.iter().any(|version| (version.0, version.1) == (by, to)) {
            let known = self.servers[to]
                .transcript(NOW)
                .map_or(0, |heard| heard.statement_count(party(by)));
            return self.statements[by].iter().skip(known).cloned().collect();
        }
        let transcript = self.transcript();
        let mut versions = std::mem::take(&mut self.versions);
        let received = self.statements[by]
            .iter()
            .map(|said| {
                restated(&self.board, by, said.clone(), |body| {
                    for (_, _, version) in versions.iter_mut().filter(|v| (v.0, v.1) == (by, to)) {
                        version(&transcript, body);
                    }
                })
            })
            .collect();
        self.versions = versions;
        received
    }

    fn receive(&mut self, i: usize) {
        for by in (0..self.many()).filter(|by| *by != i) {
            for said in self.statements_for(by, i) {
                if let Ok(step) = self.servers[i].handle_statement(&said, party(by), NOW) {
                    let outputs = self.commit(i, step);
                    outputs.into_iter().for_each(|output| self.publish(i, output));
                }
            }
        }
        let missing = self.servers[i].missing_writes(NOW).into_iter();
        for (name, listing) in missing.filter(|_| !self.idle.contains(&i)).collect::<Vec<_>>() {
            for from in listing {
                let held = self.servers[from.index()].submission(NOW, &name).cloned();
                let Some(submission) = held else { continue };
                if let Ok(step) = self.servers[i].handle_forwarded(submission, from, &self.members)
                {
                    self.commit(i, step);
                    break;
                }
            }
        }
        let wanted = self.servers[i].missing_shares(NOW).into_iter();
        for by in wanted.filter(|_| !self.idle.contains(&i)).collect::<Vec<_>>() {
            let share =
                self.shares[by.index()].clone().filter(|_| self.withheld != Some(by.index()));
            if let Some(share) = share {
                let _ = self.servers[i].handle_share(share.to_vec(), by, NOW);
            }
        }
    }

    /// Runs from the end of the epoch to its table.
    pub(crate) fn finish(&mut self) -> Result<Reading, ReadError> {
        self.later(61);
        self.turn();
        self.read()
    }

    pub(crate) fn read(&self) -> Result<Reading, ReadError> {
        let table = self.tables.iter().flatten().next().cloned().unwrap_or_default();
        read(&self.board, &self.transcript(), &table)
    }
}

/// The same statement, or the changed one, signed again by its server.
pub(crate) fn restated(
    board: &Board,
    by: usize,
    said: Signed<Statement>,
    change: impl FnOnce(&mut Body),
) -> Signed<Statement> {
    let mut statement = said.open(board.key(party(by)).unwrap()).unwrap().into_inner();
    let honest = statement.body.clone();
    change(&mut statement.body);
    if statement.body == honest { said } else { Signed::new(&statement, &server(by)) }
}
