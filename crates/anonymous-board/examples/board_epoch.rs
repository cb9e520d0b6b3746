//! A whole epoch of three servers and three writers in one process: `cargo run -p
//! alpheus-anonymous-board --example board_epoch`.

use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::auditor::Auditor;
use alpheus_anonymous_board::configuration::{
    Board, Configuration, Epoch, Party, Schedule, Servers as Keepers,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{Reveal, Statement};
use alpheus_anonymous_board::reader::read;
use alpheus_anonymous_board::row::Format;
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::{Span, Timestamp};
use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

const SECOND: Span = Span::seconds(1);
const MINUTE: Span = Span::seconds(60);
type AnyError = Box<dyn std::error::Error>;

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(&Secret::from_bytes([number; 32]))
}

/// Three servers, their ledgers, and their publications.
struct Servers {
    board: Board,
    members: Members,
    now: Timestamp,
    rng: ChaCha20Rng,
    databases: [Database; 2],
    auditor: Auditor,
    ledgers: [BTreeMap<Vec<u8>, Vec<u8>>; 3],
    statements: [Vec<Signed<Statement>>; 3],
    shares: [Option<Arc<Vec<u8>>>; 2],
    table: Option<Arc<Vec<u8>>>,
    reveal: Option<Arc<Signed<Reveal>>>,
}

impl Servers {
    fn start() -> Result<Self, AnyError> {
        let now = Timestamp(0).plus(SECOND);
        let members = Members::new((1..=3).map(|number| key(number).verifying_key()));
        let (servers, operator) = ([10, 11, 12].map(key), key(20));
        let schedule =
            Schedule { start: now, length: MINUTE, complaints: Span(1), patience: MINUTE };
        let configuration = Configuration {
            board: [0; 32],
            format: Format::RECOVERED,
            rows: Format::RECOVERED.rows_for(10),
            writers: 10,
            min_writes: 2,
            schedule,
            servers: Keepers::Audited(servers.each_ref().map(SigningKey::verifying_key)),
            admission: members.digest(),
        };
        let signed = Signed::new(&configuration, &operator);
        let board = Board::open(&signed, &operator.verifying_key())?;
        let [first, second, auditor] = servers;
        let database = |side, key| Database::restore(&board, side, key, StateOrigin::New, [], now);
        Ok(Self {
            databases: [database(Side::First, first)?.0, database(Side::Second, second)?.0],
            auditor: Auditor::restore(&board, auditor, StateOrigin::New, [], now)?.0,
            board,
            members,
            now,
            // A real program seeds it from the operating system.
            rng: ChaCha20Rng::from_seed([7; 32]),
            ledgers: Default::default(),
            statements: Default::default(),
            shares: Default::default(),
            table: None,
            reveal: None,
        })
    }

    fn publish(&mut self, side: Side, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                // Here, each server's statements are received from itself.
                Output::Statement(said) if said.by != Party::Database(side) => {}
                Output::Statement(said) => self.statements[side.index()].push(said.signed),
                Output::Share(_, share) => self.shares[side.index()] = Some(share),
                Output::ShareRemoved(_) => {}
                Output::Table(_, table) => self.table = Some(table),
                Output::Reveal(_, reveal) => self.reveal = Some(reveal),
            }
        }
    }

    fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new(&self.board, Epoch(0));
        for party in Party::ALL {
            for said in &self.statements[party.index()] {
                // Statements of the next epoch are ignored here.
                let _ = transcript.record(party, said);
            }
        }
        transcript
    }

    /// Sends a member's write to both databases.
    fn post(&mut self, member: u8, content: Content<'_>) -> Result<(), AnyError> {
        let view = View::open(&self.board, &self.transcript())?;
        let (key, tag) = (key(member), Members::tag_of(&key(member).verifying_key()));
        let ticket = |name: &_| Members::ticket(&key, name);
        let (_, submission) = view.write(content, tag, ticket, &mut self.rng)?;
        for (database, ledger) in self.databases.iter_mut().zip(&mut self.ledgers) {
            database
                .handle_submission(submission.clone(), self.now, &self.members)?
                .commit(ledger)?;
        }
        Ok(())
    }

    /// A database receives statements, computes, and makes its next statements.
    fn turn(&mut self, side: Side) -> Result<(), AnyError> {
        let (i, other) = (side.index(), side.other());
        for by in [Party::Database(other), Party::Auditor] {
            for said in self.statements[by.index()].clone() {
                if let Ok(step) = self.databases[i].handle_statement(&said, by, Epoch(0)) {
                    let outputs = step.commit(&mut self.ledgers[i])?;
                    self.publish(side, outputs);
                }
            }
        }
        if let (true, Some(share)) =
            (!self.databases[i].missing_shares(Epoch(0)).is_empty(), &self.shares[other.index()])
        {
            self.databases[i].handle_share(share.to_vec(), other, Epoch(0))?;
        }
        while let Some(work) = self.databases[i].next_work() {
            self.databases[i].handle_result(work.run()?);
        }
        while let Some(step) = self.databases[i].poll(self.now, &mut self.rng) {
            let outputs = step.commit(&mut self.ledgers[i])?;
            self.publish(side, outputs);
        }
        Ok(())
    }

    fn audit(&mut self) -> Result<(), AnyError> {
        for side in Side::BOTH {
            for said in &self.statements[side.index()] {
                if let Ok(step) = self.auditor.handle_statement(said, side, Epoch(0), self.now) {
                    step.commit(&mut self.ledgers[2])?;
                }
            }
        }
        self.check_share()?;
        while let Some(step) = self.auditor.poll(self.now, &mut self.rng) {
            self.statements[2].push(step.commit(&mut self.ledgers[2])?.signed);
        }
        Ok(())
    }
}

impl Servers {
    /// The auditor recomputes the share of the database that its coin names.
    fn check_share(&mut self) -> Result<(), AnyError> {
        let awaited: Vec<_> = self.auditor.awaited_reveals().collect();
        for (epoch, by) in awaited {
            if let Some(reveal) = &self.reveal {
                self.auditor.handle_reveal(reveal, by, epoch)?.commit(&mut self.ledgers[2])?;
            }
        }
        while let Some(check) = self.auditor.next_check() {
            self.auditor.handle_check(&check.run());
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), AnyError> {
    let mut servers = Servers::start()?;
    // Both databases begin, and each learns the other's key.
    for _ in 0..2 {
        Side::BOTH.into_iter().try_for_each(|side| servers.turn(side))?;
    }

    // Two writers with messages, and one with a cover.
    servers.post(1, Content::Message(b"The river runs under the sea"))?;
    servers.post(2, Content::Message(b"and comes up in Syracuse"))?;
    servers.post(3, Content::Cover)?;

    // The epoch ends, and all three servers finish it.
    servers.now = servers.now.plus(MINUTE).plus(SECOND);
    for _ in 0..12 {
        servers.now = servers.now.plus(SECOND);
        Side::BOTH.into_iter().try_for_each(|side| servers.turn(side))?;
        servers.audit()?;
    }

    // Anybody can read the table.
    let table = servers.table.clone().ok_or("no table came out")?;
    let reading = read(&servers.board, &servers.transcript(), &table)?;
    println!("{} writes, {} messages:", reading.size, reading.messages.len());
    for message in &reading.messages {
        println!("  {}", String::from_utf8_lossy(message));
    }
    assert_eq!((reading.size, reading.messages.len()), (3, 2));
    Ok(())
}
