//! Figure 5: the encoded bytes of a write, by rows of the table.

use super::PAPER;
use crate::report::{Figure, Goal};
use alpheus_anonymous_board::admission::{Admission, Members};
use alpheus_anonymous_board::configuration::{
    Board, Configuration, Epoch, Party, Schedule, Servers,
};
use alpheus_anonymous_board::database::{Database, Output};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::dpf::digest::KeyDigest;
use alpheus_anonymous_board::messages::{Body, Statement, WriteDigest, WriteName};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::{Content, View};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::StateOrigin;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeMap;

const BYTES: &str = "board, bytes that a write moves (figure 5)";
const NOW: Timestamp = Timestamp(0);

pub(super) fn figures() -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for rows in [10, 1_000, 65_536, 1_000_000, 100_000_000] {
        let (upload, receipt) = exchanged(rows)?;
        let table = f64::from(rows) * 160.0;
        let name = format!("{rows} rows: a database takes (the table has {table:.0})");
        let figure = Figure::alone(BYTES, name, "bytes", upload as f64);
        let goal = (rows == 65_536).then_some(Goal::AtMost(1500.0));
        figures.push(match goal {
            Some(goal) => figure.with_goal(goal),
            None => figure,
        });
        if rows == 65_536 {
            let name = "a database gives its writer".to_owned();
            figures.push(Figure::alone(BYTES, name, "bytes", receipt as f64));
        }
    }
    let said = statements()?;
    let name = "a database says to each of the other two servers".to_owned();
    figures.push(Figure::alone(BYTES, name, "bytes", said));
    let name = "the auditor hears of both".to_owned();
    figures.push(Figure::alone(BYTES, name, "bytes", 2.0 * said));
    Ok(figures)
}

fn length<T: serde::Serialize>(message: &T) -> Result<usize, Failure> {
    postcard::to_allocvec(message).blame(Category::Check).map(|bytes| bytes.len())
}

/// What a write adds to Close, Candidates and Open.
fn statements() -> Result<f64, Failure> {
    let said = |many: usize| {
        let writes = vec![WriteName(Digest([7; 32])); many];
        let digest = WriteDigest { digest: KeyDigest([7; 32]), shared: Digest([7; 32]) };
        let whats = [
            Body::Close {
                writes: writes.clone(),
                came: u32::try_from(many).blame(Category::Check)?,
            },
            Body::Candidates { writes, coin: [7; 32] },
            Body::Open { digests: vec![digest; many], nonce: [7; 32] },
        ];
        whats.iter().try_fold(0, |sum, what| Ok::<_, Failure>(sum + length(what)?))
    };
    // Between numbers with encodings of the same length.
    Ok((said(2_000)? - said(1_000)?) as f64 / 1_000.0)
}

/// A submission's and a receipt's length, on a board of this many rows.
fn exchanged(rows: u32) -> Result<(usize, usize), Failure> {
    let mut rng = entropy::rng()?;
    let mut key = || SigningKey::from_seed(&Secret::random(&mut rng));
    let (member, operator, servers) = (key(), key(), [key(), key(), key()]);
    let members = Members::new([member.verifying_key()]);
    let configuration = Configuration {
        board: [0; 32],
        format: PAPER,
        rows,
        writers: 2,
        min_writes: 2,
        schedule: Schedule { start: NOW, length: Span(1), complaints: Span(1), patience: Span(1) },
        servers: Servers::Audited(servers.each_ref().map(SigningKey::verifying_key)),
        admission: members.digest(),
    };
    let signed = Signed::new(&configuration, &operator);
    let board = Board::open(&signed, &operator.verifying_key()).blame(Category::Check)?;
    let mut transcript = Transcript::new(&board, Epoch(0));
    let [first, second, _] = servers;
    let mut receiving = None;
    for (side, key) in Side::BOTH.into_iter().zip([first, second]) {
        let restored = Database::restore(&board, side, key, StateOrigin::New, [], NOW);
        let (mut database, _) = restored.blame(Category::Check)?;
        for said in begun(&mut database, &mut rng)? {
            let by = Party::Database(side);
            transcript.record(by, &said).blame(Category::Check)?;
        }
        receiving = Some(database);
    }
    let view = View::open(&board, &transcript).blame(Category::Check)?;
    let tag = Members::tag_of(&member.verifying_key());
    let ticket = |name: &_| Members::ticket(&member, name);
    let (_, submission) =
        view.write(Content::Cover, tag, ticket, &mut rng).blame(Category::Check)?;
    let upload = length(&submission)?;
    let mut database = receiving.ok_or("no database").blame(Category::Check)?;
    let step = database.handle_submission(submission, NOW, &members).blame(Category::Check)?;
    let receipt = step.commit(&mut BTreeMap::new()).blame(Category::Check)?;
    Ok((upload, length(&receipt)?))
}

/// The announcement of a database at the start of an epoch.
fn begun(
    database: &mut Database,
    rng: &mut impl rand_core::CryptoRng,
) -> Result<Vec<Signed<Statement>>, Failure> {
    let mut said = Vec::new();
    while let Some(step) = database.poll(NOW, rng) {
        for output in step.commit(&mut BTreeMap::new()).blame(Category::Check)? {
            if let Output::Statement(spoken) = output {
                said.push(spoken.signed);
            }
        }
    }
    Ok(said)
}
