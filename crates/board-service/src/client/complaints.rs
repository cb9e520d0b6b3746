//! A waiting writer's complaints: found when statements arrive, and sent until the auditor has
//! judged them. No key is sent to an auditor that has other statements than the writer.

use crate::client::{BoardError, Client, PostedWrite};
use alpheus_anonymous_board::configuration::{Board, Party};
use alpheus_anonymous_board::messages::{Complaint, Grounds};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_anonymous_board::writer::WriteStatus;
use alpheus_node::failure::Failure;
use alpheus_node::network::error::RequestError;

/// Rules of refusals after which the complaint may be accepted later.
const EARLY: [&str; 2] = ["epoch", "early"];

/// Complaints that the auditor has not judged yet.
#[derive(Default)]
pub(super) struct Complaints {
    /// The number of statements when the writes were last checked.
    looked: usize,
    open: Vec<Complaint>,
    /// Whether the databases build on different versions of a statement.
    contradicted: bool,
}

impl Complaints {
    /// Finds writes to complain about, whenever statements have arrived: lists, the set, what
    /// binds a database to it, the end. Looks again if a write could not be kept.
    pub(super) fn look(
        &mut self,
        board: &Board,
        transcript: &Transcript,
        posted: &[PostedWrite],
        keep: &dyn Fn(&PostedWrite) -> Result<(), Failure>,
    ) {
        let now = board.parties().iter().map(|by| transcript.statement_count(*by)).sum();
        if now == self.looked {
            return;
        }
        let mut kept = true;
        for one in posted {
            let PostedWrite { written, submission, received } = one;
            let grounds = match written.status(transcript, received) {
                WriteStatus::Complain(grounds) => *grounds,
                status => {
                    self.contradicted |= status == WriteStatus::Contradicted;
                    continue;
                }
            };
            let complaint = written.complaint(submission, grounds);
            if self.open.contains(&complaint) {
                continue;
            }
            if let Err(failure) = keep(one) {
                tracing::error!(%failure, "cannot keep the write, so no complaint is sent");
                kept = false;
                continue;
            }
            tracing::warn!("a write was left out; sending a complaint to the auditor");
            self.open.push(complaint);
        }
        if kept {
            self.looked = now;
        }
    }

    /// Whether some complaint is not judged yet.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Sends the complaints; keeps those that the auditor cannot judge yet for the next attempt. If
    /// the databases contradict each other, it hands every server the versions it lacks instead.
    pub(super) async fn send(&mut self, client: &Client, transcript: &Transcript) {
        if self.contradicted {
            for via in client.board().parties() {
                client.has_same(*via, transcript).await;
            }
        }
        if transcript.settled_set().is_some() {
            // The auditor may ask for the other key.
            self.open.retain(|complaint| !opens_key(complaint));
        }
        while let Some(complaint) = self.open.last() {
            if opens_key(complaint) && !client.has_same(Party::Auditor, transcript).await {
                tracing::warn!("the auditor has other statements or fewer; will retry");
                return;
            }
            let sent = client.send::<bool>(Party::Auditor, "/v1/complaints", complaint).await;
            match sent {
                Ok(upheld) => tracing::warn!(upheld, "the auditor has judged"),
                Err(BoardError::Server(_, RequestError::Refused(problem)))
                    if problem.status < 500 && !EARLY.contains(&problem.rule.as_str()) =>
                {
                    tracing::warn!(%problem, "the auditor rejects the complaint");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot send the complaint; will retry");
                    return;
                }
            }
            self.open.pop();
        }
    }
}

/// Whether a complaint shows the auditor a key.
fn opens_key(complaint: &Complaint) -> bool {
    matches!(complaint.grounds, Grounds::Digest { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::VerifiedCard;
    use crate::client::{max_body, max_statement};
    use crate::test_board::{board, key};
    use alpheus_anonymous_board::coalition::audit::Answer;
    use alpheus_anonymous_board::configuration::{Board, Epoch};
    use alpheus_anonymous_board::dpf::Side;
    use alpheus_anonymous_board::dpf::Words;
    use alpheus_anonymous_board::dpf::digest::KeyDigest;
    use alpheus_anonymous_board::messages::{
        Body, Grounds, Opening, Receipt, SharedPart, Statement, Submission, Tag, WriteDigest,
        WriteName,
    };
    use alpheus_anonymous_board::writer::{Content, View};
    use alpheus_crypto::agree::AgreementKey;
    use alpheus_crypto::hash::Digest;
    use alpheus_crypto::hybrid::{HybridKey, seal};
    use alpheus_crypto::labels;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::signed_message::Signed;
    use alpheus_node::failure::Category;
    use alpheus_node::listeners::block_on;
    use alpheus_node::network::base::Base;
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::SeedableRng;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    /// A client of an auditor that returns these responses in order, and then none.
    fn client(answers: Vec<(u16, Vec<u8>)>) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Base::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        std::thread::spawn(move || {
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while request.read_line(&mut line).unwrap() > 2 {
                    let lower = line.to_ascii_lowercase();
                    let found = lower.strip_prefix("content-length:");
                    length = found.map_or(length, |found| found.trim().parse().unwrap());
                    line.clear();
                }
                request.read_exact(&mut vec![0; length]).unwrap();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            }
        });
        let (board, at) = (board(5), vec![at; 3]);
        Client::new(&VerifiedCard { board, at, authority: None, door: None }).unwrap()
    }

    /// A writer's statements prove something only if they arrive: a statement about all writes of a large
    /// board is longer than any write.
    #[test]
    fn the_longest_statements_can_be_handed_on() {
        let (writers, board) = (2_000, board(2_000));
        let encoded = |body: Body| {
            let (by, epoch) = (Side::First.into(), Epoch(0));
            let said = Statement { board: board.fingerprint(), epoch, by, sequence: 4, body };
            postcard::to_allocvec(&Signed::new(&said, &key(1))).unwrap().len()
        };
        let digest = WriteDigest { digest: KeyDigest([0xff; 32]), shared: Digest([0xff; 32]) };
        let writes = vec![WriteName(Digest([0xff; 32])); writers];
        let (digests, nonce, coin) = (vec![digest; writers], [0xff; 32], [0xff; 32]);
        let answers = vec![Answer([[[0xff; 16]; 4]; 2]); writers];
        for body in [
            Body::Close { writes: writes.clone(), came: u32::MAX },
            Body::Candidates { writes, coin },
            Body::Open { digests, nonce },
            Body::Answer { answers, nonce },
        ] {
            let length = encoded(body);
            assert!(length > max_body(&board), "{length}: no limit of its own is needed");
            assert!(length <= max_statement(&board), "{length}");
        }
    }

    fn refusal(status: u16, rule: &str) -> (u16, Vec<u8>) {
        let body = format!(r#"{{"rule":"{rule}","detail":"no","status":{status}}}"#);
        (status, body.into_bytes())
    }

    fn complaints() -> Complaints {
        let to = HybridKey::from_seed(&Secret::from_bytes([5; 32]));
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let secret = Secret::from_bytes([7; 32]);
        let sealed = seal(to.public(), labels::BOARD_ENVELOPE, &[], &secret, &mut rng).unwrap();
        let (epoch, envelopes) = (Epoch(0), vec![sealed; 2]);
        let (common, lock, ticket) = (None, None, Vec::new());
        let submission = Submission { epoch, envelopes, common, lock, ticket };
        let write = submission.name(&Digest([0; 32]));
        let receipt = Receipt { board: Digest([0; 32]), epoch, by: Side::First.into(), write };
        let grounds = Grounds::LeftOut(Signed::new(&receipt, &key(1)));
        let open = vec![Complaint { submission, grounds }];
        Complaints { open, ..Complaints::default() }
    }

    /// The number of open complaints after each attempt.
    fn tries(answers: Vec<(u16, Vec<u8>)>, times: usize) -> Vec<usize> {
        let client = client(answers);
        let transcript = Transcript::new(client.board(), Epoch(0));
        tries_of(complaints(), &client, &transcript, times)
    }

    fn tries_of(
        mut complaints: Complaints,
        client: &Client,
        transcript: &Transcript,
        times: usize,
    ) -> Vec<usize> {
        let mut open = Vec::new();
        block_on(async {
            for _ in 0..times {
                complaints.send(client, transcript).await;
                open.push(complaints.open.len());
            }
            Ok(())
        })
        .unwrap();
        open
    }

    /// An auditor that is busy, lacks statements, or answers nonsense has judged nothing.
    #[test]
    fn a_complaint_is_sent_until_it_is_judged() {
        let judged = postcard::to_allocvec(&true).unwrap();
        let nonsense = (200, b"nonsense".to_vec());
        let answers = vec![refusal(503, "busy"), refusal(409, "early"), nonsense, (200, judged)];
        assert_eq!(tries(answers, 4), [1, 1, 1, 0]);
    }

    /// Once the auditor says that it is too late, a retry is useless.
    #[test]
    fn a_late_complaint_is_dropped() {
        assert_eq!(tries(vec![refusal(409, "late")], 1), [0]);
    }

    /// Makes a database's next statement.
    fn state(transcript: &mut Transcript, board: &Board, side: Side, body: Body) {
        let (by, epoch) = (Party::Database(side), Epoch(0));
        let sequence = transcript.next_sequence(by);
        let made = Statement { board: board.fingerprint(), epoch, by, sequence, body };
        let number = if side == Side::First { 1 } else { 2 };
        transcript.record(by, &Signed::new(&made, &key(number))).unwrap();
    }

    /// Both databases have begun.
    fn begun(board: &Board) -> Transcript {
        let mut transcript = Transcript::new(board, Epoch(0));
        for (side, number) in Side::BOTH.into_iter().zip([8, 9]) {
            let seed = Secret::from_bytes([number; 32]);
            let sealing = HybridKey::from_seed(&seed).public().clone();
            let agreement = AgreementKey::from_seed(&seed).public();
            state(&mut transcript, board, side, Body::Begin { sealing, agreement });
        }
        transcript
    }

    /// An auditor without the statements that a complaint rests on cannot uphold it, and may come to
    /// hold the other key. So it is asked what it has, and gets a key only then.
    #[test]
    fn a_key_is_sent_only_to_an_auditor_that_has_the_same_statements() {
        let board = client(Vec::new()).board().clone();
        let transcript = begun(&board);
        let digests = |heard: bool| {
            let of = |by: &Party| transcript.digests(*by).filter(|_| heard).collect();
            let digests: Vec<Vec<Digest>> = Party::ALL.iter().map(of).collect();
            (200, postcard::to_allocvec(&digests).unwrap())
        };
        let mut complaints = complaints();
        let words = Words { levels: Vec::new(), payload: Vec::new(), check: [0; 64] };
        let (board, epoch, nonce) = (board.fingerprint(), Epoch(0), [0; 16]);
        let shared = SharedPart { board, epoch, tag: Tag([0; 32]), nonce, words };
        let opening = Opening { shared, root: [0; 16], seal: [0; 32], unlocks: [0; 32] };
        complaints.open[0].grounds = Grounds::Digest { side: Side::First, opening };
        let judged = (200, postcard::to_allocvec(&true).unwrap());
        let client = client(vec![digests(false), digests(true), judged]);
        assert_eq!(tries_of(complaints, &client, &transcript, 2), [1, 0]);
    }

    /// A write that could not be kept is looked at again.
    #[test]
    fn a_write_that_could_not_be_kept_is_complained_about_later() {
        let board = client(Vec::new()).board().clone();
        let mut transcript = begun(&board);
        let view = View::open(&board, &transcript).unwrap();
        let rng = &mut ChaCha20Rng::from_seed([6; 32]);
        let made = view.write(Content::Cover, Tag([1; 32]), |_| Vec::new(), rng);
        let (written, submission) = made.unwrap();
        let (fingerprint, epoch, by) = (board.fingerprint(), Epoch(0), Side::First.into());
        let receipt = Receipt { board: fingerprint, epoch, by, write: written.name() };
        let received = [Some(Signed::new(&receipt, &key(1))), None];
        let received = written.handle_some_receipts(received).unwrap();
        let (writes, coin) = (Vec::new(), [0; 32]);
        let close = Body::Close { writes: writes.clone(), came: 0 };
        state(&mut transcript, &board, Side::First, close);
        state(&mut transcript, &board, Side::First, Body::Candidates { writes, coin });
        let posted = [PostedWrite { written, submission, received }];
        let mut complaints = Complaints::default();
        let full = |_: &PostedWrite| Err(Failure::new(Category::Io, "the disk is full"));
        complaints.look(&board, &transcript, &posted, &full);
        assert!(complaints.open.is_empty());
        complaints.look(&board, &transcript, &posted, &|_| Ok(()));
        assert_eq!(complaints.open.len(), 1);
    }

    #[test]
    fn a_complaint_survives_an_unreachable_auditor() {
        assert_eq!(tries(Vec::new(), 2), [1, 1]);
    }
}
