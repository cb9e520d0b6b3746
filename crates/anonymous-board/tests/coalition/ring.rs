//! Equal servers and their writers in one process, and what may go wrong between them.

use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::configuration::{
    Configuration, Epoch, Party, Pinned, Schedule, Servers, Time,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::error::Refused;
use alpheus_anonymous_board::messages::{Receipt, Statement, Submission, What};
use alpheus_anonymous_board::reader::{NotRead, Reading, read};
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, View, Written};
use alpheus_crypto::ledger::{Log, Step};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) const NOW: Epoch = Epoch(0);

/// What a server says instead of what it would: to everybody, or to one.
pub(crate) type Lie<'a> = dyn FnMut(usize, &Transcript, &mut What) + 'a;
/// Of whom, to whom, and what instead.
pub(crate) type Version = (usize, usize, Box<dyn FnMut(&Transcript, &mut What)>);

pub(crate) struct Ring {
    pub(crate) board: Pinned,
    pub(crate) now: Time,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) servers: Vec<Database>,
    pub(crate) ledgers: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// What each server has said, in its order.
    pub(crate) said: Vec<Vec<Signed<Statement>>>,
    pub(crate) shares: Vec<Option<Arc<Vec<u8>>>>,
    pub(crate) tables: Vec<Option<Arc<Vec<u8>>>>,
    pub(crate) members: Members,
    /// Commits until the next restart of a server; none for no restarts.
    pub(crate) restarts: Option<usize>,
    commits: usize,
    /// What everybody can read, as far as it was asked for.
    heard: RefCell<Transcript>,
    /// Whose share nobody gets.
    pub(crate) withheld: Option<usize>,
    /// Who says nothing to whom.
    pub(crate) unheard: Option<(usize, usize)>,
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
        format: Format { message: 40, recovery: true },
        rows,
        writers: 20,
        fewest: 2,
        schedule: Schedule {
            start: Time(1_000 * SECOND),
            length: 60 * SECOND,
            complaints: 10 * SECOND,
            patience: 30 * SECOND,
        },
        servers: Servers::Coalition((0..servers).map(|i| server(i).verifying_key()).collect()),
        admission: members().digest(),
    }
}

pub(crate) fn pinned(configuration: &Configuration) -> Pinned {
    let operator = key(255);
    Pinned::open(&Signed::new(configuration, &operator), &operator.verifying_key()).unwrap()
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

    /// Before anybody has begun.
    pub(crate) fn started(configuration: &Configuration, seed: u8) -> Self {
        let board = pinned(configuration);
        let now = Time(configuration.schedule.start.0 + 1);
        let many = board.parties().len();
        let start =
            |i| Database::restore(&board, party(i), server(i), Log::New, [], now).unwrap().0;
        Self {
            servers: (0..many).map(start).collect(),
            now,
            rng: ChaCha20Rng::from_seed([seed; 32]),
            ledgers: vec![BTreeMap::new(); many],
            said: vec![Vec::new(); many],
            shares: vec![None; many],
            tables: vec![None; many],
            members: members(),
            restarts: None,
            commits: 0,
            heard: RefCell::new(Transcript::new(&board, NOW)),
            withheld: None,
            unheard: None,
            idle: Vec::new(),
            versions: Vec::new(),
            board,
        }
    }

    pub(crate) fn many(&self) -> usize {
        self.servers.len()
    }

    /// What everybody can read.
    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = self.heard.borrow_mut();
        for (i, said) in self.said.iter().enumerate() {
            for said in said.iter().skip(transcript.heard_of(party(i))) {
                let _ = transcript.hear(party(i), said);
            }
        }
        transcript.clone()
    }

    pub(crate) fn write(&mut self, member: usize, content: Content) -> (Written, Submission) {
        let view = View::open(&self.board, &self.transcript()).unwrap();
        let key = key(member);
        let tag = Members::tag_of(&key.verifying_key());
        view.write(content, tag, |name| Members::ticket(&key, name), &mut self.rng).unwrap()
    }

    pub(crate) fn submit(
        &mut self,
        i: usize,
        submission: &Submission,
    ) -> Result<Signed<Receipt>, Refused> {
        let step = self.servers[i].submit(self.now, submission.clone(), &self.members)?;
        Ok(self.commit(i, step))
    }

    /// Posts to all servers, as an honest writer does.
    pub(crate) fn post(&mut self, member: usize, content: Content) -> (Written, Submission) {
        let (written, submission) = self.write(member, content);
        let receipts: Vec<_> =
            (0..self.many()).map(|i| self.submit(i, &submission).unwrap()).collect();
        written.received(receipts).unwrap();
        (written, submission)
    }

    pub(crate) fn commit<T>(&mut self, i: usize, step: Step<T>) -> T {
        let released = step.commit(&mut self.ledgers[i]).unwrap();
        self.commits += 1;
        if self.restarts.is_some_and(|every| self.commits.is_multiple_of(every)) {
            self.restart(i, Log::Whole);
        }
        released
    }

    /// Kills a server and starts it from its ledger.
    pub(crate) fn restart(&mut self, i: usize, log: Log) {
        let records = self.ledgers[i].clone();
        let restored =
            Database::restore(&self.board, party(i), server(i), log, records, self.now).unwrap();
        self.servers[i] = restored.0;
        let before = std::mem::take(&mut self.said[i]);
        let outputs = restored.1.commit(&mut self.ledgers[i]).unwrap();
        outputs.into_iter().for_each(|output| self.put_out(i, output));
        // What it says again is what it had said, and perhaps more.
        assert!(log != Log::Whole || self.said[i].starts_with(&before), "it takes nothing back");
    }

    fn put_out(&mut self, i: usize, output: Output) {
        match output {
            Output::Said(said) if said.by == party(i) && said.epoch == NOW && !said.conflicts => {
                self.said[i].push(said.signed);
            }
            Output::Said(_) | Output::NoShare(_) => {}
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

    /// Lets everybody do and hear whatever there is, until nothing moves; `lie` may change
    /// what a server says before the others hear it.
    pub(crate) fn turn_with(&mut self, lie: &mut Lie) {
        let mut still = 0;
        while still < 2 {
            let before: Vec<usize> = self.said.iter().map(Vec::len).collect();
            for i in 0..self.many() {
                self.let_work(i, lie);
                self.let_hear(i);
            }
            let moved = before != self.said.iter().map(Vec::len).collect::<Vec<_>>();
            still = if moved { 0 } else { still + 1 };
        }
    }

    pub(crate) fn compute(&mut self, i: usize) {
        while let Some(work) = self.servers[i].work() {
            let done = work.run().unwrap();
            self.servers[i].worked(done);
        }
    }

    fn let_work(&mut self, i: usize, lie: &mut Lie) {
        self.compute(i);
        loop {
            let (now, rng) = (self.now, &mut self.rng);
            let Some(step) = self.servers[i].advance(now, rng) else { return };
            for output in self.commit(i, step) {
                match output {
                    Output::Said(mut spoken) => {
                        let transcript = self.transcript();
                        spoken.signed = retold(&self.board, i, spoken.signed, |what| {
                            lie(i, &transcript, what);
                        });
                        if !self.said[i].contains(&spoken.signed) {
                            self.put_out(i, Output::Said(spoken));
                        }
                    }
                    output => self.put_out(i, output),
                }
            }
        }
    }

    /// What `to` hears of `by`.
    fn told(&mut self, by: usize, to: usize) -> Vec<Signed<Statement>> {
        if self.unheard == Some((by, to)) {
            return Vec::new();
        }
        if !self.versions.iter().any(|version| (version.0, version.1) == (by, to)) {
            let known =
                self.servers[to].transcript(NOW).map_or(0, |heard| heard.heard_of(party(by)));
            return self.said[by].iter().skip(known).cloned().collect();
        }
        let transcript = self.transcript();
        let mut versions = std::mem::take(&mut self.versions);
        let told = self.said[by]
            .iter()
            .map(|said| {
                retold(&self.board, by, said.clone(), |what| {
                    for (_, _, version) in versions.iter_mut().filter(|v| (v.0, v.1) == (by, to)) {
                        version(&transcript, what);
                    }
                })
            })
            .collect();
        self.versions = versions;
        told
    }

    fn let_hear(&mut self, i: usize) {
        for by in (0..self.many()).filter(|by| *by != i) {
            for said in self.told(by, i) {
                if let Ok(step) = self.servers[i].hear(party(by), NOW, &said) {
                    let outputs = self.commit(i, step);
                    outputs.into_iter().for_each(|output| self.put_out(i, output));
                }
            }
        }
        let missing = self.servers[i].missing(NOW).into_iter();
        for (name, listing) in missing.filter(|_| !self.idle.contains(&i)).collect::<Vec<_>>() {
            for from in listing {
                let held = self.servers[from.index()].submission(NOW, &name).cloned();
                let Some(submission) = held else { continue };
                if let Ok(step) = self.servers[i].forwarded(from, submission, &self.members) {
                    self.commit(i, step);
                    break;
                }
            }
        }
        let wanted = self.servers[i].wants_shares(NOW).into_iter();
        for by in wanted.filter(|_| !self.idle.contains(&i)).collect::<Vec<_>>() {
            let share =
                self.shares[by.index()].clone().filter(|_| self.withheld != Some(by.index()));
            if let Some(share) = share {
                let _ = self.servers[i].hear_share(by, NOW, share.to_vec());
            }
        }
    }

    /// From the end of the epoch to its table.
    pub(crate) fn finish(&mut self) -> Result<Reading, NotRead> {
        self.later(61);
        self.turn();
        self.read()
    }

    pub(crate) fn read(&self) -> Result<Reading, NotRead> {
        let table = self.tables.iter().flatten().next().cloned().unwrap_or_default();
        read(&self.board, &self.transcript(), &table)
    }
}

/// The same statement, or one that its server signs after a change.
pub(crate) fn retold(
    board: &Pinned,
    by: usize,
    said: Signed<Statement>,
    change: impl FnOnce(&mut What),
) -> Signed<Statement> {
    let mut statement = said.open(board.key(party(by)).unwrap()).unwrap().into_inner();
    let honest = statement.what.clone();
    change(&mut statement.what);
    if statement.what == honest { said } else { Signed::new(&statement, &server(by)) }
}
